//! What a plugin host loads, and how it runs.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toold_engine::Engine;
use toold_engine::callable::Callable;
use toold_engine::policy::Policy;
use toold_engine::registry::SourceScope;
use toold_engine::tool_settings::ToolSettings;
use toold_host::environment::Environment;
use toold_host::http::Http;
use toold_host::http::guard::Guard;
use toold_host::sandbox::Sandbox;

use crate::plugin::content::{ContentDigest, ContentTrust};
use crate::plugin::kept_versions::KeptVersions;
use crate::plugin::registration_cache::RegistrationCache;
use crate::plugin::secrets::PluginValues;
use crate::plugin::store::KeyValueStore;

/// A folder of plugins, or one plugin's file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDir {
    /// Absolute. It need not exist yet; the host watches for it.
    pub path: PathBuf,
    pub kind: DirKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirKind {
    /// The user's own folder.
    User,
    /// Named in the user's configuration.
    Configured,
    /// In a project, by its real path. Its plugins run only if the user trusts their content.
    Project { project: PathBuf },
    /// Shipped with the daemon; disabled unless enabled by name.
    Bundled,
}

/// What a host loads. It may change while the host runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginSettings {
    /// In order of precedence: of two plugins with the same name, the one in the earlier folder serves.
    pub dirs: Vec<PluginDir>,
    /// The `[plugins.<name>]` tables of the configurations: those of the user are for plugins that all sessions see,
    /// those of a project for its own plugins.
    pub tables: HashMap<SourceScope, Map<String, Value>>,
    /// Plugins that must not run, by scope and name.
    pub disabled: HashSet<(SourceScope, String)>,
    /// Names of bundled plugins that run.
    pub enabled: HashSet<String>,
}

/// How a host runs.
pub struct PluginHostOptions {
    /// In order of precedence: of two plugins with the same name, the one in the earlier folder serves.
    pub dirs: Vec<PluginDir>,
    pub engine: Arc<Engine>,
    /// Bytes that a Lua state of a plugin may use, unless its manifest sets a limit.
    pub memory: usize,
    /// How long a script may take to load.
    pub load_limit: Duration,
    /// How long [`PluginHost::settled`](super::PluginHost::settled) waits if no further plugin finishes. Longer than a
    /// load may take, so that no call bypasses the hooks of a slow plugin, and only delays of the system are not waited
    /// for.
    pub settle_patience: Duration,
    /// How many Lua states a plugin with parallelizable tools may have.
    pub lua_states: usize,
    /// After this long without a call, the Lua state of a plugin that only registered is released: its globals are new
    /// at the next call. `None` keeps it.
    pub release_after: Option<Duration>,
    /// The `[plugins.<name>]` tables of the configuration.
    pub config: Map<String, Value>,
    pub profile_dir: PathBuf,
    pub store: Option<Arc<dyn KeyValueStore>>,
    /// The environment of programs that plugins run, and of `os.getenv`.
    pub environment: Environment,
    /// Secrets, and variables that are not passed on by themselves.
    pub values: PluginValues,
    /// The HTTP client of `hygge.http`.
    pub http: Arc<Http>,
    /// The sandbox of programs that plugins run.
    pub sandbox: Arc<Sandbox>,
    /// Caches registrations, so that unchanged plugins need no Lua state before their first call; `None` does not
    /// cache.
    pub registrations: Option<RegistrationCache>,
    /// Keeps the last good version of each plugin for the next start; `None` does not keep it.
    pub kept_versions: Option<KeptVersions>,
    /// Names of plugins that must not run.
    pub disabled: HashSet<String>,
    /// Names of bundled plugins that run.
    pub enabled: HashSet<String>,
    /// How often plugin folders are polled. `None` relies on the system's events, and polls every second only where
    /// they are incomplete, as on network file systems.
    pub poll: Option<Duration>,
    /// Decides which content of projects is trusted; by default none is.
    pub trust: Arc<dyn ContentTrust>,
    /// How long loading waits for saves that may not be whole.
    pub patience: SavePatience,
}

/// How long loading waits for saves that may not be whole.
#[derive(Clone, Copy, Debug)]
pub struct SavePatience {
    /// A version that offers less than the one in service may be half of a save, and so may one whose files are gone: they
    /// must not change for this long.
    pub lesser: Duration,
    /// Such a version is in service after this time even if its files keep changing.
    pub lesser_at_most: Duration,
    /// While git holds the lock of a repository's index, nothing in it is loaded until nothing has changed for this
    /// long.
    pub git: Duration,
}

impl Default for SavePatience {
    /// 300 ms, at most 10 s; 5 s for git.
    fn default() -> Self {
        Self {
            lesser: Duration::from_millis(300),
            lesser_at_most: Duration::from_secs(10),
            git: Duration::from_secs(5),
        }
    }
}

/// The surroundings of a plugin that is loaded without a daemon; empty by default.
#[derive(Default)]
pub struct StandaloneOptions {
    pub profile_dir: PathBuf,
    pub policy: Policy,
    /// The `[plugins.<name>]` tables of the configuration.
    pub config: Map<String, Value>,
    pub environment: Environment,
    /// The built-in tools, whose names are taken.
    pub builtins: Vec<Arc<dyn Callable>>,
    /// What the configuration says of tools.
    pub tools: ToolSettings,
}

/// Trusts nothing.
struct TrustNothing;

impl ContentTrust for TrustNothing {
    fn is_trusted(&self, _: &Path, _: &ContentDigest) -> bool {
        false
    }
}

impl PluginHostOptions {
    /// 64 MiB for each Lua state, 5 s to load and 10 s to settle, one Lua state per core, released after half an hour,
    /// public addresses only, nothing configured.
    pub fn new(engine: Arc<Engine>, dirs: Vec<PluginDir>) -> Self {
        Self {
            dirs,
            engine,
            memory: 64 << 20,
            load_limit: Duration::from_secs(5),
            settle_patience: Duration::from_secs(10),
            lua_states: std::thread::available_parallelism().map_or(1, usize::from),
            release_after: Some(Duration::from_secs(1_800)),
            config: Map::new(),
            profile_dir: PathBuf::new(),
            store: None,
            environment: Environment::default(),
            values: PluginValues::default(),
            http: Arc::new(Http::new(Guard::default())),
            sandbox: Arc::default(),
            registrations: None,
            kept_versions: None,
            disabled: HashSet::new(),
            enabled: HashSet::new(),
            poll: None,
            trust: Arc::new(TrustNothing),
            patience: SavePatience::default(),
        }
    }
}
