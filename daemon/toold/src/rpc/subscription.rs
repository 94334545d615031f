//! What every subscription does: check the request, accept, hand items over until either side ends it.

use std::marker::PhantomData;

use jsonrpsee::core::server::SubscriptionSink;
use jsonrpsee::types::response::{SubscriptionPayload, SubscriptionResponse};
use jsonrpsee::types::{ErrorObjectOwned, SubscriptionId};
use serde_json::value::to_raw_value;
use toold_proto::method::Subscription;

use crate::rpc::outboxes::Writer;

use super::{Module, Request, read_params, scope};

/// Where a subscription puts its items.
pub(super) struct Subscriber<S> {
    sink: SubscriptionSink,
    outbox: Writer,
    /// Bytes that jsonrpsee puts around an item.
    envelope: usize,
    items: PhantomData<fn(S)>,
}

/// The subscriber is gone.
pub(super) struct Gone;

impl<S: Subscription> Subscriber<S> {
    fn new(sink: SubscriptionSink, outbox: Writer) -> Self {
        let payload = SubscriptionPayload { subscription: sink.subscription_id(), result: () };
        let around_null = to_raw_value(&SubscriptionResponse::new(sink.method_name().into(), payload));
        let envelope = around_null.map_or(0, |json| json.get().len() - "null".len());
        Self { sink, outbox, envelope, items: PhantomData }
    }

    /// Waits until the subscription was ended or its connection is gone. Cancel-safe.
    pub(super) async fn gone(&self) {
        self.sink.closed().await;
    }

    /// Waits for a slow reader.
    ///
    /// # Errors
    /// The subscriber is gone.
    pub(super) async fn send(&self, item: &S::Item) -> Result<(), Gone> {
        let Ok(json) = to_raw_value(item) else { return Ok(()) };
        let room = tokio::select! {
            () = self.gone() => return Err(Gone),
            room = self.outbox.room_for(self.envelope + json.get().len()) => room,
        };
        self.sink.send(json).await.map_err(|_| Gone)?;
        room.forget();
        Ok(())
    }
}

/// Registers a subscription. `open` runs in the order of the requests and makes what the items come from; `serve` runs
/// beside what the connection asks for next, until it returns.
pub(super) fn add_subscription<S, T, F>(
    module: &mut Module,
    open: impl Fn(&Request, S::Params, &SubscriptionId<'_>) -> Result<T, ErrorObjectOwned> + Clone + Send + Sync + 'static,
    serve: impl Fn(Subscriber<S>, T) -> F + Clone + Send + Sync + 'static,
) -> anyhow::Result<()>
where
    S: Subscription + 'static,
    T: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    module.rpc.register_subscription(
        S::NAME,
        S::ITEM_METHOD,
        S::UNSUBSCRIBE,
        move |params, pending, state, extensions| {
            let (open, serve) = (open.clone(), serve.clone());
            async move {
                let opened = Request::of(&state, &extensions)
                    .and_then(|request| open(&request, read_params(&params)?, &pending.subscription_id()));
                let opened = match opened {
                    Ok(opened) => opened,
                    Err(error) => return pending.reject(error).await,
                };
                let accepted = pending.accept().await;
                let Ok(scope) = scope(&extensions) else { return };
                scope.note_subscribed();
                let Ok(sink) = accepted else { return };
                let subscriber = Subscriber::new(sink, scope.connection.outbox.writer().clone());
                serve(subscriber, opened).await;
            }
        },
    )?;
    Ok(())
}
