//! Where scripts spend their time: the functions on the stack, recorded now and then while somebody asks.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How much running time passes between two samples. Safepoints may be further apart.
const EVERY: Duration = Duration::from_millis(1);
/// How many different stacks are recorded; the time of others counts as one more.
const MAX_STACKS: usize = 20_000;

/// The functions of a stack, the outermost first, and the time that they took.
pub(crate) type TimedStack = (Vec<String>, Duration);

/// The place in a version of a plugin where its Lua states look for a sampler.
#[derive(Default)]
pub(crate) struct SamplerSlot {
    /// Read before the lock, whenever a script is resumed.
    is_active: AtomicBool,
    sampler: Mutex<Option<Arc<StackSampler>>>,
}

/// Samples until it is dropped.
pub(crate) struct ActiveSampler {
    slot: Arc<SamplerSlot>,
    sampler: Arc<StackSampler>,
}

#[derive(Default)]
pub(crate) struct StackSampler {
    stacks: Mutex<HashMap<Vec<String>, Duration>>,
    /// Nanoseconds that scripts have run since the last sample, before their current runs.
    carried: AtomicU64,
}

/// A run of a script that is sampled.
pub(crate) struct SampledRun<'a> {
    sampler: &'a StackSampler,
    /// The last sample, or the start of the run.
    since: Cell<Instant>,
}

impl SamplerSlot {
    pub(crate) fn sampler(&self) -> Option<Arc<StackSampler>> {
        if !self.is_active.load(Ordering::Relaxed) {
            return None;
        }
        self.sampler.lock().clone()
    }

    /// `None` while another one samples.
    pub(crate) fn start(self: &Arc<Self>) -> Option<ActiveSampler> {
        let mut slot = self.sampler.lock();
        if slot.is_some() {
            return None;
        }
        let sampler = Arc::<StackSampler>::default();
        *slot = Some(sampler.clone());
        self.is_active.store(true, Ordering::Relaxed);
        Some(ActiveSampler { slot: self.clone(), sampler })
    }
}

impl ActiveSampler {
    /// The samples so far, the longest first.
    pub(crate) fn stacks(&self) -> Vec<TimedStack> {
        let mut stacks: Vec<TimedStack> =
            self.sampler.stacks.lock().iter().map(|(stack, time)| (stack.clone(), *time)).collect();
        stacks.sort_unstable_by(|(a, long), (b, longer)| longer.cmp(long).then_with(|| a.cmp(b)));
        stacks
    }
}

impl Drop for ActiveSampler {
    fn drop(&mut self) {
        self.slot.is_active.store(false, Ordering::Relaxed);
        *self.slot.sampler.lock() = None;
    }
}

impl<'a> SampledRun<'a> {
    pub(crate) fn new(sampler: &'a StackSampler) -> Self {
        Self { sampler, since: Cell::new(Instant::now()) }
    }

    /// At a safepoint: records the stack that `frames` reads, if it is time to.
    pub(crate) fn at_safepoint(&self, frames: impl FnOnce() -> Vec<String>) {
        let now = Instant::now();
        let ran = now.duration_since(self.since.get());
        if ran + Duration::from_nanos(self.sampler.carried.load(Ordering::Relaxed)) < EVERY {
            return;
        }
        self.since.set(now);
        let carried = Duration::from_nanos(self.sampler.carried.swap(0, Ordering::Relaxed));
        let mut stack = frames();
        let mut stacks = self.sampler.stacks.lock();
        if stacks.len() >= MAX_STACKS && !stacks.contains_key(&stack) {
            stack = vec!["other".to_owned()];
        }
        *stacks.entry(stack).or_default() += carried + ran;
    }
}

impl Drop for SampledRun<'_> {
    fn drop(&mut self) {
        let ran = self.since.get().elapsed().as_nanos() as u64;
        self.sampler.carried.fetch_add(ran, Ordering::Relaxed);
    }
}
