//! Records which call started a process. An entry stays until the process has ended, so that what it starts in turn is
//! attributed to the same call.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use toold_engine::cx::Cx;
use toold_engine::session::{Hold, Session, Sessions, Starter};

/// The processes that calls of one session started and that nobody has waited for, with the chain of plugins of each.
/// As long as one is here, its number belongs to no other. Kept with the session.
#[derive(Default)]
struct StartedProcesses(Mutex<HashMap<u32, Arc<[String]>>>);

/// The call that a program runs for.
#[derive(Clone)]
pub struct StartedFor {
    started: Arc<StartedProcesses>,
    chain: Arc<[String]>,
}

impl StartedFor {
    /// A call, that runs it through these plugins, the outermost first.
    pub fn call(cx: &Cx, chain: &Arc<[String]>) -> Self {
        Self { started: cx.session.slot(), chain: chain.clone() }
    }

    /// Starts a process. Who asks for it meanwhile waits, so that it is known before it can do anything.
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

/// An entry of the registry. Drop it before the process is waited for, when its id becomes free.
pub(crate) struct TrackedProcess {
    started: Arc<StartedProcesses>,
    pid: u32,
}

impl Drop for TrackedProcess {
    fn drop(&mut self) {
        self.started.0.lock().remove(&self.pid);
    }
}

/// What holds a process whose topmost parent below the daemon is this one: the call that started it. Waits for a
/// process that is being started.
pub fn holder_of(sessions: &Sessions, pid: u32) -> Hold {
    let find = |session: Arc<Session>| {
        let chain = session.slot_if_any::<StartedProcesses>()?.0.lock().get(&pid)?.clone();
        Some(Starter { session, chain })
    };
    sessions.list().into_iter().find_map(find).map_or(Hold::Unknown, Hold::Tool)
}
