//! `hooks.*`

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::hooks::{HookEvent, HookSpec};
use toold_engine::redact::without_hidden;
use toold_proto::hook::{HookAction, HookInfo, HookList, MessageEvent, RunHooks};
use toold_proto::method::{HooksList, HooksRun};
use toold_proto::tool::Source;

use crate::rpc::commands::is_seen;
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, may_decide};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<HooksList>(module, Right::Anyone, |request, _| {
        let session = request.session(None)?;
        let hooks = request.services.engine.hooks.snapshot();
        let seen = hooks.iter().map(|hook| hook.spec()).filter(|spec| is_seen(&spec.source.scope, &session));
        let is_person = may_decide(&request);
        // An error may hold what the hook was given.
        let error = |spec: &HookSpec| {
            let error = spec.health.error().filter(|_| is_person)?;
            Some(without_hidden(&error).into_owned())
        };
        Ok(HookList { hooks: seen.map(|spec| HookInfo { error: error(spec), ..describe(spec) }).collect() })
    })?;
    add_async::<HooksRun, _>(module, Right::Program, run)
}

async fn run(request: MethodRequest, asked: RunHooks) -> Result<HookAction, ErrorObjectOwned> {
    let session = request.session(asked.session_id.as_ref())?;
    let event = match asked.event {
        MessageEvent::PreMessage => HookEvent::PreMessage,
        MessageEvent::PostMessage => HookEvent::PostMessage,
    };
    let engine = &request.services.engine;
    Ok(engine.hooks.message(event, &session, asked.message, &engine.tasks).await)
}

pub(super) fn describe(spec: &HookSpec) -> HookInfo {
    HookInfo {
        name: spec.name.clone(),
        event: spec.event.as_str().to_owned(),
        source: Source { kind: spec.source.kind, name: spec.source.name.clone(), path: None },
        priority: spec.priority,
        mode: if spec.asynchronous { "async" } else { "sync" }.to_owned(),
        timeout_ms: spec.timeout.as_millis() as u64,
        fail: if spec.fail_closed { "closed" } else { "open" }.to_owned(),
        error: None,
    }
}
