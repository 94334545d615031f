//! A mounted server's tool.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, GetExtensions, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Category, Source, SourceKind, ToolName};

use super::connect::chain;
use super::listing::KnownTool;
use super::mounted::{Live, Mounted};
use super::tap::OfCall;
use super::{elicit, result};

/// How often one call may be asked for more before it gives its result.
const MAX_ROUNDS: usize = 10;
/// How long word that a call is cancelled may take to be sent.
const TELL: Duration = Duration::from_millis(200);
/// Characters of the arguments that a person is shown who is asked.
const SHOWN: usize = 600;

pub(super) struct MountedTool {
    spec: ToolSpec,
    pub(super) own: String,
    /// Of what was listed: the tool that is called must be the one that was seen.
    pub(super) digest: String,
    server: Arc<Mounted>,
}

impl MountedTool {
    /// `None` for a schema that cannot be compiled, of which there are none in a list that was read.
    pub(super) fn new(server: &Arc<Mounted>, name: ToolName, known: &KnownTool) -> Option<Self> {
        let is_plain = name.as_str().ends_with(&format!("_{}", known.own));
        let spec = ToolSpec {
            label: known.title.clone().filter(|_| is_plain).unwrap_or_else(|| known.own.clone()),
            name,
            description: known.description.clone(),
            input: Schema::compile_input(known.input.clone()).ok()?,
            output: known.output.clone().and_then(|output| Schema::compile(output).ok()),
            source: Source { kind: SourceKind::Mcp, name: server.config.name.clone(), path: None },
            origin: Origin::Mcp,
            // A claim, and enough to decide what may run side by side.
            parallelizable: known.annotations.read_only,
            permissions: vec![Category::Mcp],
            cache_ttl: None,
            timeout: server.config.timeout,
            annotations: known.annotations,
            version: None,
        };
        Some(Self { spec, own: known.own.clone(), digest: known.digest(), server: server.clone() })
    }

    pub(super) fn is_of(&self, server: &Arc<Mounted>) -> bool {
        Arc::ptr_eq(&self.server, server)
    }

    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let Value::Object(arguments) = input else { return Err(ToolError::Failed("expected an object".to_owned())) };
        if !self.server.runs() {
            // A program may take its time, and callers want to hear something.
            cx.message(format!("starting the MCP server {}", self.server.config.name));
        }
        let begun = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            begun = self.server.begin(&self.own, &self.digest) => begun.map_err(ToolError::Failed)?,
        };
        let mut params = CallToolRequestParams::new(self.own.clone()).with_arguments(arguments);
        for _ in 0..MAX_ROUNDS {
            let answer = self.ask(&begun.live, params.clone(), cx).await?;
            let ServerResult::InputRequiredResult(required) = answer else { return self.read(&answer) };
            params.input_responses = elicit::answer_all(&self.server.config.name, &required, cx).await?;
            params.request_state = required.request_state;
        }
        Err(ToolError::Failed(format!("{} asks for more again and again: {MAX_ROUNDS} times", self.server.config.name)))
    }

    /// Sends the call, and waits for its answer or the call's end.
    async fn ask(&self, live: &Arc<Live>, params: CallToolRequestParams, cx: &Cx) -> Result<ServerResult, ToolError> {
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        request.extensions_mut().insert(OfCall(cx.shared()));
        let sending = live.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let sent = tokio::select! {
            biased;
            // A server that reads nothing has taken all that fits into its pipe.
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            sent = sending => sent,
        };
        let mut sent = match sent {
            Ok(sent) => sent,
            Err(error) => return Err(self.failed(live, error, cx).await),
        };
        let _end = End { live, token: sent.progress_token.clone() };
        tokio::select! {
            biased;
            answer = &mut sent.rx => match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
                Ok(answer) => Ok(answer),
                Err(error) => Err(self.failed(live, error, cx).await),
            },
            () = cx.cancel.cancelled() => {
                let why = if cx.timed_out() { "the call's time is over" } else { "the caller gave the call up" };
                // What the server does with it is its own affair: nobody waits for it any more.
                let _ = tokio::time::timeout(TELL, sent.cancel(Some(why.to_owned()))).await;
                Err(ToolError::Cancelled)
            }
        }
    }

    async fn failed(&self, live: &Arc<Live>, error: ServiceError, cx: &Cx) -> ToolError {
        let server = &self.server.config.name;
        match error {
            ServiceError::McpError(error) => {
                let data = error.data.map(|data| format!(" {data}")).unwrap_or_default();
                ToolError::Failed(format!("{server} refused the call: {} ({}){data}", error.message, error.code.0))
            }
            ServiceError::TransportSend(error) => {
                let why = chain(&error);
                tokio::select! {
                    () = cx.cancel.cancelled() => return ToolError::Cancelled,
                    () = live.doubt(&why) => {}
                }
                ToolError::Failed(format!("the MCP server {server} cannot be reached: {why}"))
            }
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                // Its end is known a moment after the end of the connection.
                tokio::select! {
                    () = cx.cancel.cancelled() => ToolError::Cancelled,
                    why = self.server.why_gone(live) => {
                        ToolError::Failed(format!("the MCP server {server} is gone: {why}; whether the call was done is not known"))
                    }
                }
            }
            error => ToolError::Failed(format!("{server} cannot be called: {error}")),
        }
    }

    fn read(&self, answer: &ServerResult) -> Result<ToolOutput, ToolError> {
        let answer = serde_json::to_value(answer).map_err(|error| ToolError::Failed(error.to_string()))?;
        result::output(answer).map_err(|why| ToolError::Failed(format!("{}: {why}", self.server.config.name)))
    }
}

impl Callable for MountedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, input: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        let target = target(&self.server.config.name, &self.own);
        let text = input.to_string();
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        std::future::ready(Ok(vec![Need::new(Category::Mcp, target).because(shown)])).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let called = self.run(input, cx).await;
            self.server.count(called.as_ref().is_ok_and(|output| !output.is_error));
            called
        }
        .boxed()
    }
}

/// What rules and grants name a tool by: its server, as it is configured, and the server's own name for it.
pub(super) fn target(server: &str, own: &str) -> String {
    format!("{server}/{own}")
}

/// Takes a call out of those that can be told of, however it ends.
struct End<'a> {
    live: &'a Live,
    token: rmcp::model::ProgressToken,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.live.ears.calls.end(&self.token);
    }
}
