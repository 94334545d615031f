//! One version of a plugin while it lives: who it is, what it registered, and its machines.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use mlua::Function;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::hooks::HookEvent;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::tool::{Origin, ToolSpec};
use toold_host::environment::Environment;
use toold_host::http::Http;
use toold_host::sandbox::Sandbox;
use toold_proto::tool::{Source, SourceKind, ToolName};

use crate::brake::Watchdog;
use crate::load::load;
use crate::manifest::{Capabilities, Manifest};
use crate::offer::{OfferHandlers, PromptRegistration, ResourceRegistration};
use crate::registrations::{KeptRegistrations, Needs, Registrations};
use crate::store::Store;
use crate::trouble::Sources;
use crate::vm::{OwnChunks, Usage, Vm};

/// Tables of configurations: the user's are for plugins that all see, a project's for its own.
pub(crate) type Tables = HashMap<SourceScope, Map<String, Value>>;

/// What all plugins of a host share.
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) watchdog: Watchdog,
    pub(crate) own: OwnChunks,
    /// Bytes for each machine, unless a manifest says otherwise.
    pub(crate) memory: usize,
    pub(crate) load_limit: Duration,
    /// How many machines may run calls of one plugin at once.
    pub(crate) machines: usize,
    /// After so long without a call, a plugin that did nothing but register has no machine; `None`: it keeps one.
    pub(crate) release_after: Option<Duration>,
    /// The `[plugins.<name>]` tables of the configurations. Replaced as a whole.
    pub(crate) tables: ArcSwap<Tables>,
    pub(crate) profile_dir: PathBuf,
    pub(crate) store: Option<Arc<dyn Store>>,
    /// What programs get, and `os.getenv` tells.
    pub(crate) environment: Environment,
    pub(crate) http: Arc<Http>,
    /// What confines the programs that scripts run.
    pub(crate) sandbox: Arc<Sandbox>,
    /// Where registrations are kept; `None` when they are not.
    pub(crate) kept: Option<KeptRegistrations>,
    /// What the machines use.
    pub(crate) usage: Arc<Usage>,
    /// Fires when the host stops.
    pub(crate) stop: CancellationToken,
}

/// One version of a plugin.
pub(crate) struct Plugin {
    pub(crate) manifest: Manifest,
    /// The file or the folder.
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) key: SourceKey,
    pub(crate) script: Arc<[u8]>,
    pub(crate) sources: Sources,
    /// All that may run of it is in `sources`: what came since is not what was trusted.
    pub(crate) sealed: bool,
    pub(crate) shared: Arc<Shared>,
}

impl Plugin {
    pub(crate) fn name(&self) -> &str {
        &self.manifest.name
    }

    pub(crate) fn source(&self) -> Source {
        Source {
            kind: SourceKind::Plugin,
            name: self.manifest.name.clone(),
            path: Some(self.path.display().to_string()),
        }
    }

    /// The plugin's own folder; of a plugin of one file, the folder that it lies in.
    pub(crate) fn dir(&self) -> &Path {
        self.manifest.folder.as_deref().or(self.path.parent()).unwrap_or(&self.path)
    }

    /// Whether a resolved path is the plugin's own: its folder, or its one file.
    pub(crate) fn owns(&self, path: &Path) -> bool {
        path.starts_with(self.manifest.folder.as_ref().unwrap_or(&self.path))
    }

