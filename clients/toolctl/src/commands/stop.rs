//! `toolctl stop`: the daemon ends.

use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use tokio::time::sleep;
use toold_client::{Client, ClientError};
use toold_proto::daemon::{NoParams, Shutdown};
use toold_proto::method::{DaemonGetStatus, DaemonShutdown};

use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output;

/// Stop the daemon
///
/// Calls in flight may end first. Waits until its process has ended. When no daemon runs there is nothing to do, and the exit status is 0.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// How long calls in flight may go on, in milliseconds
    #[arg(long, value_name = "MS")]
    drain_ms: Option<u64>,
}

/// How long a daemon may take to close its connections, beyond what calls in flight may, and then to end. It ends itself
/// before that.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long calls in flight may go on when nothing else was said.
const DRAIN: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: StopArgs, globals: &Globals) -> anyhow::Result<u8> {
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
    await_close(&client, pid, args.drain_ms).await?;
    match tokio::time::timeout(PATIENCE, ended(pid)).await {
        Ok(()) => Ok(OK),
        Err(_) => bail!(
            "the daemon (process {pid}) has closed its connections and still runs after {} s; `kill -KILL {pid}` ends it",
            PATIENCE.as_secs()
        ),
    }
}

/// Waits until a daemon that is stopping has closed the connection.
///
/// # Errors
/// It takes longer than it may.
pub(super) async fn await_close(client: &Client, pid: u32, drain_ms: Option<u64>) -> anyhow::Result<()> {
    let patience = drain_ms.map_or(DRAIN, Duration::from_millis).saturating_add(PATIENCE);
    match tokio::time::timeout(patience, client.closed()).await {
        Ok(_) => Ok(()),
        Err(_) => bail!(
            "the daemon (process {pid}) has taken the request to stop and still serves after {} s; `kill -KILL {pid}` \
             ends it",
            patience.as_secs()
        ),
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
