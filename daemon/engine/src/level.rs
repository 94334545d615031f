//! Levels: what needs no approval, by its effects. The policy asks [`freed_by`] where no rule, grant or mode has decided.
//!
//! [`TABLE`] is the whole of it: the documents and `toolctl level --explain` show it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use toold_proto::agent_names::is_client_named;
use toold_proto::effect::Effect;
use toold_proto::level::{Level, LevelEntry, LevelNeeds};
use toold_proto::tool::Category;

use crate::effects::EffectSet;
use crate::need::{InnerCommand, Need};
use crate::session::{Session, SessionOwner};
use crate::workspace::Workspace;

/// Who has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreedWork {
    Commands,
    FileTools,
    /// Signals that the daemon sends itself: no program runs for them.
    Signals,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct FreedEffect {
    pub level: Level,
    pub effect: Effect,
    pub work: FreedWork,
    pub needs: LevelNeeds,
    /// Who has the effect and within which limits, for people.
    pub what: &'static str,
}

/// What each level frees beyond the levels before it. Secrets, protected writes, and all effects that are not in it
/// are never free by a level.
pub const TABLE: &[FreedEffect] = &[
    freed(
        Level::Read,
        Effect::Read,
        FreedWork::FileTools,
        LevelNeeds::Nothing,
        "tools read files in the session's folders",
    ),
    freed(Level::Read, Effect::Read, FreedWork::Commands, LevelNeeds::Nothing, "commands that only read, there"),
    freed(
        Level::Edit,
        Effect::Read,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "other commands that read, and code that shows something: awk, python3 -c, pytest, tsc --noEmit, any program's --version",
    ),
    freed(
        Level::Edit,
        Effect::Write,
        FreedWork::FileTools,
        LevelNeeds::Nothing,
        "tools change files in the session's folders",
    ),
    freed(
        Level::Edit,
        Effect::Write,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "commands make files there and in /tmp, and change those whose former content undo keeps",
    ),
    freed(
        Level::Edit,
        Effect::History,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "commits, branches, the index, with the hooks that they run",
    ),
    freed(
        Level::Edit,
        Effect::Destroy,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "rm -r of what the session made, as long as nobody else has changed it and undo keeps it",
    ),
    freed(
        Level::Develop,
        Effect::Build,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "builds, tests, scripts of the project",
    ),
    freed(
        Level::Develop,
        Effect::Fetch,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "curl and wget of the hosts in [sandbox] network, and of servers that the session started",
    ),
    freed(
        Level::Develop,
        Effect::Install,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "installations of what the committed lock file names: npm ci, uv sync --locked",
    ),
    freed(
        Level::Operate,
        Effect::Fetch,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "curl and wget of any host, each of which a person allows while the command waits",
    ),
    freed(
        Level::Operate,
        Effect::Install,
        FreedWork::Commands,
        LevelNeeds::Confinement,
        "npm install, uv add and the like into the session's folders, from hosts that a person allows so",
    ),
    freed(
        Level::Operate,
        Effect::Process,
        FreedWork::Signals,
        LevelNeeds::Nothing,
        "kill PID and kill_shell, of processes that run in the session's background commands; toold signals them itself",
    ),
    freed(
        Level::Operate,
        Effect::Change,
        FreedWork::Commands,
        LevelNeeds::Unavailable,
        "containers, databases and services that the session started: nothing proves whose they are",
    ),
];

const fn freed(level: Level, effect: Effect, work: FreedWork, needs: LevelNeeds, what: &'static str) -> FreedEffect {
    FreedEffect { level, effect, work, needs, what }
}

/// The effects that a confined command can be freed for.
pub fn confined_effects() -> EffectSet {
    let confined = TABLE.iter().filter(|freed| freed.needs == LevelNeeds::Confinement);
    confined.map(|freed| freed.effect).collect()
}

/// The confined effects for which no look at the disk is needed: which hosts a command reaches, what a lock file was and who
/// has made a file is not known from a command alone.
pub fn effects_without_disk() -> EffectSet {
    [Effect::Fetch, Effect::Install, Effect::Destroy].into_iter().fold(confined_effects(), EffectSet::without)
}

