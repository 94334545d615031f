//! What goes by itself while the daemon runs: long results and changes beyond their limits, sessions that nobody comes back
//! to, and the ends of calls that nobody asked about.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toold_builtins::memories;
use toold_engine::detached;
use toold_proto::event::EventBody;

use crate::daemon::State;
use crate::lifecycle::spool::SpoolDir;

/// How often is looked while the daemon is in use. Folders may be over their limits for so long.
const EVERY: Duration = Duration::from_secs(4);
/// How often is looked at all, for what has become too old.
const AT_LEAST_EVERY: Duration = Duration::from_secs(600);

/// Cleans now, and then until the daemon stops.
pub(crate) fn start(state: &Arc<State>) {
    let work = clean_on(state.clone());
    state.engine.tasks.spawn(work);
}

async fn clean_on(state: Arc<State>) {
    let stop = state.stopping();
    let mut calls = None;
    let mut cleaned = Instant::now();
    loop {
        let started = state.engine.counts.read().started;
        // Only calls fill folders.
        if state.is_busy() || calls != Some(started) || cleaned.elapsed() >= AT_LEAST_EVERY {
            calls = Some(started);
            cleaned = Instant::now();
            clean_folders(&state).await;
            state.engine.sessions.list().iter().for_each(|session| detached::forget_old(session));
        }
        close_sessions(&state);
        let wait = soonest(&state);
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.crowded.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// A session that may be unused for less than four times the usual wait is looked at more often.
fn soonest(state: &State) -> Duration {
    match state.loaded().config.daemon.session_idle_ms {
        0 => EVERY,
        allowed => EVERY.min(Duration::from_millis(allowed / 4)).max(Duration::from_millis(10)),
    }
}

async fn clean_folders(state: &State) {
    let places = &state.options.places;
    let folders: [PathBuf; 2] = [places.spool(), places.undo()];
    let loaded = state.loaded();
    let spool = &loaded.config.spool;
    let (sessions, days) = (places.sessions(), loaded.config.audit.max_age_days);
    let sessions_age = Duration::from_secs(days.saturating_mul(24 * 3600));
    let age = Duration::from_secs(spool.max_age_hours.saturating_mul(3600));
    let bytes = spool.max_mib.saturating_mul(1024 * 1024);
    let cleaned = state.engine.tasks.spawn_blocking(move || {
        for folder in folders {
            if let Err(error) = SpoolDir::clean(&folder, age, bytes) {
                tracing::warn!(%error, folder = %folder.display(), "can't remove what is old");
            }
        }
        memories::clean(&sessions, sessions_age);
    });
    if let Err(error) = cleaned.await {
        tracing::error!(%error, "folders could not be cleaned");
    }
}

fn close_sessions(state: &State) {
    let loaded = state.loaded();
    let config = &loaded.config.daemon;
    let unused = Some(Duration::from_millis(config.session_idle_ms)).filter(|unused| !unused.is_zero());
    for session_id in state.close_unused_sessions(unused, config.max_unused_sessions) {
        tracing::debug!(session = %session_id, "a session that nobody uses leaves memory");
        state.engine.events.emit(EventBody::SessionClosed { session_id });
    }
}
