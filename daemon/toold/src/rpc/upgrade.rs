//! `upgrade.check`

use jsonrpsee::types::ErrorObjectOwned;
use toold_proto::method::UpgradeCheck;
use toold_proto::upgrade::{CheckUpgrade, UpgradeReport};

use crate::rpc::error::internal;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<UpgradeCheck, _>(module, Right::Administrator, check)
}

async fn check(request: MethodRequest, params: CheckUpgrade) -> Result<UpgradeReport, ErrorObjectOwned> {
    let services = request.services.clone();
    let checked = tokio::task::spawn_blocking(move || services.upgrade.check(params.reviewed)).await;
    Ok(UpgradeReport { changes: checked.map_err(|error| internal(&error.to_string()))? })
}
