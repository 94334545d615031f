//! What can be said on the command line. The list of subcommands stands here, what each takes in
//! its own file.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    approve, audit, call, completions, config, connect, doctor, events, list, logs, man, mcp, memories, parse,
    permissions, plugins, prompt, remotes, restart, schema, sessions, shells, skills, status, stop, tools, undo,
    upgrade, watch, workspaces,
};
use crate::view;

/// Talk to toold, the daemon that holds the tools of every agent and editor.
///
/// Without a subcommand it shows the daemon on the whole screen: calls as they run, permission asks to
/// answer by one key, tools, plugins, sessions, events.
///
/// The daemon is started when there is none: the `toold` beside this program, else the one in PATH.
#[derive(Debug, Parser)]
#[command(name = "toolctl", version, propagate_version = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Globals {
    /// The daemon's socket
    ///
    /// $TOOLD_SOCKET when absent, else toold/toold.sock in $XDG_RUNTIME_DIR or in $XDG_STATE_HOME.
    #[arg(long, global = true, value_name = "PATH", help_heading = "Daemon")]
    pub(crate) socket: Option<PathBuf>,
    /// Do not start a daemon when there is none
    #[arg(long, global = true, help_heading = "Daemon")]
    pub(crate) no_start: bool,
}

pub(crate) const AFTER_HELP: &str = "\
Exit status:
  0    done
  1    the tool ran and reports an error
  2    wrong usage, or arguments that do not fit the tool's schema
  3    the call or the request could not be carried out
  4    no daemon could be reached or started, or it went away
  130  interrupted; the call was cancelled";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Schema(schema::Schema),
    Call(call::Call),
    Status(status::Status),
    Events(events::Events),
    Logs(logs::Logs),
    Watch(watch::Watch),
    Plugins(plugins::Plugins),
    Sessions(sessions::Sessions),
    Shells(shells::Shells),
    Permissions(permissions::Permissions),
    Workspaces(workspaces::Workspaces),
    Approve(approve::Approve),
    Audit(audit::Audit),
    Tools(tools::Tools),
    Undo(undo::Undo),
    Skills(skills::SkillsCommand),
    Memories(memories::Memories),
    Prompt(prompt::Prompt),
    Parse(parse::Parse),
    Config(config::Config),
    Doctor(doctor::Doctor),
    Restart(restart::Restart),
    Stop(stop::Stop),
    Upgrade(upgrade::Upgrade),
    Connect(connect::Connect),
    Mcp(mcp::Mcp),
    Remotes(remotes::Remotes),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs the subcommand; gives the exit status.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<u8> {
    let globals = &cli.globals;
    let Some(command) = cli.command else { return view::run(globals).await };
    match command {
        Command::List(list) => list::run(list, globals).await,
        Command::Schema(schema) => schema::run(schema, globals).await,
        Command::Call(call) => call::run(call, globals).await,
        Command::Status(status) => status::run(status, globals).await,
        Command::Logs(logs) => logs::run(logs, globals).await,
        Command::Events(events) => events::run(events, globals).await,
        Command::Watch(watch) => watch::run(watch, globals).await,
        Command::Plugins(plugins) => plugins::run(plugins, globals).await,
        Command::Sessions(sessions) => sessions::run(sessions, globals).await,
        Command::Shells(shells) => shells::run(shells, globals).await,
        Command::Permissions(permissions) => permissions::run(permissions, globals).await,
        Command::Workspaces(workspaces) => workspaces::run(workspaces, globals).await,
        Command::Approve(approve) => approve::run(approve, globals).await,
        Command::Audit(audit) => audit::run(audit, globals).await,
        Command::Tools(tools) => tools::run(tools, globals).await,
        Command::Skills(skills) => skills::run(skills, globals).await,
        Command::Memories(memories) => memories::run(memories, globals).await,
        Command::Undo(undo) => undo::run(undo, globals).await,
        Command::Prompt(prompt) => prompt::run(prompt, globals).await,
        Command::Parse(parse) => parse::run(parse, globals).await,
        Command::Config(config) => config::run(config, globals).await,
        Command::Doctor(doctor) => doctor::run(doctor, globals).await,
        Command::Restart(restart) => restart::run(restart, globals).await,
        Command::Stop(stop) => stop::run(stop, globals).await,
        Command::Upgrade(upgrade) => upgrade::run(upgrade, globals).await,
        Command::Connect(connect) => connect::run(connect, globals).await,
        Command::Mcp(mcp) => mcp::run(mcp, globals).await,
        Command::Remotes(remotes) => remotes::run(remotes, globals).await,
        Command::Completions(completions) => completions::run(&completions),
        Command::Man(man) => man::run(&man),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
