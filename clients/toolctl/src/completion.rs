//! Completions for a shell. The shells ask this program for each word; [`shells`] has their scripts.
//!
//! The values come from the daemon, if one is running. A completion never starts one, never asks, never takes long, and
//! offers nothing when anything fails.

mod arguments;
mod line;
pub(crate) mod shells;
mod values;

use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::exit::{OK, USAGE};
use crate::groups::without_group;

/// The user waits at the keyboard, and a folder may be on a slow file system.
const LONGEST: Duration = Duration::from_secs(2);

type ValueLookup = fn(&OsStr) -> Vec<CompletionCandidate>;

/// Values of arguments by the subcommand and the argument's name; `*` is every subcommand. Values that the command line
/// itself lists, and paths, need no row.
const COMPLETERS: &[(&str, &str, ValueLookup)] = &[
    ("*", "session", values::sessions),
    ("*", "source", values::sources),
    ("*", "without_source", values::sources),
    ("*", "profile", values::profiles),
    ("*", "chain", values::plugins),
    ("*", "tool", values::tools),
    ("*", "tools", values::tools),
    ("call", "name", values::tools),
    ("call", "arguments", arguments::pairs),
    ("call", "json", values::contents),
    ("do", "name", values::commands),
    ("schema", "name", values::tools),
    ("tools", "names", values::tools),
    ("prompt", "names", values::tools),
    ("events", "kinds", values::event_kinds),
    ("audit", "outcome", values::outcomes),
    ("undo", "call", values::changing_calls),
    ("config show", "key", values::config_keys),
    ("sessions share", "id", values::sessions),
    ("sessions close", "id", values::sessions),
    ("shells attach", "shell", values::shells),
    ("shells write", "shell", values::shells),
    ("shells kill", "shells", values::shells),
    ("permissions check", "what", values::categories),
    ("permissions grant", "category", values::categories),
    ("permissions grant", "pattern", values::paths),
    ("permissions revoke", "id", values::grants),
    ("permissions allow", "request_id", values::asks),
    ("permissions allow", "pattern", values::suggested_patterns),
    ("permissions deny", "request_id", values::asks),
    ("page", "ask", values::asks),
    ("page revoke", "id", values::page_sessions),
    ("plugins show", "name", values::plugins),
    ("plugins logs", "name", values::plugins),
    ("plugins profile", "name", values::plugins),
    ("plugins update", "name", values::plugins),
    ("plugins remove", "name", values::plugins),
    ("plugins reload", "name", values::plugins),
    ("plugins grant", "name", values::plugins),
    ("plugins repl", "name", values::plugins),
    ("plugins enable", "name", values::plugins),
    ("plugins disable", "name", values::plugins),
    ("skills show", "name", values::skills),
    ("memories show", "id", values::memories),
    ("mcp list", "name", values::mcp_servers),
    ("mcp restart", "name", values::mcp_servers),
    ("mcp test", "name", values::mcp_servers),
    ("mcp test", "tool", values::tools),
    ("mcp logs", "name", values::mcp_servers),
    ("mcp remove", "name", values::mcp_servers),
    ("setup", "allowed", values::mcp_servers),
    ("mcp login", "name", values::mcp_servers),
    ("mcp logout", "name", values::mcp_servers),
    ("remotes reconnect", "name", values::remotes),
    ("fleet broker-config", "machines", values::fleet_daemons),
    ("fleet forget", "name", values::fleet_members),
    ("fleet grant", "category", values::categories),
    ("fleet grant", "pattern", values::paths),
    ("fleet grant", "daemons", values::fleet_daemons),
    ("audit", "daemon", values::fleet_daemons),
    ("fleet revoke", "id", values::fleet_grants),
    ("secrets set", "name", values::secrets),
    ("secrets remove", "name", values::secrets),
    ("workspaces forget", "folder", values::workspaces),
];

