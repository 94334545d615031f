//! A call of another daemon's tool.

use serde_json::Value;
use toold_client::{CallHandle, ClientError};
use toold_engine::cx::Cx;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_proto::call::Execute;
use toold_proto::error::{CANCELLED, UNKNOWN_TOOL};
use toold_proto::tool::ToolResult;

use crate::link::RemoteLink;

/// Makes a call on `remote`, in the remote session that belongs to the caller's.
pub(crate) async fn call(
    remote: &str,
    link: &RemoteLink,
    upstream_name: &str,
    arguments: Value,
    cx: &Cx,
) -> Result<ToolOutput, ToolError> {
    let peer = &link.peer;
    let session = link.session(&cx.session);
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
        opened = session.ensure_open(peer) => {
            opened.map_err(|why| ToolError::Failed(format!("can't open a session on {remote}: {why}")))?;
        }
    }
    let call_id = link.new_call_id();
    let _running = session.begin_call(call_id.clone(), cx.shared());
    // If this fails the call continues, and its prompts are shown only on the remote side.
    if let Err(error) = session.relay_prompts(peer, cx).await {
        tracing::debug!(remote, %error, "prompts of a remote daemon are not relayed");
    }
    let execute = Execute {
        name: upstream_name.to_owned(),
        arguments,
        call_id: Some(call_id),
        session_id: Some(session.id.clone()),
        timeout_ms: Some(u64::try_from(cx.deadline.remaining().as_millis()).unwrap_or(u64::MAX)),
        progress: true,
        no_cache: cx.no_cache,
        ..Execute::default()
    };
    let call = peer.client.execute(execute).map_err(|error| ToolError::Unavailable(error.to_string()))?;
    let error = match follow(call, cx).await? {
        Ok(result) => return Ok(output(remote, result)),
        Err(ClientError::Rpc(error)) if error.code == CANCELLED => format!("the call was cancelled on {remote}"),
        Err(ClientError::Rpc(error)) => {
            if error.code == UNKNOWN_TOOL {
                link.context.report_changed_lists();
            }
            format!("{remote} refused the call: {error}")
        }
        Err(error) => format!("the connection to {remote} was lost: {error}; the call may have been executed"),
    };
    Err(ToolError::Failed(error))
}

fn output(remote: &str, result: ToolResult) -> ToolOutput {
    let ToolResult { content, is_error, metadata, structured, .. } = result;
    // Shows which daemon the paths and numbers belong to.
    ToolOutput { content, is_error, metadata, structured }.with("remote", remote)
}

/// Passes on the progress of a call, and returns its answer. A call that ends here is cancelled
/// there.
async fn follow(mut call: CallHandle, cx: &Cx) -> Result<Result<ToolResult, ClientError>, ToolError> {
    loop {
        let progress = tokio::select! {
            biased;
            // Dropping the call cancels it there.
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            progress = call.progress() => progress,
        };
        let Some(progress) = progress else { break };
        if let Some(dropped) = progress.dropped {
            cx.message(format!("{dropped} progress messages were dropped on the way"));
        }
        cx.report(progress.progress);
    }
    tokio::select! {
        biased;
        answer = call.answer() => Ok(answer),
        () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
    }
}
