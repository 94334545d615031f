//! `tools.provide` and what belongs to it.

use jsonrpsee::core::server::PendingSubscriptionSink;
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::to_raw_value;
use toold_proto::daemon::Done;
use toold_proto::method::{Subscription, ToolsProvide, ToolsProvideProgress, ToolsProvideResult};
use toold_proto::provide::{Provide, ProvideProgress, ProvideResult};

use crate::frontends::Loan;
use crate::rpc::error::{invalid_params, unknown};
use crate::rpc::{Module, Request, Right, add, decides, read_params};

pub(super) fn register(module: &mut Module) -> anyhow::Result<()> {
    module.rpc.register_subscription(
        ToolsProvide::NAME,
        ToolsProvide::ITEM_METHOD,
        ToolsProvide::UNSUBSCRIBE,
        |params, pending, state, extensions| async move {
            let lend = || -> Result<Loan, ErrorObjectOwned> {
                let request = Request::of(&state, &extensions)?;
                decides(ToolsProvide::NAME, &request)?;
                let provide: Provide = read_params(&params)?;
                let connection = request.connection();
                let session = Some(request.session(None)?);
                let loan = state.frontends.lend(&state.engine, connection.id, session, &provide);
                loan.map_err(|error| invalid_params(&error.to_string()))
            };
            match lend() {
                Ok(loan) => stream(pending, loan).await,
                Err(error) => pending.reject(error).await,
            }
        },
    )?;
    add::<ToolsProvideResult>(module, Right::Anyone, |request, answer: ProvideResult| {
        let result = match (answer.result, answer.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            (Some(_), Some(_)) | (None, None) => return Err(invalid_params("expected either result or error")),
        };
        let frontends = &request.state.frontends;
        match frontends.answer(request.connection().id, &answer.invocation_id, result) {
            true => Ok(Done {}),
            false => Err(unknown("request", &answer.invocation_id)),
        }
    })?;
    add::<ToolsProvideProgress>(module, Right::Anyone, |request, told: ProvideProgress| {
        match request.state.frontends.tell(request.connection().id, &told.invocation_id, told.progress) {
            true => Ok(Done {}),
            false => Err(unknown("request", &told.invocation_id)),
        }
    })
}

/// Hands invocations over until the frontend goes; the loan ends with it.
async fn stream(pending: PendingSubscriptionSink, mut loan: Loan) {
    let Ok(sink) = pending.accept().await else { return };
    loop {
        let invocation = tokio::select! {
            () = sink.closed() => return,
            invocation = loan.invocations.recv() => invocation,
        };
        let Some(invocation) = invocation else { return };
        let Ok(json) = to_raw_value(&invocation) else { continue };
        if sink.send(json).await.is_err() {
            return;
        }
    }
}
