//! Fetches lists and the status from the daemon when they are out of date.

use tokio::sync::mpsc;
use toold_client::{Client, ClientError};
use toold_proto::audit::{AuditEntry, AuditQuery};
use toold_proto::call::ListTools;
use toold_proto::daemon::{DaemonStatus, NoParams};
use toold_proto::method::{self, DaemonGetStatus, PluginsList, SessionsList, ToolsList};
use toold_proto::plugin::{ListPlugins, Plugin};
use toold_proto::session::SessionInfo;
use toold_proto::shell::{ListShells, ShellInfo};
use toold_proto::tool::Tool;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListKind {
    Tools,
    Plugins,
    Sessions,
    Shells,
    Audit,
    Status,
}

impl ListKind {
    pub(super) const ALL: [Self; 6] =
        [Self::Tools, Self::Plugins, Self::Sessions, Self::Shells, Self::Audit, Self::Status];
}

#[derive(Debug)]
pub(super) enum Fetched {
    Tools(Vec<Tool>),
    Plugins(Vec<Plugin>),
    Sessions(Vec<SessionInfo>),
    Shells(Vec<ShellInfo>),
    Audit(Vec<AuditEntry>),
    Status(Box<DaemonStatus>),
    /// The message for the footer.
    Failed(String),
}

impl Fetched {
    pub(super) fn what(&self) -> Option<ListKind> {
        match self {
            Self::Tools(_) => Some(ListKind::Tools),
            Self::Plugins(_) => Some(ListKind::Plugins),
            Self::Sessions(_) => Some(ListKind::Sessions),
            Self::Shells(_) => Some(ListKind::Shells),
            Self::Audit(_) => Some(ListKind::Audit),
            Self::Status(_) => Some(ListKind::Status),
            Self::Failed(_) => None,
        }
    }
}

/// Starts a fetch; its result goes to `sender`.
pub(super) fn start(client: &Client, what: ListKind, sender: &mpsc::Sender<Fetched>) {
    let (client, sender) = (client.clone(), sender.clone());
    tokio::spawn(async move {
        let fetched = match fetch(&client, what).await {
            Ok(fetched) => fetched,
            Err(error) => Fetched::Failed(format!("{:#}", anyhow::Error::new(error))),
        };
        // The screen is gone when nobody receives.
        let _ = sender.send(fetched).await;
    });
}

async fn fetch(client: &Client, what: ListKind) -> Result<Fetched, ClientError> {
    Ok(match what {
        ListKind::Tools => {
            Fetched::Tools(client.call::<ToolsList>(ListTools::default()).await?.tools.unwrap_or_default())
        }
        ListKind::Plugins => Fetched::Plugins(client.call::<PluginsList>(ListPlugins::default()).await?.plugins),
        ListKind::Sessions => Fetched::Sessions(client.call::<SessionsList>(NoParams {}).await?.sessions),
        ListKind::Shells => {
            let all = ListShells { session_id: None, all: true };
            Fetched::Shells(client.call::<method::ShellsList>(all).await?.shells)
        }
        ListKind::Audit => Fetched::Audit(client.call::<method::AuditQuery>(AuditQuery::default()).await?.entries),
        ListKind::Status => Fetched::Status(Box::new(client.call::<DaemonGetStatus>(NoParams {}).await?)),
    })
}