    /// Its name space in the store: plugins of one name in different projects share nothing.
    pub(crate) fn store_name(&self) -> String {
        match &self.key.scope {
            SourceScope::Global => self.name().to_owned(),
            SourceScope::Project(project) => format!("{}@{}", self.name(), project.display()),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.manifest.memory.unwrap_or(self.shared.memory)
    }

    /// Holds a plugin to the capabilities that its manifest names.
    ///
    /// # Errors
    /// The one that is missing, by name.
    pub(crate) fn requires(&self, name: &str, has: impl Fn(&Capabilities) -> bool) -> Result<(), String> {
        match &self.manifest.capabilities {
            Some(capabilities) if !has(capabilities) => {
                Err(format!("the plugin's manifest does not name the capability {name} (plugin.toml, [capabilities])"))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn config(&self) -> Value {
        let tables = self.shared.tables.load();
        let table = tables.get(&self.key.scope).and_then(|tables| tables.get(self.name()));
        table.cloned().unwrap_or_else(|| Value::Object(Map::new()))
    }
}

/// What a script registered, in the order in which it did, with its functions in one machine.
#[derive(Default)]
pub(crate) struct Registered {
    pub(crate) tools: Vec<(ToolSpec, Handlers)>,
    pub(crate) hooks: Vec<(HookRegistration, Function)>,
    pub(crate) commands: Vec<(CommandRegistration, Function)>,
    pub(crate) subagents: Vec<Subagent>,
    pub(crate) resources: Vec<(ResourceRegistration, OfferHandlers)>,
    pub(crate) prompts: Vec<(PromptRegistration, OfferHandlers)>,
}

impl Registered {
    /// What others need to know of it.
    pub(crate) fn as_data(&self) -> Registrations {
        let needs = |handlers: &Handlers| match handlers.permission {
            Permission::Default => Needs::Default,
            Permission::None => Needs::None,
            Permission::Told(_) => Needs::Told,
        };
        Registrations {
            tools: self.tools.iter().map(|(spec, handlers)| (spec.clone(), needs(handlers))).collect(),
            hooks: self.hooks.iter().map(|(hook, _)| hook.clone()).collect(),
            commands: self.commands.iter().map(|(command, _)| command.clone()).collect(),
            subagents: self.subagents.clone(),
            resources: self.resources.iter().map(|(resource, _)| resource.clone()).collect(),
            prompts: self.prompts.iter().map(|(prompt, _)| prompt.clone()).collect(),
        }
    }
}

/// The functions of a tool, in one machine.
#[derive(Clone)]
pub(crate) struct Handlers {
    pub(crate) execute: Function,
    pub(crate) permission: Permission,
}

/// What a tool says of what it will touch.
#[derive(Clone)]
pub(crate) enum Permission {
    /// Category `plugin`, the tool's name.
    Default,
    /// Nothing; what it asks of the host is judged need by need all the same.
    None,
    /// A function of the input.
    Told(Function),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HookRegistration {
    pub(crate) name: String,
    pub(crate) event: HookEvent,
    pub(crate) priority: i64,
    pub(crate) asynchronous: bool,
    pub(crate) timeout: Duration,
    pub(crate) fail_closed: bool,
    /// Names or globs, which can be read as such; `None` for all.
    pub(crate) tools: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CommandRegistration {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// A sub-agent that a plugin describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subagent {
    pub name: String,
    pub plugin: String,
    /// Who sees it.
    pub scope: SourceScope,
    pub description: String,
    pub system_prompt: String,
    /// Names of tools that it may use; `None` for all.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
}

/// A machine in which the plugin's script has run, and the functions that it registered there.
pub(crate) struct Loaded {
    pub(crate) vm: Vm,
    pub(crate) tools: HashMap<ToolName, Handlers>,
    pub(crate) hooks: Vec<Function>,
    pub(crate) commands: HashMap<String, Function>,
    pub(crate) resources: Vec<OfferHandlers>,
    pub(crate) prompts: Vec<OfferHandlers>,
}

/// A plugin's machines. The first keeps its state; the others serve parallelizable tools.
pub(crate) struct Version {
    pub(crate) plugin: Arc<Plugin>,
    /// `None` until the first call needs it, where what the script registered is known without.
    main: Mutex<Option<Arc<Loaded>>>,
    /// What the script registered is known without a machine.
    can_do_without: bool,
    /// Calls that gave way whenever they had to, up to [`ENOUGH`].
    quick_calls: AtomicU32,
    /// One could not.
    stalls: AtomicBool,
    others: Mutex<Vec<Arc<Loaded>>>,
    /// Held by a serial call from its start to its end, its waits included.
    pub(crate) serial: tokio::sync::Mutex<()>,
    /// Held while a machine is made.
    growing: tokio::sync::Mutex<()>,
}

const POISON: &str = "no code panics while it holds this lock";
/// So many calls show that a plugin gives way.
const ENOUGH: u32 = 3;

impl Version {
    pub(crate) fn new(plugin: Arc<Plugin>, main: Option<Loaded>, can_do_without: bool) -> Arc<Self> {
        Arc::new(Self {
            plugin,
            can_do_without,
            quick_calls: AtomicU32::new(0),
            stalls: AtomicBool::new(false),
            main: Mutex::new(main.map(Arc::new)),
            others: Mutex::default(),
            serial: tokio::sync::Mutex::default(),
            growing: tokio::sync::Mutex::default(),
        })
    }

    /// Whether calls may keep their thread for long, so that they need tasks of their own, away from their connections. So it
    /// is until a few have shown otherwise, and for good once one could not give way.
    pub(crate) fn may_stall(&self) -> bool {
        self.quick_calls.load(Ordering::Relaxed) < ENOUGH || self.stalls.load(Ordering::Relaxed)
    }

    /// Notes how a call went.
    pub(crate) fn note_call(&self, stalled: bool) {
        if stalled {
            self.stalls.store(true, Ordering::Relaxed);
        } else if self.quick_calls.load(Ordering::Relaxed) < ENOUGH {
            self.quick_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The machine that keeps the plugin's state; a new one in its place when there is none yet, or it is worn.
    ///
    /// # Errors
    /// The script, which ran before, does not run any more.
    pub(crate) async fn main(self: &Arc<Self>) -> Result<Held, String> {
        if let Some(main) = self.ready() {
            return Ok(Held::new(main));
        }
        let _growing = self.growing.lock().await;
        self.main_while_growing().await
    }

    async fn main_while_growing(self: &Arc<Self>) -> Result<Held, String> {
        if let Some(main) = self.ready() {
            return Ok(Held::new(main));
        }
        let fresh = self.another().await?;
        *self.main.lock().expect(POISON) = Some(fresh.clone());
        Ok(Held::new(fresh))
    }

    fn ready(&self) -> Option<Arc<Loaded>> {
        self.main.lock().expect(POISON).clone().filter(|main| !main.vm.is_worn())
    }

    /// The machine with the fewest calls; another one while all are in use and there may be more.
    ///
    /// # Errors
    /// As [`Version::main`].
    pub(crate) async fn any(self: &Arc<Self>) -> Result<Held, String> {
        if let Some(held) = self.take_least() {
            return Ok(held);
        }
        let _growing = self.growing.lock().await;
        if let Some(held) = self.take_least() {
            return Ok(held);
        }
        if self.ready().is_none() {
            return self.main_while_growing().await;
        }
        let fresh = self.another().await?;
        let held = Held::new(fresh.clone());
        self.others.lock().expect(POISON).push(fresh);
        Ok(held)
    }

    /// `None` when there should be one more. Taken under the lock, or two calls could find one machine idle.
    fn take_least(&self) -> Option<Held> {
        let main = self.ready();
        let mut others = self.others.lock().expect(POISON);
        others.retain(|loaded| !loaded.vm.is_worn());
        let least = others.iter().chain(&main).min_by_key(|loaded| loaded.vm.calls())?;
        let is_full = main.is_some() && others.len() + 1 >= self.plugin.shared.machines;
        (least.vm.calls() == 0 || is_full).then(|| Held::new(least.clone()))
    }

    /// Lets go of machines that nothing has used for so long. They share no state, so that nothing is lost. The one that
    /// keeps the plugin's state stays longer, as the configuration says, and for good where the script did more than
    /// register.
    pub(crate) fn rest(&self, idle: Duration) {
        let is_used = |loaded: &Loaded, idle| loaded.vm.calls() > 0 || loaded.vm.idle() < idle;
        self.others.lock().expect(POISON).retain(|loaded| is_used(loaded, idle));
        if let Some(idle) = self.plugin.shared.release_after.filter(|_| self.can_do_without) {
            let mut main = self.main.lock().expect(POISON);
            // A call that is about to begin has taken the machine under this lock.
            if main.as_ref().is_some_and(|main| !is_used(main, idle)) {
                *main = None;
            }
        }
    }

    async fn another(self: &Arc<Self>) -> Result<Arc<Loaded>, String> {
        let plugin = self.plugin.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&plugin)).await;
        let loaded = loaded.map_err(|error| error.to_string())?;
        loaded.map(|outcome| Arc::new(outcome.loaded)).map_err(|error| {
            format!("the plugin {} could not be started anew: {}", self.plugin.name(), error.error.message)
        })
    }
}

/// A machine that counts as in use until this is dropped.
pub(crate) struct Held(Arc<Loaded>);

impl Held {
    fn new(loaded: Arc<Loaded>) -> Self {
        loaded.vm.enter();
        Self(loaded)
    }
}

impl std::ops::Deref for Held {
    type Target = Loaded;

    fn deref(&self) -> &Loaded {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.vm.leave();
    }
}
