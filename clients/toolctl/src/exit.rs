//! Exit statuses, and how an error becomes one. `toolctl --help` lists them.

use std::io::{self, Write};
use std::process::ExitCode;

use toold_client::{ClientError, RpcError};
use toold_proto::error::{CANCELLED, INVALID_PARAMS, PERMISSION_DENIED, UNKNOWN, UNKNOWN_TOOL};
use toold_proto::tool::ToolResult;

use crate::clock::with_times;
use crate::output::{self, ERROR, HINT, plain};

mod full_disk;

pub(crate) const OK: u8 = 0;
pub(crate) const TOOL_ERROR: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const NOT_RUN: u8 = 3;
pub(crate) const NO_DAEMON: u8 = 4;
pub(crate) const NOT_FOUND: u8 = 5;
pub(crate) const DENIED: u8 = 6;
pub(crate) const INTERRUPTED: u8 = 130;
/// The exit status after a signal is this plus the number of the signal, as in shells.
pub(crate) const BY_SIGNAL: u8 = 128;

pub(crate) const STATUS_HELP: &str = "\
Exit status:
  0    success
  1    the tool ran and reported an error, or a check found a problem
  2    wrong usage, or arguments that do not match the tool's schema
  3    the call or request could not be carried out, or a doctor found what does not work
  4    no daemon could be reached or started, or the connection was lost
  5    the named tool, session, plugin, grant or other thing does not exist
  6    a permission was denied
  130  interrupted; the call was cancelled";

/// An error with an exit status of its own, whose message is for a person.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// Fixed on the command line.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotFound(String),
    /// The user pressed Ctrl-C or Escape.
    #[error("{0}")]
    Interrupted(String),
}

pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    CommandError::Usage(message.into()).into()
}

pub(crate) fn not_found(message: impl Into<String>) -> anyhow::Error {
    CommandError::NotFound(message.into()).into()
}

pub(crate) fn interrupted(message: impl Into<String>) -> anyhow::Error {
    CommandError::Interrupted(message.into()).into()
}

/// Prints the error on stderr, unless it is a closed pipe: then nobody reads on.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::from(OK);
    }
    let mut err = output::stderr();
    let (message, advice) = full_disk::explain(error).unwrap_or_else(|| (words(error), None));
    // When stderr is closed too, the exit status has to say it all.
    let _ = match error.downcast_ref::<CommandError>() {
        // The person cancelled, so nothing went wrong.
        Some(CommandError::Interrupted(_)) => writeln!(err, "{}", plain(&message)),
        _ => writeln!(err, "{ERROR}error:{ERROR:#} {}", plain(&message)),
    };
    if let Some(advice) = advice.or_else(|| start_one(error)).or_else(|| list_of_kind(error, &message)) {
        let _ = writeln!(err, "  {HINT}>{HINT:#} {}", plain(&advice));
    }
    ExitCode::from(status(error))
}

/// For a command that may not start a daemon, or whose daemon was stopped.
fn start_one(error: &anyhow::Error) -> Option<String> {
    let is_missing = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(ClientError::NotRunning { .. }))
    };
    let advice = "`toolctl start` starts it, as any other command does without --no-start";
    error.chain().any(is_missing).then(|| advice.to_owned())
}

/// The command that lists the things of the kind of which one was named that does not exist, unless the message names one.
fn list_of_kind(error: &anyhow::Error, message: &str) -> Option<String> {
    let kind = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(ClientError::Rpc(rpc)) => Some(rpc.kind()),
        _ => None,
    })?;
    let command = match kind.strip_prefix("unknown_").unwrap_or(kind) {
        "command" => "do",
        "grant" => "permissions list",
        "mcp_server" => "mcp list",
        "nothing_to_undo" => "undo --list",
        "page_session" => "page sessions",
        "plugin" => "plugins",
        "remote" => "remotes",
        "request" => "permissions pending",
        "secret" => "secrets",
        "session" => "sessions",
        "shell" => "shells",
        "skill" => "skills",
        "tool" => "list",
        "workspace" => "workspaces",
        _ => return None,
    };
    (!message.contains("toolctl ")).then(|| format!("`toolctl {command}` lists those that there are"))
}

