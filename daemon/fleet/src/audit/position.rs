//! The last row of the audit log that was sent, in a file of this daemon.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use toold_host::state_file;
use toold_proto::audit::AuditEntry;
use toold_proto::tool::CallId;

use crate::member::Member;

/// Bytes of the file.
const MAX_FILE: u64 = 4_096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuditPosition {
    /// The id of the database that the row is in: random, and another one when the database is.
    pub(super) log: String,
    pub(super) row: u64,
    /// The call of that row, which tells it from one of the same number in another database; absent at the start of one.
    pub(super) call_id: Option<CallId>,
    /// When that call began: RFC 3339, UTC.
    pub(super) at: String,
    /// Nothing has been sent yet.
    #[serde(default)]
    pub(super) is_first: bool,
    /// The audit log is not wanted.
    #[serde(default)]
    pub(super) is_off: bool,
}

impl AuditPosition {
    /// Before the first row.
    pub(super) fn start(log: &str) -> Self {
        Self { log: log.to_owned(), row: 0, call_id: None, at: String::new(), is_first: false, is_off: false }
    }

    pub(super) fn of(log: &str, row: &AuditEntry) -> Self {
        let (call_id, at) = (Some(row.call_id.clone()), row.at.clone());
        Self { row: row.id, call_id, at, ..Self::start(log) }
    }

    fn file(member: &Member) -> PathBuf {
        member.connection.state_dir.join(format!("audit-{}.json", member.name))
    }

    pub(super) async fn load(member: &Arc<Member>) -> Option<Self> {
        let file = Self::file(member);
        spawn_blocking(move || state_file::load(&file, MAX_FILE)).await.ok().flatten()
    }

    /// # Errors
    /// As a sentence for the user.
    pub(super) async fn save(&self, member: &Arc<Member>) -> Result<(), String> {
        let (file, position) = (Self::file(member), self.clone());
        let saved = spawn_blocking(move || {
            state_file::save(&file, &position).map_err(|error| format!("can't write {}: {error}", file.display()))
        });
        saved.await.map_err(|error| error.to_string())?
    }
}
