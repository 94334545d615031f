//! Why a tool is not there: asks the plugins, the MCP servers, the other daemons and the fleet.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use toold_engine::absent_tools::AbsentTools;
use toold_engine::session::Session;
use toold_lua::reload::PluginHost;
use toold_mcp::client::adapter::McpServers;
use toold_remote::adapter::Remotes;

use crate::peer::fleet::FleetMounts;

/// The sources of tools. Weak, since they hold the engine, which holds this.
pub(super) struct AbsentSources {
    plugins: Weak<PluginHost>,
    mcp_servers: Weak<McpServers>,
    remotes: Weak<Remotes>,
    fleet_mounts: Weak<FleetMounts>,
}

impl AbsentSources {
    pub(super) fn new(
        plugins: &Arc<PluginHost>,
        mcp_servers: &Arc<McpServers>,
        remotes: &Arc<Remotes>,
        fleet_mounts: &Arc<FleetMounts>,
    ) -> Self {
        Self {
            plugins: Arc::downgrade(plugins),
            mcp_servers: Arc::downgrade(mcp_servers),
            remotes: Arc::downgrade(remotes),
            fleet_mounts: Arc::downgrade(fleet_mounts),
        }
    }
}

/// How long a call waits for the first list of the server that its tool may belong to, from when that was mounted.
const FIRST_CALL: Duration = Duration::from_secs(30);

impl AbsentTools for AbsentSources {
    fn first_list<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        async move {
            if let Some(mcp_servers) = self.mcp_servers.upgrade() {
                mcp_servers.first_list_with(name, FIRST_CALL).await;
            }
        }
        .boxed()
    }

    fn reason(&self, name: &str, session: &Session) -> Option<String> {
        let project = session.project();
        let of_mcp_servers = || self.mcp_servers.upgrade()?.absence(name, project);
        let of_remotes = || self.remotes.upgrade()?.absence(name, project);
        let of_fleet = || self.fleet_mounts.upgrade()?.absence(name, project);
        let of_plugins = || self.plugins.upgrade()?.absence(name, project);
        of_mcp_servers().or_else(of_remotes).or_else(of_fleet).or_else(of_plugins)
    }
}
