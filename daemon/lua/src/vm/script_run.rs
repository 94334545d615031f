//! The script that runs in a Lua state now, and the work that the host does for it.

use std::cell::RefCell;
use std::future::Future;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use mlua::Function;
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedMutexGuard, oneshot};
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::permission::check_permission;
use toold_engine::tool::{Denial, ToolError};

use crate::vm::interrupt::ScriptInterrupt;

/// One run of a script: a tool's call, a hook, a load.
pub(crate) struct ScriptRun {
    pub(crate) interrupt: Arc<ScriptInterrupt>,
    /// The engine's context of the call; `None` outside of calls, such as while a plugin loads.
    pub(crate) cx: Option<Arc<Cx>>,
    /// The plugin's own authority, which counts while it loads, and in its timers.
    load: Option<LoadAuthority>,
    /// The plugins between the caller and what the script touches; its own is the last.
    pub(crate) chain: Arc<[String]>,
    new_effects: Mutex<Vec<BoxFuture<'static, ()>>>,
    /// How many lines it has logged.
    pub(crate) logged: AtomicU32,
    /// Whether its log lines are output of its call too.
    pub(crate) echoes_log: bool,
    /// Whether it may block its thread for as long as it needs.
    owns_thread: bool,
    /// Functions that run after the end of the call, the last one first; `None` where no call is running whose end they
    /// could wait for.
    endings: Option<Mutex<Vec<Function>>>,
    /// That of a call which runs while no other serial call of its plugin runs.
    turn: Option<Mutex<SerialTurn>>,
    /// The first refused permission, for a script that does not say why it failed.
    refused: OnceLock<Arc<Denial>>,
}

/// The turn of a serial call among those of its plugin.
pub(crate) struct SerialTurn {
    lock: Arc<SerialLock>,
    held: Option<OwnedMutexGuard<()>>,
    /// Waits for the next turn.
    next: Option<BoxFuture<'static, OwnedMutexGuard<()>>>,
}

/// Held by the serial call whose script runs.
pub(crate) type SerialLock = tokio::sync::Mutex<()>;

impl SerialTurn {
    pub(crate) fn new(lock: Arc<SerialLock>, held: OwnedMutexGuard<()>) -> Self {
        Self { lock, held: Some(held), next: None }
    }

    fn take(&mut self, cx: &mut Context<'_>) -> bool {
        if self.held.is_none() {
            let next = self.next.get_or_insert_with(|| self.lock.clone().lock_owned().boxed());
            let Poll::Ready(held) = next.poll_unpin(cx) else { return false };
            (self.held, self.next) = (Some(held), None);
        }
        true
    }
}

/// The authority with which a plugin loads.
pub(crate) struct LoadAuthority {
    pub(crate) cx: Arc<Cx>,
    pub(crate) on_refusal: OnRefusal,
}

/// Records that the plugin was refused something.
type OnRefusal = Box<dyn Fn(&Arc<Cx>, Need, &Arc<Denial>) + Send + Sync>;

/// How many functions one call may have that run after its end.
const MAX_ENDINGS: usize = 100;

/// Work that the host does while the script waits.
pub(crate) type Effects = FuturesUnordered<BoxFuture<'static, ()>>;

thread_local! {
    static CURRENT: RefCell<Option<Arc<ScriptRun>>> = const { RefCell::new(None) };
}

/// Makes `call` the current one of this thread while `f` runs.
pub(crate) fn within<R>(call: &Arc<ScriptRun>, f: impl FnOnce() -> R) -> R {
    struct RestoreCurrent(Option<Arc<ScriptRun>>);
    impl Drop for RestoreCurrent {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(|current| *current = self.0.take());
        }
    }
    let _restore = RestoreCurrent(CURRENT.replace(Some(call.clone())));
    f()
}

/// The call that the script on this thread belongs to.
pub(crate) fn current() -> Option<Arc<ScriptRun>> {
    CURRENT.with_borrow(Clone::clone)
}

