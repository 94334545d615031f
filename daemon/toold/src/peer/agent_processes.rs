//! The processes of agents. A descendant of one cannot decide anything: a shell that an agent opens
//! is not the person at the keyboard.
//!
//! An agent rarely talks to the daemon itself. It starts a client, such as `toolctl mcp`, and runs
//! its own commands separately. So the client's nearest ancestor that is a program of its own, and
//! not a shell around one, counts as an agent too, for as long as it lives. A process that left an
//! agent's process tree is recognised by its session or, without a terminal, by its control group,
//! also when the agent has ended. Any other one without a terminal confirms with a code before it
//! decides, unless it began before all agents or is a known program.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use toold_host::state_file;

use crate::peer::ancestry::{Orphan, ProcessPlace, ancestors_of, place_of, process_id};
use crate::peer::confirm_codes::ConfirmCodes;

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

    /// That of the program which a client belongs to, as [`Self::program`] finds it.
    pub(super) fn program_lineage(&self) -> Option<Self> {
        let program = nearest_program(&self.0)?;
        Some(Self::new(self.0.iter().copied().skip_while(|id| *id != program)))
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

    /// The program that started the client: the agent, if it is an agent's.
    pub(crate) fn starter(&self) -> Option<ProcessId> {
        nearest_program(self.ancestors())
    }

    fn ancestors(&self) -> &[ProcessId] {
        self.0.get(1..).unwrap_or_default()
    }
}

/// The agents of this daemon and of earlier ones.
pub struct AgentProcesses {
    known: RwLock<KnownAgents>,
    /// Fires when an agent was recorded.
    recorded: Notify,
    /// With which orphans confirm that a person uses them.
    pub(crate) codes: ConfirmCodes,
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
    /// Which agent each is, as its hooks said first; `None` once they have said another.
    names: HashMap<ProcessId, Option<&'static str>>,
    /// Where they run.
    places: HashMap<ProcessId, AgentPlace>,
    /// Those that ended last, the oldest first.
    ended: Vec<EndedAgent>,
    /// Orphans that a person confirmed.
    confirmed: HashSet<ProcessId>,
    /// Processes that a person uses, such as an editor that also runs an agent.
    frontends: HashSet<ProcessId>,
}

/// What the processes that an agent starts have in common with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AgentPlace {
    session: u32,
    /// The content of its `cgroup` file.
    group: Option<String>,
}

impl AgentPlace {
    fn of(id: ProcessId) -> Option<Self> {
        let place = place_of(id.pid).filter(|place| place.id == id)?;
        Some(Self { session: place.session, group: control_group(id.pid) })
    }
}

/// An agent that runs no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EndedAgent {
    id: ProcessId,
    place: AgentPlace,
    /// When it had ended at the latest, in ticks since the system started.
    ended: u64,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct SavedAgents {
    /// Process ids mean something else after the next boot, and in another namespace.
    boot: String,
    agents: Vec<(ProcessId, Vec<ProcessId>)>,
    #[serde(default)]
    places: Vec<(ProcessId, AgentPlace)>,
    #[serde(default)]
    ended: Vec<EndedAgent>,
}

