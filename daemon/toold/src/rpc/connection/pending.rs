//! Requests that wait.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::{MessageReply, PendingReply, RequestId};

/// The requests in flight of one connection. Takes no memory before the first one that waits: most clients are idle, and
/// most requests are answered at once.
#[derive(Default)]
pub(super) struct PendingRequests(Option<Box<InFlightRequests>>);

#[derive(Default)]
struct InFlightRequests {
    replies: FuturesUnordered<PendingReply>,
    tokens: HashMap<RequestId, CancellationToken>,
}

impl PendingRequests {
    /// What cancels the request of an id, until its reply is there.
    pub(super) fn enter(&mut self, id: RequestId, token: CancellationToken) {
        self.0.get_or_insert_default().tokens.insert(id, token);
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.as_ref().is_some_and(|waiting| waiting.tokens.contains_key(id))
    }

    /// Cancels a request; one that is not in flight is none of ours.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(token) = self.0.as_ref().and_then(|waiting| waiting.tokens.get(id)) {
            token.cancel();
        }
    }

    pub(super) fn push(&mut self, reply: PendingReply) {
        self.0.get_or_insert_default().replies.push(reply);
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.replies.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next one that is answered; `None` when none is in flight. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<MessageReply> {
        let InFlightRequests { replies, tokens } = self.0.as_deref_mut()?;
        let reply = replies.next().await?;
        for id in &reply.ids {
            tokens.remove(id);
        }
        Some(reply)
    }
}
