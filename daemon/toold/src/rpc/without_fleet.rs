//! `fleet.*` in a daemon that was built without fleets.

use toold_proto::fleet::{FleetGrants, FleetStatus};
use toold_proto::method::{FleetGetStatus, FleetGrantMake, FleetGrantRevoke, FleetGrantsList, FleetSearchAudit};

use crate::config::build_features::WITHOUT_FLEET;
use crate::rpc::{MethodTable, Right, add};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<FleetGetStatus>(module, Right::Anyone, |request, _| {
        let loaded = request.services.config.loaded();
        let fleet = &loaded.config.fleet;
        let Some(name) = fleet.name.clone().filter(|_| fleet.enabled) else { return Ok(FleetStatus::default()) };
        let error = Some(WITHOUT_FLEET.to_owned());
        Ok(FleetStatus { configured: true, name: Some(name), error, ..FleetStatus::default() })
    })?;
    add::<FleetGrantsList>(module, Right::Decider, |_, _| Ok(FleetGrants::default()))?;
    add::<FleetSearchAudit>(module, Right::Administrator, |_, _| Err(grants::no_fleet()))?;
    add::<FleetGrantMake>(module, Right::Decider, |_, _| Err(grants::no_fleet()))?;
    add::<FleetGrantRevoke>(module, Right::Decider, |_, _| Err(grants::no_fleet()))
}

pub(super) mod grants {
    use jsonrpsee::types::ErrorObjectOwned;
    use toold_proto::fleet::{FleetGrants, RevokeFleetGrant};

    use crate::config::build_features::WITHOUT_FLEET;
    use crate::rpc::MethodRequest;
    use crate::rpc::error::refused;

    pub(super) fn no_fleet() -> ErrorObjectOwned {
        refused("no_fleet", WITHOUT_FLEET)
    }

    pub(in crate::rpc) async fn revoke(_: MethodRequest, _: RevokeFleetGrant) -> Result<FleetGrants, ErrorObjectOwned> {
        Err(no_fleet())
    }

    pub(in crate::rpc) fn is_of_fleet(_: &MethodRequest, _: &str) -> bool {
        false
    }
}
