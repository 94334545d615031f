//! One Lua state of a plugin: its memory limit, and how calls take turns in it.
//!
//! Its libraries are in [`crate::vm::create`], and what it adds to Lua is in [`crate::api`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::task::AtomicWaker;
use mlua::{Function, IntoLuaMulti, Lua, MultiValue, Thread};
use parking_lot::Mutex;

use crate::vm::diagnostics::describe_raised;
use crate::vm::gate::Gate;
use crate::vm::raw::RunReport;
use crate::vm::sampler::SamplerSlot;
use crate::vm::script_run::{self, Effects, ScriptRun};
use crate::vm::{raw, worker_thread};

/// A Lua state in which the plugin's script has run.
pub(crate) struct LuaState {
    lua: Lua,
    gate: Gate,
    /// Calls that are running or waiting in it, or about to.
    calls: AtomicUsize,
    /// When the last call ended.
    last_call_end: Mutex<Instant>,
    /// A script in it once kept its thread for long.
    stalls: AtomicBool,
    /// Its memory was full once: running calls go on, new ones get another Lua state.
    exhausted: AtomicBool,
    /// Bytes that scripts may allocate in it.
    limit: usize,
    /// Records where its scripts spend their time, while somebody asks.
    sampler: Arc<SamplerSlot>,
    usage: Arc<LuaUsage>,
    /// The part of `usage` that this state contributed, in bytes.
    counted: AtomicUsize,
}

/// The number of Lua states, and the memory that scripts have allocated in them.
#[derive(Debug, Default)]
pub(crate) struct LuaUsage {
    pub(crate) states: AtomicUsize,
    /// In bytes, as of the end of the last call in each state.
    pub(crate) memory: AtomicUsize,
}

impl LuaState {
    pub(crate) fn new(lua: Lua, usage: Arc<LuaUsage>, sampler: Arc<SamplerSlot>) -> Self {
        let counted = lua.used_memory();
        let limit = lua.set_memory_limit(0).unwrap_or(0);
        // Fails only for a Lua state that mlua does not own; this one it does.
        let _ = lua.set_memory_limit(limit);
        usage.states.fetch_add(1, Ordering::Relaxed);
        usage.memory.fetch_add(counted, Ordering::Relaxed);
        Self {
            lua,
            gate: Gate::default(),
            calls: AtomicUsize::new(0),
            last_call_end: Mutex::new(Instant::now()),
            stalls: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
            limit,
            sampler,
            usage,
            counted: AtomicUsize::new(counted),
        }
    }

    /// Updates `usage`. Done here and not on request, since a request would have to wait for the running script.
    fn note_usage(&self) {
        let used = self.lua.used_memory();
        let before = self.counted.swap(used, Ordering::Relaxed);
        self.usage.memory.fetch_add(used.wrapping_sub(before), Ordering::Relaxed);
    }

