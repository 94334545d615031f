//! `permissions.level` and `permissions.set_level`

use std::sync::Arc;
use std::time::SystemTime;

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::audit::{AuditRow, DecisionRecord};
use toold_engine::level::table;
use toold_engine::session::Session;
use toold_proto::agent_request::DecidedBy;
use toold_proto::event::Outcome;
use toold_proto::level::{SessionLevel, SetLevel, ShowLevel};
use toold_proto::method::{PermissionsLevel, PermissionsSetLevel};
use toold_proto::tool::ToolName;

use crate::rpc::blocking::blocking;
use crate::rpc::error::{NOT_KEPT, internal, refused};
use crate::rpc::{MethodRequest, MethodTable, Right, add_async, client_name};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<PermissionsLevel, _>(module, Right::Anyone, show)?;
    add_async::<PermissionsSetLevel, _>(module, Right::Decider, set)
}

async fn show(request: MethodRequest, params: ShowLevel) -> Result<SessionLevel, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    level_of(&request, &session).await
}

async fn level_of(request: &MethodRequest, session: &Arc<Session>) -> Result<SessionLevel, ErrorObjectOwned> {
    let builtins = request.services.builtins.clone();
    let unconfined = blocking(move || builtins.sandbox.unconfined()).await?;
    let found = request.services.engine.policy.load().levels.of(session, None);
    Ok(SessionLevel {
        session_id: session.id.clone(),
        level: found.level,
        from: found.from.into_owned(),
        table: table(found.level, unconfined.is_none()),
        unconfined,
    })
}

/// The audit log has a row for each change: a level frees what nobody is asked about later.
async fn set(request: MethodRequest, params: SetLevel) -> Result<SessionLevel, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    let engine = &request.services.engine;
    let before = engine.policy.load().levels.of(&session, None).level;
    let kept = request.services.sessions.change_level(&session, before, params.level).await;
    let not_kept = kept.err().map(|error| (error.holds, refused(NOT_KEPT, &error.to_string())));
    if let Some((false, refusal)) = not_kept {
        return Err(refusal);
    }
    engine.policy_changed();
    let now = level_of(&request, &session).await?;
    if let Some(audit) = &engine.audit {
        let by = client_name(&request).unwrap_or_else(|| "a client without a name".to_owned());
        let tool = ToolName::parse("permission_level").map_err(|error| internal(&error.to_string()))?;
        let row = AuditRow {
            begun: None,
            at: SystemTime::now(),
            call_id: engine.new_call_id(),
            session_id: session.id.clone(),
            tool,
            source: "daemon:permissions".to_owned(),
            client: client_name(&request),
            connection: request.connection().id,
            decisions: vec![DecisionRecord {
                category: "level".into(),
                target: format!("{} (before: {before})", now.level),
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
        audit.record(&row).map_err(|error| internal(&error))?;
    }
    not_kept.map_or(Ok(now), |(_, refusal)| Err(refusal))
}
