//! A connected daemon, as its sessions use it.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_client::{Client, ClientError};
use toold_proto::method::SessionOpen;
use toold_proto::session::{ClientInfo, OpenSession, OpenedSession};
use toold_proto::tool::SessionId;

pub(crate) struct RemotePeer {
    pub(crate) client: Client,
    /// Its name in the configuration here.
    pub(crate) name: String,
    /// The remote working folder of calls.
    pub(crate) cwd: String,
    /// Whether prompts there may be answered from here.
    pub(crate) can_decide: bool,
    /// Fires when the connection closes.
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// Opens or resumes a remote session in a remote folder.
///
/// # Errors
/// As of any request.
pub(crate) async fn open_session(client: &Client, id: SessionId, cwd: &str) -> Result<OpenedSession, ClientError> {
    let params = OpenSession {
        cwd: Some(cwd.to_owned()),
        session_id: Some(id),
        client: Some(ClientInfo { name: "toold".into(), version: Some(env!("CARGO_PKG_VERSION").into()) }),
        protocol: Some(toold_proto::PROTOCOL),
        ..OpenSession::default()
    };
    client.call::<SessionOpen>(params).await
}
