//! Periodic cleaning while the daemon runs: long results and file changes beyond their limits,
//! abandoned sessions, and unread outcomes of detached calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toold_builtins::memories;
use toold_builtins::toolkit::Toolkit;
use toold_engine::Engine;
use toold_engine::detached;
use toold_proto::event::EventBody;
use toold_store::Store;
use toold_store::clock_trust::{AgeAllowance, AgeShare};

use crate::config::LoadedConfig;
use crate::config::active_config::ActiveConfig;
use crate::lifecycle::Lifecycle;
use crate::lifecycle::spool::SpoolDir;
use crate::peer::sessions::SessionService;

/// The interval while the daemon is in use. Folders may exceed their limits for this long.
const EVERY: Duration = Duration::from_secs(4);
/// The interval in any case, for content that is too old.
const AT_LEAST_EVERY: Duration = Duration::from_secs(600);

/// The content to clean, and the state that schedules it.
struct Cleaner {
    engine: Arc<Engine>,
    config: Arc<ActiveConfig>,
    sessions: Arc<SessionService>,
    lifecycle: Arc<Lifecycle>,
    store: Arc<Store>,
    /// What may still be removed because of its age while the clock is not trusted: results, changes, sessions.
    shares: Arc<Mutex<[AgeShare; 3]>>,
    builtins: Arc<Toolkit>,
}

/// The calls at one moment, as far as they fill folders.
#[derive(Clone, Copy)]
struct CallActivity {
    /// Since the start of the daemon.
    started: u64,
    /// Whether a call or a background command runs.
    is_busy: bool,
}

impl CallActivity {
    /// Whether anything may have been written between this moment and `now`. Only calls and background commands write: those
    /// that were running at this moment, and those that started after it.
    fn may_have_written_until(self, now: Self) -> bool {
        self.is_busy || self.started != now.started
    }
}

/// Cleans now, and then until the daemon stops.
pub(crate) fn start(
    engine: &Arc<Engine>,
    config: &Arc<ActiveConfig>,
    sessions: &Arc<SessionService>,
    lifecycle: &Arc<Lifecycle>,
    store: &Arc<Store>,
    builtins: &Arc<Toolkit>,
) {
    let cleaner = Cleaner {
        engine: engine.clone(),
        config: config.clone(),
        sessions: sessions.clone(),
        lifecycle: lifecycle.clone(),
        store: store.clone(),
        shares: Arc::default(),
        builtins: builtins.clone(),
    };
    engine.tasks.spawn(async move { cleaner.run().await });
}

impl Cleaner {
    async fn run(&self) {
        let stop = self.lifecycle.stopping();
        // The last cleaning: when it began, with the calls and the configuration at that moment.
        let mut last: Option<(Instant, CallActivity, Arc<LoadedConfig>)> = None;
        let mut changes_cleaned: Option<Instant> = None;
        loop {
            if changes_cleaned.is_none_or(|cleaned| cleaned.elapsed() >= AT_LEAST_EVERY) {
                changes_cleaned = Some(Instant::now());
                let (builtins, store, shares) = (self.builtins.clone(), self.store.clone(), self.shares.clone());
                // Reads all records, so it is not done after each call.
                drop(self.engine.tasks.spawn_blocking(move || {
                    let [_, of_changes, _] = &mut *shares.lock();
                    builtins.clean_changes(&mut |all| may_remove(&store, of_changes, all));
                }));
            }
            let (now, loaded) = (self.activity(), self.config.loaded());
            let is_due = last.as_ref().is_none_or(|(began, activity, config)| {
                activity.may_have_written_until(now)
                    || !Arc::ptr_eq(config, &loaded)
                    || began.elapsed() >= AT_LEAST_EVERY
            });
            if is_due {
                last = Some((Instant::now(), now, loaded));
                self.clean_folders().await;
                self.engine.sessions.list().iter().for_each(|session| detached::forget_old(session));
            }
            self.close_sessions().await;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.sessions.crowded.notified() => {}
                () = tokio::time::sleep(self.soonest()) => {}
            }
        }
    }

    fn activity(&self) -> CallActivity {
        CallActivity { started: self.engine.counts.read().started, is_busy: self.lifecycle.is_busy() }
    }

    /// Sessions are checked more often when their idle limit is less than four times the usual
    /// interval.
    fn soonest(&self) -> Duration {
        match self.config.loaded().config.daemon.session_idle_ms {
            0 => EVERY,
            allowed => EVERY.min(Duration::from_millis(allowed / 4)).max(Duration::from_millis(10)),
        }
    }

    async fn clean_folders(&self) {
        let places = &self.config.options.paths;
        let folder = places.spool();
        let loaded = self.config.loaded();
        let spool = &loaded.config.spool;
        let (sessions, days) = (places.sessions(), loaded.config.audit.max_age_days);
        let sessions_age = Duration::from_secs(days.saturating_mul(24 * 3600));
        let age = Duration::from_secs(spool.max_age_hours.saturating_mul(3600));
        let bytes = spool.max_mib.saturating_mul(1024 * 1024);
        let (store, shares) = (self.store.clone(), self.shares.clone());
        let cleaned = self.engine.tasks.spawn_blocking(move || {
            let mut shares = shares.lock();
            let [of_results, _, of_sessions] = &mut *shares;
            if let Err(error) = SpoolDir::clean(&folder, age, &mut |all| may_remove(&store, of_results, all), bytes) {
                tracing::warn!(%error, folder = %folder.display(), "can't remove old files");
            }
            memories::clean(&sessions, sessions_age, &mut |all| may_remove(&store, of_sessions, all));
        });
        if let Err(error) = cleaned.await {
            tracing::error!(%error, "folders could not be cleaned");
        }
    }

    async fn close_sessions(&self) {
        let loaded = self.config.loaded();
        let config = &loaded.config.daemon;
        let unused = Some(Duration::from_millis(config.session_idle_ms)).filter(|unused| !unused.is_zero());
        for session_id in self.sessions.close_unused(unused, config.max_unused_sessions) {
            tracing::debug!(session = %session_id, "closed an unused session");
            self.engine.events.emit(EventBody::SessionClosed { session_id });
        }
        for session_id in self.sessions.close_of_ended_shells() {
            tracing::debug!(session = %session_id, "closed the session of a terminal whose shell has ended");
            if let Err(error) = self.sessions.forget(&session_id).await {
                // It is closed again after a restart, since its shell has ended then, too.
                tracing::warn!(%error, session = %session_id, "can't forget the session of a terminal");
            }
            self.engine.events.emit(EventBody::SessionClosed { session_id });
        }
    }
}

/// Whether one more of this many may be removed because of its age.
fn may_remove(store: &Store, share: &mut AgeShare, all: u64) -> bool {
    match store.may_remove_old() {
        AgeAllowance::None => false,
        AgeAllowance::All => true,
        AgeAllowance::Share => {
            if share.is_over() {
                share.begin(all);
            }
            let left = share.left() > 0;
            share.take(1);
            left
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_cleaned_once_more_after_the_last_call_has_ended() {
        let [idle, running, ended, next] =
            [(0, false), (1, true), (1, false), (2, false)].map(|(started, is_busy)| CallActivity { started, is_busy });
        assert!(idle.may_have_written_until(running));
        assert!(running.may_have_written_until(running));
        assert!(running.may_have_written_until(ended), "it may have written after the folders were read");
        assert!(ended.may_have_written_until(next), "a call may start and end between two cleanings");
        assert!(!ended.may_have_written_until(ended));
    }
}
