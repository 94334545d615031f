//! The calls that run here for others.

pub(crate) mod backlog;
mod shares;
pub(crate) mod window;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::Subject;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::messages::AliveCall;
use crate::names::FleetName;
use crate::refusal::MessageRefusal;
use crate::served_calls::shares::CallerShares;
use crate::served_calls::window::ReplyWindow;
use crate::silence::Silence;

/// Replies are sent again, at the earliest, after this time.
const REPEAT_AFTER: Duration = Duration::from_millis(500);

pub(crate) struct ServedCalls {
    calls: Mutex<HashMap<String, Arc<ServedCall>>>,
    /// Changed together with the number of running calls.
    pub(crate) shares: Mutex<CallerShares>,
    changed: watch::Sender<()>,
}

impl Default for ServedCalls {
    fn default() -> Self {
        Self { calls: Mutex::default(), shares: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl ServedCalls {
    pub(crate) fn find(&self, call_id: &str) -> Option<Arc<ServedCall>> {
        self.calls.lock().get(call_id).cloned()
    }

    /// False when another call has the same id.
    pub(crate) fn add(&self, call: &Arc<ServedCall>) -> bool {
        let mut calls = self.calls.lock();
        let is_new = !calls.contains_key(&call.call_id);
        if is_new {
            calls.insert(call.call_id.clone(), call.clone());
        }
        is_new
    }

    pub(crate) fn remove(&self, call_id: &str) {
        self.calls.lock().remove(call_id);
    }

    /// Fewer or more calls run.
    pub(crate) fn note_change(&self) {
        self.changed.send_replace(());
    }

    /// Reports that fewer or more calls run.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

pub(crate) struct ServedCall {
    pub(crate) call_id: String,
    pub(crate) caller: FleetName,
    pub(crate) reply: Subject,
    pub(crate) challenge: String,
    pub(crate) cancel: CancellationToken,
    /// Fires when nothing of the call runs any more.
    pub(crate) over: CancellationToken,
    pub(crate) window: Mutex<ReplyWindow>,
    /// There may be something to send.
    pub(crate) wake: Notify,
    /// The caller has said that it waits no longer.
    is_given_up: AtomicBool,
    /// Why the call is ended by this daemon.
    failed: Mutex<Option<String>>,
    caller_state: Mutex<CallerState>,
}

struct CallerState {
    /// The number of the last sign of life.
    number: u64,
    silence: Silence,
    /// When messages last arrived, or were sent again.
    moved: Instant,
}

impl ServedCall {
    pub(crate) fn new(
        call_id: String,
        caller: FleetName,
        reply: Subject,
        challenge: String,
        window: ReplyWindow,
    ) -> Arc<Self> {
        Arc::new(Self {
            call_id,
            caller,
            reply,
            challenge,
            cancel: CancellationToken::new(),
            over: CancellationToken::new(),
            window: Mutex::new(window),
            wake: Notify::new(),
            is_given_up: AtomicBool::new(false),
            failed: Mutex::default(),
            caller_state: Mutex::new(CallerState { number: 0, silence: Silence::new(), moved: Instant::now() }),
        })
    }

    /// The caller's sign of life.
    ///
    /// # Errors
    /// When it does not count, with a sentence.
    pub(crate) fn hear(&self, alive: &AliveCall) -> Result<(), (MessageRefusal, String)> {
        let call = &self.call_id;
        if alive.challenge != self.challenge {
            return Err((
                MessageRefusal::Misdirected,
                format!("a sign of life for the call {call} has another challenge"),
            ));
        }
        let mut state = self.caller_state.lock();
        if alive.number <= state.number {
            return Err((MessageRefusal::Replayed, format!("a sign of life for the call {call} was received before")));
        }
        state.number = alive.number;
        state.silence.hear();
        let mut window = self.window.lock();
        if window.acknowledge(alive.seen) {
            state.moved = Instant::now();
        } else if window.is_waiting() && state.moved.elapsed() > REPEAT_AFTER {
            state.moved = Instant::now();
            window.send_again();
        }
        Ok(())
    }

    pub(crate) fn is_caller_gone(&self, connected: bool) -> bool {
        self.is_given_up.load(Ordering::Relaxed) || self.caller_state.lock().silence.is_over(connected)
    }

    /// How long nothing new has arrived at the caller.
    pub(crate) fn stuck_for(&self) -> Duration {
        self.caller_state.lock().moved.elapsed()
    }

    /// The caller waits no longer.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        self.cancel.cancel();
        self.wake.notify_one();
    }

    /// Cancels the call for a reason of this daemon. The first one counts.
    pub(crate) fn fail(&self, why: String) {
        self.failed.lock().get_or_insert(why);
        self.cancel.cancel();
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.lock().clone()
    }
}
