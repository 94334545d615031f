//! `toolctl hook`: the program that other agents run before and after their own tools.
//!
//! The path from the start to the answer is short: no runtime, no typed client, one request on the socket. [`payload`] reads
//! the agent's input, [`daemon`] asks the daemon, [`answers`] says how each agent is answered.

pub(crate) mod agent_shell;
mod agent_terminal;
pub(crate) mod answers;
#[cfg(test)]
mod corpus;
pub(crate) mod daemon;
pub(crate) mod installed;
pub(crate) mod last_call;
pub(crate) mod limits;
pub(crate) mod mcp_servers;
pub(crate) mod payload;
pub(crate) mod prompts;
pub(crate) mod session_start;
mod whole_characters;

use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};
use toold_adapters::agents::{self, AgentAction};
use toold_proto::agent_request::DeniedUnasked;
use toold_proto::tool::RESOURCE_TARGET;

use crate::commands::confine::prefix;
use crate::exit::{OK, USAGE};
use crate::globals::Globals;
use answers::{AgentAsking, AnswerRow, HookJudgement, JudgedBy, JudgedDecision};
use daemon::{BEFORE_THE_LIMIT, DaemonError, Exchange, JudgedAnswer};
use installed::InstalledVariable;
use last_call::LastHook;
use limits::SHORTEST_LIMIT;
use mcp_servers::{AgentPlaces, AgentServer, AgentServerTool};
use payload::{HookCall, HookHost, HookMoment};
use prompts::PromptMoment;
use whole_characters::WholeCharacters;

/// Answer the hook of an agent: judge what its own tool is about to do
///
/// Reads the agent's hook input on stdin and answers in its form. `toolctl agents install` sets it up. At the start of a
/// session it starts the daemon. When the daemon has no rule for the tool, the answer is silence, so that the agent's own
/// rules decide; so it is when no daemon runs, unless --fail closed. When a daemon that runs
/// does not answer, or the input cannot be judged, the agent asks its user; where a hook cannot make it ask, the tool does
/// not run.
#[derive(Clone, Debug, Args)]
pub(crate) struct HookArgs {
    /// The agent that runs the hook
    agent: HookAgent,
    /// The event, for agents that do not name it in the input
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// The answer when no daemon runs
    #[arg(long, value_enum, default_value_t = FailArg::Open)]
    fail: FailArg,
    /// The agent's time limit for the hook, in seconds; people who are asked have 5 seconds less, and at most 600
    #[arg(long, value_name = "SECONDS", default_value_t = SHORTEST_LIMIT, value_parser = clap::value_parser!(u64).range(10..=86_400))]
    limit: u64,
    /// A variable that tells where toold is, as it was at the installation. If any are given, all others of this kind are
    /// ignored: an agent may have read them from a repository
    #[arg(long = "env", value_name = "NAME=VALUE")]
    installed: Vec<InstalledVariable>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookAgent {
    ClaudeCode,
    Codex,
    #[value(alias = "gemini-cli")]
    Gemini,
    Cursor,
    Copilot,
    Opencode,
    QwenCode,
    Vscode,
}

impl HookAgent {
    pub(crate) const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Cursor,
        Self::Copilot,
        Self::Opencode,
        Self::QwenCode,
        Self::Vscode,
    ];

    /// The one of this [name](Self::name).
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }

    /// As the daemon and the command line know it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
            Self::QwenCode => "qwen-code",
            Self::Vscode => "vscode",
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
            Self::QwenCode => "Qwen Code",
            Self::Vscode => "VS Code",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailArg {
    /// Nothing: the agent's own rules decide
    #[value(alias = "silent")]
    Open,
    /// A denial
    Closed,
}

