//! `toolctl stop`: the daemon ends.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use tokio::time::sleep;
use toold_client::{Client, ClientError};
use toold_proto::daemon::{NoParams, Shutdown};
use toold_proto::method::{DaemonGetStatus, DaemonShutdown};

use crate::cli::Globals;
use crate::connection;
use crate::exit::OK;
use crate::output;

/// Stop the daemon
///
/// Calls in flight may end first. Waits until the daemon no longer listens. When no daemon runs there is nothing to do, and the exit status is 0.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// How long calls in flight may go on, in milliseconds
    #[arg(long, value_name = "MS")]
    drain_ms: Option<u64>,
}

/// How long a daemon may go on without connections.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn run(args: Stop, globals: &Globals) -> anyhow::Result<u8> {
    let Some(client) = connection::open_running(globals).await? else {
        writeln!(output::stderr(), "no daemon is running")?;
        return Ok(OK);
    };
    let pid = match client.call::<DaemonGetStatus>(NoParams {}).await {
        Ok(status) => status.pid,
        // Somebody else is stopping it.
        Err(ClientError::Disconnected(_)) => return Ok(OK),
        Err(error) => return Err(error.into()),
    };
    match client.call::<DaemonShutdown>(Shutdown { drain_ms: args.drain_ms }).await {
        // It may be gone before its answer has left.
        Ok(_) | Err(ClientError::Disconnected(_)) => {}
        Err(error) => return Err(error.into()),
    }
    client.closed().await;
    match tokio::time::timeout(PATIENCE, gone(&connection::socket(globals)?, pid)).await {
        Ok(gone) => gone.map(|()| OK),
        Err(_) => bail!("the daemon (pid {pid}) has closed its connections and does not end"),
    }
}

/// Waits until nobody listens at the socket, or another daemon does.
async fn gone(socket: &Path, pid: u32) -> anyhow::Result<()> {
    loop {
        match Client::connect(socket).await {
            Err(ClientError::NotRunning { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
            Ok(client) => match client.call::<DaemonGetStatus>(NoParams {}).await {
                Ok(status) if status.pid != pid => return Ok(()),
                // It does not take new connections any more, and has not closed its socket yet.
                Ok(_) | Err(_) => {}
            },
        }
        sleep(Duration::from_millis(10)).await;
    }
}
