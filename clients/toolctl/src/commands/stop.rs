//! `toolctl stop`: the daemon ends.

use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use tokio::time::sleep;
use toold_client::ClientError;
use toold_proto::daemon::{NoParams, Shutdown};
use toold_proto::method::{DaemonGetStatus, DaemonShutdown};

use crate::cli::Globals;
use crate::connection;
use crate::exit::OK;
use crate::output;

/// Stop the daemon
///
/// Calls in flight may end first. Waits until its process has ended. When no daemon runs there is nothing to do, and the exit status is 0.
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
    match tokio::time::timeout(PATIENCE, ended(pid)).await {
        Ok(()) => Ok(OK),
        Err(_) => bail!("the daemon (pid {pid}) has closed its connections and does not end"),
    }
}

/// Waits until the process has ended. Who would connect instead to see whether anybody listens still would have a
/// service manager start the next daemon.
async fn ended(pid: u32) {
    while lives(pid) {
        sleep(Duration::from_millis(10)).await;
    }
}

fn lives(pid: u32) -> bool {
    // One that its parent has not waited for yet has ended all the same.
    if let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        return !matches!(stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().starts_with(['Z', 'X'])), Some(true));
    }
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}
