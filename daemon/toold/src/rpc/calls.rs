//! `calls.*`: observing calls, and calls that outlive their connection.

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::call::{Call, CallError};
use toold_engine::detached::{self, Detached, FinishedCall};
use toold_engine::execute::execute;
use toold_engine::session::Session;
use toold_engine::time::rfc3339;
use toold_proto::method::{CallsBegun, CallsGet, CallsList};
use toold_proto::provide::{BegunCalls, CallInfo, CallList, CallState, FindBegunCalls, GetCall, ListCalls};
use toold_proto::tool::ToolResult;

use crate::lifecycle::traces::carried;
use crate::peer::sessions::persistence::with_store;
use crate::rpc::error::{invalid_params, of_call, unknown};
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<CallsList>(module, Right::Anyone, |request, list: ListCalls| {
        let session = request.session(list.session_id.as_ref())?;
        let mut calls: Vec<CallInfo> =
            detached::ended(&session).into_iter().map(|call| ended(&session, call)).collect();
        calls.extend(session.calls().iter().map(|call| call.info()));
        calls.sort_by(|a, b| (&a.started_at, &a.call_id).cmp(&(&b.started_at, &b.call_id)));
        Ok(CallList { calls })
    })?;
    add_async::<CallsBegun, _>(module, Right::Anyone, begun)?;
    add::<CallsGet>(module, Right::Anyone, |request, get: GetCall| {
        let session = request.session(get.session_id.as_ref())?;
        let in_flight = session.call(&get.call_id).map(|call| call.info());
        let found = || detached::ended(&session).into_iter().rev().find(|call| call.call_id == get.call_id);
        let at_its_end = || found().map(|call| ended(&session, call));
        in_flight.or_else(at_its_end).ok_or_else(|| unknown("call", get.call_id.as_str()))
    })
}

/// More calls than one client can have in flight are not looked up.
const MAX_LOOKED_UP: usize = 4096;

async fn begun(request: MethodRequest, find: FindBegunCalls) -> Result<BegunCalls, ErrorObjectOwned> {
    let FindBegunCalls { call_ids } = find;
    if call_ids.len() > MAX_LOOKED_UP {
        return Err(invalid_params(&format!("expected at most {MAX_LOOKED_UP} calls, got {}", call_ids.len())));
    }
    let looked_up = with_store(&request.services.store, move |store| {
        store.recorded_calls(&call_ids).map(|begun| BegunCalls { begun, complete: store.journals_calls() })
    });
    // Without the log nobody knows, which is not an error of the request.
    Ok(looked_up.await.unwrap_or_default())
}

fn ended(session: &Session, call: FinishedCall) -> CallInfo {
    let (result, error) = match call.answer {
        Ok(result) => (Some(result), None),
        Err(error) => (None, serde_json::to_value(of_call(error)).ok()),
    };
    CallInfo {
        call_id: call.call_id,
        session_id: session.id.clone(),
        tool: call.tool,
        agent: None,
        client: session.client.as_ref().map(|client| client.name.clone()),
        cwd: Some(call.cwd.display().to_string()),
        arguments: call.arguments.map(|arguments| arguments.shown()),
        state: CallState::Finished,
        waits_for: None,
        started_at: rfc3339(call.started_at),
        output: None,
        result,
        error,
    }
}

/// Runs a call that continues when its connection closes. Ends with its session or the daemon.
pub(super) async fn run_detached(request: &MethodRequest, mut call: Call) -> Result<ToolResult, ErrorObjectOwned> {
    let services = request.services.clone();
    // The connection can still cancel this request, as long as it is open.
    let asked = std::mem::replace(&mut call.cancel, services.lifecycle.cancelled());
    let cancel = call.cancel.clone();
    let detached = Detached::of(&services.engine, &call);
    let work = services.engine.tasks.spawn({
        let services = services.clone();
        carried(async move {
            let answer = execute(&services.engine, call).await;
            detached.keep(&answer);
            answer
        })
    });
    tokio::select! {
        answer = work => answer.unwrap_or_else(|error| Err(CallError::Failed(error.to_string()))).map_err(of_call),
        () = asked.cancelled() => {
            if !request.connection().is_gone() {
                cancel.cancel();
            }
            Err(of_call(CallError::Cancelled))
        }
    }
}