impl FailArg {
    /// As the command line has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
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
/// In a larger input, only what tells the event and the mode is read.
const MAX_SKIMMED: u64 = 1 << 30;

/// Answers one hook; returns the exit status, which is that of a denial only when no form of the agent can say it.
pub(crate) fn run(hook: &HookArgs, globals: &Globals) -> u8 {
    if let Err(error) = installed::apply(&hook.installed) {
        return not_judged(hook, &Value::Null, &format!("toolctl can't be run again: {error}"));
    }
    let value = match read_in_time(Duration::from_secs(hook.limit).saturating_sub(BEFORE_THE_LIMIT)) {
        Ok(value) => value,
        // Nobody could look at so much of it before answering.
        Err(unread) if unread.is_too_large => {
            return answer_unread(hook, &unread, JudgedDecision::Deny, globals);
        }
        Err(unread) => return answer_unread(hook, &unread, JudgedDecision::Ask, globals),
    };
    let host = match payload::host(hook.agent, &value) {
        HookHost::Agent(agent) => agent,
        HookHost::JudgedByItsOwn => return OK,
    };
    // The event that the command line names is that of the agent that the hook was installed for.
    let event = hook.event.clone().filter(|_| host == hook.agent);
    let hook = &HookArgs { agent: host, event, ..hook.clone() };
    let agent = hook.agent;
    let event = payload::event(hook.event.as_deref(), &value);
    if session_start::is_event(&event) {
        return begin_session(hook, &value, globals);
    }
    let ended = payload::end_of(&event);
    if let Some(scope) = ended {
        end_calls(agent, &event, &value, scope, globals);
    }
    if let Some(moment) = prompts::moment(agent, &event) {
        return say(prompts::run(agent, &event, moment, &value, globals));
    }
    if ended.is_some() {
        return OK;
    }
    let mut call = match payload::read(agent, hook.event.as_deref(), &value) {
        Ok(None) => return OK,
        Ok(Some(call)) => call,
        Err(problem) => return not_judged(hook, &value, &problem),
    };
    if may_be_of_server(agent, &call) {
        let variable = |name: &str| std::env::var(name).ok();
        let places = AgentPlaces { cwd: Path::new(&call.cwd), variable: &variable };
        call.mcp = mcp_tools(agent, &call, &mcp_servers::servers(agent, &places));
    }
    let row = answers::row(agent, &event);
    match call.moment {
        HookMoment::After { ok } => {
            let notes = finish(agent, &event, &call, if ok { ReportedEnd::Done } else { ReportedEnd::Failed }, globals);
            // Lost notes are no denial.
            say(answers::notes(agent, &event, &notes));
            OK
        }
        HookMoment::Before | HookMoment::BeforeAndAfter => {
            let Some(row) = row else { return OK };
            if is_own(&call) {
                announce(agent, &call, globals);
                return OK;
            }
            judge(hook, row, &call, globals)
        }
    }
}

/// Starts the daemon, so that the session's tools are judged.
fn begin_session(hook: &HookArgs, input: &Value, globals: &Globals) -> u8 {
    let Err(error) = session_start::start_daemon(globals) else { return OK };
    let why = format!("it can't be reached or started: {error:#}");
    last_call::write(hook.agent, &LastHook::problem("start of a session", &why));
    say(session_start::tell_once(hook.agent, payload::session(input).as_deref(), hook.fail, &why))
}

/// Whether it calls a tool of the daemon, which judges it by itself when the call comes.
fn is_own(call: &HookCall) -> bool {
    !call.mcp.is_empty() && call.mcp.iter().all(|tool| tool.is_own)
}

/// Tells the daemon which agent is about to call a tool of its own: rules may be for one agent. Without a daemon, nothing is lost.
fn announce(agent: HookAgent, call: &HookCall, globals: &Globals) {
    let mut params = call.params(agent, None);
    // The call brings them.
    params["input"] = json!({});
    params["is_own"] = json!(true);
    let _ = Exchange::open(globals).and_then(|exchange| exchange.call("permissions.request", &params));
}

/// Whether the agent's configuration may tell whose tool it is: when the agent's own table does not have it, and always for
/// opencode, where a server's tool takes the place of its own one of the same name (`apply_patch` of a server `apply`).
fn may_be_of_server(agent: HookAgent, call: &HookCall) -> bool {
    if agent == HookAgent::Opencode {
        return true;
    }
    let may_be = |action: &AgentAction| matches!(action, AgentAction::Mcp { .. } | AgentAction::Unknown);
    let actions = actions(agent, call);
    call.named.is_some() || !actions.is_empty() && actions.iter().all(may_be)
}

/// The tools of MCP servers that the call may be one of.
fn mcp_tools(agent: HookAgent, call: &HookCall, servers: &[AgentServer]) -> Vec<AgentServerTool> {
    match &call.named {
        Some((server, tool)) => {
            let is_own = mcp_servers::is_own(server, servers);
            vec![AgentServerTool { server: server.clone(), tool: tool.clone(), is_own }]
        }
        None => {
            let resources = actions(agent, call).into_iter().filter_map(|action| match action {
                AgentAction::Mcp { server, tool } if tool.starts_with(RESOURCE_TARGET) => {
                    mcp_servers::with_resource(&server, &tool, servers)
                }
                _ => None,
            });
            mcp_servers::matching(agent, &call.tool, servers).into_iter().chain(resources).collect()
        }
    }
}

fn actions(agent: HookAgent, call: &HookCall) -> Vec<AgentAction> {
    agents::actions(agent.name(), &call.tool, &call.input).unwrap_or_default()
}

/// An input that was not read as a whole.
struct UnreadInput {
    /// The members that tell the event and the agent's mode.
    named: Value,
    problem: String,
    is_too_large: bool,
}

/// Reads the input on stdin, unless the agent takes longer to write it.
fn read_in_time(limit: Duration) -> Result<Value, UnreadInput> {
    let (sender, input) = mpsc::channel();
    // It ends with this process.
    std::thread::spawn(move || sender.send(read_input(std::io::stdin())));
    let late = || format!("the input did not end within {} s", limit.as_secs());
    input
        .recv_timeout(limit)
        .unwrap_or_else(|_| Err(UnreadInput { named: Value::Null, problem: late(), is_too_large: false }))
}

/// The agent may keep the pipe open, so that only the value ends, and not the input.
fn read_input(mut input: impl Read) -> Result<Value, UnreadInput> {
    let mut start = Vec::new();
    let copied = Tee { input: input.by_ref().take(MAX_INPUT), copy: &mut start };
    let copied = WholeCharacters::new(BufReader::with_capacity(64 << 10, copied));
    let mut whole = serde_json::Deserializer::from_reader(BufReader::with_capacity(64 << 10, copied));
    let error = match Value::deserialize(&mut whole) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // What is too large is read again without keeping its texts. The model may have chosen them, so that the event is read
    // from its own member, and never searched for.
    let again = BufReader::with_capacity(64 << 10, start.as_slice().chain(input.take(MAX_SKIMMED)));
    let is_too_large = start.len() as u64 == MAX_INPUT;
    let named = SkimmedInput::deserialize(&mut serde_json::Deserializer::from_reader(again));
    Err(UnreadInput {
        named: named.map(SkimmedInput::into_value).unwrap_or_default(),
        problem: match start.is_empty() {
            true => "expected the agent's request on stdin, got nothing".to_owned(),
            false if is_too_large => "the input is larger than 15 MiB: do it in smaller parts".to_owned(),
            false => format!("expected one JSON value on stdin: {error}"),
        },
        is_too_large,
    })
}

/// Keeps what was read.
struct Tee<'a, R> {
    input: R,
    copy: &'a mut Vec<u8>,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.copy.extend(buffer.iter().take(count));
        Ok(count)
    }
}

