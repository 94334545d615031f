//! What all plugins of a host share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::registry::SourceScope;
use toold_host::environment::Environment;
use toold_host::http::Http;
use toold_host::sandbox::Sandbox;
use toold_proto::plugin::PluginError;

use crate::plugin::PluginVersion;
use crate::plugin::load_refusals::LoadRefusals;
use crate::plugin::registration_cache::RegistrationCache;
use crate::plugin::secrets::PluginValues;
use crate::plugin::state_pool::LoadedState;
use crate::plugin::store::KeyValueStore;
use crate::vm::create::HostChunks;
use crate::vm::lua_state::LuaUsage;
use crate::vm::watchdog::Watchdog;

/// The `[plugins.<name>]` tables of the configurations: those of the user are for plugins that all sessions see, those
/// of a project for its own plugins.
pub(crate) type ConfigTables = HashMap<SourceScope, Map<String, Value>>;

/// Shared by all plugins of a host.
pub(crate) struct HostResources {
    pub(crate) engine: Arc<Engine>,
    pub(crate) watchdog: Watchdog,
    pub(crate) host_chunks: HostChunks,
    /// Bytes for each Lua state, unless the manifest sets a limit.
    pub(crate) memory: usize,
    pub(crate) load_limit: Duration,
    /// How many Lua states may run calls of one plugin at once.
    pub(crate) lua_states: usize,
    /// A plugin that only registered releases its Lua state after this time without a call. `None` keeps it.
    pub(crate) release_after: Option<Duration>,
    /// The `[plugins.<name>]` tables of the configurations. Replaced as a whole.
    pub(crate) tables: ArcSwap<ConfigTables>,
    pub(crate) profile_dir: PathBuf,
    pub(crate) store: Option<Arc<dyn KeyValueStore>>,
    /// The environment of programs, and of `os.getenv`.
    pub(crate) environment: Environment,
    pub(crate) values: PluginValues,
    pub(crate) http: Arc<Http>,
    /// The sandbox for programs that scripts run.
    pub(crate) sandbox: Arc<Sandbox>,
    /// The cache of registrations; `None` if they are not cached.
    pub(crate) registration_cache: Option<RegistrationCache>,
    pub(crate) load_refusals: LoadRefusals,
    /// The memory that the Lua states use.
    pub(crate) usage: Arc<LuaUsage>,
    /// Runs a plugin's script in a new Lua state. Blocks for `load_limit` at most. A function, since loading knows the
    /// API, which knows plugins.
    pub(crate) load: fn(&Arc<PluginVersion>) -> Result<LoadedState, PluginError>,
    /// Fires when the host stops.
    pub(crate) stop: CancellationToken,
}
