//! What a service manager gives the daemon, and what it is told: systemd's protocol of sockets and notifications.
//!
//! Without one nothing is sent: it is found by environment variables.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use anyhow::{Context, bail};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio_util::sync::CancellationToken;

/// Variables by which a service manager talks to one process, which no other must take for its own.
pub const OF_ONE_PROCESS: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// The socket that it listens at for the daemon, if there is one. Call it before there are threads: it takes
/// variables out of the environment, so that no child of the daemon's finds them.
///
/// # Errors
/// More than one descriptor, or another thing than a Unix stream socket.
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
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is read anew; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now, NotifyState::Status("reads its configuration")]),
        Err(error) => tracing::warn!(%error, "can't tell the time to the service manager"),
    }
}

/// From now on this is the daemon: the one that serves, or, when that failed, the one that goes on.
pub fn main_process(pid: u32) {
    tell(&[NotifyState::MainPid(pid)]);
}

pub fn stopping(status: &str) {
    tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// Shows that the daemon is alive, when the service manager wants to know: twice in the time after
/// which it would end the daemon. As a task of the runtime, it tells nothing when the runtime hangs.
pub async fn watchdog(stop: CancellationToken) {
    let Some(within) = sd_notify::watchdog_enabled().filter(|within| *within > Duration::ZERO) else { return };
    let mut tick = tokio::time::interval(within / 2);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => tell(&[NotifyState::Watchdog]),
        }
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "can't notify the service manager");
    }
}
