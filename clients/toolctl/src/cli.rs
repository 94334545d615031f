//! The command line: the list of subcommands. The arguments of each are in its own file.

use std::pin::Pin;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    agents, approve, audit, call, completions, config, connect, do_command, doctor, events, fleet, hook, list, logs,
    man, mcp, memories, notify, page, parse, permissions, plugins, prompt, remotes, restart, schema, secrets, sessions,
    shells, skills, status, stop, tools, undo, watch, workspaces,
};
use crate::exit::STATUS_HELP;
use crate::globals::Globals;
use crate::screen;

/// Talk to toold, the daemon that runs the tools of every agent and editor.
///
/// Without a subcommand, toolctl opens a full-screen view of the daemon: running calls, permission prompts that
/// you answer with one key, tools, plugins, sessions and events.
///
/// toolctl starts the daemon if none is running: the `toold` beside this program, or else the one in PATH.
#[derive(Debug, Parser)]
#[command(name = "toolctl", version, propagate_version = true, after_help = STATUS_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(flatten)]
    pub(crate) screen: screen::ScreenArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    List(list::ListArgs),
    Schema(schema::SchemaArgs),
    Call(call::CallArgs),
    Do(do_command::DoArgs),
    Status(status::StatusArgs),
    Events(events::EventsArgs),
    Logs(logs::LogsArgs),
    Watch(watch::WatchArgs),
    Plugins(plugins::PluginsArgs),
    Sessions(sessions::SessionsArgs),
    Shells(shells::ShellsArgs),
    Permissions(permissions::PermissionsArgs),
    Workspaces(workspaces::WorkspacesArgs),
    Approve(approve::ApproveArgs),
    Audit(audit::AuditArgs),
    Tools(tools::ToolsArgs),
    Undo(undo::UndoArgs),
    Skills(skills::SkillsArgs),
    Memories(memories::MemoriesArgs),
    Prompt(prompt::PromptArgs),
    Parse(parse::ParseArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Restart(restart::RestartArgs),
    Stop(stop::StopArgs),
    Connect(connect::ConnectArgs),
    Page(page::PageArgs),
    Mcp(mcp::McpArgs),
    Agents(agents::AgentsArgs),
    Hook(hook::HookArgs),
    Secrets(secrets::SecretsArgs),
    Notify(notify::NotifyArgs),
    Remotes(remotes::RemotesArgs),
    Fleet(fleet::FleetArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs the subcommand; returns the exit status.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<u8> {
    let globals = &cli.globals;
    let Some(command) = cli.command else { return screen::run(cli.screen, globals).await };
    // Each in a box, or this function would contain the code of all of them.
    let running: Pin<Box<dyn Future<Output = anyhow::Result<u8>> + '_>> = match command {
        CliCommand::List(list) => Box::pin(list::run(list, globals)),
        CliCommand::Schema(schema) => Box::pin(schema::run(schema, globals)),
        CliCommand::Call(call) => Box::pin(call::run(call, globals)),
        CliCommand::Do(run) => Box::pin(do_command::run(run, globals)),
        CliCommand::Status(status) => Box::pin(status::run(status, globals)),
        CliCommand::Logs(logs) => Box::pin(logs::run(logs)),
        CliCommand::Events(events) => Box::pin(events::run(events, globals)),
        CliCommand::Watch(watch) => Box::pin(watch::run(watch, globals)),
        CliCommand::Plugins(plugins) => Box::pin(plugins::run(plugins, globals)),
        CliCommand::Sessions(sessions) => Box::pin(sessions::run(sessions, globals)),
        CliCommand::Shells(shells) => Box::pin(shells::run(shells, globals)),
        CliCommand::Permissions(permissions) => Box::pin(permissions::run(permissions, globals)),
        CliCommand::Workspaces(workspaces) => Box::pin(workspaces::run(workspaces, globals)),
        CliCommand::Approve(approve) => Box::pin(approve::run(approve, globals)),
        CliCommand::Audit(audit) => Box::pin(audit::run(audit, globals)),
        CliCommand::Tools(tools) => Box::pin(tools::run(tools, globals)),
        CliCommand::Skills(skills) => Box::pin(skills::run(skills, globals)),
        CliCommand::Memories(memories) => Box::pin(memories::run(memories, globals)),
        CliCommand::Undo(undo) => Box::pin(undo::run(undo, globals)),
        CliCommand::Prompt(prompt) => Box::pin(prompt::run(prompt, globals)),
        CliCommand::Parse(parse) => Box::pin(parse::run(parse, globals)),
        CliCommand::Config(config) => Box::pin(config::run(config, globals)),
        CliCommand::Doctor(doctor) => Box::pin(doctor::run(doctor, globals)),
        CliCommand::Restart(restart) => Box::pin(restart::run(restart, globals)),
        CliCommand::Stop(stop) => Box::pin(stop::run(stop, globals)),
        CliCommand::Connect(connect) => Box::pin(connect::run(connect, globals)),
        CliCommand::Page(page) => Box::pin(page::run(page, globals)),
        CliCommand::Mcp(mcp) => Box::pin(mcp::run(mcp, globals)),
        CliCommand::Agents(agents) => Box::pin(agents::run(agents, globals)),
        CliCommand::Hook(hook) => return Ok(hook::run(&hook, globals)),
        CliCommand::Secrets(secrets) => Box::pin(secrets::run(secrets, globals)),
        CliCommand::Notify(notify) => Box::pin(notify::run(notify, globals)),
        CliCommand::Remotes(remotes) => Box::pin(remotes::run(remotes, globals)),
        CliCommand::Fleet(fleet) => Box::pin(fleet::run(fleet, globals)),
        CliCommand::Completions(completions) => return completions::run(&completions),
        CliCommand::Man(man) => return man::run(&man, Cli::command()),
    };
    running.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
