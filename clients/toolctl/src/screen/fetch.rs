//! Fetches lists and the status from the daemon when they are out of date.

use tokio::sync::mpsc;
use toold_client::{Client, ClientError};
use toold_proto::audit::{AuditEntry, AuditQuery};
use toold_proto::call::ListTools;
use toold_proto::daemon::{DaemonStatus, NoParams};
use toold_proto::file::{FileChange, FileHistory};
use toold_proto::fleet::FleetStatus;
use toold_proto::mcp::McpServer;
use toold_proto::method::{
    self, DaemonGetStatus, FilesHistory, FleetGetStatus, McpServersList, PermissionsList, PermissionsSuggest,
    PluginsList, RemotesList, SessionsList, ToolsList,
};
use toold_proto::permission::{PermissionList, SuggestRules, SuggestedRule};
use toold_proto::plugin::{ListPlugins, Plugin};
use toold_proto::remote::Remote;
use toold_proto::session::SessionInfo;
use toold_proto::shell::{ListShells, ShellInfo};
use toold_proto::tool::Tool;

use super::answer::ScreenAnswer;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListKind {
    Tools,
    Sources,
    Sessions,
    Changes,
    Shells,
    Permissions,
    Suggestions,
    Audit,
    Status,
}

impl ListKind {
    pub(super) const ALL: [Self; 9] = [
        Self::Tools,
        Self::Sources,
        Self::Sessions,
        Self::Changes,
        Self::Shells,
        Self::Permissions,
        Self::Suggestions,
        Self::Audit,
        Self::Status,
    ];
}

#[derive(Debug)]
pub(super) enum Fetched {
    Tools(Vec<Tool>),
    Sources { plugins: Vec<Plugin>, servers: Vec<McpServer>, remotes: Vec<Remote>, fleet: Box<FleetStatus> },
    Sessions(Vec<SessionInfo>),
    Changes(Vec<FileChange>),
    Shells(Vec<ShellInfo>),
    Permissions(PermissionList),
    Suggestions(Vec<SuggestedRule>),
    Audit(Vec<AuditEntry>),
    Status(Box<DaemonStatus>),
}

/// Starts a fetch; its result goes to `sender`.
pub(super) fn start(client: &Client, what: ListKind, sender: &mpsc::Sender<ScreenAnswer>) {
    let (client, sender) = (client.clone(), sender.clone());
    tokio::spawn(async move {
        let fetched = fetch(&client, what).await.map_err(|error| format!("{:#}", anyhow::Error::new(error)));
        // The screen is gone when nobody receives.
        let _ = sender.send(ScreenAnswer::List(what, fetched)).await;
    });
}

async fn fetch(client: &Client, what: ListKind) -> Result<Fetched, ClientError> {
    Ok(match what {
        ListKind::Tools => {
            Fetched::Tools(client.call::<ToolsList>(ListTools::default()).await?.tools.unwrap_or_default())
        }
        ListKind::Sources => Fetched::Sources {
            plugins: client.call::<PluginsList>(ListPlugins::default()).await?.plugins,
            servers: client.call::<McpServersList>(NoParams {}).await?.servers,
            remotes: client.call::<RemotesList>(NoParams {}).await?.remotes,
            // A daemon without fleets has no such method.
            fleet: client.call::<FleetGetStatus>(NoParams {}).await.unwrap_or_default().into(),
        },
        ListKind::Sessions => Fetched::Sessions(client.call::<SessionsList>(NoParams {}).await?.sessions),
        ListKind::Changes => {
            let all = FileHistory { all: true, ..FileHistory::default() };
            Fetched::Changes(client.call::<FilesHistory>(all).await?.changes)
        }
        ListKind::Shells => {
            let all = ListShells { session_id: None, all: true };
            Fetched::Shells(client.call::<method::ShellsList>(all).await?.shells)
        }
        ListKind::Permissions => Fetched::Permissions(client.call::<PermissionsList>(NoParams {}).await?),
        // Only for a person who decides.
        ListKind::Suggestions => Fetched::Suggestions(
            client.call::<PermissionsSuggest>(SuggestRules::default()).await.unwrap_or_default().rules,
        ),
        ListKind::Audit => Fetched::Audit(client.call::<method::AuditQuery>(AuditQuery::default()).await?.entries),
        ListKind::Status => Fetched::Status(Box::new(client.call::<DaemonGetStatus>(NoParams {}).await?)),
    })
}
