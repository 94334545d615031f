//! The requests of a client that wait for an answer. Two with one id would have one answer.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio::sync::Notify;

/// The requests that wait for an answer, on a stream by their ids, on HTTP by session and id.
pub(super) struct OpenRequests<K = RequestId> {
    ids: Mutex<HashSet<K>>,
    changed: Notify,
}

impl<K> Default for OpenRequests<K> {
    fn default() -> Self {
        Self { ids: Mutex::default(), changed: Notify::new() }
    }
}

impl<K: Eq + Hash + Clone> OpenRequests<K> {
    pub(super) fn len(&self) -> usize {
        self.ids.lock().len()
    }

    pub(super) fn has(&self, id: &K) -> bool {
        self.ids.lock().contains(id)
    }

    /// False if it waits already.
    pub(super) fn insert(&self, id: K) -> bool {
        self.ids.lock().insert(id)
    }

    pub(super) fn remove(&self, id: &K) {
        self.ids.lock().remove(id);
        self.changed.notify_waiters();
    }

    /// Completes when a request has been removed after this call.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }

    /// Adds a request, until the guard is dropped; `None` if it waits already.
    pub(super) fn enter(self: &Arc<Self>, id: K) -> Option<OpenRequestGuard<K>> {
        self.insert(id.clone()).then(|| OpenRequestGuard { all: self.clone(), id })
    }
}

/// A request that waits for its answer.
pub(super) struct OpenRequestGuard<K: Eq + Hash + Clone> {
    all: Arc<OpenRequests<K>>,
    id: K,
}

impl<K: Eq + Hash + Clone> Drop for OpenRequestGuard<K> {
    fn drop(&mut self) {
        self.all.remove(&self.id);
    }
}
