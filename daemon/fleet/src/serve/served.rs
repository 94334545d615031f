//! The calls that run here for others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::Subject;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use toold_engine::progress::ProgressSink;
use toold_proto::call::Progress;

use super::window::ReplyWindow;
use crate::member::Member;
use crate::messages::AliveCall;
use crate::names::FleetName;
use crate::signed::Refusal;
use crate::silence::Silence;

/// What was sent is sent again, at the earliest, after this time.
const REPEAT_AFTER: Duration = Duration::from_millis(500);

pub(crate) struct ServedCalls {
    calls: Mutex<HashMap<String, Arc<ServedCall>>>,
    changed: watch::Sender<()>,
}

impl Default for ServedCalls {
    fn default() -> Self {
        Self { calls: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl ServedCalls {
    pub(super) fn find(&self, call_id: &str) -> Option<Arc<ServedCall>> {
        self.calls.lock().get(call_id).cloned()
    }

    /// False when another call has the same id.
    pub(super) fn add(&self, call: &Arc<ServedCall>) -> bool {
        let mut calls = self.calls.lock();
        let is_new = !calls.contains_key(&call.call_id);
        if is_new {
            calls.insert(call.call_id.clone(), call.clone());
        }
        is_new
    }

    pub(super) fn remove(&self, call_id: &str) {
        self.calls.lock().remove(call_id);
    }

    /// Reports that fewer or more calls run.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

/// Counts a call as running until it is dropped.
pub(super) struct RunningCall {
    member: Arc<Member>,
    begun: OnceLock<Instant>,
}

impl RunningCall {
    /// `None` when as many calls run as this daemon takes.
    pub(super) fn enter(member: &Arc<Member>) -> Option<Self> {
        let most = member.settings.load().max_calls as u64;
        let running = &member.counts.running;
        let entered = running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < most).then_some(now + 1));
        entered.ok()?;
        member.served.changed.send_replace(());
        Some(Self { member: member.clone(), begun: OnceLock::new() })
    }

    pub(super) fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let counts = &self.member.counts;
        counts.running.fetch_sub(1, Ordering::Relaxed);
        if let Some(begun) = self.begun.get() {
            counts.served.fetch_add(1, Ordering::Relaxed);
            let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            counts.processing_ns.fetch_add(took, Ordering::Relaxed);
        }
        self.member.served.changed.send_replace(());
    }
}

pub(super) struct ServedCall {
    pub(super) call_id: String,
    pub(super) caller: FleetName,
    pub(super) reply: Subject,
    pub(super) challenge: String,
    pub(super) cancel: CancellationToken,
    /// Fires when nothing of the call runs any more.
    pub(super) over: CancellationToken,
    pub(super) window: Mutex<ReplyWindow>,
    /// There may be something to send.
    pub(super) wake: Notify,
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
    pub(super) fn new(
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
    pub(super) fn hear(&self, alive: &AliveCall) -> Result<(), (Refusal, String)> {
        let call = &self.call_id;
        if alive.challenge != self.challenge {
            return Err((Refusal::Misdirected, format!("a sign of life for the call {call} has another challenge")));
        }
        let mut state = self.caller_state.lock();
        if alive.number <= state.number {
            return Err((Refusal::Replayed, format!("a sign of life for the call {call} was received before")));
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

    pub(super) fn is_caller_gone(&self, connected: bool) -> bool {
        self.is_given_up.load(Ordering::Relaxed) || self.caller_state.lock().silence.is_over(connected)
    }

    /// How long nothing new has arrived at the caller.
    pub(super) fn stuck_for(&self) -> Duration {
        self.caller_state.lock().moved.elapsed()
    }

    /// The caller waits no longer.
    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        self.cancel.cancel();
        self.wake.notify_one();
    }

    /// Cancels the call for a reason of this daemon. The first one counts.
    pub(super) fn fail(&self, why: String) {
        self.failed.lock().get_or_insert(why);
        self.cancel.cancel();
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failed.lock().clone()
    }
}

/// Takes the progress of a call. The engine drops it when nothing of the call runs any more.
pub(super) struct ReplySink {
    call: Arc<ServedCall>,
    _over: DropGuard,
    _running: RunningCall,
}

impl ReplySink {
    pub(super) fn new(call: &Arc<ServedCall>, running: RunningCall) -> Arc<Self> {
        running.begin();
        Arc::new(Self { call: call.clone(), _over: call.over.clone().drop_guard(), _running: running })
    }
}

impl ProgressSink for ReplySink {
    fn send(&self, _seq: u64, progress: &Progress) {
        let pushed = self.call.window.lock().push(progress);
        if let Err(why) = pushed {
            self.call.fail(why);
        }
        self.call.wake.notify_one();
    }
}
