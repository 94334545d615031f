//! Runs a tool until it ends, is cancelled, or its time is over.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::Instrument;

use crate::blocking::Blocking;
use crate::callable::Callable;
use crate::cx::Cx;
use crate::lanes::{Admitted, LaneGuard};
use crate::tool::{ToolError, ToolOutput};

/// How long a tool that timed out may take to return a partial result.
const LAST_OUTPUT_WAIT: Duration = Duration::from_millis(250);

/// The limits and the lane that a call holds while it works.
pub(super) struct Permits {
    pub(super) _admitted: Option<Admitted>,
    pub(super) _lane: Option<LaneGuard>,
}

type ToolFuture = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

/// Runs the tool, until it ends, is cancelled, or its time is over.
///
/// It is polled once in place, unless it may block: most calls end there. A tool that does not gets
/// a task of its own, so that it runs in parallel on any core, and lives on for its grace after the
/// caller has been answered.
pub(super) async fn run(
    tool: Arc<dyn Callable>,
    input: Value,
    cx: &Arc<Cx>,
    permits: Permits,
    limit: Duration,
) -> Result<ToolOutput, ToolError> {
    if cx.cancel.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    let may_block = tool.may_block();
    let mut work: ToolFuture = Box::pin({
        let cx = cx.clone();
        async move {
            let caught = AssertUnwindSafe(tool.call(input, &cx)).catch_unwind().await;
            caught.unwrap_or_else(|panic| Err(ToolError::Unavailable(panic_message(&panic))))
        }
    });
    if may_block {
        work = Box::pin(Blocking(work));
    } else if let Poll::Ready(output) = futures_util::poll!(&mut work) {
        return in_time(cx, output, limit);
    }
    // Boxed, with its timers: a call that ends at once pays for none of it.
    Box::pin(wait(work, cx, permits, limit)).await
}

/// Waits for work that did not end at once.
async fn wait(work: ToolFuture, cx: &Arc<Cx>, permits: Permits, limit: Duration) -> Result<ToolOutput, ToolError> {
    let (sender, mut receiver) = oneshot::channel();
    cx.engine.tasks.spawn(supervise(work, cx.clone(), permits, sender).in_current_span());
    tokio::select! {
        biased;
        output = &mut receiver => in_time(cx, received(output), limit),
        () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
        () = cx.deadline.over() => {
            cx.set_timed_out();
            match timeout(LAST_OUTPUT_WAIT, receiver).await {
                Ok(output) => in_time(cx, received(output), limit),
                Err(_) => Ok(timed_out(cx, limit)),
            }
        }
    }
}

/// Owns the work of a call until it is gone, and then frees its permits.
async fn supervise(
    mut work: ToolFuture,
    cx: Arc<Cx>,
    permits: Permits,
    sender: oneshot::Sender<Result<ToolOutput, ToolError>>,
) {
    let output = tokio::select! {
        biased;
        output = &mut work => output,
        () = cx.cancel.cancelled() => {
            let grace = cx.engine.settings.load().grace;
            match timeout(grace, &mut work).await {
                Ok(output) => output,
                Err(_) => {
                    tracing::warn!(call = %cx.call_id, tool = %cx.tool, "cancelled work did not end by itself, dropped");
                    Err(ToolError::Cancelled)
                }
            }
        }
    };
    drop(work);
    drop(permits);
    // Fails when the caller has been answered already.
    let _ = sender.send(output);
}

fn received(output: Result<Result<ToolOutput, ToolError>, oneshot::error::RecvError>) -> Result<ToolOutput, ToolError> {
    output.unwrap_or_else(|_| Err(ToolError::Unavailable("the task that ran the call has ended".to_owned())))
}

/// A tool that saw its token fire because of a timeout returns `Cancelled`; the caller gets a timeout.
fn in_time(cx: &Cx, output: Result<ToolOutput, ToolError>, limit: Duration) -> Result<ToolOutput, ToolError> {
    match output {
        Err(ToolError::Cancelled) if cx.timed_out() => Ok(timed_out(cx, limit)),
        Ok(output) if cx.timed_out() => Ok(output.with("timed_out", true)),
        Ok(_) | Err(_) if cx.cancel.is_cancelled() && !cx.timed_out() => Err(ToolError::Cancelled),
        other => other,
    }
}

pub(super) fn timed_out(cx: &Cx, limit: Duration) -> ToolOutput {
    let so_far = cx.progress.output_so_far();
    let mut text = format!("the time limit of {} ms was exceeded", limit.as_millis());
    for hint in cx.time_out_hints() {
        text = format!("{text}; {hint}");
    }
    if !so_far.is_empty() {
        text = format!("{so_far}\n[{text}; the output so far is above]");
    }
    ToolOutput::error(text).with("timed_out", true)
}

pub(super) fn panic_message(panic: &Box<dyn std::any::Any + Send>) -> String {
    let words = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    format!("the tool panicked: {words}")
}
