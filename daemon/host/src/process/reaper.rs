//! Ends the running commands when the daemon is killed and cannot end them itself.
//!
//! The reaper is a separate process, the daemon's binary again. It reads from a pipe which commands run. The pipe
//! closes when the daemon ends, for whatever reason. The kernel's parent-death signal does less: it reaches direct
//! children only, and fires when the forking thread ends.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use rustix::process::{Pid, Signal};

use super::signal_group;
use crate::descendants::{self, CommandProcesses};
use crate::launcher::OWN_PROGRAM;
use crate::tool_mark;

/// The first argument that selects this mode.
const NAME: &str = "keeper";
/// The grace period between TERM and KILL, and the polling interval during it.
const GRACE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);
/// A process that survives KILL for this long is stuck in the kernel.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Global because it covers the end of the process: all daemons in it end at once.
static REAPER: Mutex<Reaper> = Mutex::new(Reaper { allowed: false, process: None, commands: None });

struct Reaper {
    allowed: bool,
    process: Option<(Child, ChildStdin)>,
    /// The running commands by mark: the first process of each, once it exists.
    commands: Option<HashMap<String, Option<Pid>>>,
}

/// From now on commands carry the [mark of tools](tool_mark) and are reported to a reaper, which is started with the
/// first one. For processes that call [`run_if_asked`] and that of the [launcher](crate::launcher::run_if_asked) first in
/// `main`. `inherited` is the mark of a daemon that is about to hand over.
pub fn allow(inherited: Option<u64>) {
    tool_mark::choose(inherited);
    REAPER.lock().allowed = true;
}

/// Starts the reaper at once: the previous daemon has handed over, and the processes of its tools carry the mark of
/// this daemon.
pub fn take_over() {
    REAPER.lock().start_again();
}

/// Another daemon is responsible for the tools' processes from now on. Commands that still run end with this daemon.
pub fn hand_over() {
    let mut reaper = REAPER.lock();
    if let Some((_, pipe)) = &mut reaper.process
        && let Err(error) = pipe.write_all(HANDED_OVER.as_bytes())
    {
        tracing::debug!(%error, "what tools left behind ends with this daemon");
    }
}

/// A command that ends with the daemon, until this guard is dropped.
pub(super) struct Ward {
    mark: String,
}

impl Ward {
    /// Called before the command starts, so that no process is ever unsupervised.
    pub(super) fn new(mark: &str) -> Self {
        REAPER.lock().report(mark, '+', Some(None));
        Self { mark: mark.to_owned() }
    }

    /// Reports the command's first process, for processes that remove the mark but stay in its group.
    pub(super) fn started(&self, leader: Pid) {
        REAPER.lock().report(&self.mark, '=', Some(Some(leader)));
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        REAPER.lock().report(&self.mark, '-', None);
    }
}

impl Reaper {
    fn report(&mut self, mark: &str, what: char, now: Option<Option<Pid>>) {
        if !self.allowed {
            return;
        }
        let commands = self.commands.get_or_insert_default();
        match now {
            Some(leader) => _ = commands.insert(mark.to_owned(), leader),
            None => _ = commands.remove(mark),
        }
        let line = line(mark, what, now.flatten());
        if let Some((_, pipe)) = &mut self.process
            && pipe.write_all(line.as_bytes()).is_ok()
        {
            return;
        }
        // There is no reaper yet, or it was killed or stopped from outside.
        self.start_again();
    }

    /// Starts a reaper that knows all commands, replacing the previous one.
    fn start_again(&mut self) {
        if let Some((mut process, pipe)) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
            // After its end: a reaper that is merely slow would mistake this process for a leftover.
            drop(pipe);
        }
        match start(self.commands.get_or_insert_default()) {
            Ok(started) => self.process = Some(started),
            Err(error) => tracing::warn!(%error, "nothing ends what runs if the daemon is killed"),
        }
    }
}

/// A line that reports that another daemon has the same mark and is responsible for its processes.
const HANDED_OVER: &str = "~\n";

fn line(mark: &str, what: char, leader: Option<Pid>) -> String {
    match leader {
        Some(leader) => format!("{what}{mark} {}\n", leader.as_raw_nonzero()),
        None => format!("{what}{mark}\n"),
    }
}

fn start(commands: &HashMap<String, Option<Pid>>) -> std::io::Result<(Child, ChildStdin)> {
    let mut process = Command::new(OWN_PROGRAM)
        .arg0("toold")
        .arg(NAME)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut pipe = process.stdin.take().expect("it was asked for");
    if let Some(mark) = tool_mark::own() {
        pipe.write_all(format!("#{mark}\n").as_bytes())?;
    }
    for (mark, leader) in commands {
        let what = if leader.is_some() { '=' } else { '+' };
        pipe.write_all(line(mark, what, *leader).as_bytes())?;
    }
    // A reaper that does not read must not block the daemon. Lines are written completely or not at all.
    rustix::io::ioctl_fionbio(&pipe, true)?;
    Ok((process, pipe))
}

