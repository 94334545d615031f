//! `toolctl confine`: the program through which Claude Code runs its command lines, by its setting CLAUDE_CODE_SHELL_PREFIX.
//!
//! Claude Code runs hooks and status lines through it, too: they become what they were. A command line runs if the daemon
//! has judged it, in the sandbox if the daemon says so. [`line`](mod@line) finds the line in the text that Claude Code
//! made of it, [`prefix`] is the setting.

mod line;
pub(crate) mod prefix;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Args, Parser};
use serde_json::{Value, json};
use toold_proto::agent_request::DeniedUnasked;

use crate::commands::hook::answers::{HookJudgement, JudgedDecision};
use crate::commands::hook::daemon::{self, DaemonError, Exchange};
use crate::commands::hook::limits::SHORTEST_LIMIT;
use crate::commands::hook::{FailArg, HookAgent, agent_shell, session_start};
use crate::globals::Globals;
use line::ClaudeLine;

/// Run a command line of Claude Code as toold judged it, confined if toold says so
///
/// `toolctl agents install claude-code` makes Claude Code run its command lines through it. Each run needs a judgement of the
/// same line in the same folder: that of the hook before it, else one that is asked for now. No agent runs it by itself.
#[derive(Debug, Args)]
pub(crate) struct ConfineArgs {
    /// When no daemon runs: `open` runs the line as it is, `closed` does not run it
    #[arg(value_enum, hide_possible_values = true)]
    fail: FailArg,
    /// The text that Claude Code would have given to a shell
    #[arg(allow_hyphen_values = true)]
    text: String,
}

/// The same command line without the other subcommands, whose description takes longer than the rest.
#[derive(Debug, Parser)]
#[command(name = "toolctl confine")]
struct ConfineCommandLine {
    #[command(flatten)]
    globals: Globals,
    #[command(flatten)]
    confine: ConfineArgs,
}

/// The exit status of a shell that could not run a program.
const NOT_RUN: u8 = 126;

/// Runs it if this program was started by the name of one of its links, or as the subcommand.
pub(crate) fn run_first(arguments: &[OsString]) -> Option<ExitCode> {
    let words: Vec<OsString> = match prefix::fail_of(Path::new(arguments.first()?)) {
        Some(fail) => [fail.as_str().into(), "--".into()].into_iter().chain(arguments[1..].iter().cloned()).collect(),
        None if arguments.get(1)? == "confine" && arguments.get(2)? != "--help" => arguments[2..].to_vec(),
        None => return None,
    };
    let parsed = ConfineCommandLine::try_parse_from(std::iter::once("toolctl confine".into()).chain(words));
    Some(ExitCode::from(match parsed {
        Ok(line) => run(&line.confine, &line.globals),
        Err(error) => {
            // Nobody reads it when stderr is closed.
            let _ = error.print();
            NOT_RUN
        }
    }))
}

/// Becomes the line's program; returns an exit status if it does not run.
pub(crate) fn run(confine: &ConfineArgs, globals: &Globals) -> u8 {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let agent = variable("AI_AGENT");
    let is_agents = agent.ends_with("_agent") || std::env::var_os("CLAUDE_CODE_EXECPATH").is_some();
    // Claude Code sets the one for all that it starts itself but its command lines, and the other for hooks and servers.
    let is_its_own = agent.ends_with("_harness") || std::env::var_os("CLAUDE_PROJECT_DIR").is_some();
    let failed = match ClaudeLine::read(&confine.text) {
        // Claude Code's own sandbox confines it, and the hook allowed nothing that no person allowed.
        Some(_) | None if is_agents && prefix::is_in_a_sandbox() => {
            become_program(Command::new(line::shell(&confine.text)).arg("-c").arg(&confine.text))
        }
        Some(line) if !agent.ends_with("_harness") => {
            judged(confine, &line, &variable("CLAUDE_CODE_SESSION_ID"), globals)
        }
        None if is_agents || !is_its_own => {
            "this version of Claude Code gives its command lines a form that toolctl does not know, so that they \
             cannot be judged; upgrade toold, or take CLAUDE_CODE_SHELL_PREFIX out of Claude Code's settings"
                .to_owned()
        }
        // A hook, a status line, a server: as Claude Code would run it.
        Some(_) | None => become_program(Command::new("/bin/sh").arg("-c").arg(&confine.text)),
    };
    // The model reads it.
    let _ = writeln!(std::io::stderr(), "toold: {failed}");
    NOT_RUN
}

