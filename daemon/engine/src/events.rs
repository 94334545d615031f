//! Events: numbered, bounded, replayed to whoever asks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::sync::broadcast;
use toold_proto::daemon::EventsFill;
use toold_proto::event::{Event, What};

/// How many events are held for replay, and how far a subscriber may fall behind.
pub const RING: usize = 1_000;

/// One event. The wire's form is made by whoever sends it, off the hot path.
#[derive(Debug)]
pub struct Emitted {
    pub seq: u64,
    pub at: SystemTime,
    pub what: What,
}

impl Emitted {
    pub fn to_wire(&self, epoch: &str) -> Event {
        Event { seq: self.seq, epoch: epoch.to_owned(), at: crate::time::rfc3339(self.at), what: self.what.clone() }
    }
}

/// The daemon's events. Emitting never waits: a subscriber that falls more than [`RING`] behind
/// loses the oldest and is told how many.
pub struct Events {
    epoch: String,
    ring: Mutex<Ring>,
    sender: broadcast::Sender<Arc<Emitted>>,
    progress_listeners: AtomicUsize,
    lost: AtomicU64,
}

struct Ring {
    next: u64,
    held: VecDeque<Arc<Emitted>>,
}

/// What a new subscriber gets.
pub struct Subscribed {
    pub replay: Vec<Arc<Emitted>>,
    /// How many events after `since` are no longer held.
    pub missed: u64,
    /// The next event is the first one after the replay.
    pub receiver: broadcast::Receiver<Arc<Emitted>>,
}

impl Events {
    pub fn new(epoch: &str) -> Self {
        Self {
            epoch: epoch.to_owned(),
            ring: Mutex::new(Ring { next: 0, held: VecDeque::new() }),
            sender: broadcast::Sender::new(RING),
            progress_listeners: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    }

    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    pub fn emit(&self, what: What) {
        let mut ring = self.ring.lock().expect("no code panics while it holds this lock");
        let emitted = Arc::new(Emitted { seq: ring.next, at: SystemTime::now(), what });
        ring.next += 1;
        if ring.held.len() == RING {
            ring.held.pop_front();
        }
        ring.held.push_back(emitted.clone());
        // Sent under the lock, so that the order on the channel is the order of the numbers.
        // Fails when nobody listens, which is fine.
        let _ = self.sender.send(emitted);
    }

    /// Subscribes, with a replay of what is held after `since`.
    pub fn subscribe(&self, since: Option<u64>) -> Subscribed {
        let ring = self.ring.lock().expect("no code panics while it holds this lock");
        let receiver = self.sender.subscribe();
        let Some(since) = since else {
            return Subscribed { replay: Vec::new(), missed: 0, receiver };
        };
        let first_held = ring.held.front().map_or(ring.next, |emitted| emitted.seq);
        Subscribed {
            replay: ring.held.iter().filter(|emitted| emitted.seq > since).cloned().collect(),
            missed: first_held.saturating_sub(since + 1),
            receiver,
        }
    }

    /// Everything that is held, as for a subscriber of another epoch.
    pub fn subscribe_from_start(&self) -> Subscribed {
        let ring = self.ring.lock().expect("no code panics while it holds this lock");
        Subscribed {
            replay: ring.held.iter().cloned().collect(),
            missed: ring.held.front().map_or(0, |first| first.seq),
            receiver: self.sender.subscribe(),
        }
    }

    /// Counts events that a slow subscriber has lost.
    pub fn count_lost(&self, missed: u64) {
        self.lost.fetch_add(missed, Ordering::Relaxed);
    }

    /// How many there were, and how far the slowest subscriber is behind.
    pub fn fill(&self) -> EventsFill {
        let emitted = self.ring.lock().expect("no code panics while it holds this lock").next;
        EventsFill {
            emitted,
            subscribers: self.sender.receiver_count() as u64,
            lag: self.sender.len() as u64,
            lost: self.lost.load(Ordering::Relaxed),
        }
    }

    /// Progress becomes events only while somebody wants them: it would push all else out of the ring.
    pub fn wants_progress(&self) -> bool {
        self.progress_listeners.load(Ordering::Relaxed) > 0
    }

    /// Counts a listener of `call.progress` until the guard is dropped.
    pub fn listen_to_progress(self: &Arc<Self>) -> ProgressListener {
        self.progress_listeners.fetch_add(1, Ordering::Relaxed);
        ProgressListener(self.clone())
    }
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

    fn notice(n: usize) -> What {
        What::Notice { session_id: None, plugin: None, level: "info".into(), message: n.to_string() }
    }

    #[test]
    fn replay_tells_what_is_missing() {
        let events = Events::new("e");
        for n in 0..RING + 10 {
            events.emit(notice(n));
        }
        let subscribed = events.subscribe(Some(4));
        assert_eq!(subscribed.missed, 5);
        assert_eq!(subscribed.replay.first().unwrap().seq, 10);
        assert_eq!(subscribed.replay.len(), RING);
        let late = events.subscribe(Some(1_008));
        assert_eq!((late.missed, late.replay.len()), (0, 1));
    }
}
