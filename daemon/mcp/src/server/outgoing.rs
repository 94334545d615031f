//! A notification on its way to the client, for senders that stop when the result of their request is there.

use std::future::Future;

use futures_util::future::BoxFuture;

/// The notification that is being sent, if any. It is kept when the future that waits for it is dropped: otherwise it would be
/// lost, or come after the result.
#[derive(Default)]
pub(super) struct OutgoingNotification(Option<BoxFuture<'static, ()>>);

impl OutgoingNotification {
    /// Begins to send one, after [`Self::sent`]: another must not overtake it.
    pub(super) fn begin(&mut self, sending: impl Future<Output = ()> + Send + 'static) {
        self.0 = Some(Box::pin(sending));
    }

    /// Waits until it is sent. Cancel-safe.
    pub(super) async fn sent(&mut self) {
        if let Some(sending) = &mut self.0 {
            sending.await;
            self.0 = None;
        }
    }
}
