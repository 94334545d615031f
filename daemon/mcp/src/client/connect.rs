//! How a server is reached, and the first words with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError, Subscription,
    serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use rmcp::transport::{IntoTransport, Transport};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toold_host::descendants::{OWNER, owner};
use toold_host::process::ProcessCommand;
use toold_host::process::piped_child::{PipedChild, start_piped};

use super::McpOptions;
use super::config::Reach;
use super::elicit::Handler;
use super::listing::{Listing, MAX_PAGES};
use super::tap::{Ears, Tap};

/// Between closed stdin, TERM and KILL.
const GRACE: Duration = Duration::from_secs(1);

/// A program that is to become a server, and the ends of what it is spoken to with.
pub(super) struct Opened {
    pub(super) talker: Option<PipedChild>,
    /// Reads its stderr to the end.
    pub(super) stderr: Option<JoinHandle<()>>,
    wire: Wire,
}

enum Wire {
    Pipes(tokio::process::ChildStdout, tokio::process::ChildStdin),
    Socket(tokio::net::UnixStream),
    Http { url: String, headers: HashMap<http::HeaderName, http::HeaderValue>, client: reqwest::Client },
}

pub(super) type Service = RunningService<RoleClient, Handler>;

/// Starts the program or opens the connection.
///
/// # Errors
/// Why it cannot be, for people.
pub(super) async fn open(reach: &Reach, options: &McpOptions, ears: &Arc<Ears>) -> Result<Opened, String> {
    match reach {
        Reach::Stdio { program, args, env, cwd } => {
            let environment = options.environment.clone().with(env).with([(OWNER, owner())]);
            let cwd = cwd.as_deref().unwrap_or(&options.home);
            let mut command = ProcessCommand::new(program, cwd, environment).args(args);
            command.grace = GRACE;
            let (talker, pipes) = start_piped(command).map_err(|error| error.to_string())?;
            let chatter = ears.chatter.clone();
            let stderr = tokio::spawn(async move { chatter.read(pipes.stderr).await });
            Ok(Opened { talker: Some(talker), stderr: Some(stderr), wire: Wire::Pipes(pipes.stdout, pipes.stdin) })
        }
        Reach::Socket { path } => {
            let stream = tokio::net::UnixStream::connect(path).await;
            let stream = stream.map_err(|error| format!("can't connect to {}: {error}", path.display()))?;
            Ok(Opened { talker: None, stderr: None, wire: Wire::Socket(stream) })
        }
        Reach::Http { url, headers } => {
            let mut sent = HashMap::new();
            for (name, value) in headers {
                let read = name.parse().ok().zip(value.parse().ok());
                let (name, value) = read.ok_or_else(|| format!("the header {name:?} cannot be sent"))?;
                sent.insert(name, value);
            }
            let client = tokio::task::spawn_blocking(http_client).await.map_err(|error| error.to_string())??;
            Ok(Opened { talker: None, stderr: None, wire: Wire::Http { url: url.clone(), headers: sent, client } })
        }
        Reach::Unusable { why } => Err(why.clone()),
    }
}

/// Introduces the daemon, in the newer way first, unless the server is known not to bear it. `closing` ends the
/// connection.
///
/// # Errors
/// Why the two do not come together, for people.
pub(super) async fn greet(
    opened: Wires,
    handler: Handler,
    is_old: bool,
    closing: &CancellationToken,
) -> Result<Service, String> {
    let ears = handler.ears.clone();
    match opened.0 {
        Wire::Pipes(stdout, stdin) => {
            greet_on(AsyncRwTransport::new(stdout, stdin), ears, handler, is_old, closing).await
        }
        Wire::Socket(stream) => {
            let (read, write) = stream.into_split();
            greet_on(AsyncRwTransport::new(read, write), ears, handler, is_old, closing).await
        }
        Wire::Http { url, headers, client } => {
            let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
            let worker = StreamableHttpClientTransport::with_client(client, config);
            let transport = IntoTransport::<RoleClient, _, _>::into_transport(worker);
            greet_on(transport, ears, handler, is_old, closing).await
        }
    }
}

/// What [`greet`] speaks on.
pub(super) struct Wires(Wire);

impl Opened {
    pub(super) fn split(self) -> (Wires, Option<PipedChild>, Option<JoinHandle<()>>) {
        (Wires(self.wire), self.talker, self.stderr)
    }
}

async fn greet_on<T: Transport<RoleClient> + 'static>(
    transport: T,
    ears: Arc<Ears>,
    handler: Handler,
    is_old: bool,
    closing: &CancellationToken,
) -> Result<Service, String> {
    let lifecycle = match is_old {
        true => ClientLifecycleMode::Initialize,
        false => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
    };
    let tap = Tap::new(transport, ears);
    let greeted = serve_client_with_lifecycle_and_ct(handler, tap, lifecycle, closing.clone()).await;
    greeted.map_err(|error| {
        if error.is_authorization_required() {
            return "it wants a token: put one into `headers`".to_owned();
        }
        match error {
            ClientInitializeError::ConnectionClosed(_) => "it closed the connection instead of an answer".to_owned(),
            error => chain(&error),
        }
    })
}

/// All that the server lists, page by page.
///
/// # Errors
/// Why the list cannot be had, for people.
pub(super) async fn list_tools(peer: &Peer<RoleClient>) -> Result<Listing, String> {
    let mut listing = Listing::default();
    if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(listing);
    }
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        // Not the SDK's own method, which takes a whole list or none, and keeps it.
        let answer =
            peer.send_request(ClientRequest::ListToolsRequest(request)).await.map_err(|error| chain(&error))?;
        let page = match &answer {
            ServerResult::CustomResult(raw) => raw.0.clone(),
            other => serde_json::to_value(other).map_err(|error| error.to_string())?,
        };
        cursor = listing.take(&page)?;
        if cursor.is_none() {
            break;
        }
    }
    Ok(listing)
}

/// Asks to be told of changes, where the server speaks the newer way, which tells nobody unasked.
pub(super) async fn subscribe(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let is_new = peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize());
    if !is_new {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let listening = tokio::time::timeout(Duration::from_secs(10), peer.listen(filter)).await;
    match listening {
        Ok(Ok(subscription)) => Some(subscription),
        Ok(Err(ServiceError::TransportClosed)) => None,
        Ok(Err(error)) => {
            tracing::debug!(%error, "an MCP server tells nobody of changes");
            None
        }
        Err(_) => None,
    }
}

fn http_client() -> Result<reqwest::Client, String> {
    let tls = toold_host::http::tls_config()?;
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        // Headers may hold a token, which is for this server alone.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("toold/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| chain(&error))
}

/// An error and what it comes from, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = error.source();
    }
    text
}