/// Whether a command that has this need, as one of several, may be free at a level, as far as no look at the disk is needed.
/// `inside`: whether the file lies in the session's folders.
pub fn may_be_free(level: Level, need: &Need, inside: bool) -> bool {
    match need.category() {
        Category::FileWrite => inside,
        Category::Network | Category::Mcp | Category::Agent | Category::Plugin => false,
        Category::Shell => need.reads_only() || frees_command(level, need, effects_without_disk()),
        Category::FileRead => true,
    }
}

/// The levels of the configuration files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredLevels {
    /// The user's.
    pub user: Level,
    /// The level of each project. It only lowers the user's.
    pub projects: Vec<(PathBuf, Level)>,
    /// The level of each agent, by name. It only lowers the user's, since a client gives itself its name, unless the client
    /// runs the program that a person recorded for the agent.
    pub agents: Vec<(String, Level)>,
}

/// The level that counts in a session, and what decides it, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveLevel {
    pub level: Level,
    pub from: Cow<'static, str>,
}

impl ConfiguredLevels {
    /// The level of a session: that which a person chose for it, else the lowest of those of the user, the project,
    /// the client's profile and the agent (`agent`, or the client that opened it). That of an agent whose program is known counts
    /// instead of the user's, if it is higher. It is `read` while a client works in a folder
    /// that no person chose. A tool's process has the level of its call's session, and nothing more once that is closed.
    pub fn of(&self, session: &Session, agent: Option<&str>) -> EffectiveLevel {
        let once_chosen = self.once_chosen(session, agent);
        let top = session.topmost();
        match top.workspace().and_then(Workspace::unchosen) {
            Some(folder) if once_chosen.level > Level::Read && top.chosen_level().is_none() => {
                let way = "toolctl workspaces allow DIR";
                let from = format!("nobody opened {} as a workspace: {way}", folder.display());
                EffectiveLevel { level: Level::Read, from: from.into() }
            }
            _ => once_chosen,
        }
    }

    /// The same, as if a person had chosen the session's folders.
    pub(crate) fn once_chosen(&self, session: &Session, agent: Option<&str>) -> EffectiveLevel {
        let top = session.topmost();
        let only_reads = |from: &'static str| EffectiveLevel { level: Level::Read, from: from.into() };
        match top.owner() {
            SessionOwner::UnknownTool => return only_reads("a process of an unknown tool"),
            SessionOwner::Plugin { .. } => return only_reads("a plugin that acts on its own"),
            SessionOwner::Frontend | SessionOwner::Tool(_) => {}
        }
        if !std::ptr::eq(top, session) && top.closed.is_cancelled() {
            return only_reads("the session of the tool is closed");
        }
        if let Some(level) = top.chosen_level() {
            return EffectiveLevel { level, from: "set by a person for this session".into() };
        }
        let client = top.client.as_ref().map(|client| client.name.as_str());
        let is_of = |name: &str| [agent, client].into_iter().flatten().any(|client| is_named(client, name));
        let project = |of: &Path| of == top.project();
        let lower = self
            .projects
            .iter()
            .filter(|(of, _)| project(of))
            .map(|(of, level)| (*level, Cow::Owned(format!("permission.level of the project {}", of.display()))))
            .chain(top.profile_level().map(|level| (level, "level of the client's profile".into())))
            .chain(self.agents.iter().filter(|(name, _)| is_of(name)).map(of_agent));
        let own = match self.user {
            Level::Read => Cow::Borrowed("the default"),
            Level::Edit | Level::Develop | Level::Operate => "permission.level of the configuration".into(),
        };
        let is_proven = |name: &str| top.proven_agent() == Some(name) && is_of(name);
        let raised = self.agents.iter().find(|(name, level)| is_proven(name) && *level > self.user);
        let highest = raised.map_or((self.user, own), of_agent);
        let (level, from) = lower.fold(highest, |least, next| if next.0 < least.0 { next } else { least });
        EffectiveLevel { level, from }
    }
}

fn of_agent((name, level): &(String, Level)) -> (Level, Cow<'static, str>) {
    (*level, format!("agents.{name}.level").into())
}

