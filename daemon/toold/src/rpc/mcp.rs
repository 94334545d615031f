//! `mcp.*`: the mounted servers, and the registry of more.

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::registry::SourceScope;
use toold_host::http::guard::Guard;
use toold_mcp::client::logins::LoginError;
use toold_mcp::registry::{McpRegistry, OFFICIAL, RegistryError};
use toold_mounts::UnknownMount;
use toold_proto::daemon::NoParams;
use toold_proto::mcp::{
    BeginMcpLogin, FinishMcpLogin, FinishedMcpLogin, McpLoggedOut, McpLoginBegun, McpServer, McpServerList,
    NameMcpLogin, RestartMcpServer, TestMcpServer,
};
use toold_proto::method::{
    McpLoginBegin, McpLoginFinish, McpLogout, McpRegistryGet, McpRegistrySearch, McpRestart, McpServersList, McpTest,
};

use crate::rpc::error::{invalid_params, refused, unknown};
use crate::rpc::{MethodRequest, MethodTable, Right, add_async, may_decide, secrets};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<McpServersList, _>(module, Right::Anyone, |request, NoParams {}| async move {
        match may_decide(&request) {
            true => Ok(list(&request).await),
            false => {
                let mut servers = request.services.mcp_servers.list();
                servers.iter_mut().for_each(hide);
                Ok(McpServerList { servers })
            }
        }
    })?;
    add_async::<McpRestart, _>(module, Right::Decider, restart)?;
    add_async::<McpTest, _>(module, Right::Decider, test)?;
    add_async::<McpRegistrySearch, _>(module, Right::Administrator, async |request, search| {
        let found = registry(&request)?.search(&search.query, search.limit).await;
        found.map_err(of_registry)
    })?;
    add_async::<McpRegistryGet, _>(module, Right::Administrator, async |request, wanted| {
        let found = registry(&request)?.get(&wanted.name, wanted.version.as_deref()).await;
        found.map_err(of_registry)
    })?;
    add_async::<McpLoginBegin, _>(module, Right::Decider, begin)?;
    add_async::<McpLoginFinish, _>(module, Right::Decider, finish)?;
    add_async::<McpLogout, _>(module, Right::Decider, log_out)
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

/// All servers, with their logins.
async fn list(request: &MethodRequest) -> McpServerList {
    let mounts = &request.services.mcp_servers;
    let mut servers = mounts.list();
    for server in &mut servers {
        let config = mounts.configs(&server.name).into_iter().find(|config| match &config.scope {
            SourceScope::Global => server.project.is_none(),
            SourceScope::Project(path) => server.project.as_deref() == path.to_str(),
        });
        if let Some(config) = config {
            server.login = mounts.adapter().login_status(&config).await;
        }
    }
    McpServerList { servers }
}

async fn begin(request: MethodRequest, begin: BeginMcpLogin) -> Result<McpLoginBegun, ErrorObjectOwned> {
    let mounts = &request.services.mcp_servers;
    let config = mounts.configs(&begin.name).into_iter().next();
    let config = config.ok_or_else(|| unknown("mcp_server", &begin.name))?;
    mounts.adapter().begin_login(&config, &begin.redirect_uri).await.map_err(|error| not_logged_in(&error))
}

async fn finish(request: MethodRequest, finish: FinishMcpLogin) -> Result<FinishedMcpLogin, ErrorObjectOwned> {
    let mounts = request.services.mcp_servers.clone();
    let finished = mounts.adapter().finish_login(&finish.redirected_to.0).await;
    let (_, name) = finished.map_err(|error| not_logged_in(&error))?;
    // It may be unmounted meanwhile, and its status shows why it does not start.
    let _ = mounts.restart(&name).await;
    Ok(FinishedMcpLogin { name })
}

async fn log_out(request: MethodRequest, named: NameMcpLogin) -> Result<McpLoggedOut, ErrorObjectOwned> {
    let mounts = &request.services.mcp_servers;
    let config = mounts.configs(&named.name).into_iter().next();
    let config = config.ok_or_else(|| unknown("mcp_server", &named.name))?;
    let ended = mounts.adapter().end_login(&config.key()).await;
    let ended = ended.map_err(|error| not_logged_in(&LoginError::Secrets(error)))?;
    let ended = ended.ok_or_else(|| unknown("login", &named.name))?;
    let _ = mounts.restart(&named.name).await;
    Ok(McpLoggedOut { servers: list(&request).await.servers, not_revoked: ended.not_revoked })
}

fn not_logged_in(error: &LoginError) -> ErrorObjectOwned {
    match error {
        LoginError::Secrets(error) => secrets::not_done(error),
        LoginError::Refused(words) => refused("login_failed", words),
        LoginError::ClientRefused(words) => refused("login_client_refused", words),
    }
}

async fn restart(request: MethodRequest, named: RestartMcpServer) -> Result<McpServerList, ErrorObjectOwned> {
    let servers = request.services.mcp_servers.restart(&named.name).await;
    let servers = servers.map_err(|UnknownMount(name)| unknown("mcp_server", &name))?;
    Ok(McpServerList { servers })
}

/// The servers of the name, each with the error of the test as its own.
async fn test(request: MethodRequest, named: TestMcpServer) -> Result<McpServerList, ErrorObjectOwned> {
    let tested = request.services.mcp_servers.list_again(&named.name).await;
    let tested = tested.map_err(|UnknownMount(name)| unknown("mcp_server", &name))?;
    let servers = tested.into_iter().map(|(mut server, listed)| {
        if let Err(why) = listed {
            server.error.get_or_insert(why);
        }
        server
    });
    Ok(McpServerList { servers: servers.collect() })
}

/// A server's output may contain data for persons only.
fn hide(server: &mut McpServer) {
    server.stderr.clear();
    server.error = server.error.take().map(|_| "it does not run".to_owned());
    for instance in &mut server.instances {
        // They may belong to other users of the daemon's clients.
        (instance.session, instance.project) = (None, None);
        instance.error = instance.error.take().map(|_| "it does not run".to_owned());
    }
}
