//! Records which call started a process. An entry stays until the process has ended, so that the processes it starts
//! are attributed to the same call.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use toold_engine::cx::Cx;
use toold_engine::session::{Session, SessionOwner, Sessions, Starter};

use crate::descendants;

/// The processes that calls of one session started and that are not yet waited for, each with its chain of plugins.
/// While an entry exists, its process id is not reused. Stored with the session.
#[derive(Default)]
struct StartedProcesses(Mutex<HashMap<u32, Arc<[String]>>>);

/// The call for which a program runs.
#[derive(Clone)]
pub struct StartedFor {
    started: Arc<StartedProcesses>,
    chain: Arc<[String]>,
}

impl StartedFor {
    /// A call that runs it through these plugins, outermost first.
    pub fn call(cx: &Cx, chain: &Arc<[String]>) -> Self {
        Self { started: cx.session.slot(), chain: chain.clone() }
    }

    /// Starts a process. Lookups wait meanwhile, so that the process is registered before it can do anything.
    pub(crate) fn start<T>(
        &self,
        spawn: impl FnOnce() -> std::io::Result<T>,
        pid_of: impl FnOnce(&T) -> Option<u32>,
    ) -> std::io::Result<(T, Option<TrackedProcess>)> {
        let mut started = self.started.0.lock();
        let spawned = spawn()?;
        let known = pid_of(&spawned).map(|pid| {
            started.insert(pid, self.chain.clone());
            TrackedProcess { started: self.started.clone(), pid }
        });
        Ok((spawned, known))
    }
}

impl fmt::Debug for StartedFor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StartedFor").field("chain", &self.chain).finish_non_exhaustive()
    }
}

/// An entry of the registry. Drop it before the process is waited for, which frees its id.
pub(crate) struct TrackedProcess {
    started: Arc<StartedProcesses>,
    pid: u32,
}

impl Drop for TrackedProcess {
    fn drop(&mut self) {
        self.started.0.lock().remove(&self.pid);
    }
}

/// The hold on processes whose topmost ancestor below the daemon is `pid`: the call that started it. Waits while a
/// process is being started.
pub fn holder_of(sessions: &Sessions, pid: u32) -> SessionOwner {
    let find = |session: Arc<Session>| {
        let chain = session.slot_if_any::<StartedProcesses>()?.0.lock().get(&pid)?.clone();
        Some(Starter { session, chain })
    };
    sessions.list().into_iter().find_map(find).map_or(SessionOwner::UnknownTool, SessionOwner::Tool)
}

/// Stops all programs that calls started, with everything below them, or lets them go on; returns how many. Reads some files of each
/// process.
pub fn stop_all(sessions: &Sessions, signal: StopSignal) -> usize {
    let leaders: Vec<Pid> = sessions
        .list()
        .iter()
        .filter_map(|session| session.slot_if_any::<StartedProcesses>())
        .flat_map(|started| started.0.lock().keys().copied().collect::<Vec<u32>>())
        .filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
        .collect();
    if leaders.is_empty() {
        return 0;
    }
    let signal = match signal {
        StopSignal::Stop => Signal::STOP,
        StopSignal::Continue => Signal::CONT,
    };
    // One that was started while the first pass looked is found by the second.
    let passes = [descendants::find_all(&leaders, &[]), descendants::find_all(&leaders, &[])];
    let found: HashSet<i32> = passes.iter().flatten().map(|pid| pid.as_raw_nonzero().get()).collect();
    // A process that has just ended cannot be signalled.
    found.iter().filter_map(|pid| Pid::from_raw(*pid)).filter(|pid| kill_process(*pid, signal).is_ok()).count()
}

/// What [`stop_all`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    Stop,
    Continue,
}