/// The messages of the chain. A person gave arguments, and no parameters of a method.
fn words(error: &anyhow::Error) -> String {
    // The daemon's texts have the daemon's times.
    let words = with_times(&format!("{error:#}"));
    match error
        .chain()
        .any(|cause| matches!(cause.downcast_ref(), Some(ClientError::Rpc(rpc)) if rpc.code == INVALID_PARAMS))
    {
        true => words.replacen("invalid params: ", "", 1),
        false => words,
    }
}

/// The status of a call that was answered.
pub(crate) fn of_result(result: &ToolResult) -> u8 {
    let denied = || result.metadata.contains_key("permission");
    match result.is_error {
        false => OK,
        true if denied() => DENIED,
        true => TOOL_ERROR,
    }
}

/// The one place that maps errors to statuses.
pub(crate) fn status(error: &anyhow::Error) -> u8 {
    let known = error.chain().find_map(|cause| {
        let of_command = cause.downcast_ref::<CommandError>().map(|error| match error {
            CommandError::Usage(_) => USAGE,
            CommandError::NotFound(_) => NOT_FOUND,
            CommandError::Interrupted(_) => INTERRUPTED,
        });
        of_command.or_else(|| cause.downcast_ref::<ClientError>().map(of_client))
    });
    known.unwrap_or(NOT_RUN)
}

fn of_client(error: &ClientError) -> u8 {
    match error {
        ClientError::Rpc(rpc @ RpcError { code, .. }) => match *code {
            INVALID_PARAMS => USAGE,
            UNKNOWN | UNKNOWN_TOOL => NOT_FOUND,
            _ if rpc.kind() == "nothing_to_undo" => NOT_FOUND,
            PERMISSION_DENIED => DENIED,
            CANCELLED => INTERRUPTED,
            _ => NOT_RUN,
        },
        error if error.is_unreachable() => NO_DAEMON,
        _ => NOT_RUN,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    // A closed connection to the daemon is a ClientError, and reported.
    error.chain().all(|cause| !cause.is::<ClientError>())
        && error
            .chain()
            .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rpc(code: i32) -> anyhow::Error {
        ClientError::Rpc(RpcError { code, message: String::new(), data: None }).into()
    }

    #[test]
    fn an_error_has_the_same_status_wherever_it_occurs() {
        let statuses = [
            (usage("x"), USAGE),
            (not_found("x"), NOT_FOUND),
            (interrupted("x"), INTERRUPTED),
            (rpc(INVALID_PARAMS), USAGE),
            (rpc(UNKNOWN), NOT_FOUND),
            (rpc(UNKNOWN_TOOL), NOT_FOUND),
            (rpc(PERMISSION_DENIED), DENIED),
            (rpc(CANCELLED), INTERRUPTED),
            (rpc(toold_proto::error::EXECUTION_FAILED), NOT_RUN),
            (ClientError::Disconnected("x".to_owned()).into(), NO_DAEMON),
            (ClientError::NotRunning { socket: "/x".into() }.into(), NO_DAEMON),
            (ClientError::Lagged.into(), NOT_RUN),
            (io::Error::from(io::ErrorKind::NotFound).into(), NOT_RUN),
        ];
        for (error, expected) in statuses {
            assert_eq!(status(&error), expected, "{error:?}");
            assert_eq!(status(&error.context("while")), expected);
        }
    }

    #[test]
    fn the_help_lists_every_status() {
        for status in [OK, TOOL_ERROR, USAGE, NOT_RUN, NO_DAEMON, NOT_FOUND, DENIED, INTERRUPTED] {
            assert!(STATUS_HELP.contains(&format!("\n  {status:<4} ")), "{status}");
        }
    }
}
