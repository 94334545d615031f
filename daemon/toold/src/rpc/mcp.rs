//! `mcp.*`: the mounted servers.

use jsonrpsee::types::ErrorObjectOwned;
use toold_mounts::UnknownMount;
use toold_proto::mcp::{McpServer, McpServerList, RestartMcpServer};
use toold_proto::method::{McpRestart, McpServersList};

use crate::rpc::error::unknown;
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, may_decide};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<McpServersList>(module, Right::Anyone, |request, _| {
        let mut servers = request.services.mcp_servers.list();
        if !may_decide(&request) {
            servers.iter_mut().for_each(hide);
        }
        Ok(McpServerList { servers })
    })?;
    add_async::<McpRestart, _>(module, Right::Decider, restart)
}

async fn restart(request: MethodRequest, named: RestartMcpServer) -> Result<McpServerList, ErrorObjectOwned> {
    let servers = request.services.mcp_servers.restart(&named.name).await;
    let servers = servers.map_err(|UnknownMount(name)| unknown("mcp_server", &name))?;
    Ok(McpServerList { servers })
}

/// A server's output may contain data for persons only.
fn hide(server: &mut McpServer) {
    server.stderr.clear();
    server.error = server.error.take().map(|_| "it does not run".to_owned());
    for instance in &mut server.instances {
        // Of others, perhaps.
        (instance.session, instance.project) = (None, None);
        instance.error = instance.error.take().map(|_| "it does not run".to_owned());
    }
}
