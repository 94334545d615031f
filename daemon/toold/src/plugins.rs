//! Which plugins the Lua host loads, and with what.

use std::path::PathBuf;
use std::sync::Arc;

use toold_engine::Engine;
use toold_proto::plugin::Plugin;

use crate::config::{Loaded, expand_home};
use crate::daemon::Options;

#[derive(Clone)]
pub struct PluginHost {}
impl PluginHost {
    pub async fn settled(&self) {}
    pub fn is_settled(&self) -> bool {
        true
    }
    pub fn list(&self) -> Vec<Plugin> {
        Vec::new()
    }
    pub async fn reload(&self, _name: Option<&str>) {}
    pub async fn stop(&self) {}
}

pub fn start(_options: &Options, _loaded: &Loaded, _engine: &Arc<Engine>) -> PluginHost {
    PluginHost {}
}

/// The user's folder, then what the configuration names, then what the command line does.
pub fn dirs(options: &Options, loaded: &Loaded) -> Vec<PathBuf> {
    let home = options.places.home.as_deref();
    let configured = loaded.config.plugins.paths.iter().map(|path| expand_home(path, home));
    std::iter::once(options.places.user_plugins()).chain(configured).chain(options.plugins.iter().cloned()).collect()
}
