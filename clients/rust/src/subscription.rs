//! Subscriptions, and the items that they deliver.

use std::marker::PhantomData;

use jsonrpsee::core::client::{Subscription as RawItems, SubscriptionCloseReason};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use toold_proto::method::Subscription;

use crate::client::Client;
use crate::error::ClientError;
use crate::link::NamedParams;

/// A stream of items, from [`Client::subscribe`]. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Items<T> {
    raw: RawItems<Box<RawValue>>,
    /// Keeps the connection open as long as its items are awaited.
    _client: Client,
    lag_reported: bool,
    item: PhantomData<fn() -> T>,
}

impl Client {
    /// Subscribes. The items begin with those that were sent right after the answer.
    pub async fn subscribe<S: Subscription>(&self, params: S::Params) -> Result<Items<S::Item>, ClientError> {
        self.subscribe_as::<S, S::Item>(params).await
    }

    /// Subscribes, and reads the items as another type: as a `Value`, items that are newer than this
    /// client can be read too.
    pub async fn subscribe_as<S: Subscription, T: DeserializeOwned>(
        &self,
        params: S::Params,
    ) -> Result<Items<T>, ClientError> {
        let params = NamedParams::new(&params)?;
        self.subscription_begins();
        loop {
            let link = self.link();
            let subscribed = link.subscribe(S::NAME, params.clone(), S::UNSUBSCRIBE);
            let error = match self.awaited(S::NAME, subscribed).await {
                Ok(raw) => {
                    return Ok(Items { raw, _client: self.clone(), lag_reported: false, item: PhantomData });
                }
                Err(error) => error,
            };
            if !matches!(error, ClientError::Replaced) || !self.may_reconnect(1) {
                if matches!(error, ClientError::Rpc(_)) {
                    self.subscription_refused();
                }
                return Err(self.note_replaced(error));
            }
            self.reconnect(&link).await?;
        }
    }
}

impl<T: DeserializeOwned> Items<T> {
    /// The next item; `None` when the subscription or the connection has ended. Cancel-safe.
    ///
    /// Up to 65,536 items wait to be read; one more ends the subscription, and the last item is then
    /// [`ClientError::Lagged`]. An item that does not read as a `T` is an error of its own, and the subscription
    /// continues.
    pub async fn next(&mut self) -> Option<Result<T, ClientError>> {
        match self.raw.next().await {
            Some(Ok(raw)) => Some(serde_json::from_str(raw.get()).map_err(ClientError::BadAnswer)),
            Some(Err(error)) => Some(Err(ClientError::BadAnswer(error))),
            None => {
                let lagged = matches!(self.raw.close_reason(), Some(SubscriptionCloseReason::Lagged));
                let report = lagged && !self.lag_reported;
                self.lag_reported = true;
                report.then_some(Err(ClientError::Lagged))
            }
        }
    }
}
