//! The requests that keys make.

use tokio::sync::mpsc;
use toold_client::Client;
use toold_proto::call::{CancelCall, Execute};
use toold_proto::daemon::{NoParams, PauseDaemon};
use toold_proto::file::UndoFiles;
use toold_proto::level::{Level, SetLevel};
use toold_proto::mcp::RestartMcpServer;
use toold_proto::method::{
    DaemonPause, DaemonResume, FilesUndo, McpRestart, PermissionsGrant, PermissionsReply, PermissionsRevoke,
    PermissionsSetLevel, PluginsDisable, PluginsEnable, PluginsReload, QuestionsReply, RemotesReconnect, SessionClose,
    ShellsKill, ToolsCancel, ToolsExecute,
};
use toold_proto::permission::{GrantPermission, ReplyPermission, RevokePermission};
use toold_proto::plugin::{NamePlugin, ReloadPlugins};
use toold_proto::question::{Question, ReplyQuestion};
use toold_proto::remote::ReconnectRemote;
use toold_proto::session::CloseSession;
use toold_proto::shell::KillShell;
use toold_proto::tool::{CallId, SessionId, Tool, ToolResult};

use super::answer::ScreenAnswer;
use super::details::{self, DetailsQuery};
use crate::clock::with_times;
use crate::connection;
use crate::globals::Globals;
use crate::output::counted;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ScreenAction {
    Quit,
    /// Starts a daemon when none is running.
    StartDaemon,
    /// Puts the text into the clipboard of the terminal.
    Copy(String),
    /// Mouse reports on or off.
    CaptureMouse(bool),
    /// Asks for the arguments of a tool, outside the full screen, and calls it.
    CallForm(Box<Tool>),
    /// Asks for the fields of a question, outside the full screen.
    QuestionForm(Box<Question>),
    Request(Request),
}

/// A request to the daemon.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    Reply(ReplyPermission),
    Answer(ReplyQuestion),
    Cancel(CallId, SessionId),
    /// A command in the background.
    KillShell(String, SessionId),
    CloseSession(SessionId),
    SetLevel(SessionId, Level),
    ReloadPlugin(String),
    EnablePlugin(String),
    DisablePlugin(String),
    RestartServer(String),
    ReconnectRemote(String),
    Revoke(String),
    Grant(Box<GrantPermission>),
    PlanUndo(UndoFiles),
    Undo(UndoFiles),
    Pause,
    Resume,
    Execute(Box<Execute>),
    Details(String, DetailsQuery),
}

/// Sends a request. Events show its effect; the footer shows an error.
pub(super) fn send(globals: &Globals, client: &Client, request: Request, sender: &mpsc::Sender<ScreenAnswer>) {
    let (globals, client, sender) = (globals.clone(), client.clone(), sender.clone());
    tokio::spawn(async move {
        let answer = perform(&globals, &client, request).await;
        let answer = answer.unwrap_or_else(|error| Some(ScreenAnswer::Failed(format!("{error:#}"))));
        if let Some(answer) = answer {
            // The screen is gone when nobody receives.
            let _ = sender.send(answer).await;
        }
    });
}

