//! How a server is reached and greeted, and how its tools are listed.

use std::collections::{BTreeMap, HashMap};
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
use rmcp::transport::IntoTransport;
use rmcp::transport::auth::{AuthClient, AuthorizationManager};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use tokio::net::UnixStream;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toold_engine::redact::without_hidden;
use toold_host::process::ProcessCommand;
use toold_host::secret_text::SecretText;
use toold_host::stderr_log::StderrLog;
use toold_mounts::adapter::OpenedChannel;
use toold_mounts::program::SourceProgram;

use super::adapter::ServerOptions;
use super::endpoint::ServerEndpoint;
use super::greeting::{GreetingTransport, MAX_PROBE};
use super::http_client::{ServerHttpClient, ServerHttpState};
use super::http_with_sse::{HttpWithSse, SseFailure};
use super::intercepting::InterceptingTransport;
use super::lines::LinesTransport;
use super::listing::{MAX_PAGES, ServerListing};
use super::logins::challenge::LoginChallenge;
use super::requests::ServerRequestHandler;
use super::transport_words;
use crate::boxed_transport::BoxedTransport;

/// Redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// The transport to a server.
pub enum Channel {
    Pipes(ChildStdout, ChildStdin),
    Socket(UnixStream),
    Http {
        address: HttpAddress,
        client: reqwest::Client,
        /// The access of a server that somebody has logged in to.
        login: Option<Box<AuthorizationManager>>,
    },
}

/// Where requests to a server go, and their headers.
pub struct HttpAddress {
    pub(super) url: String,
    headers: HashMap<http::HeaderName, http::HeaderValue>,
}

/// Why a server does not do what it is asked for.
pub(super) enum ServerFailure {
    NeedsLogin(LoginChallenge),
    /// As a sentence for the user.
    Other(String),
}

impl From<String> for ServerFailure {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl From<ServiceError> for ServerFailure {
    fn from(error: ServiceError) -> Self {
        LoginChallenge::of_request(&error).map_or_else(|| Self::Other(error_chain(&error)), Self::NeedsLogin)
    }
}

/// How a server is greeted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Greeting {
    pub(super) lifecycle: GreetingLifecycle,
    /// It is known to speak HTTP with SSE, and no Streamable HTTP.
    pub(super) uses_sse: bool,
    /// Until it is connected and has listed its tools.
    pub(super) start_timeout: Duration,
}

/// Which revisions are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GreetingLifecycle {
    /// Those with `initialize` alone: the server needs them, or the configuration says so.
    Initialize,
    /// The newer ones alone, as the configuration says.
    Discover,
    /// The newer ones first.
    Either,
}

pub(super) type ClientService = RunningService<RoleClient, ServerRequestHandler>;

/// A server that has answered its greeting.
pub(super) struct GreetedServer {
    pub(super) service: ClientService,
    /// By HTTP with SSE.
    pub(super) uses_sse: bool,
    /// By Streamable HTTP.
    pub(super) http: Option<Arc<ServerHttpState>>,
}

/// Starts the program or opens the connection.
///
/// # Errors
/// Why that failed, as a sentence for the user.
pub(super) async fn open(
    endpoint: &ServerEndpoint,
    options: &ServerOptions,
    stderr_log: &Arc<StderrLog>,
) -> Result<OpenedChannel<Channel>, String> {
    match endpoint {
        ServerEndpoint::Stdio { program, args, env, cwd } => {
            let cwd = cwd.as_deref().unwrap_or(&options.home);
            let env = fill_all(env, options).await?;
            let mut filled = Vec::with_capacity(args.len());
            for arg in args {
                filled.push(fill(arg, options).await?);
            }
            let command = ProcessCommand::new(program, cwd, options.environment.clone().with(env)).args(filled);
            let (program, stdout, stdin) = SourceProgram::start(command, stderr_log)?;
            Ok(OpenedChannel { channel: Channel::Pipes(stdout, stdin), program: Some(program) })
        }
        ServerEndpoint::Socket { path } => {
            let stream = UnixStream::connect(path).await;
            let stream = stream.map_err(|error| format!("can't connect to {}: {error}", path.display()))?;
            Ok(OpenedChannel { channel: Channel::Socket(stream), program: None })
        }
        ServerEndpoint::Http { url, headers, .. } => {
            let mut sent = HashMap::new();
            for (name, value) in fill_all(headers, options).await? {
                let read = name.parse().ok().zip(value.parse().ok());
                let (name, mut value): (http::HeaderName, http::HeaderValue) =
                    read.ok_or_else(|| format!("the header {name:?} is not valid in HTTP"))?;
                value.set_sensitive(true);
                sent.insert(name, value);
            }
            let built = tokio::task::spawn_blocking(|| {
                http_client_builder()?.redirect(redirect_of_server()).build().map_err(|error| error_chain(&error))
            });
            let client = built.await.map_err(|error| error.to_string())??;
            let url = fill(url, options).await?;
            let address = HttpAddress { url, headers: sent };
            Ok(OpenedChannel { channel: Channel::Http { address, client, login: None }, program: None })
        }
        ServerEndpoint::Unusable { why } => Err(why.clone()),
    }
}

