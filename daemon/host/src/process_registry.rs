//! Records which call started a process. An entry stays until the process has ended, so that the processes it starts
//! are attributed to the same call.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use toold_engine::cx::Cx;
use toold_engine::session::{Session, SessionOwner, Sessions, Starter};

use crate::descendants::CommandProcesses;
use crate::launcher::life::ConfinedLife;

/// How often [`stop_all`] looks for further processes. A second look finds none, unless some were started during the first.
const MAX_PASSES: usize = 10;

/// The processes that calls of one session started and that are not yet waited for. While an entry exists, its process id is not
/// reused. Stored with the session.
#[derive(Default)]
struct StartedProcesses(Mutex<HashMap<u32, StartedProcess>>);

struct StartedProcess {
    /// The plugins through which it was started.
    chain: Arc<[String]>,
    /// Without their leader, which is the process itself.
    processes: CommandProcesses,
}

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
        processes: &CommandProcesses,
        spawn: impl FnOnce() -> std::io::Result<T>,
        pid_of: impl FnOnce(&T) -> Option<u32>,
    ) -> std::io::Result<(T, Option<TrackedProcess>)> {
        let mut started = self.started.0.lock();
        let spawned = spawn()?;
        let known = pid_of(&spawned).map(|pid| {
            started.insert(pid, StartedProcess { chain: self.chain.clone(), processes: processes.clone() });
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
        let chain = session.slot_if_any::<StartedProcesses>()?.0.lock().get(&pid)?.chain.clone();
        Some(Starter { session, chain })
    };
    sessions.list().into_iter().find_map(find).map_or(SessionOwner::UnknownTool, SessionOwner::Tool)
}

/// Stops all programs that calls started, with everything that these started, wherever it moved, or lets them go on; returns how
/// many. Reads some files of each process.
pub fn stop_all(sessions: &Sessions, signal: StopSignal) -> usize {
    let (mut leaders, mut all) = (Vec::new(), CommandProcesses::default());
    for session in sessions.list() {
        let Some(started) = session.slot_if_any::<StartedProcesses>() else { continue };
        for (pid, process) in &*started.0.lock() {
            leaders.push(*pid);
            all.marks.extend_from_slice(&process.processes.marks);
            all.lives.extend_from_slice(&process.processes.lives);
        }
    }
    signal_all(&leaders, all, signal)
}

/// The same with programs that agents started, all processes below them, and those that are confined as these.
pub fn signal_trees(leaders: &[u32], lives: Vec<ConfinedLife>, signal: StopSignal) -> usize {
    signal_all(leaders, CommandProcesses { lives, ..CommandProcesses::default() }, signal)
}

fn signal_all(leaders: &[u32], mut processes: CommandProcesses, signal: StopSignal) -> usize {
    let pid = |leader: &u32| i32::try_from(*leader).ok().and_then(Pid::from_raw);
    processes.leaders.extend(leaders.iter().filter_map(pid));
    if processes.leaders.is_empty() && processes.lives.is_empty() {
        return 0;
    }
    match signal {
        StopSignal::Stop => send(&processes, Signal::STOP),
        StopSignal::Continue => send(&processes, Signal::CONT),
        StopSignal::End => {
            // A shell whose program ends before it would start the next one.
            send(&processes, Signal::STOP);
            send(&processes, Signal::KILL)
        }
    }
}

/// Signals all of them, and returns how many there were.
fn send(processes: &CommandProcesses, signal: Signal) -> usize {
    let mut seen = HashSet::new();
    let mut signalled = 0;
    // Those that are not stopped yet may start further ones.
    for _ in 0..MAX_PASSES {
        let new: Vec<Pid> = processes.find().into_iter().filter(|pid| seen.insert(pid.as_raw_nonzero())).collect();
        if new.is_empty() {
            break;
        }
        // A process that has just ended cannot be signalled.
        signalled += new.into_iter().filter(|pid| kill_process(*pid, signal).is_ok()).count();
    }
    signalled
}

/// The signal of [`stop_all`] and [`signal_trees`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    Stop,
    Continue,
    End,
}

/// A process that a program of a session's calls is or has started. It is held by a descriptor: a signal reaches this process
/// or none, whoever gets its id later.
#[derive(Debug)]
pub struct OwnProcess {
    pid: u32,
    descriptor: OwnedFd,
}