    pub(crate) fn lua(&self) -> &Lua {
        &self.lua
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_call(&self) {
        *self.last_call_end.lock() = Instant::now();
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// How long no call has been in it, if none is.
    pub(crate) fn idle(&self) -> Duration {
        self.last_call_end.lock().elapsed()
    }

    pub(crate) fn stalls(&self) -> bool {
        self.stalls.load(Ordering::Relaxed)
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Runs `f` while no script is running in it; a script that waits does not count. Cancel-safe.
    pub(crate) async fn between_scripts<R>(&self, mut f: impl FnMut(&Lua) -> R) -> R {
        std::future::poll_fn(|cx| match self.gate.enter(cx.waker()) {
            Some(_inside) => Poll::Ready(f(&self.lua)),
            None => Poll::Pending,
        })
        .await
    }

    /// The same without waiting: `None` while a script is running.
    pub(crate) fn if_no_script_runs<R>(&self, f: impl FnOnce(&Lua) -> R) -> Option<R> {
        let _inside = self.gate.enter(Waker::noop())?;
        Some(f(&self.lua))
    }

    /// Runs a new coroutine to its end. While it waits, and at the end of each time slice, others run. The host's work
    /// for it is done here, so dropping this future stops that too.
    ///
    /// # Errors
    /// The error that the script raised, or the reason of the interrupt.
    pub(crate) async fn run(
        &self,
        call: &Arc<ScriptRun>,
        thread: Thread,
        args: impl IntoLuaMulti,
    ) -> mlua::Result<MultiValue> {
        let mut script = Box::pin(thread.clone().into_async::<MultiValue>(args)?);
        let mut effects = Effects::default();
        let pulse = Arc::<Pulse>::default();
        let waker = Waker::from(pulse.clone());
        let ended = std::future::poll_fn(|cx| {
            pulse.outer.register(cx.waker());
            let mut inner = Context::from_waker(&waker);
            loop {
                let waits;
                {
                    if !call.has_turn(cx) {
                        break;
                    }
                    let Some(_inside) = self.gate.enter(cx.waker()) else { break };
                    pulse.polling.store(true, Ordering::SeqCst);
                    let sampler = self.sampler.sampler();
                    let RunReport { done: polled, slice_is_over, replaced_thread } = script_run::within(call, || {
                        raw::run(&call.interrupt, Some(&thread), sampler.as_deref(), || {
                            script.as_mut().poll(&mut inner)
                        })
                    });
                    if replaced_thread {
                        self.stalls.store(true, Ordering::Relaxed);
                    }
                    pulse.polling.store(false, Ordering::SeqCst);
                    if let Poll::Ready(ended) = polled {
                        return Poll::Ready(ended);
                    }
                    waits = !slice_is_over;
                    if slice_is_over {
                        // Not merely at the end of the queue: tasks that became ready meanwhile come first, since the
                        // runtime polls its drivers before it goes on with tasks that yielded.
                        pulse.beat.store(false, Ordering::SeqCst);
                        let _ = std::pin::pin!(tokio::task::yield_now()).poll(cx);
                    } else if pulse.beat.swap(false, Ordering::SeqCst) {
                        cx.waker().wake_by_ref();
                    }
                }
                call.take_effects(&mut effects);
                if waits {
                    call.give_turn_away();
                }
                match effects.poll_next_unpin(cx) {
                    // An effect is done, so the script can continue.
                    Poll::Ready(Some(())) => {}
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                }
            }
            // Another call is in the Lua state; effects continue meanwhile.
            while let Poll::Ready(Some(())) = effects.poll_next_unpin(cx) {}
            Poll::Pending
        })
        .await;
        // A stopped coroutine still holds what its functions held.
        drop(script);
        drop(thread);
        self.note_usage();
        // A script may have caught the memory error.
        let is_full = self.counted.load(Ordering::Relaxed) > self.limit / 4 * 3;
        if call.interrupt.is_out_of_memory() {
            // What its globals hold is returned with it, once its other calls have ended.
            self.exhausted.store(true, Ordering::Relaxed);
        }
        if is_full || matches!(root(&ended), Some(mlua::Error::MemoryError(_))) || call.interrupt.is_set() {
            worker_thread::replace_thread_for(self.counted.load(Ordering::Relaxed));
            self.check_memory(if is_full { self.limit / 4 * 3 } else { self.limit / 2 });
            self.note_usage();
        }
        ended.map_err(|error| describe_raised(&self.lua, error))
    }

    /// Runs a function to its end on this thread, including its waits.
    ///
    /// # Errors
    /// The error that the script raised, or the reason of the interrupt.
    pub(crate) fn run_blocking(
        &self,
        call: &Arc<ScriptRun>,
        function: &Function,
        args: impl IntoLuaMulti,
    ) -> mlua::Result<MultiValue> {
        let ended = script_run::within(call, || raw::run(&call.interrupt, None, None, || function.call(args))).done;
        self.note_usage();
        ended.map_err(|error| describe_raised(&self.lua, error))
    }

    /// Collects all garbage, and notes whether little memory is left then.
    fn check_memory(&self, most: usize) {
        let lifted = self.lua.set_memory_limit(0);
        let collected = self.lua.gc_collect();
        let used = self.lua.used_memory();
        if lifted.is_err() || self.lua.set_memory_limit(self.limit).is_err() || collected.is_err() || used > most {
            self.exhausted.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for LuaState {
    fn drop(&mut self) {
        self.usage.states.fetch_sub(1, Ordering::Relaxed);
        self.usage.memory.fetch_sub(self.counted.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Wakes a script. While the script runs, wakes are only recorded: the end of a slice wakes it at once, which would
/// leave no time for others.
#[derive(Default)]
struct Pulse {
    outer: AtomicWaker,
    polling: AtomicBool,
    beat: AtomicBool,
}

impl Wake for Pulse {
    fn wake(self: Arc<Self>) {
        self.beat.store(true, Ordering::SeqCst);
        if !self.polling.load(Ordering::SeqCst) {
            self.outer.wake();
        }
    }
}

fn root(ended: &mlua::Result<MultiValue>) -> Option<&mlua::Error> {
    let mut error = ended.as_ref().err()?;
    while let mlua::Error::CallbackError { cause, .. } = error {
        error = cause;
    }
    Some(error)
}
