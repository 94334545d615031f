//! `toolctl restart`: replaces the daemon without losing a client.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use toold_client::{Client, ClientError, StartOptions, start};
use toold_proto::daemon::{NoParams, Restart, Restarted, Shutdown};
use toold_proto::error::METHOD_NOT_FOUND;
use toold_proto::method::{DaemonGetStatus, DaemonRestart, DaemonShutdown, SecretsList};
use toold_proto::secret::{SecretStoreKind, SecretStoreState};

use crate::commands::stop;
use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, DIM, GOOD, WARN, one_line, print_json};

/// Replace the running daemon, for instance after an upgrade
///
/// The new daemon starts beside the old one and takes over its socket: clients that connect meanwhile wait, and
/// connected clients reconnect. The new daemon is the `toold` beside this program, or else the one in PATH. If it does
/// not start, or its configuration is invalid, the old daemon keeps running.
///
/// Running calls end in the old daemon, which has 10 minutes for that; --now cancels them instead. Background commands end with
/// the old daemon; --when-idle waits for them first. Secrets in an encrypted file are locked until you unlock them again.
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// Cancel the running calls
    #[arg(long, conflicts_with_all = ["when_idle", "drain_ms"])]
    now: bool,
    /// First wait until no call and no background command is running
    #[arg(long)]
    when_idle: bool,
    /// With --when-idle: give up after this time, such as 10m, and keep the old daemon
    #[arg(long, value_name = "TIME", value_parser = crate::amount::duration, default_value = "10m")]
    timeout: Duration,
    /// How long running calls may continue in the old daemon before they are cancelled, in milliseconds; 600000 by default,
    /// which is the most
    #[arg(long, value_name = "MS", value_parser = crate::amount::whole::<u64>)]
    drain_ms: Option<u64>,
    /// The toold to start
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The longest time that a daemon takes to end.
const LONGEST_DRAIN: Duration = Duration::from_secs(600);
/// An old daemon that ends within this time is not spoken of.
const SOON: Duration = Duration::from_millis(500);

impl RestartArgs {
    /// How long running calls may continue.
    fn drain(&self) -> Duration {
        match (self.now, self.drain_ms) {
            (true, _) => Duration::ZERO,
            (false, Some(ms)) => Duration::from_millis(ms).min(LONGEST_DRAIN),
            (false, None) => LONGEST_DRAIN,
        }
    }

    fn drain_ms(&self) -> u64 {
        u64::try_from(self.drain().as_millis()).unwrap_or(u64::MAX)
    }
}

pub(crate) async fn run(args: RestartArgs, globals: &Globals) -> anyhow::Result<u8> {
    let program = match &args.program {
        Some(program) => Some(std::path::absolute(program)?),
        // Without one, the daemon starts its own program again.
        None => start::find_program().ok(),
    };
    let (restarted, calls) = match connection::open_running(globals).await? {
        Some(client) => {
            let calls = running_calls(&client).await;
            (replace(&client, &args, program, globals).await?, calls)
        }
        None if globals.no_start => {
            return Err(ClientError::NotRunning { socket: connection::socket(globals)? }.into());
        }
        None => {
            let (pid, version) = start_anew(globals, program).await?;
            writeln!(
                output::stdout(),
                "no daemon was running; started {GOOD}toold {}{GOOD:#}, pid {pid}",
                one_line(&version)
            )?;
            return Ok(OK);
        }
    };
    if args.json {
        print_json(&restarted)?;
        return Ok(OK);
    }
    let Restarted { pid, version, previous_pid, previous_version, .. } = &restarted;
    let (version, previous) = (one_line(version), one_line(previous_version));
    let mut out = output::stdout();
    writeln!(
        out,
        "{DIM}toold {previous}, pid {previous_pid}, was replaced by{DIM:#} {GOOD}toold {version}{GOOD:#}, pid {pid}"
    )?;
    out.flush()?;
    drop(out);
    await_calls(*previous_pid, calls, args.drain()).await?;
    tell_if_locked(globals).await;
    Ok(OK)
}

/// The number of calls that run, as far as the daemon tells.
async fn running_calls(client: &Client) -> u64 {
    // As a value: an older daemon may send another status.
    let status = client.call_as::<DaemonGetStatus, Value>(NoParams {}).await;
    status.ok().and_then(|status| status["calls"]["in_flight"].as_u64()).unwrap_or_default()
}

