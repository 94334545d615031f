//! `upgrade.check`

use jsonrpsee::types::ErrorObjectOwned;
use toold_proto::method::UpgradeCheck;
use toold_proto::upgrade::{CheckUpgrade, UpgradeReport};

use crate::rpc::error::internal;
use crate::rpc::{Module, Request, Right, add_async};

pub(super) fn register(module: &mut Module) -> anyhow::Result<()> {
    add_async::<UpgradeCheck, _>(module, Right::Decider, check)
}

async fn check(request: Request, params: CheckUpgrade) -> Result<UpgradeReport, ErrorObjectOwned> {
    let state = request.state.clone();
    let checked = tokio::task::spawn_blocking(move || state.check_upgrade(params.reviewed)).await;
    Ok(UpgradeReport { changes: checked.map_err(|error| internal(&error.to_string()))? })
}