/// The members of a large input that decide how it is answered; all others are skipped.
#[derive(Deserialize)]
struct SkimmedInput {
    #[serde(alias = "hookEventName", alias = "hookName")]
    hook_event_name: Option<String>,
    permission_mode: Option<String>,
    session_id: Option<String>,
    #[serde(rename = "sessionId")]
    session_in_camel_case: Option<String>,
    conversation_id: Option<String>,
}

impl SkimmedInput {
    fn into_value(self) -> Value {
        let session = self.session_id.or(self.session_in_camel_case).or(self.conversation_id);
        json!({
            "hook_event_name": self.hook_event_name,
            "permission_mode": self.permission_mode,
            "session_id": session,
        })
    }
}

/// The input was not read as a whole. Only an event before a tool, or a prompt, can be denied: at the end of a turn, agents take a
/// denial for the wish that they go on.
fn answer_unread(hook: &HookArgs, unread: &UnreadInput, decision: JudgedDecision, globals: &Globals) -> u8 {
    let UnreadInput { named, problem, .. } = unread;
    let (agent, event) = (hook.agent, payload::event(hook.event.as_deref(), named));
    let ended = payload::end_of(&event);
    if let Some(scope) = ended {
        end_calls(agent, &event, named, scope, globals);
    }
    let is_prompt = prompts::moment(agent, &event) == Some(PromptMoment::Before);
    if !is_prompt && (ended.is_some() || session_start::is_event(&event) || payload::is_after(agent, &event)) {
        note(&format!("toolctl hook {}: {problem}", agent.name()));
        last_call::write(agent, &LastHook::problem(&event, problem));
        return OK;
    }
    answer_unjudged(hook, named, problem, decision)
}

