//! Which plugins the Lua host loads, and with what.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use toold_engine::Engine;
use toold_host::environment::Environment;
use toold_lua::host::{DirKind, PluginDir, PluginHost, PluginHostOptions};

use crate::config::{Loaded, expand_home};
use crate::daemon::Options;

/// Starts the host; plugins load in the background.
pub fn start(options: &Options, loaded: &Loaded, engine: &Arc<Engine>) -> anyhow::Result<PluginHost> {
    let mut host = PluginHostOptions::new(engine.clone(), folders(options, loaded));
    let plugins = &loaded.config.plugins;
    host.memory = loaded.config.limits.vm_memory_mib << 20;
    host.disabled = plugins.disabled.iter().cloned().collect();
    host.enabled = plugins.bundled.iter().cloned().collect();
    host.profile_dir = options.places.config.clone();
    host.environment = Environment::inherited(options.environment.iter().cloned());
    for (name, table) in &plugins.tables {
        let table = serde_json::to_value(table).with_context(|| format!("[plugins.{name}] has no form in JSON"))?;
        host.config.insert(name.clone(), table);
    }
    PluginHost::start(host).context("can't start the Lua host")
}

/// Where plugins are looked for, first to last.
pub fn dirs(options: &Options, loaded: &Loaded) -> Vec<PathBuf> {
    folders(options, loaded).into_iter().map(|dir| dir.path).collect()
}

/// The user's folder, then what the configuration names, then what the command line does.
fn folders(options: &Options, loaded: &Loaded) -> Vec<PluginDir> {
    let home = options.places.home.as_deref();
    let configured = loaded.config.plugins.paths.iter().map(|path| expand_home(path, home));
    let named = configured.chain(options.plugins.iter().cloned());
    let user = PluginDir { path: options.places.user_plugins(), kind: DirKind::User };
    std::iter::once(user).chain(named.map(|path| PluginDir { path, kind: DirKind::Configured })).collect()
}
