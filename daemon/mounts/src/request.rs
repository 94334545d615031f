//! The common part of requests to a mounted source, whatever they are about.

use std::sync::Arc;

use serde_json::Value;
use toold_engine::cx::Cx;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_proto::cut::cut_chars;

use crate::adapter::{CallFailure, MountAdapter, StartPolicy};
use crate::mount::{MountedSource, SourceCall};

/// Characters of the arguments in a permission prompt.
const MAX_PREVIEW: usize = 600;

/// Begins a request on the connection that serves the session of a call. `tool`: its name and digest, for a call of one.
///
/// # Errors
/// `Cancelled` when the call ends first; otherwise why there is no connection.
pub(crate) async fn begin<A: MountAdapter>(
    mount: &Arc<MountedSource<A>>,
    tool: Option<(&str, &str)>,
    cx: &Cx,
) -> Result<SourceCall<A>, ToolError> {
    let mount = mount.for_session(&cx.session).map_err(ToolError::Failed)?;
    if A::START == StartPolicy::OnDemand && !mount.is_running() {
        // A program may take its time, and callers want to see why they wait.
        cx.message(format!("starting {}", mount.label()));
    }
    let begun = async {
        match tool {
            Some((upstream_name, digest)) => mount.begin_call(upstream_name, digest).await,
            None => mount.begin_request().await,
        }
    };
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
        begun = begun => begun.map_err(ToolError::Failed),
    }
}

/// The result of a request that was made on `call`.
pub(crate) async fn result_of<A: MountAdapter>(
    result: Result<ToolOutput, CallFailure>,
    call: &SourceCall<A>,
    cx: &Cx,
) -> Result<ToolOutput, ToolError> {
    match result {
        Ok(output) => Ok(output),
        Err(CallFailure::Tool(error)) => Err(error),
        Err(CallFailure::Disconnected) => tokio::select! {
            () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
            why = call.mount.disconnect_reason(&call.connection) => Err(ToolError::Failed(format!(
                "the connection to {} was lost: {why}; the call may have been executed",
                call.mount.label()
            ))),
        },
    }
}

/// Arguments for the person who is asked.
pub(crate) fn preview(input: &Value) -> String {
    cut_chars(&input.to_string(), MAX_PREVIEW, "…").into_owned()
}
