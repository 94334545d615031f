//! Service managers: systemd's protocol of sockets and notifications.
//!
//! Without one nothing is sent: it is found by environment variables.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use anyhow::{Context, bail};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio_util::sync::CancellationToken;

/// Variables for the protocol with one process, which no other process must inherit.
pub const OF_ONE_PROCESS: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// The listening socket of the service manager, if there is one. Call it before there are threads:
/// it removes variables from the environment, so that no child of the daemon inherits them.
///
/// # Errors
/// More than one descriptor, or something other than a Unix stream socket.
pub fn given_socket() -> anyhow::Result<Option<UnixListener>> {
    let mut given = ListenFd::from_env();
    match given.len() {
        0 => Ok(None),
        1 => given.take_unix_listener(0).context("the service manager passed no Unix stream socket"),
        many => bail!("the service manager passed {many} sockets: the daemon keeps servinge"),
    }
}

/// The daemon serves.
pub fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is being reloaded; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now, NotifyState::Status("reads its configuration")]),
        Err(error) => tracing::warn!(%error, "can't tell the time to the service manager"),
    }
}

/// Reports the main process: the one that serves, or, when a handover failed, the one that
/// continues.
pub fn main_process(pid: u32) {
    notify(&[NotifyState::MainPid(pid)]);
}

pub fn stopping(status: &str) {
    notify(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// Sends watchdog notifications, if the service manager wants them: twice within the timeout after
/// which it would kill the daemon. As a task of the runtime, it stops sending when the runtime
/// hangs.
pub async fn watchdog(stop: CancellationToken) {
    let Some(within) = sd_notify::watchdog_enabled().filter(|within| *within > Duration::ZERO) else { return };
    let mut tick = tokio::time::interval(within / 2);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => notify(&[NotifyState::Watchdog]),
        }
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "can't notify the service manager");
    }
}
