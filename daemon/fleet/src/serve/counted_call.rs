//! A call that counts as running, and the receiver of its progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use toold_engine::progress::ProgressSink;
use toold_proto::call::Progress;

use crate::member::Member;
use crate::names::FleetName;
use crate::served_calls::ServedCall;

/// Counts a call as running until it is dropped.
pub(super) struct CountedCall {
    member: Arc<Member>,
    from: FleetName,
    begun: OnceLock<Instant>,
    /// It waits for a person, and counts as that.
    asks: AtomicBool,
}

/// How many calls may wait for a person for each that may run. Further ones count as running.
const ASKING_FOR_EACH: u64 = 16;

impl CountedCall {
    /// `None` when as many calls run as this daemon takes, or those that may run are for machines with fewer calls.
    pub(super) fn enter(member: &Arc<Member>, from: &FleetName) -> Option<Self> {
        let most = member.settings.load().max_calls;
        {
            let mut shares = member.served.shares.lock();
            let running = member.counts.running.load(Ordering::Relaxed) as usize;
            if !shares.enter(from, most.saturating_sub(running), Instant::now()) {
                return None;
            }
            member.counts.running.fetch_add(1, Ordering::Relaxed);
        }
        member.served.note_change();
        let (member, from) = (member.clone(), from.clone());
        Some(Self { member, from, begun: OnceLock::new(), asks: AtomicBool::new(false) })
    }

    pub(super) fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    /// Notes whether the call waits for a person: such calls leave their places to others. One that goes on takes a place
    /// whether or not one is free.
    pub(super) fn note_asking(&self, asks: bool) {
        let counts = &self.member.counts;
        if asks == self.asks.load(Ordering::Relaxed) {
            return;
        }
        let mut shares = self.member.served.shares.lock();
        if asks {
            let most = ASKING_FOR_EACH * self.member.settings.load().max_calls as u64;
            let enter = |now| (now < most).then_some(now + 1);
            if counts.asking.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).is_err() {
                return;
            }
            counts.running.fetch_sub(1, Ordering::Relaxed);
            shares.leave(&self.from);
        } else {
            counts.running.fetch_add(1, Ordering::Relaxed);
            shares.resume(&self.from);
            counts.asking.fetch_sub(1, Ordering::Relaxed);
        }
        self.asks.store(asks, Ordering::Relaxed);
        drop(shares);
        self.member.served.note_change();
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        let counts = &self.member.counts;
        if *self.asks.get_mut() {
            counts.asking.fetch_sub(1, Ordering::Relaxed);
        } else {
            let mut shares = self.member.served.shares.lock();
            counts.running.fetch_sub(1, Ordering::Relaxed);
            shares.leave(&self.from);
        }
        if let Some(begun) = self.begun.get() {
            counts.served.fetch_add(1, Ordering::Relaxed);
            let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            counts.processing_ns.fetch_add(took, Ordering::Relaxed);
        }
        self.member.served.note_change();
    }
}

/// Takes the progress of a call. The engine drops it when nothing of the call runs any more.
pub(super) struct ReplySink {
    call: Arc<ServedCall>,
    _over: DropGuard,
    _running: Arc<CountedCall>,
}

impl ReplySink {
    pub(super) fn new(call: &Arc<ServedCall>, running: Arc<CountedCall>) -> Arc<Self> {
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