impl ScriptRun {
    /// The handler of a call.
    pub(crate) fn of_call(cx: Arc<Cx>) -> Arc<Self> {
        let run = Self::unshared(ScriptInterrupt::of_call(cx.clone()), Some(cx.clone()), cx.chain.clone(), false);
        Arc::new(Self { endings: Some(Mutex::default()), ..run })
    }

    /// The handler of a call that has its turn, which it gives away while it waits.
    pub(crate) fn of_call_in_turn(cx: Arc<Cx>, turn: SerialTurn) -> Arc<Self> {
        let run = Self::unshared(ScriptInterrupt::of_call(cx.clone()), Some(cx.clone()), cx.chain.clone(), false);
        Arc::new(Self { endings: Some(Mutex::default()), turn: Some(Mutex::new(turn)), ..run })
    }

    /// Whether the script may run now: it has its turn, or needs none. Otherwise the task is woken when it has.
    pub(crate) fn has_turn(&self, cx: &mut Context<'_>) -> bool {
        self.turn.as_ref().is_none_or(|turn| turn.lock().take(cx))
    }

    /// The script waits: others may run.
    pub(crate) fn give_turn_away(&self) {
        if let Some(turn) = &self.turn {
            turn.lock().held = None;
        }
    }

    /// Something else that runs for a call, before or after its handler.
    pub(crate) fn around_call(interrupt: ScriptInterrupt, cx: Arc<Cx>) -> Arc<Self> {
        let chain = cx.chain.clone();
        Arc::new(Self::unshared(interrupt, Some(cx), chain, false))
    }

    /// The same for a person who typed the handler and reads its log lines.
    pub(crate) fn of_prompt(cx: Arc<Cx>) -> Arc<Self> {
        let run = Self::unshared(ScriptInterrupt::of_call(cx.clone()), Some(cx.clone()), cx.chain.clone(), false);
        Arc::new(Self { endings: Some(Mutex::default()), echoes_log: true, ..run })
    }

    /// A hook of `plugin`, which sees the call of `cx`, or a message.
    pub(crate) fn of_hook(interrupt: ScriptInterrupt, cx: Option<Arc<Cx>>, plugin: &str) -> Arc<Self> {
        let outer = cx.as_ref().map(|cx| cx.outer_chain.clone()).unwrap_or_default();
        let chain = outer.iter().cloned().chain([plugin.to_owned()]).collect();
        Arc::new(Self::unshared(interrupt, cx, chain, false))
    }

    /// A plugin's script while it loads, on a thread that may block.
    pub(crate) fn of_load(interrupt: ScriptInterrupt, load: LoadAuthority) -> Arc<Self> {
        let run = Self::unshared(interrupt, None, load.cx.chain.clone(), true);
        Arc::new(Self { load: Some(load), ..run })
    }

    /// A plugin that acts on its own after it has loaded, such as in its timers.
    pub(crate) fn of_plugin(interrupt: ScriptInterrupt, own: LoadAuthority) -> Arc<Self> {
        let run = Self::unshared(interrupt, None, own.cx.chain.clone(), false);
        Arc::new(Self { load: Some(own), ..run })
    }

    fn unshared(interrupt: ScriptInterrupt, cx: Option<Arc<Cx>>, chain: Arc<[String]>, owns_thread: bool) -> Self {
        Self {
            interrupt: Arc::new(interrupt),
            cx,
            load: None,
            chain,
            new_effects: Mutex::default(),
            logged: AtomicU32::new(0),
            echoes_log: false,
            owns_thread,
            endings: None,
            turn: None,
            refused: OnceLock::new(),
        }
    }

    /// Makes a function run after the end of the call.
    ///
    /// # Errors
    /// A script that is not the handler of a call; too many functions.
    pub(crate) fn at_end(&self, function: Function) -> Result<(), String> {
        let endings = self.endings.as_ref().ok_or("no handler is running that could end")?;
        let mut endings = endings.lock();
        if endings.len() >= MAX_ENDINGS {
            return Err(format!("a call may have at most {MAX_ENDINGS} functions"));
        }
        endings.push(function);
        Ok(())
    }

