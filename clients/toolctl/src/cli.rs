//! The command line: the list of subcommands, and the groups in which they are shown. The arguments of each are in its
//! own file.

use std::pin::Pin;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use toold_proto::nearest::nearest;

use crate::commands::{
    agents, approve, audit, call, changes, completions, config, confine, connect, do_command, doctor, events, fleet,
    hook, level, list, logs, man, mcp, memories, notify, page, parse, pause, permissions, plugins, prompt, remotes,
    restart, schema, secrets, sessions, setup, shells, skills, start, status, stop, tools, undo, upgrade, watch,
    workspaces,
};
use crate::exit::STATUS_HELP;
use crate::globals::Globals;
use crate::groups::GROUPS;
use crate::screen;

/// Talk to toold, the daemon that runs the tools of every agent and editor.
#[derive(Debug, Parser)]
#[command(name = "toolctl", version, propagate_version = true, after_help = format!("{ABOUT}\n{}\n\n{STATUS_HELP}", more()))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(flatten)]
    pub(crate) screen: screen::ScreenArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// Below the options, so that the subcommands are in sight.
const ABOUT: &str = "\
Without a subcommand, toolctl opens a full-screen view. It starts the daemon if none is running.";

/// The subcommands that only the help of their groups lists.
fn more() -> String {
    let names: Vec<&str> = GROUPS.iter().flat_map(|(_, members)| members.iter().copied()).collect();
    format!("Also: {}", names.join(", "))
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Setup(setup::SetupArgs),
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
    Level(level::LevelArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Workspaces(workspaces::WorkspacesArgs),
    Approve(approve::ApproveArgs),
    Audit(audit::AuditArgs),
    Tools(tools::ToolsArgs),
    Undo(undo::UndoArgs),
    Changes(changes::ChangesArgs),
    Skills(skills::SkillsArgs),
    Memories(memories::MemoriesArgs),
    Prompt(prompt::PromptArgs),
    Parse(parse::ParseArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Restart(restart::RestartArgs),
    Start(start::StartArgs),
    Stop(stop::StopArgs),
    Connect(connect::ConnectArgs),
    Page(page::PageArgs),
    Mcp(mcp::McpArgs),
    Agents(agents::AgentsArgs),
    Hook(hook::HookArgs),
    Confine(confine::ConfineArgs),
    Secrets(secrets::SecretsArgs),
    Notify(notify::NotifyArgs),
    Remotes(remotes::RemotesArgs),
    Fleet(fleet::FleetArgs),
    Upgrade(upgrade::UpgradeArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// The group that is no subcommand itself.
const DAEMON: &str = "daemon";

/// The groups and subcommands in the order of `--help`: first what most people use.
const ORDER: [&str; 16] = [
    "setup",
    "call",
    "approve",
    "undo",
    "audit",
    "permissions",
    "agents",
    "mcp",
    "plugins",
    "tools",
    "secrets",
    "config",
    "daemon",
    "page",
    "fleet",
    "help",
];

/// The whole command line, with its groups.
pub(crate) fn command() -> Command {
    let mut command = Cli::command();
    command = command.subcommand(
        Command::new(DAEMON)
            .about("Show, check, restart and stop the daemon; its logs")
            .subcommand_required(true)
            .arg_required_else_help(true),
    );
    for (group, members) in GROUPS {
        let members: Vec<Command> =
            members.iter().filter_map(|member| command.find_subcommand(member).cloned()).collect();
        for member in &members {
            command = command.mut_subcommand(member.get_name(), |member| member.hide(true));
        }
        command = command.mut_subcommand(group, |group| group.subcommands(members));
    }
    for (at, name) in ORDER.into_iter().enumerate().filter(|(_, name)| *name != "help") {
        command = command.mut_subcommand(name, |subcommand| subcommand.display_order(at));
    }
    command
}

/// # Errors
/// The arguments are not those of the command line, or ask for help.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let failed = |error| with_nearest(with_one_suggestion(error), &arguments);
    let mut matches = command().try_get_matches_from(&arguments).map_err(failed)?;
    let is_in_group = |matches: &ArgMatches| {
        let (name, inner) = matches.subcommand()?;
        let (_, members) = GROUPS.iter().find(|(group, _)| *group == name)?;
        inner.subcommand_name().filter(|inner| members.contains(inner)).map(|_| ())
    };
    if is_in_group(&matches).is_none() {
        return Cli::from_arg_matches_mut(&mut matches);
    }
    let (globals, screen) = (Globals::from_arg_matches(&matches)?, screen::ScreenArgs::from_arg_matches(&matches)?);
    let command = match matches.remove_subcommand() {
        Some((_, mut group)) => Some(CliCommand::from_arg_matches_mut(&mut group)?),
        None => None,
    };
    Ok(Cli { globals, screen, command })
}

/// clap names all subcommands that are spelt like a misspelt one, the nearest last.
fn with_one_suggestion(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::Strings(names)) = error.remove(ContextKind::SuggestedSubcommand) {
        let nearest = names.into_iter().next_back().into_iter().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(nearest));
    }
    error
}

/// Adds the nearest subcommand to the error of `toolctl help WORDS`, which has none.
fn with_nearest(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    // The name of an agent is none, but says what is wanted.
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Ok(agent) = hook::HookAgent::from_str(word, true)
    {
        let install = ContextValue::Strings(vec![format!("agents install {}", agent.name())]);
        error.insert(ContextKind::SuggestedSubcommand, install);
        return error;
    }
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let words = arguments.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    let mut within = command();
    for word in words.skip_while(|word| *word != "help").skip(1) {
        let Some(found) = within.find_subcommand(word).cloned() else {
            let names: Vec<&str> = within.get_subcommands().map(Command::get_name).collect();
            if let Some(near) = nearest(word, names.into_iter()) {
                let near = ContextValue::Strings(vec![near.to_owned()]);
                error.insert(ContextKind::SuggestedSubcommand, near);
            }
            break;
        };
        within = found;
    }
    error
}

/// Runs the subcommand; returns the exit status.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<u8> {
    let globals = &cli.globals;
    let Some(command) = cli.command else { return screen::run(cli.screen, globals).await };
    // Each in a box, or this function would contain the code of all of them.
    let running: Pin<Box<dyn Future<Output = anyhow::Result<u8>> + '_>> = match command {
        CliCommand::Setup(setup) => Box::pin(setup::run(setup, globals)),
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
        CliCommand::Level(level) => Box::pin(level::run(level, globals)),
        CliCommand::Pause(args) => Box::pin(pause::pause(args, globals)),
        CliCommand::Resume(args) => Box::pin(pause::resume(args, globals)),
        CliCommand::Workspaces(workspaces) => Box::pin(workspaces::run(workspaces, globals)),
        CliCommand::Approve(approve) => Box::pin(approve::run(approve, globals)),
        CliCommand::Audit(audit) => Box::pin(audit::run(audit, globals)),
        CliCommand::Tools(tools) => Box::pin(tools::run(tools, globals)),
        CliCommand::Skills(skills) => Box::pin(skills::run(skills, globals)),
        CliCommand::Memories(memories) => Box::pin(memories::run(memories, globals)),
        CliCommand::Changes(changes) => Box::pin(changes::run(changes, globals)),
        CliCommand::Undo(undo) => Box::pin(undo::run(undo, globals)),
        CliCommand::Prompt(prompt) => Box::pin(prompt::run(prompt, globals)),
        CliCommand::Parse(parse) => Box::pin(parse::run(parse, globals)),
        CliCommand::Config(config) => Box::pin(config::run(config, globals)),
        CliCommand::Doctor(doctor) => Box::pin(doctor::run(doctor, globals)),
        CliCommand::Restart(restart) => Box::pin(restart::run(restart, globals)),
        CliCommand::Start(start) => Box::pin(start::run(start, globals)),
        CliCommand::Stop(stop) => Box::pin(stop::run(stop, globals)),
        CliCommand::Connect(connect) => Box::pin(connect::run(connect, globals)),
        CliCommand::Page(page) => Box::pin(page::run(page, globals)),
        CliCommand::Mcp(mcp) => Box::pin(mcp::run(mcp, globals)),
        CliCommand::Agents(agents) => Box::pin(agents::run(agents, globals)),
        CliCommand::Hook(hook) => return Ok(hook::run(&hook, globals)),
        CliCommand::Confine(confine) => return Ok(confine::run(&confine, globals)),
        CliCommand::Secrets(secrets) => Box::pin(secrets::run(secrets, globals)),
        CliCommand::Notify(notify) => Box::pin(notify::run(notify, globals)),
        CliCommand::Remotes(remotes) => Box::pin(remotes::run(remotes, globals)),
        CliCommand::Fleet(fleet) => Box::pin(fleet::run(fleet, globals)),
        CliCommand::Upgrade(upgrade) => return upgrade::run(&upgrade),
        CliCommand::Completions(completions) => return completions::run(&completions),
        CliCommand::Man(man) => return man::run(&man, self::command()),
    };
    running.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn each_argument_has_a_help() {
        fn without_help(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            let path = format!("{path} {}", command.get_name());
            let arguments =
                command.get_arguments().filter(|argument| !argument.is_hide_set() && argument.get_help().is_none());
            found.extend(arguments.map(|argument| format!("{path} {argument}")));
            command.get_subcommands().for_each(|command| without_help(command, &path, found));
        }
        let mut found = Vec::new();
        without_help(&command(), "", &mut found);
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn a_misspelt_subcommand_is_answered_by_the_nearest_one() {
        for (typed, meant) in [
            ("permisions", "'permissions'"),
            ("sttus", "'status'"),
            ("aprove", "'approve'"),
            ("gemini-cli", "'agents install gemini'"),
        ] {
            let error = parse(vec!["toolctl".into(), typed.into()]).unwrap_err().to_string();
            let tip = error.lines().find(|line| line.contains("tip:")).unwrap();
            assert!(tip.ends_with(&format!("a similar subcommand exists: {meant}")), "{error}");
        }
        for (typed, meant) in [("help permissions grnt", "'grant'"), ("help sttus", "'status'")] {
            let arguments = ["toolctl"].into_iter().chain(typed.split(' ')).map(OsString::from).collect();
            let error = parse(arguments).unwrap_err().to_string();
            assert!(error.contains(&format!("a similar subcommand exists: {meant}")), "{error}");
        }
    }

    #[test]
    fn the_help_fits_on_a_screen_with_a_line_for_each_subcommand() {
        let all = command();
        for subcommand in all.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
            let about = subcommand.get_about().unwrap().to_string();
            assert!(about.chars().count() <= 65, "80 columns cannot hold {}: {about}", subcommand.get_name());
        }
        let help = parse(vec!["toolctl".into(), "--help".into()]).unwrap_err().to_string();
        let lines = help.lines().count();
        assert!(lines <= 55, "{lines} lines\n{help}");
        let place = |name: &str| help.find(&format!("\n  {name}")).unwrap();
        assert!(ORDER.windows(2).all(|two| place(two[0]) < place(two[1])), "{help}");
    }

    #[test]
    fn every_subcommand_is_shown_once_and_works_with_and_without_its_group() {
        let all = command();
        let is_member = |name: &str| GROUPS.iter().any(|(_, members)| members.contains(&name));
        for subcommand in all.get_subcommands() {
            let name = subcommand.get_name();
            assert_eq!(subcommand.is_hide_set(), is_member(name), "{name}");
            assert_eq!(ORDER.contains(&name), !is_member(name), "{name}");
        }
        for words in [
            &["daemon", "stop"][..],
            &["stop"],
            &["permissions", "workspaces", "list"],
            &["permissions", "list"],
            &["--plain", "tools", "list"],
        ] {
            let arguments = ["toolctl"].iter().chain(words).map(OsString::from).collect();
            assert!(parse(arguments).unwrap().command.is_some(), "{words:?}");
        }
    }
}
