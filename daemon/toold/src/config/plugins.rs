//! Determines which plugins the Lua host loads, and with which settings.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value};
use toold_builtins::toolkit::Toolkit;
use toold_engine::Engine;
use toold_engine::registry::SourceScope;
use toold_host::files;
use toold_host::http::Http;
use toold_host::sandbox::Sandbox;
use toold_host::secrets::SecretStore;
use toold_lua::plugin::content::{ContentDigest, ContentTrust};
use toold_lua::plugin::kept_versions::KeptVersions;
use toold_lua::plugin::registration_cache::RegistrationCache;
use toold_lua::plugin::secrets::PluginValues;
use toold_lua::reload::PluginHost;
use toold_lua::reload::options::{DirKind, PluginDir, PluginHostOptions, PluginSettings, StandaloneOptions};
use toold_proto::permission::Verdict;
use toold_store::trust::{Switch, TrustKind};
use toold_store::{Store, StoreError};

use crate::config::bundled;
use crate::config::options::Options;
use crate::config::project::ProjectFile;
use crate::config::{self, LoadedConfig, PluginsConfig, expand_home};

/// Starts the host. It loads nothing before it gets its [`settings`], after the policy is in force.
pub fn start(
    options: &Options,
    loaded: &LoadedConfig,
    engine: &Arc<Engine>,
    store: &Arc<Store>,
    sandbox: &Arc<Sandbox>,
    http: &Arc<Http>,
    secrets: &Arc<SecretStore>,
) -> anyhow::Result<PluginHost> {
    // Before anything is watched: a watch for a folder that does not exist yet reports all changes
    // above it.
    if let Err(error) = bundled::lay_out(&options.paths) {
        tracing::warn!(%error, "can't write the bundled plugins");
    }
    let mut host = PluginHostOptions::new(engine.clone(), Vec::new());
    host.memory = loaded.config.limits.vm_memory_mib << 20;
    host.poll = loaded.config.plugins.poll_ms.map(|ms| Duration::from_millis(ms.get()));
    if let Some(ms) = loaded.config.plugins.release_after_ms {
        host.release_after = Some(Duration::from_millis(ms)).filter(|after| !after.is_zero());
    }
    host.profile_dir = options.paths.config.clone();
    host.registrations = Some(registrations(options));
    host.kept_versions = Some(KeptVersions { dir: options.paths.plugin_versions() });
    host.store = Some(Arc::new(PluginStore(store.clone())));
    host.trust = Arc::new(StoredTrust(store.clone()));
    host.sandbox = sandbox.clone();
    host.http = http.clone();
    host.environment = options.of_children();
    let text = |(name, value): &(OsString, OsString)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()));
    host.values = PluginValues {
        secrets: Some(secrets.clone()),
        variables: options.environment.iter().filter_map(text).collect(),
    };
    PluginHost::start(host).context("can't start the Lua host")
}

/// The setting in which a plugin is loaded outside of the daemon: as in the daemon, but no rule allows it anything, since
/// nobody has decided yet that it may run.
pub fn standalone(options: &Options) -> StandaloneOptions {
    let loaded = config::load(options);
    let mut policy = loaded.policy.clone();
    policy.rules.retain(|rule| rule.action != Verdict::Allow);
    policy.control.extend(control_files(options, &loaded));
    let toolkit = Toolkit::new(options.of_children(), options.paths.of_builtins()).into();
    StandaloneOptions {
        builtins: toold_builtins::all(&toolkit),
        tools: loaded.tools.clone(),
        profile_dir: options.paths.config.clone(),
        policy,
        config: tables_of(&loaded.config.plugins),
        environment: options.of_children(),
    }
}

