//! Batches: several calls, answered in the order of the request.

use std::sync::Arc;

use futures_util::future::join_all;
use toold_proto::call::Strategy;
use toold_proto::tool::ToolResult;

use crate::Engine;
use crate::call::{Call, CallError};
use crate::execute::{WaitingCall, execute, skip};
use crate::meta_tools::tool_of;

type BatchAnswer = Result<ToolResult, CallError>;

/// Runs calls of one session as `strategy` says. A failure, panic or cancellation of one call does
/// not affect the others.
///
/// An interrupt of the session lets running calls end and skips the units that have not begun: each
/// of their calls answers that it was skipped.
pub async fn execute_batch(engine: &Arc<Engine>, calls: Vec<Call>, strategy: Strategy) -> Vec<BatchAnswer> {
    let Some(session) = calls.first().map(|call| call.session.clone()) else { return Vec::new() };
    let units = units(engine, &calls, strategy);
    let begun = *session.interrupts.borrow();
    let mut calls: Vec<Option<(Call, WaitingCall)>> =
        calls.into_iter().map(|call| Some((call, WaitingCall::enter(&session)))).collect();
    let mut answers: Vec<Option<BatchAnswer>> = calls.iter().map(|_| None).collect();
    for unit in units {
        let interrupted = *session.interrupts.borrow() != begun;
        let running = unit.iter().map(|&place| {
            let (call, waiting) = calls[place].take().expect("each call is in one unit");
            async move {
                drop(waiting);
                match interrupted {
                    true => skip(engine, call).await,
                    false => execute(engine, call).await,
                }
            }
        });
        for (place, answer) in unit.iter().zip(join_all(running).await) {
            answers[*place] = Some(answer);
        }
    }
    answers.into_iter().map(|answer| answer.expect("each call is in one unit")).collect()
}

/// The calls that run at once, one unit after another. Each index is in exactly one unit.
fn units(engine: &Engine, calls: &[Call], strategy: Strategy) -> Vec<Vec<usize>> {
    let all = 0..calls.len();
    match strategy {
        Strategy::Parallel => vec![all.collect()],
        Strategy::Sequential => all.map(|place| vec![place]).collect(),
        Strategy::Batched(size) => {
            let places: Vec<usize> = all.collect();
            places.chunks((size as usize).max(1)).map(<[usize]>::to_vec).collect()
        }
        Strategy::Auto => {
            let snapshot = engine.registry.snapshot();
            let parallelizable = |place: &usize| {
                let call: &Call = &calls[*place];
                let tool = tool_of(snapshot.view(call.session.project()), call);
                // A call of an unknown tool is answered at once, whenever its turn is.
                tool.is_none_or(|tool| tool.spec().parallelizable)
            };
            let (first, then): (Vec<usize>, Vec<usize>) = all.partition(parallelizable);
            std::iter::once(first).filter(|unit| !unit.is_empty()).chain(then.into_iter().map(|p| vec![p])).collect()
        }
    }
}
