//! `permissions.level` and `permissions.set_level`

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::level::table;
use toold_engine::session::Session;
use toold_proto::event::EventBody;
use toold_proto::level::{SessionLevel, SetLevel, ShowLevel};
use toold_proto::method::{PermissionsLevel, PermissionsSetLevel};

use crate::rpc::blocking::blocking;
use crate::rpc::error::{NOT_KEPT, refused};
use crate::rpc::own_rows::record_change;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

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
    let (session_id, mode) = (session.id.clone(), session.mode());
    engine.events.emit(EventBody::SessionMode { session_id, mode });
    let now = level_of(&request, &session).await?;
    let target = format!("{} (before: {before})", now.level);
    let recorded = record_change(&request, &session.id, ("permission_level", "level"), target);
    not_kept.map_or(recorded.map(|()| now), |(_, refusal)| Err(refusal))
}
