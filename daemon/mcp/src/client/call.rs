//! A call of a mounted server's tool.

use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, GetExtensions, InputResponses, ProgressToken,
    ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::time::timeout;
use toold_engine::cx::Cx;
use toold_engine::redact::without_hidden;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_mounts::adapter::{CallFailure, MountConnection};
use toold_mounts::config::MountConfig;

use super::adapter::{ServerAdapter, ServerLink};
use super::connect::{self, ServerFailure, error_chain};
use super::endpoint::ServerEndpoint;
use super::listing::ListedServerTool;
use super::logins::challenge::LoginChallenge;
use super::notifications::{Notifications, OfCall};
use super::{exact_integers, logging, requests, result, transport_words};

/// How often one call may ask for more input before its result.
const MAX_INPUT_ROUNDS: usize = 10;
/// How long the notification that a call is cancelled may take to be sent.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a server may take to prove that it is alive.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes a call of `server`, and answers its requests on the way.
pub(super) async fn call(
    adapter: &ServerAdapter,
    config: &MountConfig<ServerEndpoint>,
    connection: &MountConnection<ServerAdapter>,
    tool: &ListedServerTool,
    input: Value,
    cx: &Cx,
) -> Result<ToolOutput, CallFailure> {
    let Value::Object(arguments) = input else {
        return Err(ToolError::Failed("the arguments must be a JSON object".to_owned()).into());
    };
    let params = CallToolRequestParams::new(tool.upstream_name.clone()).with_arguments(arguments);
    let answer = converse(adapter, config, connection, cx, |answers, state| {
        let mut params = params.clone();
        (params.input_responses, params.request_state) = (answers, state);
        ClientRequest::CallToolRequest(CallToolRequest::new(params))
    });
    let mut output = read(&config.name, &answer.await?)?;
    if let Some((structured, schema)) = output.structured.as_mut().zip(tool.output.as_ref()) {
        exact_integers::fit(structured, schema);
    }
    Ok(output)
}

/// Makes a request of a call, and answers the server's requests on the way: with each answer, the request that `request`
/// makes of it and of the server's state is made again.
pub(super) async fn converse(
    adapter: &ServerAdapter,
    config: &MountConfig<ServerEndpoint>,
    connection: &MountConnection<ServerAdapter>,
    cx: &Cx,
    request: impl Fn(Option<InputResponses>, Option<String>) -> ClientRequest,
) -> Result<ServerResult, RequestFailure> {
    let server = config.name.as_str();
    cx.hint_at_time_out(format!("timeout_ms in [mcp.servers.{server}] sets it, and progress of the server renews it"));
    let (turns, session) = (&connection.link.notifications.turns, &cx.session.id);
    if turns.is_taken(session) {
        cx.message(format!(
            "waiting: a call of another session is running, and MCP server {server} does not say for which call it asks"
        ));
    }
    let _turn = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err(cancelled()),
        turn = turns.take(session) => turn,
    };
    if let Some(http) = connection.link.http.as_ref().filter(|http| http.is_opening()) {
        cx.message(format!("waiting until MCP server {server} has opened the stream on which it asks"));
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(cancelled()),
            () = http.opened() => {}
        }
    }
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err(cancelled()),
        () = logging::request_level(&connection.link, cx) => {}
    }
    let (mut answers, mut state) = (None, None);
    for _ in 0..MAX_INPUT_ROUNDS {
        let answer = send(adapter, config, connection, request(answers, state), cx).await?;
        let ServerResult::InputRequiredResult(required) = answer else { return Ok(answer) };
        answers = requests::answer_all(server, &required, cx).await.map_err(CallFailure::Tool)?;
        state = required.request_state;
    }
    let error = format!("MCP server {server} asked for more input {MAX_INPUT_ROUNDS} times in one call: giving up");
    Err(CallFailure::Tool(ToolError::Failed(error)).into())
}

/// Why a request has no result.
pub(super) enum RequestFailure {
    /// The server answered with an error.
    Refused {
        code: ErrorCode,
        words: String,
    },
    Other(CallFailure),
}

impl From<CallFailure> for RequestFailure {
    fn from(failure: CallFailure) -> Self {
        Self::Other(failure)
    }
}

impl From<RequestFailure> for CallFailure {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Refused { words, .. } => ToolError::Failed(words).into(),
            RequestFailure::Other(failure) => failure,
        }
    }
}

fn cancelled() -> RequestFailure {
    CallFailure::Tool(ToolError::Cancelled).into()
}

