//! The daemon's side of the Model Context Protocol server, and how a connection is passed to it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use dashmap::DashMap;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::call::Principal;
use toold_engine::client_profile::ClientProfile;
use toold_engine::session::{Session, SessionFilter};
use toold_mcp::server::stream::{StreamOptions, serve_stream};
use toold_mcp::server::{
    CallFuture, ClientRights, ConnectionKind, McpFacade, McpHost, McpIdentity, MetaTools, WantedSession,
};
use toold_proto::event::EventBody;
use toold_proto::tool::SessionId;

use crate::config::mcp_profiles::leave_out_own_tools;
use crate::config::mcp_servers::MetaToolsConfig;
use crate::config::random::{random_bytes, random_hex};
use crate::peer::Peer;
use crate::peer::sessions::{Opener, OpenerKind, SessionRequest, set_opener};
use crate::rpc::Services;
use crate::rpc::byte_stream::ByteStream;
use crate::rpc::connection::ClientConnection;
use crate::rpc::parsed_memory;

/// Most clients wait for an answer longer than this.
const TASK_AFTER_MS: u64 = 20_000;
/// The bounds of the length of names that a client is listed.
const SHORTEST_NAME: usize = 24;
const LONGEST_NAME: usize = 256;

/// Serves clients that speak the Model Context Protocol.
#[derive(Clone)]
pub(crate) struct McpService {
    pub(crate) mcp: Arc<McpFacade>,
    services: Arc<Services>,
    peers: Arc<McpPeers>,
}

/// MCP clients on a stream, by connection.
type McpPeers = DashMap<u64, Peer>;

impl McpService {
    pub(crate) fn new(services: &Arc<Services>) -> Self {
        let peers = Arc::<McpPeers>::default();
        let host = DaemonHost { services: services.clone(), peers: peers.clone() };
        Self { mcp: McpFacade::new(Arc::new(host), random_bytes()), services: services.clone(), peers }
    }

    /// Serves a client that turned out to speak MCP; `ahead` has been read from its stream already.
    pub(crate) async fn serve<S: ByteStream + 'static>(
        &self,
        connection: &ClientConnection,
        stream: S,
        ahead: Vec<u8>,
    ) {
        let principal = match connection.peer.principal {
            // MCP clients act for a model.
            Principal::Person | Principal::Agent | Principal::Page => Principal::Agent,
            other @ (Principal::ToolDescendant | Principal::TokenCall | Principal::TokenAdmin) => other,
        };
        if principal == Principal::Agent {
            connection.peer.record_agent();
        }
        // Created before the first request, and dropped when the client is gone.
        let _known = KnownPeer::new(&self.peers, connection);
        // A WebSocket may speak MCP, too.
        let identity = McpIdentity { principal, profile: connection.peer.token_profile.clone() };
        let server = self.mcp.server(ConnectionKind::Stream, connection.id, identity, connection.peer.folder());
        let stream = SharedStream(Arc::new(Mutex::new(stream)));
        let (listens, limits) = (stream.0.clone(), &self.services.limits);
        let options = StreamOptions {
            max_message: limits.max_message,
            max_weight: parsed_memory::ONE / 2,
            max_requests: limits.max_requests,
            hung_up: Box::new(move || listens.lock().hung_up()),
            stop: self.services.lifecycle.stopping(),
            cancel: self.services.lifecycle.cancelled(),
        };
        serve_stream(server, stream, ahead, options).await;
    }
}

/// While it exists, the daemon knows the process of an MCP connection.
struct KnownPeer<'p> {
    peers: &'p McpPeers,
    connection: u64,
}

impl<'p> KnownPeer<'p> {
    fn new(peers: &'p McpPeers, connection: &ClientConnection) -> Self {
        peers.insert(connection.id, connection.peer.clone());
        Self { peers, connection: connection.id }
    }
}

impl Drop for KnownPeer<'_> {
    fn drop(&mut self) {
        self.peers.remove(&self.connection);
    }
}

/// The services of the daemon that the MCP server uses.
struct DaemonHost {
    services: Arc<Services>,
    peers: Arc<McpPeers>,
}

/// How long a client's list waits for the tools of a server that has never run here, from when that was mounted: many
/// clients read the list once.
const FIRST_LIST: Duration = Duration::from_secs(10);

impl McpHost for DaemonHost {
    fn engine(&self) -> &Arc<Engine> {
        &self.services.engine
    }

