//! The Lua states of one version of a plugin.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use mlua::{Function, Lua, Table};
use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_proto::plugin::PluginError;
use toold_proto::tool::{SessionId, ToolName};

use crate::plugin::PluginVersion;
use crate::plugin::failure_log::log_failure;
use crate::plugin::failures::{FailureLog, HandlerName};
use crate::plugin::registrations::ToolHandlers;
use crate::plugin::resources_and_prompts::OfferHandlers;
use crate::plugin::state_content::StateContent;
use crate::vm::lua_state::LuaState;
use crate::vm::script_run::SerialLock;

/// A Lua state in which the plugin's script has run, and the functions that it registered there.
pub(crate) struct LoadedState {
    pub(crate) state: LuaState,
    pub(crate) tools: HashMap<ToolName, ToolHandlers>,
    pub(crate) hooks: Vec<Function>,
    pub(crate) commands: HashMap<String, Function>,
    pub(crate) resources: Vec<OfferHandlers>,
    pub(crate) prompts: Vec<OfferHandlers>,
    pub(crate) timers: Vec<Function>,
    /// Tables of `hygge.state`, by name.
    pub(crate) state_tables: Vec<(String, Table)>,
}

/// The Lua states of a plugin. The main one keeps the plugin's globals; the others serve parallelizable tools. A plugin
/// that has tables of `hygge.state` has only the main one.
pub(crate) struct StatePool {
    pub(crate) plugin: Arc<PluginVersion>,
    main: Mutex<MainState>,
    /// The registrations are known without a Lua state, so the main one can be released and made again.
    rebuildable: bool,
    /// Calls that yielded whenever they had to, up to [`ENOUGH`].
    quick_calls: AtomicU32,
    /// A call could not yield.
    stalls: AtomicBool,
    others: Mutex<Vec<Arc<LoadedState>>>,
    /// Held by a serial call while its script runs, and not while it waits.
    pub(crate) serial: Arc<SerialLock>,
    /// Held while a Lua state is made.
    creating: tokio::sync::Mutex<()>,
    failures: FailureLog,
}

#[derive(Default)]
struct MainState {
    /// `None` until the first call needs it, if the registrations are known without it.
    loaded: Option<Arc<LoadedState>>,
    /// Content for the tables of `hygge.state`, to be taken over before the next call.
    inherits: Option<Inherited>,
}

#[derive(Clone)]
enum Inherited {
    /// From an older version, whose calls may still change it.
    From(Arc<StatePool>),
    Content(StateContent),
}

/// How long a script may keep its thread before the content of its tables is given up.
const CONTENT_PATIENCE: Duration = Duration::from_secs(1);

/// This many calls show that a plugin yields.
const ENOUGH: u32 = 3;

impl StatePool {
    pub(crate) fn new(plugin: Arc<PluginVersion>, main: Option<LoadedState>, rebuildable: bool) -> Arc<Self> {
        Arc::new(Self {
            plugin,
            rebuildable,
            quick_calls: AtomicU32::new(0),
            stalls: AtomicBool::new(false),
            main: Mutex::new(MainState { loaded: main.map(Arc::new), inherits: None }),
            others: Mutex::default(),
            serial: Arc::default(),
            creating: tokio::sync::Mutex::default(),
            failures: FailureLog::default(),
        })
    }

    /// Reports to the plugin's author that a function failed in a call.
    pub(crate) fn report_failure(&self, handler: HandlerName, cx: &Cx, error: PluginError) {
        self.failures.report(&self.plugin, handler, Some(cx), None, error);
    }

    /// The same outside of calls.
    pub(crate) fn report_failure_outside(&self, handler: HandlerName, session: Option<SessionId>, error: PluginError) {
        self.failures.report(&self.plugin, handler, None, session, error);
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
        let content = self.content_while_creating().await;
        let loaded = self.main.lock().loaded.clone().filter(|main| !main.state.is_exhausted());
        let fresh = match loaded {
            Some(loaded) => loaded,
            None => self.load_another().await?,
        };
        let filled = fresh.state.between_scripts(|lua| content.fill(lua, &fresh.state_tables)).await;
        if let Err(error) = filled {
            log_failure(&self.plugin, None, "hygge.state is not carried over", &self.plugin.sources.explain(&error));
        }
        *self.main.lock() = MainState { loaded: Some(fresh.clone()), inherits: None };
        Ok(StateLease::new(fresh))
    }

    /// The main Lua state, if it can be used as it is.
    fn ready(&self) -> Option<Arc<LoadedState>> {
        let main = self.main.lock();
        let is_ready = |loaded: &&Arc<LoadedState>| main.inherits.is_none() && !loaded.state.is_exhausted();
        main.loaded.as_ref().filter(is_ready).cloned()
    }

