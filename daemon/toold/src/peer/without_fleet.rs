//! In place of `fleet` in a daemon that was built without fleets.

use std::path::Path;
use std::sync::Arc;

use toold_engine::Engine;
use toold_lua::reload::PluginHost;
use toold_store::Store;

use crate::config::active_config::ActiveConfig;
use crate::config::options::Options;
use crate::peer::sessions::SessionService;

pub struct FleetMounts;

impl FleetMounts {
    pub fn absence(&self, _: &str, _: &Path) -> Option<String> {
        None
    }

    pub async fn stop(&self) {}
}

pub struct FleetService;

impl FleetService {
    pub async fn stop(&self) {}
}

pub struct FleetParts {
    pub mounts: Arc<FleetMounts>,
}

impl FleetParts {
    pub fn new(_: &Arc<Engine>, _: &Options) -> Self {
        Self { mounts: Arc::new(FleetMounts) }
    }

    pub fn start(
        &self,
        _: &Arc<Engine>,
        _: &Arc<ActiveConfig>,
        _: &Arc<SessionService>,
        _: &Arc<Store>,
        _: &Arc<PluginHost>,
    ) -> Arc<FleetService> {
        Arc::new(FleetService)
    }
}
