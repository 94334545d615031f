//! Calls of this daemon that run on others.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_proto::tool::{CallId, SessionId};

/// By their ids there.
#[derive(Default)]
pub(crate) struct OutgoingCalls(Mutex<HashMap<String, Weak<Cx>>>);

/// A call that runs elsewhere, until it is dropped.
pub(crate) struct OutgoingGuard<'c> {
    calls: &'c OutgoingCalls,
    id: String,
}

impl OutgoingCalls {
    pub(crate) fn enter(&self, id: &str, cx: &Cx) -> OutgoingGuard<'_> {
        self.0.lock().insert(id.to_owned(), Arc::downgrade(&cx.shared()));
        OutgoingGuard { calls: self, id: id.to_owned() }
    }

    /// The calls of a session here that wait for one of these calls there. Calls that a tool makes there are not known here:
    /// without a match it is every call of the session.
    pub(crate) fn waiting_for(&self, session: &SessionId, theirs: &[CallId]) -> Vec<Arc<Cx>> {
        let calls = self.0.lock();
        let of_session = |cx: &Weak<Cx>| cx.upgrade().filter(|cx| cx.session.id == *session);
        let matching: Vec<Arc<Cx>> =
            theirs.iter().filter_map(|id| calls.get(id.as_str())).filter_map(of_session).collect();
        if matching.is_empty() { calls.values().filter_map(of_session).collect() } else { matching }
    }
}

impl Drop for OutgoingGuard<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.id);
    }
}
