//! `plugins.*`

use std::sync::Arc;

use jsonrpsee::RpcModule;
use jsonrpsee::types::ErrorObjectOwned;
use toold_lua::host::UnknownPlugin;
use toold_proto::method::{PluginsList, PluginsReload};
use toold_proto::plugin::{PluginList, ReloadPlugins};

use crate::daemon::State;
use crate::rpc::error::unknown;
use crate::rpc::{Request, Right, add_async};

pub(super) fn register(module: &mut RpcModule<Arc<State>>) -> anyhow::Result<()> {
    add_async::<PluginsList, _>(module, Right::Anyone, |request, _| async move {
        request.state.plugins.settled().await;
        Ok(PluginList { plugins: request.state.plugins.list().to_vec() })
    })?;
    add_async::<PluginsReload, _>(module, Right::Decider, reload)
}

async fn reload(request: Request, reload: ReloadPlugins) -> Result<PluginList, ErrorObjectOwned> {
    let plugins = &request.state.plugins;
    plugins.settled().await;
    let reloaded = plugins.reload(reload.name.as_deref()).await;
    let plugins = reloaded.map_err(|UnknownPlugin(name)| unknown("plugin", &name))?;
    Ok(PluginList { plugins })
}
