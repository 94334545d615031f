//! The common part of subscriptions: check the request, accept, deliver items until either side
//! ends it.

use std::marker::PhantomData;

use futures_util::FutureExt;
use jsonrpsee::core::server::SubscriptionSink;
use jsonrpsee::types::response::{SubscriptionPayload, SubscriptionResponse};
use jsonrpsee::types::{ErrorObjectOwned, SubscriptionId};
use serde_json::value::to_raw_value;
use toold_proto::method::Subscription;

use crate::rpc::outboxes::OutboxWriter;

use super::{MethodRequest, MethodTable, read_params, scope};

/// The sink for a subscription's items.
pub(super) struct ItemSubscriber<S> {
    sink: SubscriptionSink,
    outbox: OutboxWriter,
    /// Bytes that jsonrpsee adds around an item.
    envelope: usize,
    items: PhantomData<fn(S)>,
}

/// The subscriber is gone.
pub(super) struct SubscriberGone;

impl<S: Subscription> ItemSubscriber<S> {
    fn new(sink: SubscriptionSink, outbox: OutboxWriter) -> Self {
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
    pub(super) async fn send(&self, item: &S::Item) -> Result<(), SubscriberGone> {
        let Ok(json) = to_raw_value(item) else { return Ok(()) };
        let room = tokio::select! {
            () = self.gone() => return Err(SubscriberGone),
            room = self.outbox.room_for(self.envelope + json.get().len()) => room,
        };
        let Some(room) = room else { return Err(SubscriberGone) };
        self.sink.send(json).await.map_err(|_| SubscriberGone)?;
        room.keep();
        Ok(())
    }
}

/// Registers a subscription. `open` runs in the order of the requests and creates the source of the
/// items; `serve` runs in parallel to the connection's later requests, until it returns.
pub(super) fn add_subscription<S, T, F>(
    module: &mut MethodTable,
    open: impl Fn(&MethodRequest, S::Params, &SubscriptionId<'_>) -> Result<T, ErrorObjectOwned>
    + Clone
    + Send
    + Sync
    + 'static,
    serve: impl Fn(ItemSubscriber<S>, T) -> F + Clone + Send + Sync + 'static,
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
        move |params, pending, services, extensions| {
            let (open, serve) = (open.clone(), serve.clone());
            async move {
                let opened = MethodRequest::of(&services, &extensions)
                    .and_then(|request| open(&request, read_params(&params)?, &pending.subscription_id()));
                let opened = match opened {
                    Ok(opened) => opened,
                    Err(error) => return pending.reject(error).await,
                };
                let accepted = pending.accept().await;
                let Ok(scope) = scope(&extensions) else { return };
                scope.note_subscribed();
                let Ok(sink) = accepted else { return };
                let subscriber = ItemSubscriber::new(sink, scope.connection.outbox.writer().clone());
                serve(subscriber, opened).await;
            }
            .boxed()
        },
    )?;
    Ok(())
}
