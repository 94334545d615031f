//! Timers of a plugin, made by `hygge.every`: they run while the version that registered them is in service.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use toold_proto::plugin::{PluginError, PluginTimer};

use crate::plugin::failure_log::log_failure;
use crate::plugin::own_authority;
use crate::plugin::state_pool::StatePool;
use crate::vm::interrupt::ScriptInterrupt;
use crate::vm::script_run::ScriptRun;

/// The longest that one run may take; shorter if the interval is.
const MAX_RUN: Duration = Duration::from_secs(60);
/// After failures, the interval doubles up to this, or stays as it is if it is longer.
const MAX_BACK_OFF: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TimerRegistration {
    pub(crate) name: String,
    pub(crate) interval: Duration,
    /// The first run is at once, and not after one interval.
    pub(crate) immediately: bool,
}

/// The state of the timers of one version of a plugin, by the positions of their registrations.
#[derive(Default)]
pub(crate) struct TimerBoard {
    /// Fires when the version goes out of service.
    retired: CancellationToken,
    timers: Mutex<Vec<TimerState>>,
}

#[derive(Clone, Default)]
struct TimerState {
    /// Fires when the script stops it.
    stop: CancellationToken,
    runs: u64,
    last_run: Option<SystemTime>,
    /// The error of the last run.
    last_error: Option<String>,
}

impl TimerBoard {
    /// Stops a timer when it fires. A run in progress goes on.
    pub(crate) fn stop_token(&self, place: usize) -> CancellationToken {
        self.with(place, |timer| timer.stop.clone())
    }

    /// Describes timers with these registrations.
    pub(crate) fn describe(&self, registered: &[TimerRegistration]) -> Vec<PluginTimer> {
        let describe = |(place, timer): (usize, &TimerRegistration)| {
            let state = self.with(place, |state| state.clone());
            PluginTimer {
                name: timer.name.clone(),
                interval_ms: timer.interval.as_millis() as u64,
                runs: state.runs,
                last_run: state.last_run.map(toold_engine::time::rfc3339),
                last_error: state.last_error,
                stopped: state.stop.is_cancelled(),
            }
        };
        registered.iter().enumerate().map(describe).collect()
    }

    fn with<T>(&self, place: usize, read: impl FnOnce(&mut TimerState) -> T) -> T {
        let mut timers = self.timers.lock();
        if timers.len() <= place {
            timers.resize_with(place + 1, TimerState::default);
        }
        read(&mut timers[place])
    }
}

/// Starts the timers of a version that is in service. They stop when the guard is dropped, also in the middle of a run.
pub(crate) fn start(states: &Arc<StatePool>, registered: &[TimerRegistration]) -> DropGuard {
    let engine = &states.plugin.shared.engine;
    for (place, timer) in registered.iter().enumerate() {
        engine.tasks.spawn(repeat(states.clone(), place, timer.clone()));
    }
    states.plugin.timers.retired.clone().drop_guard()
}

async fn repeat(states: Arc<StatePool>, place: usize, timer: TimerRegistration) {
    let board = &states.plugin.timers;
    let stop = board.stop_token(place);
    let mut failures = 0;
    let mut next = Instant::now() + if timer.immediately { Duration::ZERO } else { timer.interval };
    loop {
        tokio::select! {
            biased;
            () = board.retired.cancelled() => return,
            () = stop.cancelled() => return,
            () = tokio::time::sleep_until(next) => {}
        }
        let (at, start) = (SystemTime::now(), Instant::now());
        let error = run(&states, place, &timer, &stop).await.err();
        if board.retired.is_cancelled() {
            return;
        }
        failures = if error.is_some() { failures + 1 } else { 0 };
        if let Some(error) = &error {
            log_failure(&states.plugin, None, &format!("the timer {} failed", timer.name), error);
        }
        board.with(place, |state| {
            state.runs += 1;
            (state.last_run, state.last_error) = (Some(at), error.map(|error| error.message));
        });
        next = start + delay(timer.interval, failures);
    }
}

/// The time from the start of a run to the start of the next one, after so many runs in a row have failed.
fn delay(interval: Duration, failures: u32) -> Duration {
    let doubled = interval.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
    doubled.min(interval.max(MAX_BACK_OFF))
}

async fn run(
    states: &Arc<StatePool>,
    place: usize,
    timer: &TimerRegistration,
    stop: &CancellationToken,
) -> Result<(), PluginError> {
    let plugin = &states.plugin;
    let loaded = states.main().await.map_err(PluginError::of)?;
    // The script may have run just now for the first time, and may have stopped it.
    if stop.is_cancelled() {
        return Ok(());
    }
    let missing = || PluginError::of("the plugin no longer registers it");
    let function = loaded.timers.get(place).ok_or_else(missing)?;
    let interrupt = ScriptInterrupt::of_timer(timer.interval.min(MAX_RUN), plugin.timers.retired.clone());
    let call = ScriptRun::of_plugin(interrupt, own_authority::of_load(plugin));
    let _watched = plugin.shared.watchdog.watch(&call.interrupt);
    let explain = |error: &mlua::Error| plugin.sources.explain(error);
    let script = loaded.state.lua().create_thread(function.clone()).map_err(|error| explain(&error))?;
    loaded.state.run(&call, script, ()).await.map_err(|error| explain(&error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_double_the_interval_up_to_an_hour() {
        let seconds = |interval, failures| delay(Duration::from_secs(interval), failures).as_secs();
        assert_eq!([0, 1, 2, 6, 40].map(|failures| seconds(10, failures)), [10, 20, 40, 640, 3_600]);
        assert_eq!(seconds(7_200, 3), 7_200);
    }
}
