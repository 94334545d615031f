//! This daemon's part in its fleet.

mod host;

use std::sync::Arc;

use toold_engine::Engine;
use toold_fleet::fleet::Fleet;
use toold_store::Store;

use crate::config::active_config::ActiveConfig;
use crate::config::{fleet_settings, remotes};
use crate::peer::fleet::host::LocalFleetHost;
use crate::peer::sessions::SessionService;

pub type FleetService = Fleet;

/// Joins the fleet that the configuration names, and follows changes.
pub fn start(
    engine: &Arc<Engine>,
    config: &Arc<ActiveConfig>,
    sessions: &Arc<SessionService>,
    store: &Arc<Store>,
) -> Arc<FleetService> {
    let host = LocalFleetHost {
        sessions: sessions.clone(),
        config: config.clone(),
        store: store.clone(),
        secret: remotes::kept_secret(&config.options),
    };
    let fleet = Fleet::start(engine, Arc::new(host), &config.options.paths.fleet());
    fleet_settings::follow(config, &fleet);
    fleet
}
