//! `toolctl hook`: the program that other agents run before and after their own tools.
//!
//! The path from the start to the answer is short: no runtime, no typed client, one request on the socket. [`payload`] reads
//! the agent's input, [`daemon`] asks the daemon, [`answers`] says how each agent is answered.

pub(crate) mod answers;
#[cfg(test)]
mod corpus;
pub(crate) mod daemon;
pub(crate) mod last_call;
pub(crate) mod payload;

use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::process::ExitCode;

use clap::{Args, Parser, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};
use toold_adapters::agents::{self, AgentAction};

use crate::exit::{OK, USAGE};
use crate::globals::Globals;
use answers::{AnswerRow, HookJudgement, JudgedBy, JudgedDecision};
use daemon::{DaemonError, Exchange, PATIENCE};
use last_call::LastHook;
use payload::{HookCall, HookMoment};

/// Answer the hook of an agent: judge what its own tool is about to do
///
/// Reads the agent's hook input on stdin and answers in its form. `toolctl agents install` sets it up. When the daemon cannot
/// be reached, or has no rule for it, the answer is silence, so that the agent's own rules decide.
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The agent that runs the hook
    agent: HookAgent,
    /// The event, for agents that do not name it in the input
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// The answer when the daemon cannot be reached, or the input cannot be read
    #[arg(long, value_enum, default_value_t = FailArg::Silent)]
    fail: FailArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookAgent {
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
    Copilot,
    Opencode,
}

impl HookAgent {
    pub(crate) const ALL: [Self; 6] =
        [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::Cursor, Self::Copilot, Self::Opencode];

    /// As the daemon and the command line know it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
        }
    }

    /// As its makers write it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Copilot => "Copilot CLI",
            Self::Opencode => "opencode",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailArg {
    /// Nothing: the agent's own rules decide
    Silent,
    /// A denial
    Closed,
}

/// The same command line without the other subcommands, whose description takes longer than the hook itself.
#[derive(Debug, Parser)]
#[command(name = "toolctl hook")]
struct HookCommandLine {
    #[command(flatten)]
    globals: Globals,
    #[command(flatten)]
    hook: HookArgs,
}

/// Runs the hook, if that is the first word of the command line.
pub(crate) fn run_first(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.get(1)? != "hook" || arguments.iter().any(|word| word == "--help" || word == "-h") {
        return None;
    }
    let parsed = HookCommandLine::try_parse_from(&arguments[1..]);
    Some(match parsed {
        Ok(line) => ExitCode::from(run(&line.hook, &line.globals)),
        Err(error) => {
            // Nobody reads it when stderr is closed.
            let _ = error.print();
            ExitCode::from(USAGE)
        }
    })
}

/// More than an agent's input with the largest file that it writes, in bytes.
const MAX_INPUT: u64 = 15 << 20;

/// Answers one hook; returns the exit status, which is that of a denial only when no form of the agent can say it.
pub(crate) fn run(hook: &HookArgs, globals: &Globals) -> u8 {
    let agent = hook.agent;
    // The agent may keep the pipe open, so that only the value ends, and not the input.
    let mut input =
        serde_json::Deserializer::from_reader(BufReader::with_capacity(64 << 10, std::io::stdin().take(MAX_INPUT)));
    let read = Value::deserialize(&mut input)
        .map_err(|error| format!("the input is not one JSON value of at most 15 MiB: {error}"));
    let read = read.and_then(|value| {
        let event = payload::event(hook.event.as_deref(), &value);
        Ok((event, payload::read(agent, hook.event.as_deref(), &value)?))
    });
    let (event, call) = match read {
        Ok((_, None)) => return OK,
        Ok((event, Some(call))) => (event, call),
        Err(problem) => {
            note(&format!("toolctl hook {}: {problem}", agent.name()));
            last_call::write(agent, &LastHook::problem("", &problem));
            return give_up(hook, None, &format!("toold could not read what the tool does: {problem}"));
        }
    };
    let row = answers::row(agent, &event);
    match call.moment {
        HookMoment::After { ok } => {
            finish(agent, &event, &call, ok, globals);
            OK
        }
        HookMoment::Before | HookMoment::BeforeAndAfter => {
            let Some(row) = row else { return OK };
            if is_own(agent, &call) {
                return OK;
            }
            judge(hook, row, &call, globals)
        }
    }
}