    /// The functions that run after the end of the call, in the order in which they run.
    pub(crate) fn take_endings(&self) -> Vec<Function> {
        let taken = self.endings.as_ref().map(|endings| std::mem::take(&mut *endings.lock()));
        taken.into_iter().flatten().rev().collect()
    }

    /// Checks the permission for something that the script is about to touch.
    ///
    /// # Errors
    /// As [`check_permission`], and as [`ScriptRun::authority`].
    pub(crate) async fn require(&self, need: Need) -> Result<(), ToolError> {
        let cx = self.authority().map_err(ToolError::Failed)?;
        let answer = check_permission(cx, &self.chain, &need).await;
        if let Err(ToolError::Denied(denial)) = &answer {
            match &self.load {
                Some(load) => (load.on_refusal)(cx, need, denial),
                None => _ = self.refused.set(denial.clone()),
            }
        }
        answer
    }

    /// The first permission that the script was refused.
    pub(crate) fn refused(&self) -> Option<&Denial> {
        self.refused.get().map(|denial| &**denial)
    }

    /// The context whose permissions count: that of the call, or the plugin's own while it loads.
    ///
    /// # Errors
    /// A hook outside of calls, which has no permissions.
    pub(crate) fn authority(&self) -> Result<&Arc<Cx>, String> {
        let own = self.load.as_ref().map(|load| &load.cx);
        let missing = || "this can only be called in a call, or while the plugin loads".to_owned();
        self.cx.as_ref().or(own).ok_or_else(missing)
    }

    /// The engine's context of the call.
    ///
    /// # Errors
    /// A script that runs outside of any call, for example while its plugin loads.
    pub(crate) fn cx(&self) -> Result<&Arc<Cx>, String> {
        self.cx.as_ref().ok_or_else(|| {
            "this can only be called from a handler: while the plugin loads there is no session".to_owned()
        })
    }

    /// Does work of the host while the script waits. Ends early when the call must stop.
    ///
    /// # Errors
    /// The reason of the interrupt.
    pub(crate) async fn effect<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let (sender, receiver) = oneshot::channel();
        let interrupt = self.interrupt.clone();
        let work = async move {
            let done = tokio::select! {
                biased;
                done = work => Ok(done),
                () = interrupt.stopped() => Err(interrupt.reason().to_owned()),
            };
            // Fails when the script is gone; then the result is not needed.
            let _ = sender.send(done);
        };
        self.new_effects.lock().push(work.boxed());
        receiver.await.unwrap_or_else(|_| Err(self.interrupt.reason().to_owned()))
    }

    /// Starts work that the script does not wait for yet. It ends with the run of the script.
    pub(crate) fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.new_effects.lock().push(work.boxed());
    }

    /// The same where the script cannot yield: blocks the thread.
    ///
    /// # Errors
    /// The reason of the interrupt; a thread that must not be blocked.
    pub(crate) fn effect_blocking<T>(&self, work: impl Future<Output = T>) -> Result<T, String> {
        let stoppable = async {
            tokio::select! {
                biased;
                done = work => Ok(done),
                () = self.interrupt.stopped() => Err(self.interrupt.reason().to_owned()),
            }
        };
        match Handle::try_current() {
            Ok(handle) if self.owns_thread => handle.block_on(stoppable),
            Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
                tokio::task::block_in_place(|| handle.block_on(stoppable))
            }
            Ok(_) | Err(_) => Err("cannot wait here, in a callback of a C function such as table.sort".to_owned()),
        }
    }

    pub(crate) fn take_effects(&self, effects: &mut Effects) {
        let mut new_effects = self.new_effects.lock();
        effects.extend(new_effects.drain(..));
    }
}

/// The engine's context of the call that the script on this thread belongs to.
///
/// # Errors
/// As [`ScriptRun::cx`].
pub(crate) fn current_cx() -> Result<Arc<Cx>, String> {
    match current() {
        Some(call) => call.cx().cloned(),
        None => Err("no call is running".to_owned()),
    }
}
