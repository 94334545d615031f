//! The resources whose changes one client wants to hear of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use toold_engine::Engine;
use toold_engine::call::Call;
use toold_engine::offers::OfferError;
use toold_engine::offers::watch::{ResourceUpdates, WatchedResource, watch};
use toold_engine::session::Session;

/// Resources that one client can subscribe to.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1_000;

/// The subscriptions of one connection, or of one `subscriptions/listen`.
#[derive(Default)]
pub(crate) struct ResourceSubscriptions {
    updates: Arc<ResourceUpdates>,
    all: Mutex<BTreeMap<String, ResourceSubscription>>,
    /// One at a time, or two would watch the same resource.
    renewing: tokio::sync::Mutex<()>,
}

struct ResourceSubscription {
    session: Arc<Session>,
    /// `None` while no source offers such a resource.
    watched: Option<WatchedResource>,
}

impl ResourceSubscriptions {
    /// Subscribes to a resource; one that no source offers is watched when one does. `call` is of the session.
    ///
    /// # Errors
    /// The session may not read it; its source does not report changes; too many are subscribed to.
    pub(super) async fn add(&self, engine: &Arc<Engine>, uri: &str, call: Call) -> Result<(), OfferError> {
        let is_full = {
            let all = self.all.lock();
            !all.contains_key(uri) && all.len() >= MAX_SUBSCRIPTIONS
        };
        if is_full {
            let words = format!("{MAX_SUBSCRIPTIONS} resources are subscribed to already: unsubscribe from one first");
            return Err(OfferError::Arguments(words));
        }
        let session = call.session.clone();
        let watched = match watch(engine, uri, &self.updates, call).await {
            Ok(watched) => Some(watched),
            Err(OfferError::NoResource(_)) => None,
            Err(error) => return Err(error),
        };
        self.all.lock().insert(uri.to_owned(), ResourceSubscription { session, watched });
        Ok(())
    }

    pub(super) fn remove(&self, uri: &str) {
        self.all.lock().remove(uri);
    }

    pub(super) fn clear(&self) {
        self.all.lock().clear();
    }

    /// Waits for changes of resources. Cancel-safe.
    pub(super) async fn next(&self) -> BTreeSet<String> {
        let mut changed = self.updates.next().await;
        let all = self.all.lock();
        changed.retain(|uri| all.contains_key(uri));
        changed
    }

    /// Watches again what sources have replaced, and reports it as changed. A resource that may not be read any more is not
    /// watched.
    pub(super) async fn renew(&self, engine: &Arc<Engine>, call: impl Fn(Arc<Session>) -> Call) {
        let _turn = self.renewing.lock().await;
        let outdated: Vec<(String, Arc<Session>)> = {
            let all = self.all.lock();
            let is_outdated = |uri: &str, subscription: &ResourceSubscription| {
                let watched = subscription.watched.as_ref();
                watched.is_none_or(|watched| !watched.is_current(engine, uri, &subscription.session))
            };
            let outdated = all.iter().filter(|(uri, subscription)| is_outdated(uri, subscription));
            outdated.map(|(uri, subscription)| (uri.clone(), subscription.session.clone())).collect()
        };
        for (uri, session) in outdated.into_iter().filter(|(_, session)| !session.closed.is_cancelled()) {
            let watched = watch(engine, &uri, &self.updates, call(session)).await;
            if let Err(error) = &watched {
                tracing::debug!(uri, %error, "a resource that a client subscribed to is not watched");
            }
            let mut all = self.all.lock();
            let Some(subscription) = all.get_mut(&uri) else { continue };
            let before = std::mem::replace(&mut subscription.watched, watched.ok());
            if before.is_some() || subscription.watched.is_some() {
                self.updates.report(&uri);
            }
        }
    }
}