/// The secrets that the user's `[plugins.<name>]` tables name, by plugin.
pub fn secrets_in_tables(loaded: &LoadedConfig) -> Vec<(String, Vec<String>)> {
    let names = |table: &Value| {
        let text = table.to_string();
        let names = text.split("${secret:").skip(1).filter_map(|rest| rest.split_once('}'));
        names.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    let tables = tables_of(&loaded.config.plugins).into_iter().map(|(plugin, table)| (plugin, names(&table)));
    tables.filter(|(_, names)| !names.is_empty()).collect()
}

/// The places of plugins and the configuration, with links resolved: permissions are about resolved paths.
pub fn control_files(options: &Options, loaded: &LoadedConfig) -> Vec<PathBuf> {
    let files = dirs(options, loaded).into_iter().chain([options.config_file()]);
    files.map(|path| files::resolve(&path, Path::new("/")).unwrap_or(path)).collect()
}

/// The plugins to load: by the user's configuration, by those of projects, and by what persons
/// switched on or off.
pub fn settings(
    options: &Options,
    loaded: &LoadedConfig,
    store: &Store,
    projects: &[(PathBuf, Option<Arc<ProjectFile>>)],
) -> PluginSettings {
    let plugins = &loaded.config.plugins;
    let mut dirs = folders(options, loaded);
    let shipped = bundled::folder(&options.paths);
    if shipped.is_dir() {
        dirs.push(PluginDir { path: shipped, kind: DirKind::Bundled });
    }
    let mut tables = HashMap::from([(SourceScope::Global, tables_of(plugins))]);
    let mut disabled: HashSet<(SourceScope, String)> =
        plugins.disabled.iter().map(|name| (SourceScope::Global, name.clone())).collect();
    let mut enabled: HashSet<String> = plugins.bundled.iter().cloned().collect();
    for (project, trusted) in projects {
        let scope = SourceScope::Project(project.clone());
        let named = trusted.as_ref().map(|file| paths_of(file, options)).unwrap_or_default();
        let paths = folders_of(project).into_iter().chain(named);
        dirs.extend(paths.map(|path| PluginDir { path, kind: DirKind::Project { project: project.clone() } }));
        if let Some(file) = trusted {
            tables.insert(scope.clone(), tables_of(&file.config.plugins));
            disabled.extend(file.config.plugins.disabled.iter().map(|name| (scope.clone(), name.clone())));
        }
    }
    for Switch { project, plugin, on } in store.plugin_switches() {
        let scope = project.map_or(SourceScope::Global, SourceScope::Project);
        match on {
            // A plugin that a configuration disables stays disabled.
            true if scope == SourceScope::Global => _ = enabled.insert(plugin),
            true => {}
            false => _ = disabled.insert((scope, plugin)),
        }
    }
    PluginSettings { dirs, tables, disabled, enabled }
}

/// The places to search for the user's plugins, first to last, without the folder of the bundled
/// ones.
pub fn dirs(options: &Options, loaded: &LoadedConfig) -> Vec<PathBuf> {
    folders(options, loaded).into_iter().map(|dir| dir.path).collect()
}

/// The plugin folders of a project, whether or not they exist.
pub fn folders_of(project: &Path) -> [PathBuf; 2] {
    [project.join(".toold/plugins"), project.join(".hygge/plugins")]
}

/// The additional folders and files of a project's configuration.
pub fn paths_of(file: &ProjectFile, options: &Options) -> Vec<PathBuf> {
    let home = options.paths.home.as_deref();
    let paths = file.config.plugins.paths.iter();
    paths.map(|path| file.project.join(expand_home(path, home))).collect()
}

/// The user's folder, then the configured ones, then those of the command line.
fn folders(options: &Options, loaded: &LoadedConfig) -> Vec<PluginDir> {
    let home = options.paths.home.as_deref();
    let configured = loaded.config.plugins.paths.iter().map(|path| expand_home(path, home));
    let named = configured.chain(options.plugins.iter().cloned());
    let user = PluginDir { path: options.paths.user_plugins(), kind: DirKind::User };
    std::iter::once(user).chain(named.map(|path| PluginDir { path, kind: DirKind::Configured })).collect()
}

fn tables_of(plugins: &PluginsConfig) -> Map<String, Value> {
    let tables = plugins.tables.iter().filter_map(|(name, table)| match serde_json::to_value(table) {
        Ok(table) => Some((name.clone(), table)),
        Err(error) => {
            tracing::warn!(plugin = name, %error, "the plugin's table can't be converted to JSON");
            None
        }
    });
    tables.collect()
}

/// The trusted content, as stored in the database.
struct StoredTrust(Arc<Store>);

impl ContentTrust for StoredTrust {
    fn is_trusted(&self, plugin: &Path, digest: &ContentDigest) -> bool {
        match self.0.trusted(plugin, TrustKind::Plugin) {
            Ok(trusted) => trusted.is_some_and(|trusted| trusted.digest == digest.to_hex().as_str()),
            Err(error) => {
                tracing::warn!(plugin = %plugin.display(), %error, "can't tell whether it is trusted");
                false
            }
        }
    }
}

/// The folder of plugins' cached registrations. Another build of the daemon may interpret their
/// scripts differently.
fn registrations(options: &Options) -> RegistrationCache {
    let program = std::env::current_exe().and_then(|path| path.metadata());
    let facts = program.map(|facts| (facts.len(), facts.modified().ok()));
    RegistrationCache { dir: options.paths.registrations(), build: format!("{} {facts:?}", env!("CARGO_PKG_VERSION")) }
}

/// The daemon's store, as the Lua host uses it.
struct PluginStore(Arc<Store>);

impl toold_lua::plugin::store::KeyValueStore for PluginStore {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Value>, String> {
        self.0.plugin_value(plugin, key).map_err(words)
    }

    fn set(&self, plugin: &str, key: &str, value: &Value) -> Result<(), String> {
        self.0.set_plugin_value(plugin, key, value).map_err(words)
    }

    fn compare_and_set(
        &self,
        plugin: &str,
        key: &str,
        expected: Option<&str>,
        new: Option<&Value>,
    ) -> Result<bool, String> {
        self.0.compare_and_set_plugin_value(plugin, key, expected, new).map_err(words)
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