/// Sends one request, and waits for its answer or the call's end.
async fn send(
    adapter: &ServerAdapter,
    config: &MountConfig<ServerEndpoint>,
    connection: &MountConnection<ServerAdapter>,
    mut request: ClientRequest,
    cx: &Cx,
) -> Result<ServerResult, RequestFailure> {
    let link: &ServerLink = &connection.link;
    request.extensions_mut().insert(OfCall(cx.shared()));
    let is_new = link.peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize());
    let options = match is_new {
        true => PeerRequestOptions::no_options().with_meta(requests::offer_of(cx)),
        false => PeerRequestOptions::no_options(),
    };
    let sending = link.peer.send_request_with_option(request, options);
    let sent = tokio::select! {
        biased;
        // Waits when the server does not read and its pipe is full.
        () = cx.cancel.cancelled() => return Err(cancelled()),
        sent = sending => sent,
    };
    let mut sent = match sent {
        Ok(sent) => sent,
        Err(error) => return Err(failure(adapter, config, connection, error, cx).await),
    };
    let _registered = RegisteredCall { notifications: &link.notifications, token: sent.progress_token.clone() };
    tokio::select! {
        biased;
        answer = &mut sent.rx => match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
            Ok(answer) => Ok(answer),
            Err(error) => Err(failure(adapter, config, connection, error, cx).await),
        },
        () = cx.cancel.cancelled() => {
            if cx.timed_out() {
                link.notifications.life.note_timed_out();
            }
            let why = if cx.timed_out() { "the call timed out" } else { "the caller cancelled the call" };
            // The call has no waiter any more, whether or not the server stops it.
            let _ = timeout(CANCEL_TIMEOUT, sent.cancel(Some(why.to_owned()))).await;
            Err(cancelled())
        }
        () = logging::follow_level(link, cx) => unreachable!("it never returns"),
    }
}

async fn failure(
    adapter: &ServerAdapter,
    config: &MountConfig<ServerEndpoint>,
    connection: &MountConnection<ServerAdapter>,
    error: ServiceError,
    cx: &Cx,
) -> RequestFailure {
    let server = &config.name;
    if let Some(challenge) = LoginChallenge::of_request(&error) {
        let why = adapter.explain(config, ServerFailure::NeedsLogin(challenge)).await;
        let words = format!("MCP server {server} refused the call: {why}");
        return CallFailure::Tool(ToolError::Failed(words)).into();
    }
    let error = match error {
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
            return CallFailure::Disconnected.into();
        }
        ServiceError::McpError(error) if error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
            format!(
                "MCP server {server} needs something that the client of this call does not offer: {}",
                error.message
            )
        }
        ServiceError::McpError(error) => {
            let data = error.data.map(|data| format!(" {data}")).unwrap_or_default();
            let words =
                format!("MCP server {server} refused the call: {} (code {}){data}", error.message, error.code.0);
            return RequestFailure::Refused { code: error.code, words };
        }
        ServiceError::TransportSend(error) => {
            let answered = transport_words::of_answer(error.error.as_ref());
            // Without the SDK's name for the transport.
            let why = answered.clone().unwrap_or_else(|| error_chain(error.error.as_ref()));
            tokio::select! {
                () = cx.cancel.cancelled() => return cancelled(),
                () = probe(connection, &why) => {}
            }
            match answered {
                Some(why) => format!("the call of MCP server {server} failed: {}", without_hidden(&why)),
                None => {
                    let why = transport_words::of_silence(error.error.as_ref()).unwrap_or(why);
                    format!("MCP server {server} failed: {}", without_hidden(&why))
                }
            }
        }
        error => format!("the call of MCP server {server} failed: {error}"),
    };
    CallFailure::Tool(ToolError::Failed(error)).into()
}

/// Checks that the server is alive, after something could not be sent to it.
async fn probe(connection: &MountConnection<ServerAdapter>, why: &str) {
    let answered = timeout(PROBE_TIMEOUT, connect::list_tools(&connection.link.peer)).await;
    if !matches!(answered, Ok(Ok(_))) {
        connection.context.report_lost(why.to_owned());
    }
}

fn read(server: &str, answer: &ServerResult) -> Result<ToolOutput, CallFailure> {
    let answer = serde_json::to_value(answer).map_err(|error| ToolError::Failed(error.to_string()))?;
    let output = result::output(answer);
    Ok(output.map_err(|why| ToolError::Failed(format!("MCP server {server} sent {why}")))?)
}

/// Removes a call from those that receive notifications, however it ends.
struct RegisteredCall<'a> {
    notifications: &'a Notifications,
    token: ProgressToken,
}

impl Drop for RegisteredCall<'_> {
    fn drop(&mut self) {
        self.notifications.calls.remove(&self.token);
    }
}
