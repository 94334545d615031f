//! The resources of a source whose changes clients want to hear of, and the reports of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toold_engine::offers::watch::ResourceUpdates;

/// Resources of one source that are watched at a time.
const MAX_WATCHED: usize = 2_000;

/// The watches of one process of a source, or of one connection to it.
#[derive(Default)]
pub struct Watches {
    subscribers: Mutex<WatchSubscribers>,
    wanted: watch::Sender<BTreeSet<String>>,
    /// Whether the source reports changes of a resource, and if not, why.
    answers: watch::Sender<BTreeMap<String, Result<(), String>>>,
    /// Fires when nothing will be reported any more.
    pub(crate) ended: CancellationToken,
}

#[derive(Default)]
struct WatchSubscribers {
    /// By URI.
    all: BTreeMap<String, Vec<(u64, Arc<ResourceUpdates>)>>,
    next: u64,
}

/// A watch, until this is dropped.
pub(crate) struct WatchGuard {
    watches: Arc<Watches>,
    uri: String,
    number: u64,
}

impl Watches {
    /// The resources whose changes the source should report. Changes often.
    pub fn wanted(&self) -> watch::Receiver<BTreeSet<String>> {
        self.wanted.subscribe()
    }

    /// The source reports changes of a resource from now on, or says why it does not.
    pub fn answer(&self, uri: &str, answer: Result<(), String>) {
        self.answers.send_modify(|answers| _ = answers.insert(uri.to_owned(), answer));
    }

    /// The source is about to be asked not to report changes of a resource any more: whoever wants them again waits for its
    /// next answer.
    pub fn forget_answer(&self, uri: &str) {
        self.answers.send_modify(|answers| _ = answers.remove(uri));
    }

    /// The source reports that a resource has changed: the one of this URI, or one below it. Never blocks.
    pub fn report(&self, uri: &str) {
        let is_of = |watched: &str| match uri.strip_prefix(watched) {
            Some("") => true,
            Some(below) => watched.ends_with('/') || below.starts_with(['/', '?', '#']),
            None => false,
        };
        let subscribers = self.subscribers.lock();
        for (watched, updates) in subscribers.all.iter().filter(|(watched, _)| is_of(watched)) {
            updates.iter().for_each(|(_, updates)| updates.report(watched));
        }
    }

    /// Everything may have changed.
    pub(crate) fn report_all(&self) {
        for (uri, updates) in &self.subscribers.lock().all {
            updates.iter().for_each(|(_, updates)| updates.report(uri));
        }
    }

    /// # Errors
    /// Too many resources are watched.
    pub(crate) fn add(self: &Arc<Self>, uri: &str, updates: Arc<ResourceUpdates>) -> Result<WatchGuard, String> {
        let mut subscribers = self.subscribers.lock();
        if !subscribers.all.contains_key(uri) && subscribers.all.len() >= MAX_WATCHED {
            return Err(format!(
                "{MAX_WATCHED} of its resources are subscribed to already: unsubscribe from one first"
            ));
        }
        let number = subscribers.next;
        subscribers.next += 1;
        subscribers.all.entry(uri.to_owned()).or_default().push((number, updates));
        self.wanted.send_if_modified(|wanted| wanted.insert(uri.to_owned()));
        Ok(WatchGuard { watches: self.clone(), uri: uri.to_owned(), number })
    }

    /// Waits until the source reports changes of a resource. Cancel-safe.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) async fn answered(&self, uri: &str) -> Result<(), String> {
        let mut answers = self.answers.subscribe();
        let answered = answers.wait_for(|answers| answers.contains_key(uri)).await;
        answered.ok().and_then(|answers| answers.get(uri).cloned()).unwrap_or(Ok(()))
    }

    /// The connection is over: the source has to be asked again.
    pub(crate) fn forget_answers(&self) {
        self.answers.send_replace(BTreeMap::new());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.subscribers.lock().all.is_empty()
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let Self { watches, uri, number } = self;
        let mut subscribers = watches.subscribers.lock();
        let Some(of_uri) = subscribers.all.get_mut(uri) else { return };
        of_uri.retain(|(other, _)| other != number);
        if of_uri.is_empty() {
            subscribers.all.remove(uri);
            watches.wanted.send_if_modified(|wanted| wanted.remove(uri));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn changes_reach_those_that_watch_the_resource() {
        let watches = Arc::new(Watches::default());
        let (a, b) = (Arc::new(ResourceUpdates::default()), Arc::new(ResourceUpdates::default()));
        let first = watches.add("x://a", a.clone()).unwrap();
        let second = watches.add("x://a/b", b.clone()).unwrap();
        let mut wanted = watches.wanted();
        assert_eq!(wanted.borrow_and_update().len(), 2);
        watches.report("x://a/b");
        watches.report("x://other");
        watches.report("x://ab");
        assert_eq!(a.next().now_or_never(), Some(BTreeSet::from(["x://a".to_owned()])));
        assert_eq!(b.next().now_or_never(), Some(BTreeSet::from(["x://a/b".to_owned()])));
        drop(second);
        watches.report("x://a/b/c");
        assert!(a.next().now_or_never().is_some() && b.next().now_or_never().is_none());
        drop(first);
        assert!(watches.is_empty() && wanted.borrow_and_update().is_empty());
        watches.report("x://a");
        assert!(a.next().now_or_never().is_none());
    }
}
