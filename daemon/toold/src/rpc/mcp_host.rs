//! What the daemon lends its MCP facade, and how a connection is handed to it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::call::Principal;
use toold_engine::session::{Session, SessionFilter};
use toold_mcp::server::stream::{StreamOptions, serve_stream};
use toold_mcp::server::{Called, ClientRights, Host, Kind, Mcp, MetaTools, Wanted};
use toold_proto::event::EventBody;
use toold_proto::tool::SessionId;

use crate::daemon::{State, random_bytes, random_hex};
use crate::peer::Peer;
use crate::peer::sessions::{Opener, OpenerKind, SessionRequest, set_opener};
use crate::rpc::connection::{Connection, Stream};
use crate::rpc::parsed_memory;

/// Most clients wait for an answer longer than this.
const TASK_AFTER_MS: u64 = 20_000;

/// `[mcp] meta_tools`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetaToolsConfig {
    Off,
    On,
    #[default]
    Auto,
}

/// `[mcp.clients.NAME]`: a client by the name that it gives of itself. Any program can give any name, so this is
/// a matter of trust in what you start, not of proof.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpClientConfig {
    /// Permission prompts of its own calls are shown by it too (elicitation), and its answers count: once or for its
    /// session, never for longer. Say so only of clients that show them to a person.
    pub approve: bool,
    /// It reads the list of tools again when it is told that it changed.
    pub list_changed: bool,
}

/// The facade of a daemon.
pub(crate) fn new(state: &Arc<State>) -> Arc<Mcp> {
    Mcp::new(Arc::new(DaemonHost(state.clone())), random_bytes())
}

/// Serves a client that turned out to speak MCP; `ahead` was read of its stream already.
pub(crate) async fn serve<S: Stream + 'static>(
    mcp: &Arc<Mcp>,
    state: &State,
    connection: &Connection,
    stream: S,
    ahead: Vec<u8>,
) {
    let principal = match connection.peer.principal {
        // Whoever speaks it acts for a model.
        Principal::Person | Principal::Agent => Principal::Agent,
        other @ (Principal::ToolDescendant | Principal::TokenCall | Principal::TokenAdmin) => other,
    };
    if principal == Principal::Agent {
        connection.peer.record_agent();
    }
    // Made before the first request, and forgotten when the client is gone.
    let _known = KnownPeer::new(state, connection);
    let server = mcp.server(Kind::Stream, connection.id, principal, connection.peer.folder());
    let stream = Shared(Arc::new(Mutex::new(stream)));
    let listens = stream.0.clone();
    let options = StreamOptions {
        max_message: state.limits().max_message,
        max_weight: parsed_memory::ONE / 2,
        max_requests: state.limits().max_requests,
        hung_up: Box::new(move || lock(&listens).hung_up()),
        stop: state.stopping(),
        cancel: state.cancelled(),
    };
    serve_stream(server, stream, ahead, options).await;
}

/// While it lives, the daemon knows which process an MCP connection is of.
struct KnownPeer<'s> {
    state: &'s State,
    connection: u64,
}

impl<'s> KnownPeer<'s> {
    fn new(state: &'s State, connection: &Connection) -> Self {
        state.mcp_peers.insert(connection.id, connection.peer.clone());
        Self { state, connection: connection.id }
    }
}

impl Drop for KnownPeer<'_> {
    fn drop(&mut self) {
        self.state.mcp_peers.remove(&self.connection);
    }
}

struct DaemonHost(Arc<State>);

impl Host for DaemonHost {
    fn engine(&self) -> &Arc<Engine> {
        &self.0.engine
    }

    fn settled(&self) -> BoxFuture<'_, u64> {
        self.0.plugins.settled().boxed()
    }

    fn open_session(&self, wanted: Wanted) -> Result<Arc<Session>, String> {
        let peer = self.0.mcp_peers.get(&wanted.connection).map(|peer| peer.clone());
        let peer = peer.unwrap_or_else(|| Peer::of_token(wanted.principal));
        let kind = match wanted.principal {
            Principal::Person | Principal::Agent => OpenerKind::Agent,
            Principal::TokenCall => OpenerKind::Token,
            Principal::TokenAdmin => OpenerKind::Person,
            Principal::ToolDescendant => OpenerKind::Descendant,
        };
        let (env, ignored) = self.0.permitted_env(kind, &peer, wanted.env);
        if !ignored.is_empty() {
            tracing::debug!(
                client = wanted.client.as_ref().map(|client| &client.name),
                ?ignored,
                "variables are ignored"
            );
        }
        let request = SessionRequest {
            id: SessionId::parse(&format!("m-{}", random_hex(16))).expect("hexadecimal digits fit"),
            cwd: wanted.cwd,
            roots: wanted.roots,
            client: wanted.client,
            model: None,
            env,
            filter: SessionFilter::new(&wanted.filter).map_err(|error| format!("tools: {error}"))?,
        };
        let session = self.0.new_session_for(kind, &peer, request).map_err(|error| format!("cwd: {error:#}"))?;
        set_opener(&session, Opener { kind, program: peer.lineage.program() });
        let (session, _) = self.0.open_session(session);
        self.0
            .engine
            .events
            .emit(EventBody::SessionOpened { session_id: session.id.clone(), cwd: session.cwd.display().to_string() });
        Ok(session)
    }

    fn close_session(&self, id: &SessionId) {
        if self.0.close_session(id).is_some() {
            self.0.engine.events.emit(EventBody::SessionClosed { session_id: id.clone() });
        }
    }

    fn next_connection(&self) -> u64 {
        self.0.next_connection()
    }

    fn meta_tools(&self) -> MetaTools {
        match self.0.loaded().config.mcp.meta_tools {
            MetaToolsConfig::Off => MetaTools::Off,
            MetaToolsConfig::On => MetaTools::On,
            MetaToolsConfig::Auto => MetaTools::Auto,
        }
    }

    fn task_after(&self) -> Option<Duration> {
        let ms = self.0.loaded().config.mcp.task_after_ms.unwrap_or(TASK_AFTER_MS);
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    fn client(&self, name: &str) -> ClientRights {
        let loaded = self.0.loaded();
        let client = loaded.config.mcp.clients.get(name);
        client.map_or_else(ClientRights::default, |client| ClientRights {
            approve: client.approve,
            list_changed: client.list_changed,
        })
    }

    fn stopping(&self) -> CancellationToken {
        self.0.stopping()
    }

    fn in_trace_of(&self, traceparent: &str, call: Called) -> Called {
        crate::lifecycle::traces::in_trace_of(Some(traceparent), call).boxed()
    }

    fn cancelled(&self) -> CancellationToken {
        self.0.cancelled()
    }
}

/// A stream that is read and written by one task and asked by another whether anybody listens.
struct Shared<S>(Arc<Mutex<S>>);

fn lock<S>(stream: &Mutex<S>) -> std::sync::MutexGuard<'_, S> {
    stream.lock().expect("no code panics while it holds this lock")
}

impl<S: AsyncRead + Unpin> AsyncRead for Shared<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *lock(&self.0)).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Shared<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut *lock(&self.0)).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *lock(&self.0)).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *lock(&self.0)).poll_shutdown(context)
    }
}
