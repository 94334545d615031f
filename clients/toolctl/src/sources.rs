//! Names of sources on the command line.

use std::collections::BTreeSet;

use toold_client::Client;
use toold_proto::call::ListTools;
use toold_proto::daemon::NoParams;
use toold_proto::method::{FleetGetStatus, McpServersList, PluginsList, RemotesList, ToolsList};
use toold_proto::nearest::nearest;
use toold_proto::plugin::ListPlugins;
use toold_proto::tool::SourceKind;

use crate::exit::not_found;

/// # Errors
/// One of these is neither a kind of source nor the name of one that the daemon knows; the message lists them.
pub(crate) async fn check(client: &Client, named: &[String]) -> anyhow::Result<()> {
    let is_kind = |name: &String| SourceKind::ALL.iter().any(|kind| kind.as_str() == name);
    if named.iter().all(is_kind) {
        return Ok(());
    }
    let mut names = BTreeSet::new();
    let tools = client.call::<ToolsList>(ListTools::default()).await?.tools.unwrap_or_default();
    names.extend(tools.into_iter().map(|tool| tool.source.name));
    // Sources without tools at the moment.
    let plugins = client.call::<PluginsList>(ListPlugins { all: true }).await?.plugins;
    names.extend(plugins.into_iter().map(|plugin| plugin.name));
    let servers = client.call::<McpServersList>(NoParams {}).await?.servers;
    names.extend(servers.into_iter().map(|server| server.name));
    let remotes = client.call::<RemotesList>(NoParams {}).await?.remotes;
    names.extend(remotes.into_iter().map(|remote| remote.name));
    let fleet = client.call::<FleetGetStatus>(NoParams {}).await.unwrap_or_default();
    names.extend(fleet.daemons.into_iter().map(|daemon| daemon.name));
    names.extend(fleet.label_groups.into_iter().filter(|label| label.mounted).map(|label| label.name));
    let Some(unknown) = named.iter().find(|name| !is_kind(name) && !names.contains(*name)) else { return Ok(()) };
    let kinds = SourceKind::ALL.map(SourceKind::as_str);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Err(not_found(match nearest(unknown, kinds.into_iter().chain(names.iter().copied())) {
        Some(near) => format!("there is no source {unknown}: did you mean {near}?"),
        None => format!(
            "there is no source {unknown}; kinds of sources are {}, and names are {}",
            kinds.join(", "),
            names.join(", ")
        ),
    }))
}