/// A text of the configuration with its secrets.
async fn fill(text: &SecretText, options: &ServerOptions) -> Result<String, String> {
    options.secrets.fill(text).await.map_err(|error| error.to_string())
}

async fn fill_all(
    texts: &BTreeMap<String, SecretText>,
    options: &ServerOptions,
) -> Result<BTreeMap<String, String>, String> {
    let mut filled = BTreeMap::new();
    for (name, text) in texts {
        filled.insert(name.clone(), fill(text, options).await?);
    }
    Ok(filled)
}

/// Introduces the daemon as revision 2026-07-28 does, unless the server is known to need `initialize`. `closing` ends
/// the connection.
///
/// # Errors
/// Why no session could be established.
pub(super) async fn greet(
    channel: Channel,
    handler: ServerRequestHandler,
    greeting: Greeting,
    closing: &CancellationToken,
) -> Result<GreetedServer, ServerFailure> {
    let service = match channel {
        Channel::Pipes(stdout, stdin) => {
            let lines = LinesTransport::new(stdout, stdin, handler.notifications.clone());
            greet_on(BoxedTransport::new(lines), handler, greeting, closing).await
        }
        Channel::Socket(stream) => {
            let (read, write) = stream.into_split();
            let lines = LinesTransport::new(read, write, handler.notifications.clone());
            greet_on(BoxedTransport::new(lines), handler, greeting, closing).await
        }
        Channel::Http { address, client, login: Some(login) } => {
            return greet_on_http(AuthClient::new(client, *login), address, handler, greeting, closing).await;
        }
        Channel::Http { address, client, login: None } => {
            return greet_on_http(client, address, handler, greeting, closing).await;
        }
    };
    Ok(GreetedServer { service: service.map_err(not_greeted)?, uses_sse: false, http: None })
}

/// By Streamable HTTP; by HTTP with SSE if the server is known to speak that, or answers a greeting by Streamable HTTP
/// with something else.
async fn greet_on_http<C: StreamableHttpClient<Error = reqwest::Error> + Sync>(
    client: C,
    address: HttpAddress,
    handler: ServerRequestHandler,
    greeting: Greeting,
    closing: &CancellationToken,
) -> Result<GreetedServer, ServerFailure> {
    let HttpAddress { url, headers } = address;
    let transport = if greeting.uses_sse {
        let connected = HttpWithSse::connect(client, &url, headers).await;
        connected.map_err(|failure| match failure {
            SseFailure::Refused(error) => refused(&error),
            SseFailure::Unusable(why) => why.into(),
        })?
    } else {
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers.clone());
        let http_client = ServerHttpClient::new(client.clone());
        let http = Some(http_client.state());
        let worker = StreamableHttpClientTransport::with_client(http_client, config);
        let transport = IntoTransport::<RoleClient, _, _>::into_transport(worker);
        let error = match greet_on(BoxedTransport::new(transport), handler.clone(), greeting, closing).await {
            Ok(service) => return Ok(GreetedServer { service, uses_sse: false, http }),
            Err(error) => error,
        };
        let may_speak_sse = answers_otherwise(&error);
        let failure = not_greeted(error);
        let ServerFailure::Other(why) = &failure else { return Err(failure) };
        if !may_speak_sse {
            return Err(failure);
        }
        // A server of Streamable HTTP may send a stream too, and nothing in it.
        let limit = MAX_PROBE.min(greeting.start_timeout / 2);
        match timeout(limit, HttpWithSse::connect(client, &url, headers)).await {
            Ok(Ok(transport)) => transport,
            Ok(Err(SseFailure::Refused(error))) => {
                return Err(LoginChallenge::of(&error).map_or(failure, ServerFailure::NeedsLogin));
            }
            Ok(Err(SseFailure::Unusable(also))) => return Err(format!("{why}; by HTTP with SSE: {also}").into()),
            Err(_) => return Err(failure),
        }
    };
    // Revisions without `initialize` do not have this transport.
    let greeting = Greeting { lifecycle: GreetingLifecycle::Initialize, ..greeting };
    let service = greet_on(BoxedTransport::new(transport), handler, greeting, closing).await.map_err(not_greeted)?;
    Ok(GreetedServer { service, uses_sse: true, http: None })
}

/// Whether a server has answered a greeting by Streamable HTTP, but not as that requires.
fn answers_otherwise(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::JsonRpcError(_) => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => answers_otherwise(fallback),
        ClientInitializeError::TransportError { error, .. } => {
            let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
            while let Some(error) = current {
                if let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                    return matches!(
                        error,
                        StreamableHttpError::UnexpectedServerResponse(_)
                            | StreamableHttpError::UnexpectedContentType(_)
                    );
                }
                current = error.source();
            }
            false
        }
        _ => false,
    }
}