/// Whether a client is the agent of this name: `codex-mcp-client` is `codex`. Too many names only lower the level.
pub fn is_named(client: &str, name: &str) -> bool {
    let lower = client.to_ascii_lowercase();
    is_client_named(client, name)
        || lower.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ' ', '_']))
}

/// Whether commands with these effects are free at a level, if they run where only `confined` effects are possible.
pub fn frees_command(level: Level, need: &Need, confined: EffectSet) -> bool {
    let Some(command) = need.command() else { return false };
    if command.signals_own {
        return frees(level, Effect::Process, FreedWork::Signals);
    }
    // A commit runs hooks of the repository, confined like the commit itself.
    let runs_hooks =
        |effects: EffectSet| effects.contains(Effect::History) && frees(level, Effect::History, FreedWork::Commands);
    // Code that reads by its purpose can do nothing else where nothing can be changed.
    let shows = |effects: EffectSet| effects.contains(Effect::Read) && confined == EffectSet::READING;
    let are_free = |effects: EffectSet| {
        let effects = if runs_hooks(effects) || shows(effects) { effects.without(Effect::Build) } else { effects };
        effects.iter().all(|of| confined.contains(of) && frees(level, of, FreedWork::Commands))
    };
    let effects = command.effects.all();
    // An unknown word of a command that only reads can only change which files it reads. Where builds are free, a command that
    // reads and writes files of the session can do no more than a build.
    let is_certain = command.unsure.is_none()
        || confined == EffectSet::READING && effects == EffectSet::READING
        || frees(level, Effect::Build, FreedWork::Commands)
            && effects.iter().all(|effect| matches!(effect, Effect::Read | Effect::Write));
    // A runner's tool has the effects of the runner, and its own if toold knows it: `bundle exec rspec`, `poetry run twine
    // upload`. A container and another machine are effects of what starts them.
    let tool_is_free = |inner: &InnerCommand| !inner.is_unsure && !inner.may_run_any && are_free(inner.effects.all());
    !effects.is_empty()
        && is_certain
        && !command.may_run_any
        && !command.carries_code
        && !command.never_free
        && command.elsewhere.iter().all(tool_is_free)
        && are_free(effects)
}

/// Commands that only read need no confinement, and are known by more than their effect: `permission.read_only_commands` frees
/// them, and not the table.
fn frees(level: Level, effect: Effect, work: FreedWork) -> bool {
    let needs = match work {
        FreedWork::Commands => LevelNeeds::Confinement,
        FreedWork::FileTools | FreedWork::Signals => LevelNeeds::Nothing,
    };
    TABLE
        .iter()
        .any(|freed| freed.effect == effect && freed.work == work && freed.level <= level && freed.needs == needs)
}

/// Whether a level frees a need that nothing else decided: in words, what frees it. The caller has excluded protected
/// writes, secrets and control files.
///
/// `is_inside`: whether a file is in the session's folders.
pub(crate) fn freed_by(level: Level, need: &Need, is_file_tool: bool, is_inside: bool) -> Option<String> {
    let is_free = match need.category() {
        Category::Shell => frees_command(level, need, need.confined),
        Category::FileWrite if need.line.is_none() => {
            is_file_tool && is_inside && frees(level, Effect::Write, FreedWork::FileTools)
        }
        // The line runs confined.
        Category::FileWrite => {
            is_inside && need.confined.contains(Effect::Write) && frees(level, Effect::Write, FreedWork::Commands)
        }
        Category::FileRead | Category::Network | Category::Mcp | Category::Agent | Category::Plugin => false,
    };
    let how = if need.confined.is_empty() { "" } else { ", confined" };
    is_free.then(|| format!("level {level}{how} (permission.level)"))
}

/// The table for a session. `can_confine`: whether commands can be confined here.
pub fn table(level: Level, can_confine: bool) -> Vec<LevelEntry> {
    let entry = |freed: &FreedEffect| LevelEntry {
        level: freed.level,
        effect: freed.effect,
        what: freed.what.to_owned(),
        needs: freed.needs,
        free: freed.level <= level
            && match freed.needs {
                LevelNeeds::Nothing => true,
                LevelNeeds::Confinement => can_confine,
                LevelNeeds::Unavailable => false,
            },
    };
    TABLE.iter().map(entry).collect()
}