/// Runs this mode if the process's arguments ask for it: waits for the daemon's end and then ends its leftovers. Must
/// be called before any other thread exists.
pub fn run_if_asked(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    arguments.next();
    if arguments.next()? != NAME {
        return None;
    }
    // A terminal's Ctrl-C is meant for the daemon. In the daemon's session, the daemon's end would also send a hangup
    // to a reaper that is stopped at that moment (POSIX, `_exit`, about orphaned process groups).
    let _ = rustix::process::setsid();
    end(&listen(std::io::stdin()));
    Some(ExitCode::SUCCESS)
}

/// The processes to kill after the daemon has ended.
#[derive(Default)]
struct Leftovers {
    commands: HashMap<String, LeftoverCommand>,
    /// The mark of all tools' processes; `None` once another daemon is responsible for them.
    tool_mark: Option<u64>,
}

/// A command that was running when the daemon ended.
struct LeftoverCommand {
    mark: String,
    /// Its first process and that process's start time, because ids are reused.
    leader: Option<(Pid, Option<u64>)>,
}

fn listen(pipe: impl Read) -> Leftovers {
    let mut rest = Leftovers::default();
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        let Some((what, said)) = line.split_at_checked(1) else { continue };
        let (mark, pid) = said.split_once(' ').unwrap_or((said, ""));
        match what {
            "#" => rest.tool_mark = said.parse().ok(),
            "~" => rest.tool_mark = None,
            "-" => _ = rest.commands.remove(mark),
            _ => {
                let leader = pid.parse().ok().and_then(Pid::from_raw);
                let leader = leader.map(|pid| (pid, descendants::started(pid.as_raw_nonzero().get())));
                rest.commands.insert(mark.to_owned(), LeftoverCommand { mark: mark.to_owned(), leader });
            }
        }
    }
    rest
}

/// Sends TERM, and KILL after the grace period to those that remain, repeatedly until no process is found.
fn end(rest: &Leftovers) {
    let left: Vec<&LeftoverCommand> = rest.commands.values().collect();
    let began = Instant::now();
    let mut terminated = false;
    let mut seen_none = 0;
    // A process that forks or execs is briefly invisible, so two scans in a row must find nothing.
    while seen_none < 2 && began.elapsed() < GIVE_UP {
        let signal = if began.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
        let found = find(&left, rest.tool_mark);
        seen_none = if found.is_empty() { seen_none + 1 } else { 0 };
        if signal == Signal::KILL || !terminated {
            for group in left.iter().filter_map(|left| same_leader(left)) {
                signal_group(group, signal);
            }
            for pid in &found {
                // Fails for processes that have ended meanwhile.
                let _ = rustix::process::kill_process(*pid, signal);
            }
            terminated = !found.is_empty();
        }
        std::thread::park_timeout(STEP);
    }
}

fn find(left: &[&LeftoverCommand], tool_mark: Option<u64>) -> Vec<Pid> {
    let leaders = left.iter().filter_map(|left| same_leader(left)).collect();
    let marks = left.iter().map(|left| left.mark.clone()).collect();
    let mut found = CommandProcesses { leaders, marks, lives: Vec::new() }.find();
    found.extend(tool_mark.map(descendants::orphans_with).unwrap_or_default());
    found
}

/// The first process, if its id was not reused.
fn same_leader(left: &LeftoverCommand) -> Option<Pid> {
    let (pid, started) = left.leader?;
    (started.is_some() && descendants::started(pid.as_raw_nonzero().get()) == started).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_command_is_no_leftover() {
        let own = std::process::id();
        let left = listen(format!("+a\n+b\n=b {own}\n+c\n-a\n=c\n").as_bytes());
        let mut marks: Vec<(&str, bool)> =
            left.commands.values().map(|left| (left.mark.as_str(), left.leader.is_some())).collect();
        marks.sort_unstable();
        assert_eq!(marks, [("b", true), ("c", false)]);
        assert_eq!(left.commands.values().filter_map(same_leader).count(), 1);
    }

    #[test]
    fn handed_over_processes_are_not_killed() {
        assert_eq!(listen("#720896\n".as_bytes()).tool_mark, Some(720_896));
        assert_eq!(listen("#720896\n+a\n~\n".as_bytes()).tool_mark, None);
    }
}
