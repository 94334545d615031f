//! The command line: the list of subcommands. The arguments of each are in its own file.

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    agents, approve, audit, call, completions, config, connect, doctor, events, fleet, hook, list, logs, man, mcp,
    memories, notify, page, parse, permissions, plugins, prompt, remotes, restart, schema, secrets, sessions, shells,
    skills, status, stop, tools, undo, watch, workspaces,
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
    match command {
        CliCommand::List(list) => list::run(list, globals).await,
        CliCommand::Schema(schema) => schema::run(schema, globals).await,
        CliCommand::Call(call) => call::run(call, globals).await,
        CliCommand::Status(status) => status::run(status, globals).await,
        CliCommand::Logs(logs) => logs::run(logs).await,
        CliCommand::Events(events) => events::run(events, globals).await,
        CliCommand::Watch(watch) => watch::run(watch, globals).await,
        CliCommand::Plugins(plugins) => plugins::run(plugins, globals).await,
        CliCommand::Sessions(sessions) => sessions::run(sessions, globals).await,
        CliCommand::Shells(shells) => shells::run(shells, globals).await,
        CliCommand::Permissions(permissions) => permissions::run(permissions, globals).await,
        CliCommand::Workspaces(workspaces) => workspaces::run(workspaces, globals).await,
        CliCommand::Approve(approve) => approve::run(approve, globals).await,
        CliCommand::Audit(audit) => audit::run(audit, globals).await,
        CliCommand::Tools(tools) => tools::run(tools, globals).await,
        CliCommand::Skills(skills) => skills::run(skills, globals).await,
        CliCommand::Memories(memories) => memories::run(memories, globals).await,
        CliCommand::Undo(undo) => undo::run(undo, globals).await,
        CliCommand::Prompt(prompt) => prompt::run(prompt, globals).await,
        CliCommand::Parse(parse) => parse::run(parse, globals).await,
        CliCommand::Config(config) => config::run(config, globals).await,
        CliCommand::Doctor(doctor) => doctor::run(doctor, globals).await,
        CliCommand::Restart(restart) => restart::run(restart, globals).await,
        CliCommand::Stop(stop) => stop::run(stop, globals).await,
        CliCommand::Connect(connect) => connect::run(connect, globals).await,
        CliCommand::Page(page) => page::run(page, globals).await,
        CliCommand::Mcp(mcp) => mcp::run(mcp, globals).await,
        CliCommand::Agents(agents) => agents::run(agents, globals).await,
        CliCommand::Hook(hook) => Ok(hook::run(&hook, globals)),
        CliCommand::Secrets(secrets) => secrets::run(secrets, globals).await,
        CliCommand::Notify(notify) => notify::run(notify, globals).await,
        CliCommand::Remotes(remotes) => remotes::run(remotes, globals).await,
        CliCommand::Fleet(fleet) => fleet::run(fleet, globals).await,
        CliCommand::Completions(completions) => completions::run(&completions),
        CliCommand::Man(man) => man::run(&man, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