/// The tool was not judged, so that a person of the agent is asked; where that is not possible, it does not run.
fn not_judged(hook: &HookArgs, named: &Value, problem: &str) -> u8 {
    answer_unjudged(hook, named, problem, JudgedDecision::Ask)
}

fn answer_unjudged(hook: &HookArgs, named: &Value, problem: &str, decision: JudgedDecision) -> u8 {
    let agent = hook.agent;
    let reason = format!("toold could not judge what the tool does: {problem}");
    note(&format!("toolctl hook {}: {reason}", agent.name()));
    let event = payload::event(hook.event.as_deref(), named);
    last_call::write(agent, &LastHook::problem(&event, problem));
    match answers::row(agent, &event).filter(|_| hook.fail == FailArg::Open) {
        Some(row) => {
            let judgement = HookJudgement { decision, ..HookJudgement::not_judged(&reason) };
            say(row.answer(&judgement, asking(agent)))
        }
        // All of these agents take it for a denial, and nothing runs after the other events.
        None => DENIED,
    }
}

fn judge(hook: &HookArgs, row: &AnswerRow, call: &HookCall, globals: &Globals) -> u8 {
    let agent = hook.agent;
    let mut params = call.params(agent, agent_shell::other_than_bash(agent).as_deref());
    if agent == HookAgent::ClaudeCode && prefix::is_in_use() {
        params["confines"] = json!(true);
    }
    let JudgedAnswer { answer, was_asked } = daemon::judge(globals, &params, Duration::from_secs(hook.limit));
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return without_answer(hook, row, call.session.as_deref(), &error),
    };
    let mut judged = HookJudgement::read(&answer);
    let asks = judged.decision == JudgedDecision::Ask;
    if asks && judged.protected && row.is_silent_about_protected(call.mode.as_deref()) {
        judged.decision = JudgedDecision::Deny;
        judged.reason.push_str("; in this mode, the agent does not ask about this file");
        // The daemon waits for the end of what it left to the agent.
        finish(agent, row.event, call, ReportedEnd::Denied(DeniedUnasked::WouldNotAsk), globals);
    }
    last_call::write(agent, &LastHook::answered(row.event, judged.decision));
    if was_asked && judged.decision == JudgedDecision::Ask {
        judged.by = JudgedBy::Nobody;
    }
    let asking = asking(agent);
    let said = say(row.answer(&judged, asking));
    match judged.decision {
        JudgedDecision::Deny => {}
        // No event follows.
        JudgedDecision::Ask if row.denies(&judged, asking) => {
            finish(agent, row.event, call, ReportedEnd::Denied(DeniedUnasked::CannotAsk), globals);
        }
        // The agent has read the file already.
        JudgedDecision::Allow | JudgedDecision::Ask if call.moment == HookMoment::BeforeAndAfter => {
            finish(agent, row.event, call, ReportedEnd::Done, globals);
        }
        JudgedDecision::Allow | JudgedDecision::Ask => {}
    }
    said
}

