//! Rows of the audit log about what people change in the daemon itself.

use std::time::SystemTime;

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::audit::{AuditRow, DecisionRecord};
use toold_proto::agent_request::DecidedBy;
use toold_proto::event::Outcome;
use toold_proto::tool::{SessionId, ToolName};

use crate::rpc::error::{NOT_KEPT, internal, refused};
use crate::rpc::{MethodRequest, client_name};

/// Records a change that the caller made and that holds, under the name of a tool and a category.
///
/// # Errors
/// The row cannot be written.
pub(super) fn record_change(
    request: &MethodRequest,
    session: &SessionId,
    (tool, category): (&str, &'static str),
    target: String,
) -> Result<(), ErrorObjectOwned> {
    let engine = &request.services.engine;
    let Some(audit) = &engine.audit else { return Ok(()) };
    let by = client_name(request).unwrap_or_else(|| "a client without a name".to_owned());
    let row = AuditRow {
        begun: None,
        at: SystemTime::now(),
        call_id: engine.new_call_id(),
        session_id: session.clone(),
        tool: ToolName::parse(tool).map_err(|error| internal(&error.to_string()))?,
        source: "daemon:permissions".to_owned(),
        client: client_name(request),
        connection: request.connection().id,
        decisions: vec![DecisionRecord {
            category: category.into(),
            target,
            verdict: "allow".into(),
            rule: format!("set by {by}"),
            by: DecidedBy::Person,
            ..DecisionRecord::default()
        }],
        outcome: Outcome::Ok,
        duration_ms: 0,
        original: None,
        input_bytes: 0,
        output_bytes: 0,
    };
    audit.record(&row).map_err(|error| refused(NOT_KEPT, &format!("this holds, but the audit log lacks it: {error}")))
}
