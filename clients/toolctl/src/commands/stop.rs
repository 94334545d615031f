//! `toolctl stop`: stops the daemon.

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
/// Running calls may finish first. Waits until the process has ended. If no daemon is running, the exit status is 0.
#[derive(Debug, Default, Args)]
pub(crate) struct StopArgs {
    /// How long running calls may continue before they are cancelled, in milliseconds; 5000 by default
    #[arg(long, value_name = "MS", value_parser = crate::amount::whole::<u64>)]
    drain_ms: Option<u64>,
}

/// How long a daemon may take to close its connections, after the time for running calls, and then to exit. A daemon
/// that works exits earlier.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long running calls may continue by default.
const DRAIN: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: StopArgs, globals: &Globals) -> anyhow::Result<u8> {
    let Some(client) = connection::open_running(globals).await? else {
        writeln!(output::stderr(), "no daemon is running")?;
        return Ok(OK);
    };
    let pid = match client.call::<DaemonGetStatus>(NoParams {}).await {
        Ok(status) => status.pid,
        // Another client is stopping it.
        Err(ClientError::Disconnected(_)) => return Ok(OK),
        Err(error) => return Err(error.into()),
    };
    match client.call::<DaemonShutdown>(Shutdown { drain_ms: args.drain_ms }).await {
        // The daemon may exit before its answer is sent.
        Ok(_) | Err(ClientError::Disconnected(_)) => {}
        Err(error) => return Err(error.into()),
    }
    await_close(&client, pid, args.drain_ms).await?;
    match tokio::time::timeout(PATIENCE, ended(pid)).await {
        Ok(()) => Ok(OK),
        Err(_) => bail!(
            "the daemon (process {pid}) closed its connections, but is still running after {} s; `kill -KILL {pid}` ends it",
            PATIENCE.as_secs()
        ),
    }
}

/// Waits until a daemon that is stopping has closed the connection.
///
/// # Errors
/// The daemon takes longer than it may.
pub(super) async fn await_close(client: &Client, pid: u32, drain_ms: Option<u64>) -> anyhow::Result<()> {
    let patience = drain_ms.map_or(DRAIN, Duration::from_millis).saturating_add(PATIENCE);
    match tokio::time::timeout(patience, client.closed()).await {
        Ok(_) => Ok(()),
        Err(_) => bail!(
            "the daemon (process {pid}) accepted the request to stop, but still serves after {} s; `kill -KILL {pid}` \
             ends it",
            patience.as_secs()
        ),
    }
}

/// Waits until the process has ended. Connecting to see whether it still listens would make a service manager start
/// the next daemon.
pub(super) async fn ended(pid: u32) {
    while lives(pid) {
        sleep(Duration::from_millis(10)).await;
    }
}

fn lives(pid: u32) -> bool {
    // A zombie has ended.
    if let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        return !matches!(stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().starts_with(['Z', 'X'])), Some(true));
    }
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}