fn asking(agent: HookAgent) -> AgentAsking {
    let can_ask = agent_terminal::has_terminal() && !(agent == HookAgent::Gemini && agent_terminal::runs_one_prompt());
    if can_ask { AgentAsking::AtTerminal } else { AgentAsking::NoTerminal }
}

/// The words that tell the model and the person what to do.
fn remedy(error: &DaemonError) -> &'static str {
    if matches!(error, DaemonError::NotRunning) { ": a person starts it with `toolctl status`" } else { "" }
}

/// Never an allow.
fn without_answer(hook: &HookArgs, row: &AnswerRow, session: Option<&str>, error: &DaemonError) -> u8 {
    last_call::write(hook.agent, &LastHook::problem(row.event, &error.to_string()));
    let judged = match (error, hook.fail) {
        (DaemonError::NotRunning, FailArg::Open) => {
            return say(session_start::tell_once(hook.agent, session, hook.fail, &error.to_string()));
        }
        (_, FailArg::Closed) => HookJudgement {
            decision: JudgedDecision::Deny,
            by: JudgedBy::Rule,
            reason: format!("{error}, and this hook is set to deny then{}", remedy(error)),
            protected: false,
        },
        // A daemon that runs may have rules that deny it, and a person may be about to answer.
        (_, FailArg::Open) => HookJudgement::nobody_answered(&format!("toold did not judge it: {error}")),
    };
    if !matches!(error, DaemonError::NotRunning) {
        note(&format!("toolctl hook {}: {error}", hook.agent.name()));
    }
    say(row.answer(&judged, asking(hook.agent)))
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

/// Reports that all tools of the turn or the conversation have ended, also those that the agent did not run.
fn end_calls(agent: HookAgent, event: &str, input: &Value, scope: &str, globals: &Globals) {
    let Some(session) = payload::session(input) else { return };
    let conversation = format!("{}/{session}", agent.name());
    let done = Exchange::open(globals).and_then(|exchange| {
        exchange.call("permissions.done", &json!({"request_id": conversation, "ok": true, "scope": scope}))
    });
    if let Err(error @ DaemonError::Failed(_)) = done {
        last_call::write(agent, &LastHook::problem(event, &error.to_string()));
    }
}

/// How the agent's tool ended.
#[derive(Clone, Copy)]
enum ReportedEnd {
    Done,
    Failed,
    /// The hook denied it in place of a question.
    Denied(DeniedUnasked),
}

impl ReportedEnd {
    fn params(self, request_id: &str) -> Value {
        match self {
            Self::Done | Self::Failed => json!({"request_id": request_id, "ok": matches!(self, Self::Done)}),
            Self::Denied(why) => json!({"request_id": request_id, "ok": false, "denied": why}),
        }
    }
}

/// Reports the end of the tool; returns sentences for the model. Nobody waits for more, so a failure is only kept for
/// `toolctl agents`.
fn finish(agent: HookAgent, event: &str, call: &HookCall, end: ReportedEnd, globals: &Globals) -> Vec<String> {
    let Some(request_id) = call.request_id(agent).filter(|_| !is_own(call)) else { return Vec::new() };
    let done = Exchange::open(globals).and_then(|exchange| exchange.call("permissions.done", &end.params(&request_id)));
    match done {
        Ok(mut done) => serde_json::from_value(done["notes"].take()).unwrap_or_default(),
        Err(error) => {
            if matches!(error, DaemonError::Failed(_)) {
                last_call::write(agent, &LastHook::problem(event, &error.to_string()));
            }
            Vec::new()
        }
    }
}
