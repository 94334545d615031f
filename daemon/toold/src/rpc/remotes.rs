//! `remotes.*`

use jsonrpsee::types::ErrorObjectOwned;
use toold_mounts::UnknownMount;
use toold_proto::method::{RemotesList, RemotesReconnect};
use toold_proto::remote::{ReconnectRemote, Remote, RemoteList};

use crate::rpc::error::unknown;
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, may_decide};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<RemotesList>(module, Right::Anyone, |request, _| {
        let mut remotes = request.services.remotes.list();
        if !may_decide(&request) {
            remotes.iter_mut().for_each(hide);
        }
        Ok(RemoteList { remotes })
    })?;
    add_async::<RemotesReconnect, _>(module, Right::Decider, reconnect)
}

async fn reconnect(request: MethodRequest, named: ReconnectRemote) -> Result<RemoteList, ErrorObjectOwned> {
    let remotes = request.services.remotes.restart(&named.name).await;
    let remotes = remotes.map_err(|UnknownMount(name)| unknown("remote", &name))?;
    Ok(RemoteList { remotes })
}

/// A program's output may contain data for persons only.
fn hide(remote: &mut Remote) {
    remote.stderr.clear();
    remote.error = remote.error.take().map(|_| "it is away".to_owned());
}
