//! Changes of the contents of single resources, for clients that subscribe to them.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{OfferError, Resource};
use crate::Engine;
use crate::call::Call;
use crate::callable::Callable;
use crate::execute::execute_tool;
use crate::session::Session;

/// A source that reports changes of its resources.
pub trait ResourceWatcher: Send + Sync + 'static {
    /// A tool that begins to report changes of the resource `{"uri": text}` to `updates`, and leaves the watch in `slot`. It
    /// returns when changes are reported. Reporting needs the same permission as reading.
    fn watch(&self, updates: Arc<ResourceUpdates>, slot: Arc<WatchSlot>) -> Arc<dyn Callable>;
}

/// Changes that a subscriber has not heard of yet. It holds no more than the subscriber has subscribed to.
#[derive(Default)]
pub struct ResourceUpdates {
    uris: Mutex<BTreeSet<String>>,
    reported: Notify,
}

impl ResourceUpdates {
    pub fn report(&self, uri: &str) {
        self.uris.lock().insert(uri.to_owned());
        self.reported.notify_one();
    }

    /// Waits until there are changes, and takes them. For one subscriber; cancel-safe.
    pub async fn next(&self) -> BTreeSet<String> {
        loop {
            let changed = std::mem::take(&mut *self.uris.lock());
            if !changed.is_empty() {
                return changed;
            }
            self.reported.notified().await;
        }
    }
}

/// Where a watcher leaves the watch that it began.
#[derive(Default)]
pub struct WatchSlot(Mutex<Option<ResourceWatch>>);

impl WatchSlot {
    pub fn fill(&self, watch: ResourceWatch) {
        *self.0.lock() = Some(watch);
    }
}

/// Changes are reported until this is dropped.
pub struct ResourceWatch {
    _guard: Box<dyn Any + Send + Sync>,
    ended: CancellationToken,
}

impl ResourceWatch {
    /// `guard` ends the watch when it is dropped. `ended` fires when nothing will be reported any more.
    pub fn new(guard: impl Any + Send + Sync, ended: CancellationToken) -> Self {
        Self { _guard: Box::new(guard), ended }
    }
}

/// A resource that a client has subscribed to.
pub struct WatchedResource {
    resource: Weak<Resource>,
    watch: Option<ResourceWatch>,
}

/// Begins to report changes of a resource. `call` as for [`read`](super::read). A resource whose source reports no changes
/// is watched too: it changes when its source replaces it.
///
/// # Errors
/// As for [`read`](super::read); its source cannot report changes of this one.
pub async fn watch(
    engine: &Arc<Engine>,
    uri: &str,
    updates: &Arc<ResourceUpdates>,
    call: Call,
) -> Result<WatchedResource, OfferError> {
    let found = engine.offers.resource(&call.session, uri);
    let (resource, _) = found.ok_or_else(|| OfferError::NoResource(uri.to_owned()))?;
    let mut watch = None;
    if let Some(watcher) = &resource.watcher {
        let slot = Arc::new(WatchSlot::default());
        let begin = watcher.watch(updates.clone(), slot.clone());
        let name = begin.spec().name.to_string();
        let result = execute_tool(engine, begin, Call { name, arguments: json!({"uri": uri}), ..call }).await?;
        if result.is_error {
            return Err(OfferError::Failed(result.text()));
        }
        watch = slot.0.lock().take();
    }
    Ok(WatchedResource { resource: Arc::downgrade(&resource), watch })
}

impl WatchedResource {
    /// Whether the session would read the same resource of the same source at this URI now, and its changes are reported.
    pub fn is_current(&self, engine: &Engine, uri: &str, session: &Session) -> bool {
        let now = engine.offers.resource(session, uri);
        now.is_some_and(|(resource, _)| std::ptr::eq(Arc::as_ptr(&resource), self.resource.as_ptr()))
            && self.watch.as_ref().is_none_or(|watch| !watch.ended.is_cancelled())
    }
}