/// Whether it calls a tool of the daemon, which judges it by itself when the call comes.
fn is_own(agent: HookAgent, call: &HookCall) -> bool {
    // opencode puts no mark between the names of the server and of the tool.
    if agent == HookAgent::Opencode && call.tool.starts_with("toold_") {
        return true;
    }
    let actions = agents::actions(agent.name(), &call.tool, &call.input).unwrap_or_default();
    matches!(&actions[..], [AgentAction::Mcp { server, .. }] if server == "toold")
}

fn judge(hook: &HookArgs, row: &AnswerRow, call: &HookCall, globals: &Globals) -> u8 {
    let agent = hook.agent;
    let exchange = match Exchange::open(globals, PATIENCE) {
        Ok(exchange) => exchange,
        Err(error) => return unreachable(hook, row, &error),
    };
    match exchange.request(&call.params(agent)) {
        Ok(answer) => {
            let judged = HookJudgement::read(&answer);
            last_call::write(agent, &LastHook::answered(row.event, judged.decision));
            if call.moment == HookMoment::BeforeAndAfter && judged.decision != JudgedDecision::Deny {
                // No event follows, and the agent has read the file already.
                finish(agent, row.event, call, true, globals);
            }
            say(row.answer(&judged, call.mode.as_deref()))
        }
        Err(error) => unreachable(hook, row, &error),
    }
}

fn unreachable(hook: &HookArgs, row: &AnswerRow, error: &DaemonError) -> u8 {
    last_call::write(hook.agent, &LastHook::problem(row.event, &error.to_string()));
    // An agent shows its user all that a hook writes, so the usual case, no daemon, is not reported.
    if !matches!(error, DaemonError::NotRunning) {
        note(&format!("toolctl hook {}: {error}", hook.agent.name()));
    }
    give_up(hook, Some(row), &format!("{error}, and this hook is set to deny then"))
}

/// Never an allow.
fn give_up(hook: &HookArgs, row: Option<&AnswerRow>, reason: &str) -> u8 {
    match (hook.fail, row) {
        (FailArg::Silent, _) => OK,
        (FailArg::Closed, Some(row)) => {
            let denied =
                HookJudgement { decision: JudgedDecision::Deny, by: JudgedBy::Rule, reason: reason.to_owned() };
            say(row.answer(&denied, None))
        }
        (FailArg::Closed, None) => {
            note(reason);
            // All of these agents take it for a denial.
            DENIED
        }
    }
}

const DENIED: u8 = 2;

/// For the agent's log.
fn note(text: &str) {
    // Nobody reads it when stderr is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn say(answer: Option<Value>) -> u8 {
    let Some(answer) = answer else { return OK };
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{answer}").and_then(|()| out.flush()) {
        Ok(()) => OK,
        // The agent does not get the answer, which may be a denial.
        Err(_) => DENIED,
    }
}

/// Reports the end of the tool. Nobody waits for that, so a failure is only kept for `toolctl agents`.
fn finish(agent: HookAgent, event: &str, call: &HookCall, ok: bool, globals: &Globals) {
    if is_own(agent, call) {
        return;
    }
    let Some(request_id) = call.request_id(agent) else { return };
    let done = Exchange::open(globals, PATIENCE)
        .and_then(|exchange| exchange.call("permissions.done", &json!({"request_id": request_id, "ok": ok})));
    if let Err(error @ DaemonError::Failed(_)) = done {
        last_call::write(agent, &LastHook::problem(event, &error.to_string()));
    }
}
