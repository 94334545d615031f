//! The spans of a call, for tracing.

use toold_proto::event::Outcome;
use toold_proto::tool::ToolResult;
use tracing::{Span, field};

use crate::call::CallError;
use crate::cx::Cx;

/// The target of the spans that make a trace of a call. They exist only while somebody listens to
/// them.
pub const SPANS: &str = "toold::trace";

/// The span of a call, with the attributes of OpenTelemetry's conventions for generative AI. It
/// contains neither arguments nor results.
pub(crate) fn trace_of(cx: &Cx) -> Span {
    tracing::trace_span!(
        target: SPANS,
        "execute_tool",
        otel.name = %format_args!("execute_tool {}", cx.tool),
        otel.status_code = field::Empty,
        error.type = field::Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = %cx.tool,
        gen_ai.tool.call.id = %cx.call_id,
        gen_ai.tool.type = "function",
        gen_ai.conversation.id = %cx.session.id,
        toold.source = %format_args!("{}:{}", cx.source.kind.as_str(), cx.source.name),
        toold.outcome = field::Empty,
        toold.cached = field::Empty,
    )
}

pub(crate) fn end_trace(traced: &Span, outcome: Outcome, answer: &Result<ToolResult, CallError>) {
    traced.record("toold.outcome", outcome.as_str());
    traced.record("toold.cached", answer.as_ref().is_ok_and(|result| result.cached));
    match outcome {
        Outcome::Ok => {}
        // Not a failure: a person, a rule or the caller wanted it.
        Outcome::Denied | Outcome::Cancelled | Outcome::Skipped => {
            traced.record("error.type", outcome.as_str());
        }
        Outcome::Error
        | Outcome::TimedOut
        | Outcome::InvalidArgs
        | Outcome::Overloaded
        | Outcome::Failed
        | Outcome::Interrupted => {
            traced.record("error.type", outcome.as_str());
            traced.record("otel.status_code", "ERROR");
        }
    }
}

/// A step of a call, in its trace.
pub(crate) fn step(name: &'static str) -> Span {
    tracing::trace_span!(target: SPANS, "step", otel.name = name)
}
