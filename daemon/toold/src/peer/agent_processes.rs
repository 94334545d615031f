//! The processes of agents. A descendant of one cannot decide anything: a shell that an agent opens
//! is not the person at the keyboard.
//!
//! An agent rarely talks to the daemon itself. It starts a client, such as `toolctl mcp`, and runs
//! its own commands separately. So the client's nearest ancestor that is a program of its own, and
//! not a shell around one, counts as an agent too, for as long as it lives. A process that left an
//! agent's process tree is recognised by its session or, without a terminal, by its control group.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use toold_host::state_file;

use crate::peer::ancestry::{Orphan, ProcessPlace, ancestors_of, place_of, process_id};

/// A process. Its id alone may be reused later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    /// In ticks since the system started.
    pub started: u64,
}

impl ProcessId {
    pub(crate) fn is_alive(self) -> bool {
        process_id(self.pid) == Some(self)
    }
}

/// A process and its ancestors, the nearest first. They are read when it connects: an ancestor that
/// ends later still counts.
#[derive(Clone, Debug, Default)]
pub struct Lineage(Arc<[ProcessId]>);

impl Lineage {
    pub(super) fn new(processes: impl Iterator<Item = ProcessId>) -> Self {
        Self(processes.collect())
    }

    /// The process itself; `None` where it cannot be read.
    pub fn own(&self) -> Option<ProcessId> {
        self.0.first().copied()
    }

    /// The program that a client belongs to: the client's own, or the one that started it as its
    /// client.
    pub fn program(&self) -> Option<PathBuf> {
        let id = nearest_program(&self.0).or(self.own())?;
        let program = std::fs::read_link(format!("/proc/{}/exe", id.pid)).ok()?;
        id.is_alive().then_some(program)
    }

