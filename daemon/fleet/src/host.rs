//! The parts of the daemon that a fleet uses beside the engine.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toold_engine::session::Session;
use toold_proto::audit::AuditEntry;

use crate::messages::CallOrigin;

pub trait FleetHost: Send + Sync + 'static {
    /// Waits until the tools that are there at the start have been loaded: before, those of plugins are missing.
    fn tools_loaded(&self) -> BoxFuture<'static, ()>;

    /// Opens or resumes the session in which the calls of a session elsewhere run. It belongs to that daemon: no agent here
    /// can join it.
    ///
    /// # Errors
    /// As a sentence for the caller.
    fn open_session(&self, origin: &CallOrigin, session: &str) -> BoxFuture<'static, Result<Arc<Session>, String>>;

    /// Rows of the audit log after the one of this id, in the order of their ids, at most `limit`; also whether there are
    /// more. `None` for `after` begins with the oldest.
    ///
    /// # Errors
    /// As a sentence for the log.
    fn audit_after(
        &self,
        after: Option<u64>,
        limit: u64,
    ) -> BoxFuture<'static, Result<(Vec<AuditEntry>, bool), String>>;

    /// The id of the newest row of the audit log; 0 when there is none.
    fn newest_audit_row(&self) -> BoxFuture<'static, Result<u64, String>>;
}
