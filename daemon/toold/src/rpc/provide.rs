//! `tools.provide` and related methods.

use std::sync::Arc;

use anyhow::Context;
use jsonrpsee::core::server::MethodCallback;
use jsonrpsee::types::SubscriptionId;
use toold_proto::daemon::Done;
use toold_proto::method::{Subscription, ToolsProvide, ToolsProvideProgress, ToolsProvideResult};
use toold_proto::provide::{Provide, ProvideProgress, ProvideResult};

use crate::config::tools::provided_names::remember;
use crate::peer::frontends::ProvidedTools;
use crate::rpc::error::{invalid_params, unknown};
use crate::rpc::subscription::{ItemSubscriber, add_subscription};
use crate::rpc::{MethodRequest, MethodTable, Right, add, check_right};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    let provide = |request: &MethodRequest, provide: Provide, subscription: &SubscriptionId<'_>| {
        check_right(ToolsProvide::NAME, Right::Administrator, request)?;
        let provider = (request.connection().id, words_of(subscription));
        let session = Some(request.session(None)?);
        let provided = request.services.frontends.provide(&request.services.engine, provider, session, &provide);
        let provided = provided.map_err(|error| invalid_params(&error.to_string()))?;
        let (config, names) = (request.services.config.clone(), provide.tools.into_iter().map(|tool| tool.name));
        let names: Vec<String> = names.collect();
        request.services.engine.tasks.spawn_blocking(move || remember(&config.options.paths, &names));
        Ok(provided)
    };
    add_subscription::<ToolsProvide, _, _>(module, provide, stream)?;
    take_back_in_order(module)?;
    add::<ToolsProvideResult>(module, Right::Program, |request, answer: ProvideResult| {
        let result = match (answer.result, answer.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            (Some(_), Some(_)) | (None, None) => return Err(invalid_params("expected either result or error")),
        };
        let frontends = &request.services.frontends;
        match frontends.answer(request.connection().id, &answer.invocation_id, result) {
            true => Ok(Done {}),
            false => Err(unknown("request", &answer.invocation_id)),
        }
    })?;
    add::<ToolsProvideProgress>(module, Right::Program, |request, progress: ProvideProgress| {
        match request.services.frontends.report_progress(
            request.connection().id,
            &progress.invocation_id,
            progress.progress,
        ) {
            true => Ok(Done {}),
            false => Err(unknown("request", &progress.invocation_id)),
        }
    })
}

/// Removes the tools before `tools.unprovide` is answered, so that their names are free for the
/// next request. jsonrpsee only notifies the task that serves the subscription, which runs at its
/// next turn.
fn take_back_in_order(module: &mut MethodTable) -> anyhow::Result<()> {
    let Some(MethodCallback::Unsubscription(end)) = module.rpc.remove_method(ToolsProvide::UNSUBSCRIBE) else {
        anyhow::bail!("{} ends no subscription", ToolsProvide::UNSUBSCRIBE);
    };
    let services = module.services.clone();
    let end_in_order = MethodCallback::Unsubscription(Arc::new(move |id, params, connection, max, extensions| {
        let subscription = params.one::<SubscriptionId<'_>>().map(|id| words_of(&id));
        let answer = end(id, params, connection, max, extensions);
        // Last, since the subscription ends itself once its tools are gone, and then there is none
        // to end.
        if let Ok(subscription) = subscription {
            services.frontends.take_back(&services.engine, connection.0 as u64, &subscription);
        }
        answer
    }));
    module.rpc.verify_and_insert(ToolsProvide::UNSUBSCRIBE, end_in_order).context("it was just removed")?;
    Ok(())
}

fn words_of(id: &SubscriptionId<'_>) -> String {
    match id {
        SubscriptionId::Num(n) => n.to_string(),
        SubscriptionId::Str(text) => text.to_string(),
    }
}

/// Passes invocations on until the frontend disconnects, which also removes its tools.
async fn stream(subscriber: ItemSubscriber<ToolsProvide>, mut provided: ProvidedTools) {
    loop {
        let invocation = tokio::select! {
            () = subscriber.gone() => return,
            invocation = provided.invocations.recv() => invocation,
        };
        let Some(invocation) = invocation else { return };
        if subscriber.send(&invocation).await.is_err() {
            return;
        }
    }
}