const MAX_FILE: u64 = 1 << 20;
/// More are never alive at one time; the oldest ended ones are dropped first.
const MAX_FRONTENDS: usize = 1_000;
/// Ended agents that are remembered.
const MAX_ENDED: usize = 256;
/// How often the agents that run are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl AgentProcesses {
    /// Loads the agents of earlier daemons that are still alive. Blocks.
    pub fn load(file: PathBuf) -> Self {
        let known = Self {
            known: RwLock::default(),
            recorded: Notify::new(),
            codes: ConfirmCodes::default(),
            file,
            last: Mutex::default(),
        };
        known.reload();
        known
    }

    /// Adds the agents that another daemon has stored since. Blocks.
    pub fn reload(&self) {
        self.add_stored(&mut self.known.write());
    }

    fn add_stored(&self, known: &mut KnownAgents) {
        let stored = state_file::load::<SavedAgents>(&self.file, MAX_FILE).filter(|stored| stored.boot == boot());
        let Some(stored) = stored else { return };
        known.places.extend(stored.places);
        for (id, clients) in stored.agents {
            known.agents.entry(id).or_default().extend(clients);
        }
        for agent in stored.ended {
            if !known.ended.iter().any(|other| other.id == agent.id) {
                known.ended.push(agent);
            }
        }
        known.settle();
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
        // Clients such as hooks come and go.
        let lasting = agent.unwrap_or(own);
        if is_new && let Some(place) = AgentPlace::of(lasting) {
            known.places.entry(lasting).or_insert(place);
        }
        if is_new {
            self.recorded.notify_one();
            self.add_stored(&mut known);
            known.settle();
            let agents = known.agents.iter().map(|(id, clients)| (*id, clients.iter().copied().collect()));
            let kept = SavedAgents {
                boot: boot(),
                agents: agents.collect(),
                places: known.places.iter().map(|(id, place)| (*id, place.clone())).collect(),
                ended: known.ended.clone(),
            };
            if let Err(error) = state_file::save(&self.file, &kept) {
                tracing::warn!(path = %self.file.display(), %error, "can't save the running agents: a restart forgets them");
            }
        }
    }

    /// Notes that the program that started a hook is this agent. The hooks of an agent run before anything that its model
    /// chooses, so the first name counts. A process below another agent gets no name of its own: see [`Self::name_of`].
    pub fn name(&self, hook: &Lineage, agent: &'static str) {
        let Some(process) = hook.starter() else { return };
        if self.known.read().names.get(&process) == Some(&Some(agent)) {
            return;
        }
        let mut known = self.known.write();
        known.names.entry(process).and_modify(|name| *name = name.filter(|name| *name == agent)).or_insert(Some(agent));
        known.names.retain(|id, _| id.is_alive());
    }

    /// The agent that a client belongs to: the only one that hooks have named among the programs that it was started by.
    pub fn name_of(&self, client: &Lineage) -> Option<&'static str> {
        let known = self.known.read();
        let mut names = client.ancestors().iter().filter_map(|id| known.names.get(id));
        let first = (*names.next()?)?;
        names.all(|name| *name == Some(first)).then_some(first)
    }

    /// Notes when agents end, for as long as it is polled: orphans that begin later are not theirs.
    pub(crate) async fn note_ends(&self) {
        loop {
            if self.known.read().agents.is_empty() {
                self.recorded.notified().await;
            }
            tokio::time::sleep(LOOK_EVERY).await;
            if self.known.read().agents.keys().any(|id| !id.is_alive()) {
                self.known.write().settle();
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
        if let Some(agent) = known.ended_agent_of(orphan, lineage) {
            return Some(agent);
        }
        if agents.is_empty() {
            return None;
        }
        let leader = if orphan.leads { Vec::new() } else { ancestors_of(orphan.session) };
        let of_session = |agent: &&ProcessPlace| agent.session == orphan.session || leader.contains(&agent.id);
        if let Some(agent) = agents.iter().find(of_session) {
            return Some(agent.id);
        }
        // With a terminal, or with a leader, it is in a session of somebody else. One above a terminal may be a person's, who
        // then confirms it.
        if orphan.has_terminal || orphan.holds_terminal || !leader.is_empty() {
            return None;
        }
        let group = control_group(orphan.id.pid)?;
        agents.iter().find(|agent| control_group(agent.id.pid).as_ref() == Some(&group)).map(|agent| agent.id)
    }
}

impl AgentProcesses {
    /// Whether a person has to confirm the orphan before it decides: no login made its terminal, it is no known program, and an
    /// agent ran before it began, which may have left it behind by way of another process.
    pub(super) fn needs_code(&self, orphan: &Orphan, lineage: &Lineage) -> bool {
        let known = self.known.read();
        let is_before = |id: &ProcessId| id.started <= orphan.id.started && !lineage.0.contains(id);
        let has_agent = known.agents.keys().any(|id| is_before(id) && !known.frontends.contains(id))
            || known.ended.iter().any(|agent| is_before(&agent.id));
        if !has_agent || known.confirmed.contains(&orphan.id) || is_known_program(orphan.id.pid) {
            return false;
        }
        if !orphan.holds_terminal && !orphan.has_terminal {
            return true;
        }
        let Some(group) = control_group(orphan.id.pid) else { return true };
        // Programs that people start from a desktop are in groups of their own, as each login is.
        let is_agents =
            known.agents.keys().filter(|id| is_before(id)).any(|id| control_group(id.pid).as_ref() == Some(&group))
                || known.ended.iter().any(|agent| is_before(&agent.id) && agent.place.group.as_ref() == Some(&group));
        let unit = unit_of(&group);
        let is_multiplexer = program_name(orphan.id.pid).is_some_and(|name| MULTIPLEXERS.contains(&name.as_str()));
        let is_login = unit.starts_with("session-") && unit.ends_with(".scope");
        is_agents || is_made_by_hand(unit) || is_multiplexer && !is_login
    }

    /// Notes that a person confirmed the orphan.
    pub(super) fn confirm(&self, orphan: &Orphan) {
        let mut known = self.known.write();
        if known.confirmed.len() >= MAX_FRONTENDS {
            known.confirmed.retain(|id| id.is_alive());
        }
        known.confirmed.insert(orphan.id);
    }
}

impl KnownAgents {
    /// Moves agents that have ended to the others that have.
    fn settle(&mut self) {
        let now = ticks_now();
        let dead: Vec<ProcessId> = self.agents.keys().copied().filter(|id| !id.is_alive()).collect();
        for id in dead {
            self.agents.remove(&id);
            if let Some(place) = self.places.remove(&id)
                && !self.ended.iter().any(|agent| agent.id == id)
            {
                self.ended.push(EndedAgent { id, place, ended: now });
            }
        }
        self.places.retain(|id, _| self.agents.contains_key(id));
        let surplus = self.ended.len().saturating_sub(MAX_ENDED);
        self.ended.drain(..surplus);
    }

    /// The ended agent that an orphan belongs to, which began while the agent ran.
    fn ended_agent_of(&self, orphan: &Orphan, lineage: &Lineage) -> Option<ProcessId> {
        let unnoticed =
            self.agents.keys().filter(|id| !id.is_alive()).filter_map(|id| Some((*id, self.places.get(id)?)));
        let noticed = self.ended.iter().filter(|agent| orphan.id.started <= agent.ended);
        let mut candidates = noticed
            .map(|agent| (agent.id, &agent.place))
            .chain(unnoticed)
            .filter(|(id, _)| id.started <= orphan.id.started && !lineage.0.contains(id))
            .filter(|(id, _)| !self.frontends.contains(id))
            .peekable();
        candidates.peek()?;
        let is_led = !orphan.leads && !ancestors_of(orphan.session).is_empty();
        let group = match orphan.has_terminal || orphan.holds_terminal || is_led || is_known_program(orphan.id.pid) {
            true => None,
            false => control_group(orphan.id.pid),
        };
        let is_left =
            |place: &AgentPlace| place.session == orphan.session && !is_led || group.is_some() && place.group == group;
        candidates.find(|(_, place)| is_left(place)).map(|(id, _)| id)
    }
}

/// Editors that people start without a terminal, such as from a menu, and that stay without a parent.
const EDITORS: &[&str] = &[
    "emacs",
    "gvim",
    "nvim-qt",
    "neovide",
    "code",
    "codium",
    "code-oss",
    "cursor",
    "zed",
    "zed-editor",
    "subl",
    "sublime_text",
    "kate",
    "gedit",
    "gnome-text-editor",
    "idea",
    "pycharm",
    "clion",
    "rustrover",
    "goland",
    "webstorm",
];

/// Whether a person or the system starts this program without a terminal: an editor, or a service of systemd that has a file.
fn is_known_program(pid: u32) -> bool {
    let is_editor =
        |name: String| EDITORS.iter().any(|editor| name == *editor || name.starts_with(&format!("{editor}-")));
    let is_service = |group: String| {
        let unit = unit_of(&group);
        unit.ends_with(".service") && !unit.starts_with("user@") && !is_made_by_hand(unit)
    };
    program_name(pid).is_some_and(is_editor) || control_group(pid).is_some_and(is_service)
}

/// The unit of systemd that a control group belongs to; empty where there is none.
fn unit_of(group: &str) -> &str {
    group.lines().find_map(|line| line.strip_prefix("0::")?.rsplit('/').next()).unwrap_or_default()
}

/// Whether a unit has no file of its own, since somebody has made it with `systemd-run`. Desktops make scopes like that.
fn is_made_by_hand(unit: &str) -> bool {
    let places = [
        "/run/systemd/transient".to_owned(),
        format!("/run/user/{}/systemd/transient", rustix::process::geteuid().as_raw()),
    ];
    let is_service = unit.ends_with(".service");
    unit.starts_with("run-") || is_service && places.iter().any(|place| Path::new(place).join(unit).exists())
}

/// The time since the system started, in the unit of the starts of processes.
fn ticks_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    // The tick that has begun may be that of a process that started in it.
    seconds * per_second + nanoseconds * per_second / 1_000_000_000 + 1
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
const HOSTS: &[&[&str]] = &[SESSION_HOSTS, MULTIPLEXERS, TERMINALS];

/// Those that the system starts, or the desktop at its beginning.
const SESSION_HOSTS: &[&str] = &[
    "systemd",
    "init",
    "launchd",
    "sshd",
    "sshd-session",
    "dropbear",
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
    "kwin_wayland",
    "plasmashell",
    "xfce4-session",
    "sway",
    "i3",
    "hyprland",
    "containerd-shim",
    "conmon",
    "tini",
    "dumb-init",
    "docker-init",
];

/// Those whose terminals go on without the one that they were started from. They leave their parents.
const MULTIPLEXERS: &[&str] =
    &["tmux", "tmux: server", "screen", "zellij", "dtach", "abduco", "mosh-server", "wezterm-mux-server"];

const TERMINALS: &[&str] = &[
    "gnome-terminal-server",
    "konsole",
    "xfce4-terminal",
    "xterm",
    "urxvt",
    "kitty",
    "alacritty",
    "foot",
    "ghostty",
    "wezterm-gui",
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

/// Whether it is at the beginning of people's sessions: the system or another user started it.
pub(super) fn begins_sessions(id: ProcessId) -> bool {
    match program_name(id.pid) {
        Some(name) => SESSION_HOSTS.contains(&name.as_str()),
        None => is_host(id),
    }
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
    // Such as the `su` or `sudo` above a login shell, whose program cannot be read.
    if program.is_none()
        && is_of_other_user(&std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default())
    {
        return ProcessKind::Host;
    }
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    kind_by_name(program.as_deref().unwrap_or_default(), pid, words.get(1..).unwrap_or_default())
}

/// Whether a process with this `status` file has the rights of another user than this one: it is no agent of this user.
fn is_of_other_user(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = ids.and_then(|ids| ids.split_whitespace().nth(1)?.parse::<u32>().ok());
    effective.is_some_and(|id| id != rustix::process::geteuid().as_raw())
}

fn kind_by_name(program: &str, pid: u32, arguments: &[&[u8]]) -> ProcessKind {
    if pid <= 1 || HOSTS.iter().any(|hosts| hosts.contains(&program)) {
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

    #[test]
    fn a_process_of_another_user_is_no_agent_of_this_one() {
        let own = rustix::process::geteuid().as_raw();
        let status = |effective: u32| format!("Name:\tsu\nUid:\t{own}\t{effective}\t0\t0\nGid:\t0\t0\t0\t0\n");
        assert!(is_of_other_user(&status(own + 1)));
        // A program that hides from its own user, too.
        assert!(!is_of_other_user(&status(own)));
        assert!(!is_of_other_user(""), "one that has ended");
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
