//! Events: numbered, bounded, and replayed to new subscribers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::broadcast;
use toold_proto::call::Progress;
use toold_proto::daemon::EventsFill;
use toold_proto::event::{Event, EventBody};

use crate::argument_line::ArgumentLine;
use crate::redact;
use crate::spool::cut;

/// How many events are held for replay, and how far a subscriber may fall behind.
pub const RING: usize = 1_000;

/// Bytes that an event takes as JSON: it is kept for later subscribers and for subscribers that are
/// behind.
const MAX_EVENT: usize = 64 * 1024;
/// Bytes of each text of an event that takes more.
const MAX_TEXT: usize = 2 * 1024;

/// One event. The sender makes the wire's form of it, off the hot path.
#[derive(Debug)]
pub struct Emitted {
    pub seq: u64,
    pub at: SystemTime,
    pub body: EventBody,
    /// The arguments of a call that starts. They become a text only when a subscriber receives them.
    arguments: Option<Arc<ArgumentLine>>,
}

impl Emitted {
    pub fn to_wire(&self, epoch: &str) -> Event {
        let mut body = self.body.clone();
        if let EventBody::CallStarted { arguments, cwd, client, .. } = &mut body {
            *arguments = self.arguments.as_ref().map(|arguments| arguments.shown());
            for text in [cwd, client].into_iter().flatten() {
                *text = redact::without_hidden(text).into_owned();
            }
        }
        Event { seq: self.seq, epoch: epoch.to_owned(), at: crate::time::rfc3339(self.at), body }
    }
}

/// The events that a subscriber receives. There can be a hundred thousand calls a second, so
/// subscribers are woken for call events only if they ask for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSelection {
    All,
    /// All except `call.*`.
    NoCalls,
}

/// The daemon's events. Emitting never waits: a subscriber that falls more than [`RING`] behind
/// loses the oldest events and receives their number.
pub struct Events {
    epoch: String,
    ring: Mutex<EventRing>,
    /// By [`EventSelection`].
    senders: [broadcast::Sender<Arc<Emitted>>; 2],
    progress_listeners: AtomicUsize,
    lost: AtomicU64,
}

struct EventRing {
    next: u64,
    held: VecDeque<Arc<Emitted>>,
}

/// The replay and the receiver of a new subscriber.
pub struct Subscribed {
    pub replay: Vec<Arc<Emitted>>,
    /// How many events after `since` are no longer stored.
    pub missed: u64,
    /// The next event is the first one after the replay.
    pub receiver: broadcast::Receiver<Arc<Emitted>>,
}

