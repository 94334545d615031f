//! The items of a subscription.

use std::marker::PhantomData;

use jsonrpsee::core::client::{Subscription as Inner, SubscriptionCloseReason};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::client::Client;
use crate::error::ClientError;

/// A stream of items, from [`crate::Client::subscribe`]. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Items<T> {
    inner: Inner<Box<RawValue>>,
    /// The connection lives as long as somebody waits for its items.
    _client: Client,
    lag_told: bool,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Items<T> {
    pub(crate) fn new(client: Client, inner: Inner<Box<RawValue>>) -> Self {
        Self { inner, _client: client, lag_told: false, item: PhantomData }
    }

    /// The next item; `None` when the subscription or the connection has ended. Cancel-safe.
    ///
    /// 65,536 items wait to be taken; one more ends the subscription, and the last item is then
    /// [`ClientError::Lagged`]. An item that does not read as a `T` is an error of its own and ends
    /// nothing.
    pub async fn next(&mut self) -> Option<Result<T, ClientError>> {
        match self.inner.next().await {
            Some(Ok(raw)) => Some(serde_json::from_str(raw.get()).map_err(ClientError::BadAnswer)),
            Some(Err(error)) => Some(Err(ClientError::BadAnswer(error))),
            None => {
                let lagged = matches!(self.inner.close_reason(), Some(SubscriptionCloseReason::Lagged));
                let tell = lagged && !self.lag_told;
                self.lag_told = true;
                tell.then_some(Err(ClientError::Lagged))
            }
        }
    }
}
