//! Elicitation: a server may ask a person, and nothing else, for input.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ErrorData, FormElicitationCapability, Implementation, InputRequest, InputRequiredResult, InputResponses,
    ProtocolVersion, RequestId,
};
use rmcp::service::{InboundStreamOrigin, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use toold_engine::cx::Cx;
use toold_engine::questions::{FormOutcome, FormRequest};
use toold_engine::schema::Schema;
use toold_engine::tool::ToolError;

use super::listing::is_hidden;
use super::notifications::Notifications;

/// Characters of a server's message to a person.
const MAX_MESSAGE: usize = 2000;

/// Answers the requests of one server.
#[derive(Clone)]
pub struct ElicitationHandler {
    pub(super) server: String,
    pub(super) notifications: Arc<Notifications>,
}

impl ClientHandler for ElicitationHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = FormElicitationCapability::new().with_schema_validation(true);
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        ClientConfig::new(capabilities, Implementation::new("toold", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let origin = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(request)) => Some(request),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        let token = context.meta.get_progress_token();
        let cx = self.notifications.call_that_asks(origin.map(|id: &RequestId| id), token.as_ref());
        // Not a cancellation: no person has seen the question.
        let cx = cx.map_err(|unknown| {
            tracing::info!(server = self.server, %unknown, "a server asks a person, and nobody can be asked");
            ErrorData::internal_error(unknown.to_string(), None)
        })?;
        Ok(tokio::select! {
            () = context.ct.cancelled() => ElicitResult::new(ElicitationAction::Cancel),
            answer = ask(&self.server, asked, &cx) => answer,
        })
    }
}

/// Answers all requests that a server makes before its result.
///
/// # Errors
/// `Cancelled` when the call ends first; `Failed` for requests that cannot be answered.
pub(super) async fn answer_all(
    server: &str,
    required: &InputRequiredResult,
    cx: &Cx,
) -> Result<Option<InputResponses>, ToolError> {
    let Some(requests) = &required.input_requests else { return Ok(None) };
    let mut answers = InputResponses::new();
    for (id, request) in requests {
        let answer = match request {
            InputRequest::Elicitation(request) => json!(ask(server, request.params.clone(), cx).await),
            InputRequest::ListRoots(_) => json!({"roots": []}),
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

/// Shows a form to the person at the frontend that called.
async fn ask(server: &str, asked: ElicitRequestParams, cx: &Cx) -> ElicitResult {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = asked else {
        return ElicitResult::new(ElicitationAction::Decline);
    };
    let schema = serde_json::to_value(&requested_schema).unwrap_or(Value::Null);
    let schema = match Schema::compile_input(schema) {
        Ok(schema) => schema,
        Err(error) => {
            tracing::info!(server, %error, "a server asks a person with a schema that cannot be read");
            return ElicitResult::new(ElicitationAction::Cancel);
        }
    };
    let message: String = message.chars().filter(|c| *c == '\n' || !is_hidden(*c)).take(MAX_MESSAGE).collect();
    let message = format!("MCP server {server} asks: {message}");
    match cx.elicit(FormRequest { key: None, message, schema }).await {
        Ok(FormOutcome::Accepted(fields)) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(fields))
        }
        Ok(FormOutcome::Declined) => ElicitResult::new(ElicitationAction::Decline),
        Ok(FormOutcome::Cancelled) => ElicitResult::new(ElicitationAction::Cancel),
        Err(error) => {
            tracing::info!(server, %error, "a server asks a person, and got no answer");
            ElicitResult::new(ElicitationAction::Cancel)
        }
    }
}