async fn perform(globals: &Globals, client: &Client, request: Request) -> anyhow::Result<Option<ScreenAnswer>> {
    let done = match request {
        Request::Reply(reply) => {
            client.call::<PermissionsReply>(reply).await?;
            return Ok(None);
        }
        Request::Answer(reply) => {
            client.call::<QuestionsReply>(reply).await?;
            return Ok(None);
        }
        Request::Cancel(call_id, session_id) => {
            let params = CancelCall { call_id: call_id.clone(), session_id: Some(session_id) };
            match client.call::<ToolsCancel>(params).await?.cancelled {
                true => format!("cancelled the call {call_id}"),
                false => format!("the call {call_id} had ended already"),
            }
        }
        Request::KillShell(shell_id, session_id) => {
            let params = KillShell { shell_id: shell_id.clone(), session_id: Some(session_id) };
            let status = client.call::<ShellsKill>(params).await?.status;
            format!("{shell_id}: {status}")
        }
        Request::CloseSession(session_id) => {
            let closed = client.call::<SessionClose>(CloseSession { session_id: session_id.clone() }).await?;
            format!("closed the session {session_id}; cancelled calls: {}", closed.cancelled)
        }
        Request::SetLevel(session_id, level) => {
            let params = SetLevel { session_id: Some(session_id), level: Some(level) };
            let set = client.call::<PermissionsSetLevel>(params).await?;
            format!("the level is {} ({})", set.level, set.from)
        }
        Request::ReloadPlugin(name) => {
            client.call::<PluginsReload>(ReloadPlugins { name: Some(name.clone()) }).await?;
            format!("reloaded {name}")
        }
        Request::EnablePlugin(name) => {
            client.call::<PluginsEnable>(NamePlugin { name: name.clone() }).await?;
            format!("enabled {name}")
        }
        Request::DisablePlugin(name) => {
            client.call::<PluginsDisable>(NamePlugin { name: name.clone() }).await?;
            format!("disabled {name}")
        }
        Request::RestartServer(name) => {
            client.call::<McpRestart>(RestartMcpServer { name: name.clone() }).await?;
            format!("restarted {name}")
        }
        Request::ReconnectRemote(name) => {
            client.call::<RemotesReconnect>(ReconnectRemote { name: name.clone() }).await?;
            format!("reconnected {name}")
        }
        Request::Revoke(id) => {
            client.call::<PermissionsRevoke>(RevokePermission { id: id.clone() }).await?;
            format!("revoked the grant {id}")
        }
        Request::Grant(grant) => {
            let stored = client.call::<PermissionsGrant>(*grant).await?;
            format!("allowed from now on: {} {}", stored.category, stored.pattern)
        }
        Request::Pause => {
            let paused = client.call::<DaemonPause>(PauseDaemon::default()).await?;
            let running = match paused.still_running.as_slice() {
                [] => String::new(),
                tools => format!("; toold cannot stop agents' own, which may still run: {}", tools.join(", ")),
            };
            let stopped = counted(paused.processes, "running program");
            format!("{}: {stopped} stopped{running}", with_times(paused.paused.as_deref().unwrap_or("paused")))
        }
        Request::Resume => match client.call::<DaemonResume>(NoParams {}).await?.resumed {
            Some(_) => "resumed".to_owned(),
            None => "nothing was paused".to_owned(),
        },
        Request::PlanUndo(undo) => {
            let plan = client.call::<FilesUndo>(UndoFiles { dry_run: true, ..undo.clone() }).await?;
            return Ok(Some(ScreenAnswer::UndoPlan(undo, Box::new(plan))));
        }
        Request::Undo(undo) => {
            let undone = client.call::<FilesUndo>(undo).await?;
            std::iter::once(format!("undid the changes to {}", undone.paths.join(", ")))
                .chain(undone.notes)
                .collect::<Vec<_>>()
                .join("; ")
        }
        Request::Execute(execute) => {
            let tool = execute.name.clone();
            let result = self::execute(globals, *execute).await?;
            return Ok(Some(ScreenAnswer::Result(tool, details::result_lines(&result))));
        }
        Request::Details(key, query) => {
            let lines = details::fetch(client, &query).await?;
            return Ok(Some(ScreenAnswer::Details(key, lines)));
        }
    };
    Ok(Some(ScreenAnswer::Done(done)))
}

/// Calls a tool as `toolctl call` does, in the session of the shell and its folder: that of the screen is for all folders.
async fn execute(globals: &Globals, execute: Execute) -> anyhow::Result<ToolResult> {
    let client = connection::open(&Globals { no_start: true, ..globals.clone() }).await?;
    let session = connection::open_terminal_session(&client, None).await?;
    let result = client.call::<ToolsExecute>(execute).await;
    session.close(&client).await;
    Ok(result?)
}