/// Answers a shell that asks for completions by an environment variable. Called before anything is read or written.
/// The function makes the command line.
pub(crate) fn run_if_asked(command: fn() -> Command) -> Option<ExitCode> {
    let shell = std::env::var("COMPLETE").ok().filter(|shell| !shell.is_empty() && shell != "0")?;
    let (sender, answered) = mpsc::sync_channel(1);
    // Not joined: the process ends, whatever the thread waits for.
    std::thread::spawn(move || sender.send(shells::answer(&shell, || with_values(command(), ""))));
    // Nobody reads the messages of a completion.
    Some(ExitCode::from(match answered.recv_timeout(LONGEST) {
        Ok(Ok(())) | Err(mpsc::RecvTimeoutError::Timeout) => OK,
        Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => USAGE,
    }))
}

/// The command line with the values of its arguments.
fn with_values(command: Command, path: &str) -> Command {
    let command = command.mut_args(|arg| match completer(path, arg.get_id().as_str()) {
        Some(completer) => arg.add(ArgValueCompleter::new(completer)),
        None => arg,
    });
    command.mut_subcommands(|below| {
        let name = below.get_name().to_owned();
        let path = if path.is_empty() { name } else { format!("{path} {name}") };
        with_values(below, &path)
    })
}

fn completer(path: &str, argument: &str) -> Option<ValueLookup> {
    let path = without_group(path);
    let of = |wanted: &str| {
        let row = COMPLETERS.iter().find(|(command, name, _)| *command == wanted && *name == argument);
        row.map(|(_, _, completer)| *completer)
    };
    of(path).or_else(|| of("*"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Texts and numbers that only the user knows, by the argument's name, or by it and its subcommand.
    const FREE: &[&str] = &[
        "do input",
        "fleet broker-config listen",
        "fleet grant lifetime",
        "fleet init labels",
        "fleet init name",
        "fleet init person",
        "fleet init servers",
        "fleet join invitation",
        "fleet join labels",
        "fleet join name",
        "fleet join person",
        "fleet join servers",
        "fleet trust key",
        "fleet trust name",
        "agents confirm code",
        "alias",
        "audit agent",
        "changes agent",
        "days",
        "drain_ms",
        "expires_in",
        "hook event",
        "hook installed",
        "confine text",
        "limit",
        "lines",
        "mcp add bearer_token_env_var",
        "mcp add env",
        "mcp add header",
        "mcp add launch",
        "mcp add server",
        "mcp add set",
        "mcp add url",
        "mcp add via",
        "mcp test arguments",
        "message",
        "plugins new name",
        "port",
        "prompt format",
        "query",
        "seconds",
        "since",
        "tail",
        "undo agent",
        "timeout",
        "watch",
        "words",
    ];

    fn walk(command: &Command, path: &str, visit: &mut impl FnMut(&str, &clap::Arg)) {
        command.get_arguments().for_each(|arg| visit(path, arg));
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let name = below.get_name();
            let path = if path.is_empty() { name.to_owned() } else { format!("{path} {name}") };
            walk(below, &path, visit);
        }
    }

    #[test]
    fn every_row_names_an_argument() {
        let mut known = std::collections::BTreeSet::new();
        walk(&Cli::command(), "", &mut |path, arg| {
            known.insert((path.to_owned(), arg.get_id().to_string()));
        });
        for (path, argument, _) in COMPLETERS {
            let exists = known.iter().any(|(of, name)| name == argument && (*path == "*" || of == path));
            assert!(exists, "{path} {argument}");
        }
    }

    #[test]
    fn every_argument_has_values_or_is_a_text() {
        let mut missing = Vec::new();
        walk(&Cli::command(), "", &mut |path, arg| {
            let takes_value = arg.get_action().takes_values();
            let listed = !arg.get_possible_values().is_empty();
            let is_path = !matches!(arg.get_value_hint(), clap::ValueHint::Unknown | clap::ValueHint::Other);
            let id = arg.get_id().as_str();
            let whole = format!("{path} {id}");
            let is_free = FREE.contains(&id) || FREE.contains(&whole.as_str());
            if takes_value && !listed && !is_path && completer(path, id).is_none() && !is_free {
                missing.push(whole);
            }
        });
        assert!(missing.is_empty(), "no completion for {missing:?}");
    }
}
