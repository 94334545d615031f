//! Requests of a server to its client: forms for a person, answers of a model, roots.
//!
//! A server of an older revision sends them while a call runs ([`ServerRequestHandler`]); a newer one answers a call with
//! them and is called again ([`answer_all`]).
#![expect(deprecated, reason = "sampling and roots are deprecated in the newest revision only")]

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, InputRequest, InputRequiredResult, InputResponses, ListRootsResult, ProtocolVersion,
    RequestMetaObject, RootsCapabilities, SamplingCapability,
};
use rmcp::service::{InboundStreamOrigin, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::json;
use toold_engine::cx::Cx;
use toold_engine::sampling::has_model;
use toold_engine::tool::ToolError;

use super::notifications::{AskingCall, Notifications, UnknownCall};
use super::roots::ToldRoots;
use super::sampling::{CallSampling, SamplingError};
use super::{elicitation, logging, roots};

/// Requests in one answer of a server that needs input.
const MAX_INPUT_REQUESTS: usize = 32;
/// The requests that the daemon answers. The SDK calls one of them custom if it cannot read its parameters.
const KNOWN: &[&str] = &["elicitation/create", "sampling/createMessage", "roots/list"];
/// The code that MCP's examples use when a person refuses.
const REFUSED: ErrorCode = ErrorCode(-1);

/// Answers the requests of one server.
#[derive(Clone)]
pub struct ServerRequestHandler {
    pub(super) server: String,
    pub(super) notifications: Arc<Notifications>,
    pub(super) roots: Arc<ToldRoots>,
    /// The revision that is asked for with `initialize`.
    pub(super) revision: ProtocolVersion,
}

/// The requests that a server may make. `reports_roots` is false for an instance that serves all sessions: its roots change
/// with each call, and it is not notified of that.
fn capabilities(reports_roots: bool) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    let form = FormElicitationCapability::new().with_schema_validation(true);
    capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
    capabilities.sampling = Some(SamplingCapability::default());
    let mut roots = RootsCapabilities::default();
    roots.list_changed = reports_roots.then_some(true);
    capabilities.roots = Some(roots);
    capabilities
}

/// The `_meta` of a request in revision 2026-07-28: what the frontend of this call can do, and which log messages are
/// wanted.
pub(super) fn offer_of(cx: &Cx) -> RequestMetaObject {
    let mut offered = capabilities(false);
    if !has_model(cx) {
        offered.sampling = None;
    }
    let mut meta = RequestMetaObject::new();
    meta.set_client_capabilities(offered);
    meta.set_log_level(logging::level_of_request(cx));
    meta
}

impl ServerRequestHandler {
    /// The call that a request to a person or a model belongs to.
    fn call_of(&self, context: &RequestContext<RoleClient>) -> Result<AskingCall, UnknownCall> {
        let origin = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(request)) => Some(request),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        self.notifications.call_that_asks(origin, context.meta.get_progress_token().as_ref())
    }

    /// # Errors
    /// Nobody can be asked. It is not reported as a refusal: no person has seen the question.
    fn asking_call(&self, context: &RequestContext<RoleClient>) -> Result<AskingCall, ErrorData> {
        self.call_of(context).map_err(|unknown| {
            tracing::info!(server = self.server, %unknown, "a server asks a person, and nobody can be asked");
            ErrorData::internal_error(unknown.to_string(), None)
        })
    }
}

/// Waits for an answer as long as somebody waits for it.
async fn while_wanted<T>(
    call: &AskingCall,
    context: &RequestContext<RoleClient>,
    answer: impl Future<Output = T>,
) -> Result<T, ErrorData> {
    let over = |why: &str| Err(ErrorData::internal_error(why.to_owned(), None));
    tokio::select! {
        biased;
        () = context.ct.cancelled() => over("this request was cancelled"),
        () = call.ended() => over("the call that this request belongs to has ended"),
        answer = answer => Ok(answer),
    }
}

impl ClientHandler for ServerRequestHandler {
    fn get_info(&self) -> ClientConfig {
        let capabilities = capabilities(self.notifications.context.owner.is_some());
        ClientConfig::new(capabilities, Implementation::new("toold", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(self.revision.clone())
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let call = self.asking_call(&context)?;
        while_wanted(&call, &context, elicitation::ask(&self.server, asked, &call.cx)).await
    }

    async fn create_message(
        &self,
        asked: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let call = self.asking_call(&context)?;
        let answered = while_wanted(&call, &context, call.sampling.answer(&self.server, asked, &call.cx)).await?;
        answered.map_err(|error| {
            tracing::info!(server = self.server, %error, "a server asks for a model's answer, and gets none");
            match &error {
                SamplingError::Invalid(why) => ErrorData::invalid_params(why.clone(), None),
                SamplingError::NoAnswer(ToolError::Denied(_)) => ErrorData::new(REFUSED, error.to_string(), None),
                SamplingError::NoAnswer(_) => ErrorData::internal_error(error.to_string(), None),
            }
        })
    }

    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        if let Some(roots) = self.roots.of_owner(&self.notifications.context) {
            return Ok(ListRootsResult::new(roots));
        }
        match self.call_of(&context) {
            Ok(call) => Ok(ListRootsResult::new(roots::of_session(&call.cx.session))),
            // As servers ask that have just been started.
            Err(UnknownCall::None) => Ok(ListRootsResult::default()),
            Err(unknown @ UnknownCall::Ambiguous { .. }) => Err(ErrorData::internal_error(unknown.to_string(), None)),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        Err(match KNOWN.contains(&method) {
            true => ErrorData::invalid_params(format!("the parameters of {method} cannot be read"), None),
            false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("toold does not answer {method}"), None),
        })
    }
}

/// Answers all requests that a server makes before its result.
///
/// # Errors
/// `Cancelled` when the call ends first; `Denied` when sampling is not allowed; `Failed` for requests that cannot be
/// answered.
pub(super) async fn answer_all(
    server: &str,
    required: &InputRequiredResult,
    cx: &Cx,
) -> Result<Option<InputResponses>, ToolError> {
    let Some(requests) = &required.input_requests else { return Ok(None) };
    if requests.len() > MAX_INPUT_REQUESTS {
        let many = requests.len();
        let error =
            format!("MCP server {server} asked for {many} inputs at once, and {MAX_INPUT_REQUESTS} are allowed");
        return Err(ToolError::Failed(error));
    }
    let sampling = CallSampling::default();
    let mut answers = InputResponses::new();
    for (id, request) in requests {
        let answer = match request {
            InputRequest::Elicitation(request) => json!(elicitation::ask(server, request.params.clone(), cx).await),
            InputRequest::ListRoots(_) => json!(ListRootsResult::new(roots::of_session(&cx.session))),
            InputRequest::CreateMessage(request) => {
                let answered = sampling.answer(server, request.params.clone(), cx).await;
                json!(answered.map_err(|error| match error {
                    SamplingError::Invalid(why) => {
                        ToolError::Failed(format!("MCP server {server} asked for a model's answer: {why}"))
                    }
                    SamplingError::NoAnswer(error) => error,
                })?)
            }
            _ => {
                return Err(ToolError::Failed(format!(
                    "MCP server {server} asks its client for something that toold does not offer"
                )));
            }
        };
        if cx.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        answers.insert(id.clone(), answer);
    }
    Ok(Some(answers))
}
