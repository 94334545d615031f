//! Calls of tools on other daemons.

mod attempt;
mod cancel;
mod label;
pub(crate) mod order;
mod patience;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toold_engine::cx::Cx;
use toold_engine::tool::{ToolError, ToolOutput};

use self::attempt::{AttemptEnd, about, attempt};
use self::label::call_label;
use self::patience::Patience;
use crate::broker::BrokerState;
use crate::member::Member;
use crate::messages::{CallRefusal, RefusedCall, ToolRecord};
use crate::names::FleetName;
use crate::target::CallTarget;

/// A call of a tool elsewhere.
pub(crate) struct OutgoingCall<'c> {
    pub(crate) target: &'c CallTarget,
    /// Its name there.
    pub(crate) tool: &'c str,
    /// As it was listed.
    pub(crate) record: &'c ToolRecord,
    pub(crate) arguments: Value,
    /// The tool's own when absent.
    pub(crate) timeout: Option<Duration>,
}

/// Calls the tool, reports its progress and output, and returns its result. Dropping the future cancels the call there.
///
/// # Errors
/// `Cancelled` when the call ends first; otherwise why there is no result, and whether the tool may have run.
pub(crate) async fn call(member: &Arc<Member>, call: OutgoingCall<'_>, cx: &Cx) -> Result<ToolOutput, ToolError> {
    let BrokerState { connected, error, .. } = member.broker.state.borrow().clone();
    if !connected {
        let why = error.unwrap_or_else(|| "the connection was lost".to_owned());
        return Err(did_not_run(&format!("the fleet's broker is not connected: {why}")));
    }
    match call.target {
        CallTarget::Daemon(daemon) if !member.is_trusted_by(daemon) => Err(did_not_run(&format!(
            "{daemon} does not trust {}: `toolctl fleet doctor` says what to run there",
            member.name
        ))),
        CallTarget::Daemon(daemon) => call_daemon(member, &call, daemon, cx).await,
        CallTarget::Label(label) => call_label(member, &call, label, cx).await,
    }
}

async fn call_daemon(
    member: &Arc<Member>,
    call: &OutgoingCall<'_>,
    daemon: &FleetName,
    cx: &Cx,
) -> Result<ToolOutput, ToolError> {
    let mut patience = Patience::new();
    let end = loop {
        let end = attempt(member, call, call.target, cx).await?;
        match &end {
            AttemptEnd::Refused { refusal: RefusedCall { reason: CallRefusal::Busy, message }, .. }
                if !patience.is_over() =>
            {
                cx.message(format!("waiting: {message}"));
                patience.wait(member, cx).await?;
            }
            _ => break end,
        }
    };
    Err(match end {
        AttemptEnd::Done(output) => return Ok(output),
        AttemptEnd::Unknown { daemon, call_id, why } => return Ok(unknown(&daemon, &call_id, &why)),
        AttemptEnd::Refused { refusal: RefusedCall { reason: CallRefusal::Busy, message }, .. } => {
            ToolError::Overloaded(message)
        }
        AttemptEnd::Refused { refusal, .. } => did_not_run(&refusal.message),
        AttemptEnd::NoResponders => did_not_run(&format!("{daemon} is away: no daemon answered")),
        AttemptEnd::Unanswered => did_not_run(&format!(
            "{daemon} did not accept the call in time; `toolctl fleet` there shows the messages that it refused"
        )),
    })
}

fn did_not_run(why: &str) -> ToolError {
    ToolError::Failed(format!("{why}; the call did not run"))
}

/// The result of a call whose daemon has gone while it ran.
fn unknown(daemon: &FleetName, call_id: &str, why: &str) -> ToolOutput {
    let text = format!(
        "It is unknown whether the call was done: {why} while it ran. It may have been done on {daemon} in part or \
         completely, so look at its effects before you repeat it."
    );
    about(ToolOutput::error(text).with("outcome", "unknown"), daemon, call_id)
}