/// Tells that the old daemon lets its calls end. At a terminal, waits for that; the new daemon serves already.
async fn await_calls(old: u32, calls: u64, drain: Duration) -> anyhow::Result<()> {
    let end = Instant::now() + drain;
    let ended = stop::ended(old);
    tokio::pin!(ended);
    if timeout(SOON, &mut ended).await.is_ok() {
        return Ok(());
    }
    let calls = if calls == 0 { "its calls".to_owned() } else { output::counted(calls, "call") };
    let left = || output::duration(u64::try_from((end - Instant::now()).as_millis()).unwrap_or(u64::MAX));
    if !output::overwrites_stderr() {
        let words = format!("the old daemon lets {calls} end, for at most {}; `kill {old}` cancels them", left());
        writeln!(output::stderr(), "{words}")?;
        return Ok(());
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.enable_steady_tick(Duration::from_millis(100));
    let is_over = loop {
        bar.set_message(format!("the old daemon lets {calls} end, for at most {}; Ctrl-C does not wait", left()));
        tokio::select! {
            () = &mut ended => break true,
            _ = tokio::signal::ctrl_c() => break false,
            () = sleep(Duration::from_secs(1)) => {}
        }
    };
    bar.finish_and_clear();
    if !is_over {
        writeln!(output::stderr(), "{calls} go on in the old daemon; `kill {old}` cancels them")?;
    }
    Ok(())
}

/// The new daemon does not know the passphrase that the old one was given. The restart is done: what fails here, as for a
/// client that is no person's, is no failure of it.
async fn tell_if_locked(globals: &Globals) {
    let Ok(Some(client)) = connection::open_running(globals).await else { return };
    let Ok(secrets) = client.call::<SecretsList>(NoParams {}).await else { return };
    if secrets.store == SecretStoreKind::File && secrets.state == SecretStoreState::Locked {
        // Nobody reads it when stderr is closed.
        let _ = writeln!(output::stderr(), "{WARN}the secrets are locked again:{WARN:#} toolctl secrets unlock");
    }
}

async fn replace(
    client: &Client,
    args: &RestartArgs,
    program: Option<PathBuf>,
    globals: &Globals,
) -> anyhow::Result<Restarted> {
    let request = Restart {
        program: program.as_ref().map(|program| program.to_string_lossy().into_owned()),
        when_idle: args.when_idle,
        timeout_ms: Some(u64::try_from(args.timeout.as_millis()).unwrap_or(u64::MAX)),
        drain_ms: Some(args.drain_ms()),
    };
    match client.call::<DaemonRestart>(request).await {
        Ok(restarted) => Ok(restarted),
        Err(ClientError::Rpc(error)) if error.code == METHOD_NOT_FOUND => {
            stop_and_start(client, args, program, globals).await
        }
        Err(error) => Err(error.into()),
    }
}

/// For daemons that cannot hand over: they are stopped first.
async fn stop_and_start(
    client: &Client,
    args: &RestartArgs,
    program: Option<PathBuf>,
    globals: &Globals,
) -> anyhow::Result<Restarted> {
    // As a value: an older daemon may send another status.
    let status = async || client.call_as::<DaemonGetStatus, Value>(NoParams {}).await;
    let old = status().await?;
    let give_up = Instant::now() + args.timeout;
    while args.when_idle && status().await?["calls"]["in_flight"].as_u64().is_some_and(|calls| calls > 0) {
        if Instant::now() >= give_up {
            bail!("calls are still running, so the daemon was not restarted");
        }
        sleep(Duration::from_millis(50)).await;
    }
    let calls = running_calls(client).await;
    if calls > 0 && !args.now {
        let limit = output::duration(args.drain_ms());
        writeln!(
            output::stderr(),
            "the old daemon first lets {} end, for at most {limit}",
            output::counted(calls, "call")
        )?;
    }
    match client.call::<DaemonShutdown>(Shutdown { drain_ms: Some(args.drain_ms()) }).await {
        Ok(_) | Err(ClientError::Disconnected(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let pid = old["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
    stop::await_close(client, pid, Some(args.drain_ms())).await?;
    start_anew(globals, program).await?;
    let new = connection::open(globals).await?.call::<DaemonGetStatus>(NoParams {}).await?;
    Ok(Restarted {
        pid: new.pid,
        version: new.version,
        protocol: new.protocol,
        epoch: new.epoch,
        previous_pid: pid,
        previous_version: old["version"].as_str().unwrap_or("?").to_owned(),
    })
}

/// Starts a daemon; returns its process id and its version.
async fn start_anew(globals: &Globals, program: Option<PathBuf>) -> anyhow::Result<(u32, String)> {
    let options = StartOptions { program, ..StartOptions::default() };
    let client = Client::connect_or_start(&connection::socket(globals)?, &options).await?;
    let status = client.call::<DaemonGetStatus>(NoParams {}).await.context("can't get the status of the new daemon")?;
    Ok((status.pid, status.version))
}
