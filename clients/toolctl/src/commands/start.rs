//! `toolctl start`: starts the daemon.

use std::io::Write;

use clap::Args;
use toold_proto::daemon::NoParams;
use toold_proto::method::DaemonGetStatus;

use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, one_line};

/// Start the daemon, if none is running
///
/// Agents that are attached to a daemon which `toolctl stop` has stopped continue with this one.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {}

pub(crate) async fn run(_: StartArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let status = client.call::<DaemonGetStatus>(NoParams {}).await?;
    writeln!(output::stdout(), "toold {}, pid {}, serves", one_line(&status.version), status.pid)?;
    Ok(OK)
}
