//! A plugin without a daemon: for checks and tests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::call::{Call, Caller, Principal};
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::session::{NewSession, Session, SessionFilter};
use toold_engine::tool::Origin;
use toold_host::http::Http;
use toold_host::http::guard::Guard;
use toold_proto::plugin::PluginError;
use toold_proto::session::Mode;
use toold_proto::tool::{SessionId, SourceKind};

use crate::plugin::host_resources::HostResources;
use crate::plugin::load_refusals::LoadRefusals;
use crate::plugin::manifest::{Manifest, explain};
use crate::plugin::secrets::PluginValues;
use crate::plugin::version_files::VersionFiles;
use crate::plugin::{PluginPlace, PluginVersion};
use crate::reload::load;
use crate::reload::memory_store::MemoryStore;
use crate::reload::options::StandaloneOptions;
use crate::vm::create::HostChunks;
use crate::vm::watchdog::Watchdog;

const MEMORY: usize = 64 << 20;

pub(crate) const LOAD_LIMIT: Duration = Duration::from_secs(5);

/// A session without clients.
pub(crate) fn session_in(id: &str, folder: &Path, mode: Mode) -> Session {
    let session = Session::new(NewSession {
        id: SessionId::parse(id).expect("letters are an id"),
        cwd: folder.to_owned(),
        roots: Vec::new(),
        project: folder.to_owned(),
        client: None,
        model: None,
        env: Default::default(),
        filter: SessionFilter::default(),
        workspace: None,
    });
    session.set_mode(mode);
    session
}

/// A call without arguments and without listeners.
pub(crate) fn call_in(session: Session, principal: Principal, name: String, limit: Duration) -> Call {
    Call {
        name,
        arguments: Value::Object(Map::new()),
        call_id: None,
        session: Arc::new(session),
        cwd: None,
        timeout: Some(limit),
        no_cache: true,
        caller: Arc::new(Caller::new(0, principal)),
        progress: Vec::new(),
        cancel: CancellationToken::new(),
        chain: Arc::new([]),
        depth: 0,
        holds_lane: false,
    }
}

/// The resources of a host, reduced to a minimum, with a store that ends with them.
///
/// # Errors
/// The system has no thread for the watchdog, or two of the built-in tools have one name.
pub(crate) fn shared(
    engine: Arc<Engine>,
    load_limit: Duration,
    options: StandaloneOptions,
) -> std::io::Result<Arc<HostResources>> {
    engine.policy.store(Arc::new(options.policy));
    let own = SourceKey { kind: SourceKind::Builtin, name: "toold".to_owned(), scope: SourceScope::Global };
    engine.registry.set_tool_settings(options.tools);
    let put = engine.registry.put(own, Origin::Builtin, options.builtins);
    put.map_err(|error| std::io::Error::other(error.to_string()))?;
    let tables = HashMap::from([(SourceScope::Global, options.config)]);
    Ok(Arc::new(HostResources {
        engine,
        watchdog: Watchdog::start()?,
        host_chunks: HostChunks::default(),
        memory: MEMORY,
        load_limit,
        lua_states: 1,
        release_after: None,
        tables: ArcSwap::from_pointee(tables),
        profile_dir: options.profile_dir,
        store: Some(Arc::new(MemoryStore::default())),
        environment: options.environment,
        values: PluginValues::default(),
        http: Arc::new(Http::new(Guard::default())),
        sandbox: Arc::default(),
        registration_cache: None,
        load_refusals: LoadRefusals::default(),
        usage: Arc::default(),
        load: load::load_again,
        stop: CancellationToken::new(),
    }))
}

/// The folder of a plugin that is named by its script: one with a manifest, or with modules beside the script.
fn folder_of(script: &Path) -> Option<PathBuf> {
    let folder = script.parent().filter(|folder| script.is_file() && !folder.ends_with("plugins"))?;
    let is_entry = match Manifest::of_folder(folder) {
        Ok(manifest) => manifest.entry == script,
        Err(_) => script.ends_with("plugin.lua"),
    };
    let is_module = |entry: std::fs::DirEntry| {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        path != script
            && (path.is_dir() || name == "plugin.toml" || (name.ends_with(".lua") && !name.ends_with("_test.lua")))
    };
    let has_modules = || std::fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(is_module));
    (is_entry && has_modules()).then(|| folder.to_owned())
}

pub(crate) fn plugin_at(path: &Path, shared: Arc<HostResources>) -> Result<Arc<PluginVersion>, Box<PluginError>> {
    let real =
        path.canonicalize().map_err(|error| Box::new(PluginError::of(format!("{}: {error}", path.display()))))?;
    let real = folder_of(&real).unwrap_or(real);
    let (digest, files) = VersionFiles::read(&real)
        .map_err(|error| Box::new(PluginError::of(format!("can't read {}: {error}", path.display()))))?;
    let entry = Manifest::of_version(&real, &files).map_err(|error| Box::new(explain(&error)))?;
    Ok(PluginVersion::new(PluginPlace::of_user(real), entry, digest, files, shared))
}