impl Events {
    pub fn new(epoch: &str) -> Self {
        Self {
            epoch: epoch.to_owned(),
            ring: Mutex::new(EventRing { next: 0, held: VecDeque::new() }),
            senders: [broadcast::Sender::new(RING), broadcast::Sender::new(RING)],
            progress_listeners: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    }

    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Texts of a large event are shortened, and progress goes without its content.
    pub fn emit(&self, body: EventBody) {
        self.push(bounded(body), None);
    }

    /// A `call.started`, and the arguments of the call.
    pub(crate) fn emit_started(&self, body: EventBody, arguments: Option<Arc<ArgumentLine>>) {
        self.push(body, arguments);
    }

    fn push(&self, body: EventBody, arguments: Option<Arc<ArgumentLine>>) {
        let mut ring = self.ring.lock();
        let emitted = Arc::new(Emitted { seq: ring.next, at: SystemTime::now(), body, arguments });
        ring.next += 1;
        if ring.held.len() == RING {
            ring.held.pop_front();
        }
        ring.held.push_back(emitted.clone());
        // Sent under the lock, so that the order on the channels is the order of the numbers.
        // Fails when nobody listens, which is fine.
        if !emitted.body.is_of_call() {
            let _ = self.sender(EventSelection::NoCalls).send(emitted.clone());
        }
        let _ = self.sender(EventSelection::All).send(emitted);
    }

    fn sender(&self, hears: EventSelection) -> &broadcast::Sender<Arc<Emitted>> {
        &self.senders[hears as usize]
    }

    /// Subscribes, with a replay of the buffered events after `since`. The replay includes the events of calls, whatever
    /// the selection.
    pub fn subscribe(&self, hears: EventSelection, since: Option<u64>) -> Subscribed {
        let ring = self.ring.lock();
        let receiver = self.sender(hears).subscribe();
        let Some(since) = since else {
            return Subscribed { replay: Vec::new(), missed: 0, receiver };
        };
        let first_held = ring.held.front().map_or(ring.next, |emitted| emitted.seq);
        Subscribed {
            replay: ring.held.iter().filter(|emitted| emitted.seq > since).cloned().collect(),
            // No event has the largest number, but a client may send it.
            missed: first_held.saturating_sub(since.saturating_add(1)),
            receiver,
        }
    }

    /// All buffered events, as for a subscriber of another epoch.
    pub fn subscribe_from_start(&self, hears: EventSelection) -> Subscribed {
        let ring = self.ring.lock();
        Subscribed {
            replay: ring.held.iter().cloned().collect(),
            missed: ring.held.front().map_or(0, |first| first.seq),
            receiver: self.sender(hears).subscribe(),
        }
    }

    /// The number of the event that comes next.
    pub fn next(&self) -> u64 {
        self.ring.lock().next
    }

    /// Counts events that a slow subscriber has lost.
    pub fn count_lost(&self, missed: u64) {
        self.lost.fetch_add(missed, Ordering::Relaxed);
    }

    /// How many events there were, and how far the slowest subscriber is behind.
    pub fn fill(&self) -> EventsFill {
        EventsFill {
            emitted: self.next(),
            subscribers: self.senders.iter().map(broadcast::Sender::receiver_count).sum::<usize>() as u64,
            lag: self.senders.iter().map(broadcast::Sender::len).max().unwrap_or(0) as u64,
            lost: self.lost.load(Ordering::Relaxed),
        }
    }

    /// Progress becomes events only while somebody listens to it: it would push everything else out
    /// of the ring.
    pub fn wants_progress(&self) -> bool {
        self.progress_listeners.load(Ordering::Relaxed) > 0
    }

    /// Counts a listener of `call.progress` until the guard is dropped.
    pub fn listen_to_progress(self: &Arc<Self>) -> ProgressListener {
        self.progress_listeners.fetch_add(1, Ordering::Relaxed);
        ProgressListener(self.clone())
    }
}

fn bounded(mut what: EventBody) -> EventBody {
    // Ends of calls are too frequent to be measured, and contain only names.
    if matches!(what, EventBody::CallFinished { .. }) {
        return what;
    }
    // A tool's output or an error may repeat a secret.
    what = redact::cleaned(what);
    if serde_json::to_string(&what).is_ok_and(|json| json.len() <= MAX_EVENT) {
        return what;
    }
    // A truncated image or blob is useless.
    if let EventBody::CallProgress { progress: Progress::Update { content, details, .. }, .. } = &mut what {
        (*content, *details) = (None, None);
    }
    shortened(&what).unwrap_or(what)
}

fn shortened(what: &EventBody) -> serde_json::Result<EventBody> {
    fn shorten(value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some((shorter, _)) = cut(text, MAX_TEXT) {
                    *text = shorter;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(shorten),
            // An id that is cut belongs to no call.
            Value::Object(members) => {
                let texts = members.iter_mut().filter(|(name, _)| !matches!(name.as_str(), "call_id" | "call_ids"));
                texts.for_each(|(_, value)| shorten(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut value = serde_json::to_value(what)?;
    shorten(&mut value);
    serde_json::from_value(value)
}

pub struct ProgressListener(Arc<Events>);

impl Drop for ProgressListener {
    fn drop(&mut self) {
        self.0.progress_listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(n: usize) -> EventBody {
        EventBody::Notice { session_id: None, plugin: None, level: "info".into(), message: n.to_string() }
    }

    #[test]
    fn replay_reports_missing_events() {
        let events = Events::new("e");
        for n in 0..RING + 10 {
            events.emit(notice(n));
        }
        let subscribed = events.subscribe(EventSelection::All, Some(4));
        assert_eq!(subscribed.missed, 5);
        assert_eq!(subscribed.replay.first().unwrap().seq, 10);
        assert_eq!(subscribed.replay.len(), RING);
        let late = events.subscribe(EventSelection::All, Some(1_008));
        assert_eq!((late.missed, late.replay.len()), (0, 1));
    }

    #[test]
    fn large_events_are_shortened() {
        let events = Events::new("e");
        events.emit(notice(7));
        let message = "x".repeat(10 << 20);
        events.emit(EventBody::Notice { session_id: None, plugin: None, level: "info".into(), message });
        let held = events.subscribe_from_start(EventSelection::All).replay;
        let json = |n: usize| serde_json::to_string(&held[n].body).unwrap();
        assert!(json(0).ends_with("\"7\"}"), "{}", json(0));
        assert!(json(1).len() <= MAX_EVENT && json(1).contains("bytes cut"), "{}", json(1));
    }

    #[test]
    fn subscriber_without_calls_is_not_woken_for_them() {
        let events = Events::new("e");
        let mut all = events.subscribe(EventSelection::All, None).receiver;
        let mut no_calls = events.subscribe(EventSelection::NoCalls, None).receiver;
        events.emit(EventBody::CallFinished {
            call_id: toold_proto::tool::CallId::parse("c").unwrap(),
            session_id: toold_proto::tool::SessionId::parse("s").unwrap(),
            tool: toold_proto::tool::ToolName::parse("t").unwrap(),
            agent: None,
            outcome: toold_proto::event::Outcome::Ok,
            duration_ms: 1,
        });
        assert_eq!((all.len(), no_calls.len()), (1, 0));
        events.emit(notice(1));
        assert_eq!(all.try_recv().unwrap().body.kind(), "call.finished");
        assert_eq!(all.try_recv().unwrap().seq, no_calls.try_recv().unwrap().seq);
        assert_eq!(events.fill().subscribers, 2);
    }
}
