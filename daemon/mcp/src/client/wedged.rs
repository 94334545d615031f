//! Finds servers that have come to a stand: after a call that timed out, a server is watched until it shows a sign of life.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};
use toold_host::descendants::processor_ticks;
use toold_mounts::adapter::MountConnection;

use super::adapter::ServerAdapter;
use super::connect;

/// How long a server that shows no sign of life is given.
const STAND: Duration = Duration::from_secs(30);
/// How often signs of life are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Ticks of processor time within [`STAND`] that are no sign of life: a program may read requests, and do nothing else.
const NO_TICKS: u64 = 5;

/// What is known of the life of one connection's server.
#[derive(Default)]
pub(super) struct LifeSigns {
    /// Messages that came from it.
    received: AtomicU64,
    timed_out: Notify,
}

impl LifeSigns {
    pub(super) fn note_received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// A call has timed out, without progress since its limit began.
    pub(super) fn note_timed_out(&self) {
        self.timed_out.notify_one();
    }
}

/// Waits until the server has come to a stand: it answers nothing although it answered before, sends nothing, writes
/// nothing to stderr, and takes no processor time. Returns that as a sentence for the user. Never returns for a server
/// whose process is not known.
pub(super) async fn found(connection: &MountConnection<ServerAdapter>) -> String {
    loop {
        connection.link.notifications.life.timed_out.notified().await;
        if let Some(pid) = connection.pid
            && stands(connection, pid).await
        {
            return format!(
                "it came to a stand: for {} s after a call timed out it answered no other request, wrote nothing and took no \
                 processor time",
                STAND.as_secs()
            );
        }
    }
}

async fn stands(connection: &MountConnection<ServerAdapter>, pid: u32) -> bool {
    let life = &connection.link.notifications.life;
    let received = life.received.load(Ordering::Relaxed);
    let written = connection.context.stderr_log.tail();
    let Some(ticks) = ticks_of(pid).await else { return false };
    let since = Instant::now();
    // It has answered this when it started.
    let mut probe = pin!(connect::list_tools(&connection.link.peer));
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = &mut probe => return false,
            _ = looks.tick() => {}
        }
        let has_spoken = life.received.load(Ordering::Relaxed) != received;
        let has_written = connection.context.stderr_log.tail() != written;
        let has_worked = ticks_of(pid).await.is_none_or(|now| now.saturating_sub(ticks) > NO_TICKS);
        if has_spoken || has_written || has_worked {
            return false;
        }
        if since.elapsed() >= STAND {
            return true;
        }
    }
}

async fn ticks_of(pid: u32) -> Option<u64> {
    tokio::task::spawn_blocking(move || processor_ticks(pid)).await.ok().flatten()
}
