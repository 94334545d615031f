//! `mcp.*`: the mounted servers, and the registry of more.

use jsonrpsee::types::ErrorObjectOwned;
use toold_host::http::guard::Guard;
use toold_mcp::registry::{McpRegistry, OFFICIAL, RegistryError};
use toold_mounts::UnknownMount;
use toold_proto::mcp::{McpServer, McpServerList, RestartMcpServer};
use toold_proto::method::{McpRegistryGet, McpRegistrySearch, McpRestart, McpServersList};

use crate::rpc::error::{invalid_params, refused, unknown};
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, may_decide};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<McpServersList>(module, Right::Anyone, |request, _| {
        let mut servers = request.services.mcp_servers.list();
        if !may_decide(&request) {
            servers.iter_mut().for_each(hide);
        }
        Ok(McpServerList { servers })
    })?;
    add_async::<McpRestart, _>(module, Right::Decider, restart)?;
    add_async::<McpRegistrySearch, _>(module, Right::Decider, async |request, search| {
        let found = registry(&request)?.search(&search.query, search.limit).await;
        found.map_err(of_registry)
    })?;
    add_async::<McpRegistryGet, _>(module, Right::Decider, async |request, wanted| {
        let found = registry(&request)?.get(&wanted.name, wanted.version.as_deref()).await;
        found.map_err(of_registry)
    })
}

/// It is used so seldom that no connection to it is kept.
fn registry(request: &MethodRequest) -> Result<McpRegistry, ErrorObjectOwned> {
    let loaded = request.services.config.loaded();
    let guard = Guard::parse(&loaded.config.network.allow_private).unwrap_or_default();
    let url = loaded.config.mcp.registry.as_deref().unwrap_or(OFFICIAL);
    McpRegistry::new(url, &guard).map_err(|why| refused("registry_failed", &format!("[mcp] registry: {why}")))
}

fn of_registry(error: RegistryError) -> ErrorObjectOwned {
    let words = error.to_string();
    match error {
        RegistryError::BadQuery(_) => invalid_params(&words),
        RegistryError::Unknown { server, .. } => unknown("registry_server", &server),
        RegistryError::Failed { .. } => refused("registry_failed", &words),
    }
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
