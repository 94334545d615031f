//! Calls that outlive whoever made them: how they ended is kept with their session for a while.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use toold_proto::tool::{CallId, ToolResult};

use crate::execute::{Call, CallError};
use crate::session::Session;

/// How long the end of a detached call is kept.
pub const KEPT: Duration = Duration::from_secs(600);
/// Ends that one session keeps; the oldest go first.
const MAX_KEPT: usize = 64;

/// How a detached call ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub call_id: CallId,
    pub tool: String,
    pub started_at: SystemTime,
    pub answer: Result<ToolResult, CallError>,
}

/// A call that is, or may become, a detached one; made before it runs.
pub struct Detached {
    session: Arc<Session>,
    call_id: Option<CallId>,
    tool: String,
    started_at: SystemTime,
}

impl Detached {
    pub fn of(call: &Call) -> Self {
        let (session, call_id, tool) = (call.session.clone(), call.call_id.clone(), call.name.clone());
        Self { session, call_id, tool, started_at: SystemTime::now() }
    }

    /// Keeps how it ended. One that was given no id is kept by none.
    pub fn keep(self, answer: &Result<ToolResult, CallError>) {
        let Self { session, call_id: Some(call_id), tool, started_at } = self else { return };
        session.slot::<All>().keep(Ended { call_id, tool, started_at, answer: answer.clone() });
    }
}

/// The ends that a session keeps, the oldest first.
pub fn ended(session: &Session) -> Vec<Ended> {
    session.slot::<All>().list()
}

/// Forgets the ends that were kept for long enough.
pub fn forget_old(session: &Session) {
    if let Some(all) = session.slot_if_any::<All>() {
        all.list();
    }
}

#[derive(Default)]
struct All(Mutex<VecDeque<(Instant, Ended)>>);

impl All {
    fn keep(&self, ended: Ended) {
        let mut kept = self.lock();
        if kept.len() == MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back((Instant::now(), ended));
    }

    fn list(&self) -> Vec<Ended> {
        let mut kept = self.lock();
        kept.retain(|(at, _)| at.elapsed() < KEPT);
        kept.iter().map(|(_, ended)| ended.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, Ended)>> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}
