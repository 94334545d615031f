//! `fleet.audit`: the audit logs of all daemons.

use jsonrpsee::types::ErrorObjectOwned;
use toold_fleet::audit::search::{AuditSearchError, search};
use toold_proto::fleet::{FleetAuditList, FleetAuditQuery};
use toold_proto::method::FleetSearchAudit;

use crate::rpc::error::{invalid_params, refused};
use crate::rpc::fleet::member;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<FleetSearchAudit, _>(module, Right::Administrator, query)
}

async fn query(request: MethodRequest, query: FleetAuditQuery) -> Result<FleetAuditList, ErrorObjectOwned> {
    search(&member(&request)?, query).await.map_err(|error| match error {
        AuditSearchError::Invalid(words) => invalid_params(&words),
        AuditSearchError::Unavailable(words) => refused("broker_unavailable", &words),
    })
}
