//! What a plugin host loads, and how it runs.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toold_engine::Engine;
use toold_engine::registry::SourceScope;
use toold_host::environment::Environment;
use toold_host::http::Http;
use toold_host::http::guard::Guard;
use toold_host::sandbox::Sandbox;

use crate::plugin::content::{ContentDigest, ContentTrust};
use crate::plugin::registration_cache::RegistrationCache;
use crate::plugin::store::KeyValueStore;

/// A folder of plugins, or one plugin's file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDir {
    /// Absolute. It need not exist: it is watched for.
    pub path: PathBuf,
    pub kind: DirKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirKind {
    /// The user's own folder.
    User,
    /// Named in the user's configuration.
    Configured,
    /// Of a project, by its real path. A plugin in it runs only while a person trusts its content.
    Project { project: PathBuf },
    /// Shipped with the daemon; off unless enabled.
    Bundled,
}

/// What a host loads, and with what. It may change while the host runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginSettings {
    /// In order of precedence: of two plugins of one name, that of the earlier folder serves.
    pub dirs: Vec<PluginDir>,
    /// The `[plugins.<name>]` tables of the configurations: the user's are for plugins that all see, a
    /// project's for its own.
    pub tables: HashMap<SourceScope, Map<String, Value>>,
    /// Plugins that are not to run, by who sees them and their names.
    pub disabled: HashSet<(SourceScope, String)>,
    /// Names of bundled plugins that are to run.
    pub enabled: HashSet<String>,
}

/// ReloadMode a host runs.
pub struct PluginHostOptions {
    /// In order of precedence: of two plugins of one name, that of the earlier folder serves.
    pub dirs: Vec<PluginDir>,
    pub engine: Arc<Engine>,
    /// Bytes that a machine of a plugin may use, unless its manifest says otherwise.
    pub memory: usize,
    /// ReloadMode long a script may take to load.
    pub load_limit: Duration,
    /// ReloadMode long [`PluginHost::settled`] waits when no further plugin finishes. More than a load may take, so that no
    /// call slips past the hooks of a plugin that is slow, and it is only the system that is not waited for.
    pub settle_patience: Duration,
    /// ReloadMode many machines a plugin with parallelizable tools may have.
    pub lua_states: usize,
    /// After so long without a call the machine of a plugin is released that did nothing but register: its globals are new
    /// at the next call. `None`: it is kept.
    pub release_after: Option<Duration>,
    /// The `[plugins.<name>]` tables of the configuration.
    pub config: Map<String, Value>,
    pub profile_dir: PathBuf,
    pub store: Option<Arc<dyn KeyValueStore>>,
    /// What programs that plugins run inherit, and all that `os.getenv` tells.
    pub environment: Environment,
    /// What `hygge.http` makes requests with.
    pub http: Arc<Http>,
    /// What confines the programs that plugins run.
    pub sandbox: Arc<Sandbox>,
    /// Where it is kept what plugins registered, so that those that did not change need no machine before their
    /// first call; `None` when it is not kept.
    pub registrations: Option<RegistrationCache>,
    /// Names of plugins that are not to run.
    pub disabled: HashSet<String>,
    /// Names of bundled plugins that are to run.
    pub enabled: HashSet<String>,
    /// ReloadMode often plugin folders are looked at, whatever the system tells. `None` listens to the system's events,
    /// and looks every second only where they do not tell all, as on a network's file system.
    pub poll: Option<Duration>,
    /// Who tells what of projects is trusted; without it nothing is.
    pub trust: Arc<dyn ContentTrust>,
}

/// Trusts nothing.
struct TrustNothing;

impl ContentTrust for TrustNothing {
    fn is_trusted(&self, _: &Path, _: &ContentDigest) -> bool {
        false
    }
}

impl PluginHostOptions {
    /// 64 MiB a machine, 5 s to load and 10 to settle, a machine for each core, released after half an hour, public
    /// addresses only, nothing configured.
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
            http: Arc::new(Http::new(Guard::default())),
            sandbox: Arc::default(),
            registrations: None,
            disabled: HashSet::new(),
            enabled: HashSet::new(),
            poll: None,
            trust: Arc::new(TrustNothing),
        }
    }
}