/// Runs the line as it was judged; returns why it did not run.
fn judged(confine: &ConfineArgs, line: &ClaudeLine, session: &str, globals: &Globals) -> String {
    let Some(cwd) = std::env::current_dir().ok().and_then(|cwd| cwd.into_os_string().into_string().ok()) else {
        return "the line was not run: its folder is gone, or its name is not UTF-8".to_owned();
    };
    let shell = line::shell(&confine.text);
    let confined = || {
        let params = json!({
            "agent": HookAgent::ClaudeCode.name(),
            "session": session,
            "command": line.command,
            "cwd": cwd,
            "program": shell,
        });
        Exchange::open(globals).and_then(|exchange| exchange.call("permissions.confine", &params))
    };
    let mut answer = confined();
    if matches!(&answer, Err(DaemonError::Failed(_))) {
        // No hook came before it: a person typed it into Claude Code, or an approval is too old.
        if let Err(why) = judge_now(&line.command, &cwd, session, globals) {
            return format!("not run: {why}");
        }
        answer = confined();
    }
    match answer {
        Ok(answer) => run_as_told(&confine.text, line, &shell, (&answer["arguments"], &cwd)),
        Err(DaemonError::NotRunning) if confine.fail == FailArg::Open => {
            become_program(Command::new(&shell).arg("-c").arg(&confine.text))
        }
        Err(error) => format!("not run: {error}"),
    }
}

/// Asks for a judgement.
///
/// # Errors
/// The line is not allowed, in words.
fn judge_now(command: &str, cwd: &str, session: &str, globals: &Globals) -> Result<(), String> {
    let agent = HookAgent::ClaudeCode;
    let mut params = json!({
        "agent": agent.name(),
        "tool": "Bash",
        "input": {"command": command},
        "cwd": cwd,
        "session": session,
        "confines": true,
    });
    if let Some(shell) = agent_shell::other_than_bash(agent) {
        params["shell"] = json!(shell);
    }
    let judged = daemon::judge(globals, &params, Duration::from_secs(SHORTEST_LIMIT));
    let answer = judged.answer.map_err(|error| error.to_string())?;
    let judged = HookJudgement::read(&answer);
    // No event tells when it ends, and nobody asks about it here.
    let done = match judged.decision {
        JudgedDecision::Allow => json!({"request_id": answer["request_id"], "ok": true}),
        JudgedDecision::Deny | JudgedDecision::Ask => {
            json!({"request_id": answer["request_id"], "ok": false, "denied": DeniedUnasked::CannotAsk})
        }
    };
    // It ends with the agent at the latest.
    let _ = Exchange::open(globals).and_then(|exchange| exchange.call("permissions.done", &done));
    match judged.decision {
        JudgedDecision::Allow => Ok(()),
        JudgedDecision::Deny | JudgedDecision::Ask => Err(judged.reason),
    }
}

fn run_as_told(text: &str, line: &ClaudeLine, shell: &Path, (arguments, cwd): (&Value, &str)) -> String {
    let Some(arguments) = arguments.as_array() else {
        return become_program(Command::new(shell).arg("-c").arg(text));
    };
    let toold = match session_start::daemon_program() {
        Ok(toold) => toold,
        Err(error) => return format!("not run: {error:#}"),
    };
    let mut arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
    // The program stands behind the last `--`.
    let Some(end) = arguments.iter().rposition(|argument| *argument == "--") else {
        return "not run: toold's answer names no program".to_owned();
    };
    let file = match line.folder_file.as_deref().map(|file| kept_folder(file, cwd)).transpose() {
        Ok(file) => file,
        Err(error) => return format!("not run: {error}"),
    };
    if let Some(file) = file {
        drop(arguments.splice(end..end, ["--write", file]));
    }
    become_program(Command::new(toold).arg0("toold").args(arguments).arg("-c").arg(text))
}

/// Creates the file in which the line leaves its last folder, since it may not create files there itself; with the first
/// folder, which counts when the line fails.
fn kept_folder<'a>(file: &'a Path, cwd: &str) -> Result<&'a str, String> {
    let words = |error: std::io::Error| format!("can't make {}: {error}", file.display());
    // Nobody else's file, and no link.
    let mut made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(words)?;
    writeln!(made, "{cwd}").map_err(words)?;
    file.to_str().ok_or_else(|| format!("{} is not UTF-8", file.display()))
}

/// Returns only on failure.
fn become_program(command: &mut Command) -> String {
    let program = PathBuf::from(command.get_program());
    format!("can't run {}: {}", program.display(), command.exec())
}