    /// The variables with which the process's program was started; empty where they cannot be read. Values that are
    /// not UTF-8 are left out.
    pub fn environment(&self) -> HashMap<String, String> {
        let Some(own) = self.own() else { return HashMap::new() };
        let environment = std::fs::read(format!("/proc/{}/environ", own.pid)).unwrap_or_default();
        if !own.is_alive() {
            return HashMap::new();
        }
        let variables = environment.split(|byte| *byte == 0).filter_map(|variable| {
            let (name, value) = std::str::from_utf8(variable).ok()?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        variables.collect()
    }

    fn ancestors(&self) -> &[ProcessId] {
        self.0.get(1..).unwrap_or_default()
    }
}

/// The agents of this daemon and of earlier ones.
pub struct AgentProcesses {
    known: RwLock<KnownAgents>,
    /// The file that stores them across restarts.
    file: PathBuf,
    /// The lineage of the last client: most connections of a burst come from one process.
    last: Mutex<Lineage>,
}

#[derive(Default)]
struct KnownAgents {
    /// With the clients by which each is known. A client's report on one connection changes nothing
    /// for its other connections: an editor may act for a model on one and for a person on the
    /// next.
    agents: HashMap<ProcessId, HashSet<ProcessId>>,
    /// Processes that a person uses, such as an editor that also runs an agent.
    frontends: HashSet<ProcessId>,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct SavedAgents {
    /// Process ids mean something else after the next boot, and in another namespace.
    boot: String,
    agents: Vec<(ProcessId, Vec<ProcessId>)>,
}

const MAX_FILE: u64 = 1 << 20;
/// More are never alive at one time; the oldest ended ones are dropped first.
const MAX_FRONTENDS: usize = 1_000;

impl AgentProcesses {
    /// Loads the agents of earlier daemons that are still alive. Blocks.
    pub fn load(file: PathBuf) -> Self {
        let known = Self { known: RwLock::default(), file, last: Mutex::default() };
        known.reload();
        known
    }

    /// Adds the agents that another daemon has stored since. Blocks.
    pub fn reload(&self) {
        self.add_stored(&mut self.known.write());
    }

    fn add_stored(&self, known: &mut KnownAgents) {
        let stored = state_file::load::<SavedAgents>(&self.file, MAX_FILE).filter(|stored| stored.boot == boot());
        for (id, clients) in stored.map(|stored| stored.agents).unwrap_or_default() {
            if id.is_alive() {
                known.agents.entry(id).or_default().extend(clients);
            }
        }
    }

    /// The same lineage, sharing the memory of the last one if that is equal.
    pub(super) fn shared(&self, lineage: Lineage) -> Lineage {
        let mut last = self.last.lock();
        if last.0 != lineage.0 {
            *last = lineage;
        }
        last.clone()
    }

    /// Records that a client acts for a model: its process, and the program that started it. Blocks
    /// for a moment when they are new.
    pub fn record_agent(&self, lineage: &Lineage) {
        let Some(own) = lineage.own() else { return };
        let mut known = self.known.write();
        // The program that started a person's frontend is no agent because the frontend also tries a model's connection.
        let agent = if known.frontends.contains(&own) { None } else { nearest_program(lineage.ancestors()) };
        let mut is_new = false;
        for id in [Some(own), agent].into_iter().flatten() {
            is_new |= known.agents.entry(id).or_default().insert(own);
        }
        if is_new {
            self.add_stored(&mut known);
            known.agents.retain(|id, _| id.is_alive());
            let agents = known.agents.iter().map(|(id, clients)| (*id, clients.iter().copied().collect()));
            let kept = SavedAgents { boot: boot(), agents: agents.collect() };
            if let Err(error) = state_file::save(&self.file, &kept) {
                tracing::warn!(path = %self.file.display(), %error, "can't save the running agents: a restart forgets them");
            }
        }
    }

    /// Records that a person uses this process: its children are not an agent's, even if it also
    /// runs an agent.
    pub fn record_frontend(&self, lineage: &Lineage) {
        let Some(own) = lineage.own() else { return };
        if self.known.read().frontends.contains(&own) {
            return;
        }
        let mut known = self.known.write();
        if known.frontends.len() >= MAX_FRONTENDS {
            known.frontends.retain(|id| id.is_alive());
        }
        known.frontends.insert(own);
    }

    /// The agent that a process is a descendant of, if there is one and no person's frontend is in
    /// between.
    pub fn above(&self, lineage: &Lineage) -> Option<ProcessId> {
        let known = self.known.read();
        let own = lineage.own().filter(|own| !known.agents.is_empty() && !known.frontends.contains(own))?;
        let is_agent =
            |id: &ProcessId| known.agents.get(id).is_some_and(|clients| clients.iter().any(|client| *client != own));
        lineage.ancestors().iter().copied().take_while(|id| !known.frontends.contains(id)).find(is_agent)
    }
}

impl AgentProcesses {
    /// The living agent that an orphan belongs to: its session is the agent's or that of one of the agent's descendants, or it
    /// has no terminal, nobody leads its session but itself, and it is in the agent's control group. It began after the agent.
    /// `lineage` is that of the peer, whose own ancestors [`Self::above`] judges.
    pub(super) fn left_by(&self, orphan: &Orphan, lineage: &Lineage) -> Option<ProcessId> {
        let known = self.known.read();
        let agents = known
            .agents
            .keys()
            .filter(|id| id.started <= orphan.id.started && !known.frontends.contains(id) && !lineage.0.contains(id));
        let agents: Vec<ProcessPlace> =
            agents.filter_map(|id| place_of(id.pid).filter(|place| place.id == *id)).collect();
        if agents.is_empty() {
            return None;
        }
        let leader = if orphan.leads { Vec::new() } else { ancestors_of(orphan.session) };
        let of_session = |agent: &&ProcessPlace| agent.session == orphan.session || leader.contains(&agent.id);
        if let Some(agent) = agents.iter().find(of_session) {
            return Some(agent.id);
        }
        // With a terminal, or with a leader, it is in a session of somebody else.
        if orphan.has_terminal || !leader.is_empty() {
            return None;
        }
        let group = control_group(orphan.id.pid)?;
        agents.iter().find(|agent| control_group(agent.id.pid).as_ref() == Some(&group)).map(|agent| agent.id)
    }
}

fn control_group(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()
}

/// The kinds of ancestors of a client.
enum ProcessKind {
    /// A program that only runs the given command, such as the shell of `sh -c 'toolctl mcp'`.
    Wrapper,
    /// A place where people start programs: an interactive shell, a terminal, a service manager.
    Host,
    Program,
}

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "busybox", "nu", "pwsh", "tcsh", "csh"];

/// Programs that only become or run another one.
const WRAPPERS: &[&str] = &[
    "env",
    "nice",
    "nohup",
    "setsid",
    "timeout",
    "stdbuf",
    "ionice",
    "taskset",
    "unbuffer",
    "toolctl",
    "flatpak-spawn",
];

/// Programs from which people start others. If one of them counted as an agent, every program of
/// the person would count as part of it.
const HOSTS: &[&str] = &[
    "systemd",
    "init",
    "launchd",
    "tmux",
    "tmux: server",
    "screen",
    "zellij",
    "dtach",
    "abduco",
    "sshd",
    "sshd-session",
    "dropbear",
    "mosh-server",
    "login",
    "su",
    "sudo",
    "doas",
    "cron",
    "crond",
    "atd",
    "dbus-daemon",
    "dbus-broker",
    "gnome-shell",
    "gnome-session-binary",
    "gnome-terminal-server",
    "kwin_wayland",
    "plasmashell",
    "konsole",
    "xfce4-terminal",
    "xfce4-session",
    "xterm",
    "urxvt",
    "kitty",
    "alacritty",
    "foot",
    "ghostty",
    "wezterm-gui",
    "wezterm-mux-server",
    "sway",
    "i3",
    "hyprland",
    "containerd-shim",
    "conmon",
    "tini",
    "dumb-init",
    "docker-init",
];

/// The first of these processes that is a program of its own, before any from which a person starts
/// programs.
fn nearest_program(processes: &[ProcessId]) -> Option<ProcessId> {
    let found = processes.iter().find_map(|id| match kind_of(*id) {
        ProcessKind::Wrapper => None,
        ProcessKind::Host => Some(None),
        ProcessKind::Program => Some(Some(*id)),
    });
    found.flatten()
}

/// Whether people start programs from it.
pub(super) fn is_host(id: ProcessId) -> bool {
    matches!(kind_of(id), ProcessKind::Host)
}

pub(super) fn is_shell(pid: u32) -> bool {
    program_name(pid).is_some_and(|name| SHELLS.contains(&name.as_str()))
}

/// The name of its program's file.
pub(super) fn program_name(pid: u32) -> Option<String> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    // Also of a program whose file was replaced since it started.
    Some(program.file_name()?.to_str()?.trim_end_matches(" (deleted)").to_owned())
}

fn kind_of(id: ProcessId) -> ProcessKind {
    let pid = id.pid;
    let program = program_name(pid);
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    kind_by_name(program.as_deref().unwrap_or_default(), pid, words.get(1..).unwrap_or_default())
}

fn kind_by_name(program: &str, pid: u32, arguments: &[&[u8]]) -> ProcessKind {
    if pid <= 1 || HOSTS.contains(&program) {
        return ProcessKind::Host;
    }
    if WRAPPERS.contains(&program) {
        return ProcessKind::Wrapper;
    }
    if SHELLS.contains(&program) {
        // With a command or a script it runs only that; a person types into all others.
        let runs_something = arguments.iter().any(|word| {
            let is_option = word.starts_with(b"-") || word.starts_with(b"+");
            if is_option { !word.starts_with(b"--") && word.contains(&b'c') } else { !word.is_empty() }
        });
        return if runs_something { ProcessKind::Wrapper } else { ProcessKind::Host };
    }
    ProcessKind::Program
}

/// Identifies this boot and this namespace of process ids.
fn boot() -> String {
    use std::os::unix::fs::MetadataExt;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::metadata(Path::new("/proc/self/ns/pid")).map_or(0, |metadata| metadata.ino());
    format!("{} {namespace}", boot.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(program: &str, arguments: &[&str], expected: &str) {
        let arguments: Vec<&[u8]> = arguments.iter().map(|word| word.as_bytes()).collect();
        let kind = match kind_by_name(program, 1234, &arguments) {
            ProcessKind::Wrapper => "wrapper",
            ProcessKind::Host => "host",
            ProcessKind::Program => "program",
        };
        assert_eq!(kind, expected, "{program} {arguments:?}");
    }

    #[test]
    fn shells_around_a_command_are_passed_over_and_those_that_people_type_into_are_not_agents() {
        check("bash", &["-c", "toolctl mcp"], "wrapper");
        check("dash", &["-ec", "toolctl mcp"], "wrapper");
        check("zsh", &["./start.sh"], "wrapper");
        check("bash", &["--noprofile", "--norc", "-c", "x"], "wrapper");
        check("env", &["A=b", "toolctl", "mcp"], "wrapper");
        check("bash", &[], "host");
        check("zsh", &["-i"], "host");
        check("bash", &["--login"], "host");
        check("tmux", &["new"], "host");
        check("node", &["cli.js"], "program");
        check("claude", &[], "program");
    }

    fn id(pid: u32) -> ProcessId {
        ProcessId { pid, started: u64::from(pid) }
    }

    #[test]
    fn descendant_of_an_agent_is_recognised_unless_a_person_uses_it() {
        let dir = tempfile::tempdir().unwrap();
        let agents = AgentProcesses::load(dir.path().join("agents"));
        let lineage = |pids: &[u32]| Lineage::new(pids.iter().copied().map(id));
        agents.known.write().agents.insert(id(7), [id(12)].into());
        assert_eq!(agents.above(&lineage(&[9, 8, 7, 1])), Some(id(7)));
        assert_eq!(agents.above(&lineage(&[7, 1])), None, "the agent itself");
        assert_eq!(agents.above(&lineage(&[9, 8, 1])), None);
        agents.record_frontend(&lineage(&[7, 1]));
        assert_eq!(agents.above(&lineage(&[9, 8, 7, 1])), None);
    }

    #[test]
    fn a_client_that_says_that_it_is_an_agent_changes_nothing_for_its_other_connections() {
        let dir = tempfile::tempdir().unwrap();
        let agents = AgentProcesses::load(dir.path().join("agents"));
        let lineage = |pids: &[u32]| Lineage::new(pids.iter().copied().map(id));
        agents.known.write().agents.insert(id(7), [id(9)].into());
        assert_eq!(agents.above(&lineage(&[9, 7, 1])), None);
        assert_eq!(agents.above(&lineage(&[10, 7, 1])), Some(id(7)));
        // A descendant of an agent gains nothing by claiming otherwise.
        agents.known.write().agents.insert(id(7), [id(9), id(10)].into());
        assert_eq!(agents.above(&lineage(&[10, 7, 1])), Some(id(7)));
    }

    #[test]
    fn a_person_s_frontend_that_acts_for_a_model_makes_no_agent_of_the_program_that_started_it() {
        let dir = tempfile::tempdir().unwrap();
        let agents = AgentProcesses::load(dir.path().join("agents"));
        let lineage =
            Lineage::new([std::process::id(), std::os::unix::process::parent_id()].into_iter().filter_map(process_id));
        agents.record_frontend(&lineage);
        agents.record_agent(&lineage);
        let known: Vec<ProcessId> = agents.known.read().agents.keys().copied().collect();
        assert_eq!(known, lineage.own().into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn agents_that_live_are_known_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agents");
        let own = process_id(std::process::id()).unwrap();
        let agents = AgentProcesses::load(file.clone());
        agents.record_agent(&Lineage::new([own, id(1)].into_iter()));
        agents.known.write().agents.insert(id(u32::MAX), [own].into());
        let again = AgentProcesses::load(file);
        assert!(again.known.read().agents.contains_key(&own));
        assert!(!again.known.read().agents.contains_key(&id(u32::MAX)), "it has ended");
    }

    #[test]
    fn two_daemons_keep_the_agents_that_the_other_one_stored() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agents");
        let [own, parent] =
            [std::process::id(), std::os::unix::process::parent_id()].map(|pid| process_id(pid).unwrap());
        let [one, other] = [(); 2].map(|()| AgentProcesses::load(file.clone()));
        let knows = |agents: &AgentProcesses| [own, parent].map(|id| agents.known.read().agents.contains_key(&id));
        one.record_agent(&Lineage::new([own].into_iter()));
        assert_eq!(knows(&other), [false, false]);
        other.record_agent(&Lineage::new([parent].into_iter()));
        assert_eq!(knows(&AgentProcesses::load(file)), [true, true], "nothing of the file is lost");
        assert_eq!(knows(&one), [true, false]);
        one.reload();
        assert_eq!(knows(&one), [true, true]);
    }
}