    /// Takes over the content of the tables of `hygge.state` from an older version before the next call. Calls that end
    /// before that still change it.
    pub(crate) fn inherit(&self, older: &Arc<Self>) {
        let inherits = {
            let main = older.main.lock();
            let has_tables = main.loaded.as_ref().is_some_and(|loaded| !loaded.state_tables.is_empty());
            main.inherits.clone().or_else(|| has_tables.then(|| Inherited::From(older.clone())))
        };
        self.main.lock().inherits = inherits;
    }

    /// Copies the content that [`inherit`](Self::inherit) announced, so that the older version is no longer needed,
    /// unless it has calls that may change it. Never waits.
    pub(crate) fn copy_inherited(&self) {
        let Ok(_creating) = self.creating.try_lock() else { return };
        let Some(Inherited::From(older)) = self.main.lock().inherits.clone() else { return };
        let Some(loaded) = older.main.lock().loaded.clone().filter(|loaded| loaded.state.calls() == 0) else { return };
        let content = loaded.state.if_no_script_runs(|lua| loaded.content(lua, &older.plugin));
        if let Some(content) = content {
            self.main.lock().inherits = Some(Inherited::Content(content));
        }
    }

    /// The content of the tables of `hygge.state`, now or as an older version left it.
    async fn content_while_creating(&self) -> StateContent {
        let (loaded, inherits) = {
            let main = self.main.lock();
            (main.loaded.clone(), main.inherits.clone())
        };
        match (inherits, loaded) {
            (Some(Inherited::Content(content)), _) => content,
            (Some(Inherited::From(older)), _) => {
                let _creating = older.creating.lock().await;
                Box::pin(older.content_while_creating()).await
            }
            (None, Some(loaded)) if !loaded.state_tables.is_empty() => {
                let read = loaded.state.between_scripts(|lua| loaded.content(lua, &self.plugin));
                tokio::time::timeout(CONTENT_PATIENCE, read).await.unwrap_or_else(|_| {
                    let why = "a call kept its thread for too long".to_owned();
                    log_failure(&self.plugin, None, "hygge.state is not carried over", &PluginError::of(why));
                    StateContent::default()
                })
            }
            (None, Some(_) | None) => StateContent::default(),
        }
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
        if let Some(main) = main.as_ref().filter(|main| !main.state_tables.is_empty()) {
            return Some(StateLease::new(main.clone()));
        }
        let mut others = self.others.lock();
        others.retain(|loaded| !loaded.state.is_exhausted());
        let least = others.iter().chain(&main).min_by_key(|loaded| loaded.state.calls())?;
        let is_full = main.is_some() && others.len() + 1 >= self.plugin.shared.lua_states;
        (least.state.calls() == 0 || is_full).then(|| StateLease::new(least.clone()))
    }

    /// Releases Lua states that were not used for this long. They share no data, so nothing is lost. The one that keeps
    /// the plugin's globals stays longer, as configured, and forever if the script did more than register; the content
    /// of its tables of `hygge.state` is kept.
    pub(crate) fn release_idle(&self, idle: Duration) {
        self.copy_inherited();
        let is_used = |loaded: &LoadedState, idle| loaded.state.calls() > 0 || loaded.state.idle() < idle;
        self.others.lock().retain(|loaded| is_used(loaded, idle));
        if let Some(idle) = self.plugin.shared.release_after.filter(|_| self.rebuildable) {
            let mut main = self.main.lock();
            // A call that is about to begin has taken its Lua state under this lock.
            let Some(loaded) = main.loaded.clone().filter(|loaded| !is_used(loaded, idle)) else { return };
            if main.inherits.is_none() && !loaded.state_tables.is_empty() {
                let content = loaded.state.if_no_script_runs(|lua| loaded.content(lua, &self.plugin));
                let Some(content) = content else { return };
                main.inherits = Some(Inherited::Content(content));
            }
            main.loaded = None;
        }
    }

    async fn load_another(self: &Arc<Self>) -> Result<Arc<LoadedState>, String> {
        let plugin = self.plugin.clone();
        let loaded = tokio::task::spawn_blocking(move || (plugin.shared.load)(&plugin)).await;
        let loaded = loaded.map_err(|error| error.to_string())?;
        loaded.map(Arc::new).map_err(|error| {
            let words = format!("the plugin {} failed to load again: {}", self.plugin.name(), error.message);
            self.report_failure_outside(HandlerName { kind: "script", name: "" }, None, error);
            words
        })
    }
}

impl LoadedState {
    /// A copy of the tables of `hygge.state`, without those that cannot be copied.
    fn content(&self, lua: &Lua, plugin: &PluginVersion) -> StateContent {
        StateContent::read(lua, &self.state_tables, |name, why| {
            let failed = ["hygge.state ", name].concat();
            log_failure(plugin, None, &format!("{} is not carried over", failed.trim_end()), &PluginError::of(why));
        })
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
