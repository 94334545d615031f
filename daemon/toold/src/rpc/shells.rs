//! `shells.*`: background commands, and clients that watch or type into them.

use std::sync::Arc;

use jsonrpsee::types::{ErrorObjectOwned, SubscriptionId};
use serde_json::json;
use toold_builtins::bash_input;
use toold_builtins::shells::{BackgroundShell, BackgroundShellInfo, ShellEnding, ShellError};
use toold_engine::execute::execute_tool;
use toold_engine::time::rfc3339;
use toold_proto::call::Execute;
use toold_proto::daemon::Done;
use toold_proto::error::{self, ErrorData};
use toold_proto::method::{ShellsAttach, ShellsKill, ShellsList, ShellsResize, ShellsWrite};
use toold_proto::shell::{
    AttachShell, KillShell, KilledShell, ListShells, ResizeShell, ShellInfo, ShellList, ShellOutput, WriteShell,
};
use toold_proto::tool::{Block, SessionId};

use crate::rpc::error::{invalid_params, object, of_call, refused, unknown};
use crate::rpc::subscription::{ItemSubscriber, add_subscription};
use crate::rpc::tools::to_call;
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, decides, may_decide};

/// Bytes of one item of `shells.attach`.
const PIECE: usize = 32 * 1024;

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add::<ShellsList>(module, Right::Anyone, |request, list: ListShells| {
        if list.all {
            decides("shells.list {all: true}", &request)?;
        }
        let session = if list.all { None } else { Some(request.session(list.session_id.as_ref())?) };
        let shells = request.services.builtins.shells.list(session.as_ref().map(|session| &session.id));
        Ok(ShellList { shells: shells.iter().map(describe).collect() })
    })?;
    add_async::<ShellsWrite, _>(module, Right::Program, write)?;
    add::<ShellsResize>(module, Right::Program, |request, resize: ResizeShell| {
        let shell = find(&request, &resize.shell_id, resize.session_id.as_ref())?;
        shell.resize(resize.size).map_err(of_shell)?;
        Ok(Done {})
    })?;
    // Others than people use a tool for this, which needs permission.
    add_async::<ShellsKill, _>(module, Right::Decider, |request, kill: KillShell| async move {
        let shell = find(&request, &kill.shell_id, kill.session_id.as_ref())?;
        shell.kill();
        Ok(KilledShell { status: shell.ended().await.to_string() })
    })?;
    let open = |request: &MethodRequest, attach: AttachShell, _: &SubscriptionId<'_>| {
        Ok((find(request, &attach.shell_id, attach.session_id.as_ref())?, attach.tail))
    };
    add_subscription::<ShellsAttach, _, _>(module, open, stream)
}

/// A shell of the session that the request names, otherwise of the caller's own; people find all.
fn find(
    request: &MethodRequest,
    shell_id: &str,
    session: Option<&SessionId>,
) -> Result<Arc<BackgroundShell>, ErrorObjectOwned> {
    let shells = &request.services.builtins.shells;
    let found = match session {
        None if may_decide(request) => shells.find_any(shell_id),
        None | Some(_) => shells.find(&request.session(session)?.id, shell_id),
    };
    found.map_err(of_shell)
}

async fn write(request: MethodRequest, write: WriteShell) -> Result<Done, ErrorObjectOwned> {
    let shell = find(&request, &write.shell_id, write.session_id.as_ref())?;
    if write.typed {
        decides("shells.write {typed: true}", &request)?;
        if !write.text.is_empty() {
            shell.write(&write.text).map_err(of_shell)?;
        }
        if write.eof {
            shell.close_input().map_err(of_shell)?;
        }
        return Ok(Done {});
    }
    let call = to_call(
        &request,
        Execute {
            name: "bash_input".to_owned(),
            arguments: json!({"shell_id": write.shell_id, "text": write.text, "eof": write.eof}),
            session_id: Some(shell.session().clone()),
            ..Execute::default()
        },
    )?;
    let tool = bash_input::tool(&request.services.builtins);
    let result = execute_tool(&request.services.engine, tool, call).await.map_err(of_call)?;
    if !result.is_error {
        return Ok(Done {});
    }
    let words: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
    let words = words.join("\n");
    Err(match result.metadata.contains_key("permission") {
        true => object(error::PERMISSION_DENIED, &words, ErrorData::new("permission_denied")),
        false => refused("execution_failed", &words),
    })
}

fn describe(info: &BackgroundShellInfo) -> ShellInfo {
    ShellInfo {
        shell_id: info.shell_id.clone(),
        session_id: info.session.clone(),
        call_id: info.call_id.clone(),
        command: info.command.clone(),
        cwd: info.cwd.display().to_string(),
        started_at: rfc3339(info.started_at),
        running: info.ended.is_none(),
        status: info.ended.as_ref().map_or_else(|| "running".to_owned(), ToString::to_string),
        exit_code: info.ended.as_ref().and_then(exit_code),
        output_bytes: info.output_bytes,
        terminal: info.terminal,
    }
}

fn exit_code(ended: &ShellEnding) -> Option<i32> {
    match ended {
        ShellEnding::Exited(code) => Some(*code),
        ShellEnding::Signalled(_) | ShellEnding::TimedOut | ShellEnding::Killed | ShellEnding::Failed(_) => None,
    }
}

/// Waits for a slow reader, which loses output that the shell drops meanwhile.
async fn stream(subscriber: ItemSubscriber<ShellsAttach>, (shell, tail): (Arc<BackgroundShell>, Option<usize>)) {
    // Output dropped before the client attached is not counted as this reader's loss.
    let mut position = shell.tail(tail.unwrap_or(usize::MAX));
    loop {
        let piece = tokio::select! {
            () = subscriber.gone() => return,
            piece = shell.next_output(position, PIECE) => piece,
        };
        let Some(piece) = piece else { break };
        position = piece.next;
        let lost = (piece.lost > 0).then_some(piece.lost);
        if subscriber.send(&ShellOutput::Text { text: piece.text, lost }).await.is_err() {
            return;
        }
    }
    let ended = shell.ended().await;
    // The subscriber may have disconnected meanwhile, which also ends this.
    let _ = subscriber.send(&ShellOutput::Ended { status: ended.to_string(), exit_code: exit_code(&ended) }).await;
}

fn of_shell(error: ShellError) -> ErrorObjectOwned {
    let words = error.to_string();
    match error {
        ShellError::Unknown(id) => unknown("shell", &id),
        ShellError::InputTooLong | ShellError::BadSize => invalid_params(&words),
        ShellError::NoTerminal(_) => refused("no_terminal", &words),
        ShellError::InputClosed(_) => refused("input_closed", &words),
        ShellError::InputFull(_) => refused("input_full", &words),
        ShellError::TooMany => refused("execution_failed", &words),
    }
}
