//! In place of `fleet` in a daemon that was built without fleets.

use std::sync::Arc;

use toold_engine::Engine;
use toold_store::Store;

use crate::config::active_config::ActiveConfig;
use crate::peer::sessions::SessionService;

pub struct FleetService;

impl FleetService {
    pub async fn stop(&self) {}
}

pub fn start(
    _: &Arc<Engine>,
    _: &Arc<ActiveConfig>,
    _: &Arc<SessionService>,
    _: &Arc<Store>,
) -> Arc<FleetService> {
    Arc::new(FleetService)
}
