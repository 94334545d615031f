//! Elicitation: a server may ask a person to fill in a form.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;
use toold_engine::cx::Cx;
use toold_engine::questions::{FormOutcome, FormRequest};
use toold_engine::schema::Schema;

use super::listing::is_hidden;

/// Characters of a server's message to a person.
const MAX_MESSAGE: usize = 2000;

/// Shows a form to the person at the frontend that called.
pub(super) async fn ask(server: &str, asked: ElicitRequestParams, cx: &Cx) -> ElicitResult {
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
