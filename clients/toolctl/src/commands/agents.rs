//! `toolctl agents`: other agents on this machine, whose own tools toold judges.

pub(crate) mod chosen_fail;
mod confirm;
mod doctor;
mod found;
pub(crate) mod hooks_file;
pub(crate) mod install;
mod programs;
pub(crate) mod prompt_hooks;
pub(crate) mod switched_off;

use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::commands::hook::last_call::LastHook;
use crate::commands::hook::{FailArg, answers, limits};
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, one_line, print_json};
use crate::table;
use found::FoundAgent;
use programs::ProgramState;

/// Let toold judge the tools of Claude Code, Codex and other agents
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    action: Option<AgentsAction>,
    #[command(flatten)]
    list: AgentsListArgs,
}

#[derive(Debug, Subcommand)]
enum AgentsAction {
    List(AgentsListArgs),
    Install(install::AgentsInstallArgs),
    Doctor(doctor::AgentsDoctorArgs),
    Answers(AgentsAnswersArgs),
    Confirm(confirm::AgentsConfirmArgs),
}

/// Show the agents on this machine, what is installed for them, and how their last hook ended
#[derive(Debug, Args)]
struct AgentsListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show how the hooks of each agent are answered, what the agent does then, and how long it waits, as tables in Markdown
#[derive(Debug, Args)]
struct AgentsAnswersArgs {}

pub(crate) async fn run(agents: AgentsArgs, globals: &Globals) -> anyhow::Result<u8> {
    match agents.action {
        Some(AgentsAction::List(list)) => list_agents(&list).await,
        Some(AgentsAction::Install(install)) => install::run(&install, globals).await,
        Some(AgentsAction::Doctor(doctor)) => doctor::run(&doctor, globals).await,
        Some(AgentsAction::Answers(AgentsAnswersArgs {})) => {
            write!(output::stdout(), "{}\n{}", answers::page(), limits::page())?;
            Ok(OK)
        }
        Some(AgentsAction::Confirm(confirm)) => confirm::run(confirm, globals).await,
        None => list_agents(&agents.list).await,
    }
}

async fn list_agents(list: &AgentsListArgs) -> anyhow::Result<u8> {
    let found = found::all().await?;
    if list.json {
        let agents: Vec<_> = found.iter().map(as_json).collect();
        print_json(&json!({"agents": agents}))?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    if found.is_empty() {
        writeln!(
            out,
            "no agents found: looked for claude, codex, gemini, cursor-agent, copilot, opencode, qwen and code"
        )?;
        return Ok(OK);
    }
    let mut table = table::new(output::terminal_width());
    table.set_header(table::header(&["AGENT", "VERSION", "HOOKS", "MCP", "COMMANDS", "LEVEL", "LAST HOOK"]));
    for agent in &found {
        table.add_row([
            table::name(agent.agent.name()),
            version(agent).into(),
            hooks(agent).into(),
            installed(agent.has_mcp).into(),
            commands(agent).into(),
            level(agent).into(),
            agent.last_call.as_ref().map_or_else(|| "-".to_owned(), told).into(),
        ]);
    }
    write!(out, "{}", table::render(&table))?;
    Ok(OK)
}

/// The installed version, and the one that was tried where that is another one.
fn version(found: &FoundAgent) -> String {
    let installed = found.version.as_deref().unwrap_or("?");
    match answers::version_tried(found.agent) {
        Some(tried) if tried != installed => format!("{installed} (tried: {tried})"),
        Some(_) => installed.to_owned(),
        None => format!("{installed} (not tried)"),
    }
}

fn installed(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Whether the agent's own commands can be confined.
fn commands(found: &FoundAgent) -> &'static str {
    if found.confines { "confined" } else { "not confined" }
}

/// The effect of the level in the agent's section of the configuration.
fn level(found: &FoundAgent) -> &'static str {
    match found.program_state {
        ProgramState::Recorded => "may raise",
        ProgramState::Changed => "lowers: the program has changed",
        ProgramState::NotRecorded => "lowers",
    }
}

fn hooks(found: &FoundAgent) -> &'static str {
    match found.has_hooks {
        true if found.hooks_off.is_some() => "off",
        true if !found.has_whole_hooks => "changed",
        has_hooks => installed(has_hooks),
    }
}

/// How a call ended, for people.
fn told(call: &LastHook) -> String {
    let event = one_line(&call.event);
    match (&call.decision, &call.problem) {
        (Some(decision), _) => format!("ok: {event}, {}", one_line(decision)),
        (None, Some(problem)) => format!("failed: {}", one_line(problem)),
        (None, None) => event,
    }
}

fn as_json(found: &FoundAgent) -> serde_json::Value {
    json!({
        "agent": found.agent.name(),
        "version": found.version,
        "version_tried": answers::version_tried(found.agent),
        "program": found.program,
        "hooks": found.has_hooks,
        "hooks_changed": found.has_hooks && !found.has_whole_hooks,
        "fail": found.fail.map(FailArg::as_str),
        "hooks_off": found.hooks_off.as_ref().map(|off| json!({"file": off.file, "setting": off.setting})),
        "mcp": found.has_mcp,
        "confines": found.confines,
        "level_may_raise": found.program_state == ProgramState::Recorded,
        "last_hook": found.last_call,
    })
}
