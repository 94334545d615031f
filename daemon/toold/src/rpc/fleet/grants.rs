//! `fleet.grant`, `fleet.revoke` and `fleet.grants`: grants that are valid in the whole fleet.

use jsonrpsee::types::ErrorObjectOwned;
use toold_fleet::grants::make::{self, FleetGrantError};
use toold_proto::daemon::NoParams;
use toold_proto::fleet::{FleetGrants, MakeFleetGrant, RevokeFleetGrant};
use toold_proto::method::{FleetGrantMake, FleetGrantRevoke, FleetGrantsList};

use crate::rpc::error::{invalid_params, refused, unknown};
use crate::rpc::fleet::member;
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async};

/// The kind for a grant that cannot be made or revoked here, or not now.
const KIND: &str = "fleet_grant";

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<FleetGrantsList>(module, Right::Decider, list)?;
    add_async::<FleetGrantMake, _>(module, Right::Decider, grant)?;
    add_async::<FleetGrantRevoke, _>(module, Right::Decider, revoke)
}

fn list(request: MethodRequest, _: NoParams) -> Result<FleetGrants, ErrorObjectOwned> {
    Ok(FleetGrants { grants: request.services.fleet.grants().list() })
}

async fn grant(request: MethodRequest, params: MakeFleetGrant) -> Result<FleetGrants, ErrorObjectOwned> {
    let made = make::make(&*member(&request)?, &params).await.map_err(object)?;
    Ok(FleetGrants { grants: vec![made] })
}

pub(in crate::rpc) async fn revoke(
    request: MethodRequest,
    params: RevokeFleetGrant,
) -> Result<FleetGrants, ErrorObjectOwned> {
    let revoked = make::revoke(&*member(&request)?, &params.id).await.map_err(object)?;
    Ok(FleetGrants { grants: vec![revoked] })
}

/// Whether a grant of this id is one of the fleet.
pub(in crate::rpc) fn is_of_fleet(request: &MethodRequest, id: &str) -> bool {
    !request.services.fleet.grants().makers(id).is_empty()
}

fn object(error: FleetGrantError) -> ErrorObjectOwned {
    match error {
        FleetGrantError::Invalid(words) => invalid_params(&words),
        FleetGrantError::Unknown(id) => unknown("grant", &id),
        FleetGrantError::Refused(words) => refused(KIND, &words),
    }
}
