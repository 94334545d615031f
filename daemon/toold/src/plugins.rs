//! Which plugins the Lua host loads, and with what.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use toold_engine::Engine;
use toold_host::environment::Environment;
use toold_lua::host::{DirKind, PluginDir, PluginHost, PluginHostOptions};
use toold_store::{Store, StoreError};

use crate::config::{Loaded, expand_home};
use crate::daemon::Options;

/// Starts the host; plugins load in the background.
pub fn start(
    options: &Options,
    loaded: &Loaded,
    engine: &Arc<Engine>,
    store: &Arc<Store>,
) -> anyhow::Result<PluginHost> {
    let mut host = PluginHostOptions::new(engine.clone(), folders(options, loaded));
    let plugins = &loaded.config.plugins;
    host.memory = loaded.config.limits.vm_memory_mib << 20;
    host.disabled = plugins.disabled.iter().cloned().collect();
    host.enabled = plugins.bundled.iter().cloned().collect();
    host.profile_dir = options.places.config.clone();
    host.store = Some(Arc::new(PluginStore(store.clone())));
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

/// The daemon's store, as the Lua host knows it.
struct PluginStore(Arc<Store>);

impl toold_lua::store::Store for PluginStore {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Value>, String> {
        self.0.plugin_value(plugin, key).map_err(words)
    }

    fn set(&self, plugin: &str, key: &str, value: &Value) -> Result<(), String> {
        self.0.set_plugin_value(plugin, key, value).map_err(words)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, String> {
        self.0.delete_plugin_value(plugin, key).map_err(words)
    }

    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, String> {
        self.0.plugin_keys(plugin, prefix).map_err(words)
    }
}

fn words(error: StoreError) -> String {
    error.to_string()
}
