//! The hook at the start of a session: it starts the daemon, and tells the user once when that is not possible.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value, json};
use toold_client::place;
use toold_client::{Client, StartEnvironment, StartOptions};
use toold_files::FileReplacement;

use crate::commands::hook::daemon::{DaemonError, Exchange};
use crate::commands::hook::{FailArg, HookAgent, note};
use crate::connection;
use crate::globals::Globals;

/// Whether the event is the start of a session, or of the agent.
pub(super) fn is_event(event: &str) -> bool {
    matches!(event, "SessionStart" | "sessionStart" | "session.start")
}

/// Starts the daemon unless it runs.
///
/// # Errors
/// It does not run, and cannot be started.
pub(super) fn start_daemon(globals: &Globals) -> anyhow::Result<()> {
    match Exchange::open(globals) {
        Ok(_) => return Ok(()),
        Err(DaemonError::NotRunning) if !globals.no_start => {}
        Err(error) => return Err(error.into()),
    }
    let socket = connection::socket(globals)?;
    // Not one of PATH, which is the agent's.
    let options = StartOptions {
        program: Some(daemon_program()?),
        environment: StartEnvironment::UserOnly,
        ..StartOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Client::connect_or_start(&socket, &options)).map(drop)?;
    Ok(())
}

/// The `toold` beside this program, whose path the installation of the hook recorded.
pub(crate) fn daemon_program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("can't find the path of this program")?;
    let beside = own.parent().context("this program is in no folder")?.join("toold");
    anyhow::ensure!(beside.is_file(), "there is no {}", beside.display());
    Ok(beside)
}

/// Tells the user once in each session of the agent that toold does not judge it; returns the answer that does so.
pub(super) fn tell_once(agent: HookAgent, session: Option<&str>, fail: FailArg, why: &str) -> Option<Value> {
    let session = session.unwrap_or_default();
    let file = place::state_folder()?.join("hooks").join(agent.name()).with_extension("unprotected");
    if std::fs::read_to_string(&file).is_ok_and(|told| told == session) {
        return None;
    }
    let beside = file.with_extension(format!("unprotected-{}", std::process::id()));
    // Without the file, the user reads it again.
    let _ = toold_files::replace(&file, &beside, session.as_bytes(), FileReplacement::Private);
    let effect = match fail {
        FailArg::Open => "its rules do not hold in this session until it runs",
        FailArg::Closed => "tools do not run until it does",
    };
    let words =
        format!("toold does not judge the tools of {}: {why}: {effect} (toolctl status starts it)", agent.title());
    match agent {
        HookAgent::ClaudeCode | HookAgent::Codex | HookAgent::Gemini | HookAgent::QwenCode | HookAgent::Vscode => {
            Some(json!({"systemMessage": words}))
        }
        HookAgent::Cursor | HookAgent::Copilot | HookAgent::Opencode => {
            note(&words);
            None
        }
    }
}
