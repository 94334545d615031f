//! Delivers progress notifications from the connection to their calls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use toold_proto::call::CallProgress;
use toold_proto::daemon::{CLOSING_RESTART, Closing};
use toold_proto::tool::CallId;

/// How much unread progress of one call is kept, in bytes of its JSON.
const MAX_WAITING: usize = 16 << 20;

/// How a connection ended, as far as known.
#[derive(Debug, Default)]
pub(crate) struct ConnectionEnd {
    /// Why the daemon ends, as it said in its last message.
    closing: OnceLock<Closing>,
    /// The first output of a program that is not a daemon.
    foreign: OnceLock<String>,
    /// Nothing more is read.
    ended: Notify,
}

/// The calls in flight of one client.
#[derive(Debug, Default)]
pub(crate) struct ProgressRoutes {
    queues: Mutex<HashMap<CallId, Arc<ProgressQueue>>>,
}

impl ConnectionEnd {
    pub(crate) fn set_ended(&self) {
        self.ended.notify_one();
    }

    /// Waits until everything that the daemon sent was read. For one waiter at a time.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }

    pub(crate) fn set_closing(&self, closing: Closing) {
        // Only the first is kept: it is the last message of a daemon.
        let _ = self.closing.set(closing);
    }

    pub(crate) fn closing(&self) -> Option<&Closing> {
        self.closing.get()
    }

    pub(crate) fn is_replaced(&self) -> bool {
        self.closing().is_some_and(|closing| closing.restart || closing.reason == CLOSING_RESTART)
    }

    pub(crate) fn set_foreign(&self, said: String) {
        // Only the first is kept: nothing is read after it.
        let _ = self.foreign.set(said);
    }

    pub(crate) fn foreign(&self) -> Option<&str> {
        self.foreign.get().map(String::as_str)
    }
}

impl ProgressRoutes {
    /// `None` while a call of that id is in flight.
    pub(crate) fn open(&self, call_id: &CallId) -> Option<Arc<ProgressQueue>> {
        let mut queues = self.queues.lock();
        if queues.contains_key(call_id) {
            return None;
        }
        let queue = Arc::new(ProgressQueue::default());
        queues.insert(call_id.clone(), Arc::clone(&queue));
        Some(queue)
    }

    /// After this, the queue returns what it holds and then ends.
    pub(crate) fn close(&self, call_id: &CallId) {
        let queue = self.queues.lock().remove(call_id);
        if let Some(queue) = queue {
            queue.close();
        }
    }

    /// Never blocks. Progress of a call that is not in flight is dropped.
    pub(crate) fn deliver(&self, params: &RawValue) {
        let Ok(progress) = serde_json::from_str::<CallProgress>(params.get()) else { return };
        let queue = self.queues.lock().get(&progress.call_id).cloned();
        if let Some(queue) = queue {
            queue.push(progress, params.get().len());
        }
    }
}

/// Unread progress of one call. When 16 MiB wait, more is dropped, and the next one that fits counts how many were.
#[derive(Debug, Default)]
pub(crate) struct ProgressQueue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    items: VecDeque<(CallProgress, usize)>,
    bytes: usize,
    dropped: u64,
    closed: bool,
}

impl ProgressQueue {
    fn push(&self, mut progress: CallProgress, bytes: usize) {
        let mut state = self.state.lock();
        if state.bytes + bytes > MAX_WAITING {
            state.dropped += 1 + progress.dropped.unwrap_or(0);
            return;
        }
        if state.dropped > 0 {
            progress.dropped = Some(progress.dropped.unwrap_or(0) + state.dropped);
            state.dropped = 0;
        }
        state.bytes += bytes;
        state.items.push_back((progress, bytes));
        drop(state);
        self.changed.notify_one();
    }

    fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    /// `None` when the call was answered and all progress was read. Cancel-safe; for one reader.
    pub(crate) async fn take(&self) -> Option<CallProgress> {
        loop {
            {
                let mut state = self.state.lock();
                if let Some((progress, bytes)) = state.items.pop_front() {
                    state.bytes -= bytes;
                    return Some(progress);
                }
                if state.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::call::Progress;

    fn message(seq: u64) -> CallProgress {
        let progress = Progress::Message { text: seq.to_string() };
        CallProgress { call_id: CallId::parse("c").unwrap(), seq, dropped: None, progress }
    }

    #[tokio::test]
    async fn full_queue_counts_dropped_items() {
        let queue = ProgressQueue::default();
        queue.push(message(0), MAX_WAITING);
        queue.push(message(1), 1);
        queue.push(CallProgress { dropped: Some(3), ..message(5) }, 1);
        assert_eq!(queue.take().await.unwrap().seq, 0);
        queue.push(message(6), 1);
        queue.close();
        let next = queue.take().await.unwrap();
        assert_eq!((next.seq, next.dropped), (6, Some(5)));
        assert_eq!(queue.take().await, None);
    }
}
