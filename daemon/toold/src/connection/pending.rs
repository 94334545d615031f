//! Requests that wait.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::{PendingReply, Reply};

/// The requests in flight of one connection. Takes no memory before the first one that waits: most clients are idle, and
/// most requests are answered at once.
#[derive(Default)]
pub(super) struct Pending(Option<FuturesUnordered<PendingReply>>);

impl Pending {
    pub(super) fn push(&mut self, reply: PendingReply) {
        self.0.get_or_insert_default().push(reply);
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, FuturesUnordered::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next one that is answered; `None` when none is in flight. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Reply> {
        self.0.as_mut()?.next().await
    }
}