impl OwnProcess {
    /// The living process of this id, if its parents lead to a program that a call of this session has started and that still
    /// runs. `None` for all others, and where that is not certain: one whose parent has ended may be anybody's, and without
    /// `/proc` nothing can be told.
    pub fn find(session: &Session, pid: u32) -> Option<Self> {
        let descriptor = own::open(pid)?;
        let started = session.slot_if_any::<StartedProcesses>()?;
        // Nothing that it contains is waited for meanwhile, so that its ids mean no other process.
        let started = started.0.lock();
        let is_started = |pid: u32| started.contains_key(&pid);
        let parents = own::parents_of(pid, is_started)?;
        // An id between the two could have been reused while they were read, but then the second reading differs.
        let is_same = own::parents_of(pid, is_started)? == parents;
        // As long as it has not ended, what was read was its own.
        (is_same && own::lives(&descriptor)).then_some(Self { pid, descriptor })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends it the signal of this number.
    ///
    /// # Errors
    /// It has ended, the system refuses the signal, or there is none of this number.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        let signal = Signal::from_named_raw(number).ok_or(io::ErrorKind::InvalidInput)?;
        own::send(&self.descriptor, signal)
    }
}

#[cfg(target_os = "linux")]
mod own {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use crate::descendants::{ProcessLink, link};

    /// Deeper than any real tree; a loop can only come from process ids that were reused meanwhile.
    const MAX_DEPTH: usize = 256;

    pub(super) fn open(pid: u32) -> Option<OwnedFd> {
        pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
    }

    /// The process and its ancestors up to the first that `is_started` accepts; `None` if there is none.
    pub(super) fn parents_of(pid: u32, is_started: impl Fn(u32) -> bool) -> Option<Vec<ProcessLink>> {
        let mut links = Vec::new();
        let mut next = pid;
        while links.len() < MAX_DEPTH {
            let found = link(next)?;
            let (parent, is_top) = (found.parent, is_started(next));
            links.push(found);
            if is_top {
                return Some(links);
            }
            next = parent.filter(|parent| *parent > 1)?;
        }
        None
    }

    /// A descriptor of a process becomes readable when that ends.
    pub(super) fn lives(descriptor: &OwnedFd) -> bool {
        let mut ends = [PollFd::new(descriptor, PollFlags::IN)];
        matches!(poll(&mut ends, Some(&Timespec::default())), Ok(0))
    }

    pub(super) fn send(descriptor: &OwnedFd, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(descriptor, signal)?)
    }
}

/// Without `/proc` and descriptors of processes, no process is known to be a session's own.
#[cfg(not(target_os = "linux"))]
mod own {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::process::Signal;

    pub(super) fn open(_pid: u32) -> Option<OwnedFd> {
        None
    }

    pub(super) fn parents_of(_pid: u32, _is_started: impl Fn(u32) -> bool) -> Option<()> {
        None
    }

    pub(super) fn lives(_descriptor: &OwnedFd) -> bool {
        false
    }

    pub(super) fn send(_descriptor: &OwnedFd, _signal: Signal) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use toold_test_kit::until;

    use super::*;

    #[test]
    fn a_program_and_those_below_it_are_stopped_go_on_and_end() {
        let mut child = Command::new("sh").args(["-c", "sleep 600 & wait"]).spawn().unwrap();
        let leader = Pid::from_child(&child);
        let processes = CommandProcesses { leaders: vec![leader], ..CommandProcesses::default() };
        let below = || processes.find();
        let states = || -> String {
            let stat = |pid: Pid| std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            let state = |stat: String| stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            below().into_iter().filter_map(|pid| state(stat(pid).ok()?)).collect()
        };
        until("both run", || (below().len() == 2).then_some(()));
        assert_eq!(signal_trees(&[child.id()], Vec::new(), StopSignal::Stop), 2);
        until("both are stopped", || (states() == "TT").then_some(()));
        assert_eq!(signal_trees(&[child.id()], Vec::new(), StopSignal::Continue), 2);
        until("both go on", || (states() == "SS").then_some(()));
        assert_eq!(signal_trees(&[child.id()], Vec::new(), StopSignal::End), 2);
        assert!(!child.wait().unwrap().success());
        assert_eq!(signal_trees(&[], Vec::new(), StopSignal::End), 0);
    }
}
