//! This daemon's part in its fleet.

mod host;

use std::sync::Arc;

use toold_engine::Engine;
use toold_fleet::adapter::FleetAdapter;
pub use toold_fleet::adapter::FleetMounts;
pub use toold_fleet::fleet::Fleet as FleetService;
use toold_fleet::member::CurrentMember;
use toold_lua::reload::PluginHost;
use toold_store::Store;

use crate::config::active_config::ActiveConfig;
use crate::config::options::Options;
use crate::config::{fleet_settings, remotes};
use crate::peer::fleet::host::LocalFleetHost;
use crate::peer::sessions::SessionService;

/// The parts that exist before the configuration takes effect.
pub struct FleetParts {
    /// The tools of other daemons.
    pub mounts: Arc<FleetMounts>,
    member: CurrentMember,
}

impl FleetParts {
    pub fn new(engine: &Arc<Engine>, options: &Options) -> Self {
        let member = CurrentMember::default();
        let adapter = FleetAdapter::new(member.clone(), options.paths.fleet_tools());
        Self { mounts: FleetMounts::new(engine, adapter), member }
    }

    /// Joins the fleet that the configuration names, and follows changes.
    pub fn start(
        &self,
        engine: &Arc<Engine>,
        config: &Arc<ActiveConfig>,
        sessions: &Arc<SessionService>,
        store: &Arc<Store>,
        plugins: &Arc<PluginHost>,
    ) -> Arc<FleetService> {
        let host = LocalFleetHost {
            sessions: sessions.clone(),
            config: config.clone(),
            store: store.clone(),
            plugins: plugins.clone(),
            secret: remotes::kept_secret(&config.options),
        };
        let fleet = FleetService::start(engine, Arc::new(host), self.member.clone(), &config.options.paths.fleet());
        fleet_settings::follow(config, &fleet, &self.mounts);
        fleet
    }
}