    fn settled(&self) -> BoxFuture<'_, u64> {
        self.services.plugins.settled().boxed()
    }

    fn first_lists(&self) -> BoxFuture<'_, ()> {
        self.services.mcp_servers.first_lists(FIRST_LIST).boxed()
    }

    fn open_session(&self, wanted: WantedSession) -> Result<Arc<Session>, String> {
        let peer = self.peers.get(&wanted.connection).map(|peer| peer.clone());
        let peer = peer.unwrap_or_else(|| Peer::of_token(wanted.principal));
        let kind = match wanted.principal {
            Principal::Person | Principal::Agent | Principal::Page => OpenerKind::Agent,
            Principal::TokenCall => OpenerKind::Token,
            Principal::TokenAdmin => OpenerKind::Person,
            Principal::ToolDescendant => OpenerKind::Descendant,
        };
        let id = session_id(&wanted, &peer);
        let (env, ignored) = self.services.sessions.permitted_env(kind, &peer, wanted.env);
        if !ignored.is_empty() {
            tracing::debug!(
                client = wanted.client.as_ref().map(|client| &client.name),
                ?ignored,
                "variables are ignored"
            );
        }
        let request = SessionRequest {
            id,
            cwd: wanted.cwd,
            roots: wanted.roots,
            client: wanted.client,
            model: None,
            env,
            filter: SessionFilter::new(&wanted.filter).map_err(|error| format!("tools: {error}"))?,
            profiles: wanted.profiles,
        };
        let session = self.services.sessions.create(kind, &peer, request).map_err(|error| format!("cwd: {error:#}"))?;
        let (program, token_profile) = (peer.lineage.program(), wanted.token_profile);
        set_opener(&session, Opener { kind, program, token_profile, daemon: None });
        let (session, _) = self.services.sessions.open(session);
        self.services
            .engine
            .events
            .emit(EventBody::SessionOpened { session_id: session.id.clone(), cwd: session.cwd.display().to_string() });
        Ok(session)
    }

    fn close_session(&self, id: &SessionId) {
        if self.services.sessions.close(id).is_some() {
            self.services.engine.events.emit(EventBody::SessionClosed { session_id: id.clone() });
        }
    }

    fn agent_of(&self, connection: u64) -> Option<&'static str> {
        self.peers.get(&connection)?.agent_name()
    }

    fn next_connection(&self) -> u64 {
        self.services.lifecycle.next_connection()
    }

    fn meta_tools(&self) -> MetaTools {
        match self.services.config.loaded().config.mcp.meta_tools {
            MetaToolsConfig::Off => MetaTools::Off,
            MetaToolsConfig::On => MetaTools::On,
            MetaToolsConfig::Auto => MetaTools::Auto,
        }
    }

    fn task_after(&self) -> Option<Duration> {
        let ms = self.services.config.loaded().config.mcp.task_after_ms.unwrap_or(TASK_AFTER_MS);
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    fn client(&self, name: &str) -> ClientRights {
        let loaded = self.services.config.loaded();
        // The section of its own name first. Those of other names of the agent add what that one does not say.
        let sections = || loaded.config.mcp.sections_of(name);
        let first = sections().next();
        ClientRights {
            approve: first.is_some_and(|client| client.approve),
            list_changed: first.is_some_and(|client| client.list_changed),
            profile: sections().find_map(|client| Some(client.profile.as_ref()?.get_ref().clone())),
            name_length: sections()
                .find_map(|client| client.name_length)
                .map(|length| usize::from(length).clamp(SHORTEST_NAME, LONGEST_NAME)),
        }
    }

    fn profiles(&self, names: &[String], client: Option<&str>) -> Result<Vec<ClientProfile>, String> {
        let mut profiles: Vec<ClientProfile> =
            names.iter().map(|name| self.services.config.profile(name)).collect::<Result<_, _>>()?;
        for profile in &mut profiles {
            leave_out_own_tools(profile, client.unwrap_or_default());
        }
        Ok(profiles)
    }

    fn stopping(&self) -> CancellationToken {
        self.services.lifecycle.stopping()
    }

    fn in_trace_of(&self, traceparent: &str, call: CallFuture) -> CallFuture {
        crate::lifecycle::traces::in_trace_of(Some(traceparent), call).boxed()
    }

    fn cancelled(&self) -> CancellationToken {
        self.services.lifecycle.cancelled()
    }
}

/// The id of a client's session. That of a bridge is the same at the next daemon, so that what a person allowed in this session
/// holds there: it depends on the bridge's process, which nobody else can be, and on what the client asks for.
fn session_id(wanted: &WantedSession, peer: &Peer) -> SessionId {
    let digits = match (&wanted.bridge, peer.lineage.own()) {
        (Some(bridge), Some(process)) => {
            let WantedSession { cwd, roots, client, principal, filter, profiles, token_profile, .. } = wanted;
            let client = client.as_ref().map(|client| &client.name);
            let kind = (client, principal, token_profile);
            let same = format!("{bridge:?} {process:?} {kind:?} {cwd:?} {roots:?} {filter:?} {profiles:?}");
            blake3::hash(same.as_bytes()).to_hex()[..32].to_owned()
        }
        _ => random_hex(16),
    };
    SessionId::parse(&format!("m-{digits}")).expect("hexadecimal digits fit")
}

/// A stream that one task reads and writes, while another asks whether anybody listens.
struct SharedStream<S>(Arc<Mutex<S>>);

impl<S: AsyncRead + Unpin> AsyncRead for SharedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SharedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_shutdown(context)
    }
}
