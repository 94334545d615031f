//! `toolctl stop`: the daemon ends.

use std::io::Write;

use clap::Args;
use toold_proto::daemon::Shutdown;
use toold_proto::method::DaemonShutdown;

use crate::cli::Globals;
use crate::connection;
use crate::exit::OK;
use crate::output;

/// Stop the daemon
///
/// Calls in flight may end first. Waits until the daemon has let go of this connection. When no
/// daemon runs there is nothing to do, and the exit status is 0.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// How long calls in flight may go on, in milliseconds
    #[arg(long, value_name = "MS")]
    drain_ms: Option<u64>,
}

pub(crate) async fn run(args: Stop, globals: &Globals) -> anyhow::Result<u8> {
    let Some(client) = connection::open_running(globals).await? else {
        writeln!(output::stderr(), "no daemon is running")?;
        return Ok(OK);
    };
    client.call::<DaemonShutdown>(Shutdown { drain_ms: args.drain_ms }).await?;
    client.closed().await;
    Ok(OK)
}
