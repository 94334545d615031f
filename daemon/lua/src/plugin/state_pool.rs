//! The Lua states of one version of a plugin.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use mlua::Function;
use parking_lot::Mutex;
use toold_proto::tool::ToolName;

use crate::plugin::PluginVersion;
use crate::plugin::registrations::ToolHandlers;
use crate::plugin::resources_and_prompts::OfferHandlers;
use crate::vm::lua_state::LuaState;

/// A Lua state in which the plugin's script has run, and the functions that it registered there.
pub(crate) struct LoadedState {
    pub(crate) state: LuaState,
    pub(crate) tools: HashMap<ToolName, ToolHandlers>,
    pub(crate) hooks: Vec<Function>,
    pub(crate) commands: HashMap<String, Function>,
    pub(crate) resources: Vec<OfferHandlers>,
    pub(crate) prompts: Vec<OfferHandlers>,
}

/// The Lua states of a plugin. The main one keeps the plugin's globals; the others serve parallelizable tools.
pub(crate) struct StatePool {
    pub(crate) plugin: Arc<PluginVersion>,
    /// `None` until the first call needs it, if the registrations are known without it.
    main: Mutex<Option<Arc<LoadedState>>>,
    /// The registrations are known without a Lua state, so the main one can be released and made again.
    rebuildable: bool,
    /// Calls that yielded whenever they had to, up to [`ENOUGH`].
    quick_calls: AtomicU32,
    /// A call could not yield.
    stalls: AtomicBool,
    others: Mutex<Vec<Arc<LoadedState>>>,
    /// Held by a serial call from its start to its end, including its waits.
    pub(crate) serial: tokio::sync::Mutex<()>,
    /// Held while a Lua state is made.
    creating: tokio::sync::Mutex<()>,
}

/// This many calls show that a plugin yields.
const ENOUGH: u32 = 3;

impl StatePool {
    pub(crate) fn new(plugin: Arc<PluginVersion>, main: Option<LoadedState>, rebuildable: bool) -> Arc<Self> {
        Arc::new(Self {
            plugin,
            rebuildable,
            quick_calls: AtomicU32::new(0),
            stalls: AtomicBool::new(false),
            main: Mutex::new(main.map(Arc::new)),
            others: Mutex::default(),
            serial: tokio::sync::Mutex::default(),
            creating: tokio::sync::Mutex::default(),
        })
    }

    /// Whether calls may keep their thread for long, so that they need tasks of their own, apart from their
    /// connections. True until a few calls have yielded in time, and forever once a call could not yield.
    pub(crate) fn may_stall(&self) -> bool {
        self.quick_calls.load(Ordering::Relaxed) < ENOUGH || self.stalls.load(Ordering::Relaxed)
    }

    /// Records how a call went.
    pub(crate) fn note_call(&self, stalled: bool) {
        if stalled {
            self.stalls.store(true, Ordering::Relaxed);
        } else if self.quick_calls.load(Ordering::Relaxed) < ENOUGH {
            self.quick_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The Lua state that keeps the plugin's globals; a new one if there is none yet or its memory was full.
    ///
    /// # Errors
    /// The script loaded before, and fails now.
    pub(crate) async fn main(self: &Arc<Self>) -> Result<StateLease, String> {
        if let Some(main) = self.ready() {
            return Ok(StateLease::new(main));
        }
        let _growing = self.creating.lock().await;
        self.main_while_creating().await
    }

    async fn main_while_creating(self: &Arc<Self>) -> Result<StateLease, String> {
        if let Some(main) = self.ready() {
            return Ok(StateLease::new(main));
        }
        let fresh = self.load_another().await?;
        *self.main.lock() = Some(fresh.clone());
        Ok(StateLease::new(fresh))
    }

    fn ready(&self) -> Option<Arc<LoadedState>> {
        self.main.lock().clone().filter(|main| !main.state.is_exhausted())
    }

    /// The Lua state with the fewest calls, or another one if all are in use and there may be more.
    ///
    /// # Errors
    /// As [`StatePool::main`].
    pub(crate) async fn any(self: &Arc<Self>) -> Result<StateLease, String> {
        if let Some(lease) = self.lease_least_busy() {
            return Ok(lease);
        }
        let _growing = self.creating.lock().await;
        if let Some(lease) = self.lease_least_busy() {
            return Ok(lease);
        }
        if self.ready().is_none() {
            return self.main_while_creating().await;
        }
        let fresh = self.load_another().await?;
        let lease = StateLease::new(fresh.clone());
        self.others.lock().push(fresh);
        Ok(lease)
    }

    /// `None` if there should be one more. Taken under the lock, or two calls could find the same state idle.
    fn lease_least_busy(&self) -> Option<StateLease> {
        let main = self.ready();
        let mut others = self.others.lock();
        others.retain(|loaded| !loaded.state.is_exhausted());
        let least = others.iter().chain(&main).min_by_key(|loaded| loaded.state.calls())?;
        let is_full = main.is_some() && others.len() + 1 >= self.plugin.shared.lua_states;
        (least.state.calls() == 0 || is_full).then(|| StateLease::new(least.clone()))
    }

    /// Releases Lua states that were not used for this long. They share no data, so nothing is lost. The one that keeps
    /// the plugin's globals stays longer, as configured, and forever if the script did more than register.
    pub(crate) fn release_idle(&self, idle: Duration) {
        let is_used = |loaded: &LoadedState, idle| loaded.state.calls() > 0 || loaded.state.idle() < idle;
        self.others.lock().retain(|loaded| is_used(loaded, idle));
        if let Some(idle) = self.plugin.shared.release_after.filter(|_| self.rebuildable) {
            let mut main = self.main.lock();
            // A call that is about to begin has taken its Lua state under this lock.
            if main.as_ref().is_some_and(|main| !is_used(main, idle)) {
                *main = None;
            }
        }
    }

    async fn load_another(self: &Arc<Self>) -> Result<Arc<LoadedState>, String> {
        let plugin = self.plugin.clone();
        let loaded = tokio::task::spawn_blocking(move || (plugin.shared.load)(&plugin)).await;
        let loaded = loaded.map_err(|error| error.to_string())?;
        loaded
            .map(Arc::new)
            .map_err(|error| format!("the plugin {} failed to load again: {}", self.plugin.name(), error.message))
    }
}

/// A Lua state that counts as in use until this is dropped.
pub(crate) struct StateLease(Arc<LoadedState>);

impl StateLease {
    fn new(loaded: Arc<LoadedState>) -> Self {
        loaded.state.begin_call();
        Self(loaded)
    }
}

impl std::ops::Deref for StateLease {
    type Target = LoadedState;

    fn deref(&self) -> &LoadedState {
        &self.0
    }
}

impl Drop for StateLease {
    fn drop(&mut self) {
        self.0.state.end_call();
    }
}
