//! Exit statuses, and how an error becomes one. `toolctl --help` lists them.

use std::io::{self, Write};
use std::process::ExitCode;

use toold_client::ClientError;
use toold_proto::error::{CANCELLED, INVALID_PARAMS};

use crate::output::{self, ERROR, plain};

pub(crate) const OK: u8 = 0;
pub(crate) const TOOL_ERROR: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const NOT_RUN: u8 = 3;
pub(crate) const NO_DAEMON: u8 = 4;
pub(crate) const INTERRUPTED: u8 = 130;

pub(crate) const STATUS_HELP: &str = "\
Exit status:
  0    success
  1    the tool ran and reported an error
  2    wrong usage, or arguments that do not match the tool's schema
  3    the call or request could not be carried out
  4    no daemon could be reached or started, or the connection was lost
  130  interrupted; the call was cancelled";

/// An error that is fixed on the command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// Prints the error on stderr, unless it is a closed pipe: then nobody reads on.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::from(OK);
    }
    let mut err = output::stderr();
    // When stderr is closed too, the exit status has to say it all.
    let _ = writeln!(err, "{ERROR}error:{ERROR:#} {}", plain(&format!("{error:#}")));
    ExitCode::from(status(error))
}

fn status(error: &anyhow::Error) -> u8 {
    if error.chain().any(|cause| cause.is::<UsageError>()) {
        return USAGE;
    }
    match error.chain().find_map(|cause| cause.downcast_ref::<ClientError>()) {
        Some(ClientError::Rpc(rpc)) if rpc.code == INVALID_PARAMS => USAGE,
        Some(ClientError::Rpc(rpc)) if rpc.code == CANCELLED => INTERRUPTED,
        Some(error) if error.is_unreachable() => NO_DAEMON,
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