async fn greet_on(
    transport: BoxedTransport<RoleClient>,
    handler: ServerRequestHandler,
    greeting: Greeting,
    closing: &CancellationToken,
) -> Result<ClientService, ClientInitializeError> {
    let lifecycle = match greeting.lifecycle {
        GreetingLifecycle::Initialize => ClientLifecycleMode::Initialize,
        GreetingLifecycle::Discover => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
        GreetingLifecycle::Either => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
    };
    let transport = GreetingTransport::new(transport, greeting.start_timeout);
    let transport = InterceptingTransport::new(transport, handler.notifications.clone());
    serve_client_with_lifecycle_and_ct(handler, transport, lifecycle, closing.clone()).await
}

/// Said of a server that ends before it has greeted, whether that is seen when it is read from or written to.
const CLOSED: &str = "it closed the connection before it answered";

fn not_greeted(error: ClientInitializeError) -> ServerFailure {
    if let Some(challenge) = LoginChallenge::of_greeting(&error) {
        return ServerFailure::NeedsLogin(challenge);
    }
    match error {
        // The server does not know the probe, as those of earlier revisions; its refusal of `initialize` is the reason.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => not_greeted(*fallback),
        ClientInitializeError::TransportError { ref error, .. }
            if transport_words::is_closed_pipe(error.error.as_ref()) =>
        {
            CLOSED.to_owned().into()
        }
        ClientInitializeError::TransportError { ref error, .. } => {
            let words = |inner| transport_words::of_answer(inner).or_else(|| transport_words::of_silence(inner));
            words(error.error.as_ref()).unwrap_or_else(|| error_chain(error.error.as_ref())).into()
        }
        ClientInitializeError::ConnectionClosed(_) => CLOSED.to_owned().into(),
        error => error_chain(&error).into(),
    }
}

fn refused(error: &StreamableHttpError<reqwest::Error>) -> ServerFailure {
    LoginChallenge::of(error).map_or_else(|| error_chain(error).into(), ServerFailure::NeedsLogin)
}

/// All tools that the server lists, page by page.
///
/// # Errors
/// Why there is no list.
pub(super) async fn list_tools(peer: &Peer<RoleClient>) -> Result<ServerListing, ServerFailure> {
    let mut listing = ServerListing::default();
    if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(listing);
    }
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        // The SDK's own method accepts a list as a whole or not at all, and keeps it.
        let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await?;
        let page = match &answer {
            ServerResult::CustomResult(raw) => raw.0.clone(),
            other => serde_json::to_value(other).map_err(|error| error.to_string())?,
        };
        cursor = listing.take(&page)?;
        if cursor.is_none() {
            return Ok(listing);
        }
    }
    listing.problem(format!("it has more than {MAX_PAGES} pages of tools: those beyond are left out"));
    Ok(listing)
}

/// Subscribes to changes of the lists. Since revision 2026-07-28 a server reports them to
/// subscribers only; before, it reports them without a subscription.
pub(super) async fn subscribe(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let is_new = peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize());
    if !is_new {
        return None;
    }
    let filter =
        SubscriptionFilter::builder().tools_list_changed().resources_list_changed().prompts_list_changed().build();
    let listening = timeout(Duration::from_secs(10), peer.listen(filter)).await;
    match listening {
        Ok(Ok(subscription)) => Some(subscription),
        Ok(Err(ServiceError::TransportClosed)) => None,
        Ok(Err(error)) => {
            tracing::debug!(%error, "an MCP server does not report changes of its lists");
            None
        }
        Err(_) => None,
    }
}

/// A redirect that keeps the request as it is, within one origin: headers may hold a token, which is for this server alone.
fn redirect_of_server() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let is_same_request = matches!(attempt.status().as_u16(), 307 | 308);
        let from = attempt.previous().last();
        let is_same_origin = from.is_some_and(|from| from.origin() == attempt.url().origin());
        if is_same_request && is_same_origin && attempt.previous().len() <= MAX_REDIRECTS {
            return attempt.follow();
        }
        let (mut target, status) = (attempt.url().clone(), attempt.status());
        // It may hold a secret.
        target.set_query(None);
        let target = without_hidden(target.as_str()).into_owned();
        attempt.error(RedirectRefused(format!(
            "it redirects to {target} (status {}), which is not followed: set that as its url if it is the right one",
            status.as_u16()
        )))
    })
}

/// As a sentence for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct RedirectRefused(String);

/// A client that follows no redirect. Blocks briefly.
///
/// # Errors
/// When this build cannot encrypt, as a sentence for the user.
pub(super) fn http_client_builder() -> Result<reqwest::ClientBuilder, String> {
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(toold_host::http::tls_config()?)
        // Headers may hold a token, which is for this server alone.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("toold/", env!("CARGO_PKG_VERSION")));
    Ok(builder)
}

/// An error and its causes, in one line. An error of HTTP names the URL, which may hold a secret.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = error.source();
    }
    without_hidden(&text).into_owned()
}
