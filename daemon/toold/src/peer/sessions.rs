//! How sessions are made: in which folders, with which variables, for whom.
//!
//! A person's frontend chooses both. For all others they are authority: a folder permits reading,
//! and a variable such as `PATH` or `GIT_EXTERNAL_DIFF` turns an allowed command into any program.
//! A descendant of a tool gets the folders and variables of its tool's session.

pub mod persistence;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use toold_builtins::toolkit::Toolkit;
use toold_engine::Engine;
use toold_engine::client_profile::ClientProfile;
use toold_engine::redact::redact;
use toold_engine::session::{NewSession, Session, SessionFilter, SessionOwner, Starter};
use toold_engine::workspace::{Workspace, WorkspaceFolder};
use toold_host::files::resolve;
use toold_proto::event::EventBody;
use toold_proto::session::{ClientInfo, Mode, shell_of};
use toold_proto::tool::SessionId;
use toold_store::Store;

use crate::config;
use crate::config::active_config::ActiveConfig;
use crate::config::agent_programs;
use crate::config::project_folder::{grant_project_of, project_of, real_dir};
use crate::config::workspaces::{is_wide, without_dots};
use crate::peer::Peer;
use crate::peer::agent_processes::ProcessId;
use crate::peer::share_codes::ShareCodes;
use crate::peer::workspaces::{ClientGate, WorkspaceLimit, Workspaces};

/// Limits of the parameters of a session. A client that exceeds them is wrong, or tries to keep
/// others waiting.
pub(crate) const MAX_VARIABLES: usize = 4_096;
pub(crate) const MAX_ROOTS: usize = 256;

/// After this many new sessions, surplus idle ones are looked for, and not only at intervals.
const LOOK_AT_SESSIONS_EVERY: usize = 256;

/// The kind of principal that opened a session, which decides who may join it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenerKind {
    #[default]
    Person,
    /// A client that acts for a model.
    Agent,
    /// A client with a token that permits calls: from a network, and not known to be a person.
    Token,
    /// A process that a tool started.
    Descendant,
    /// The daemon's page in a person's browser.
    Page,
    /// Another daemon of the fleet, for its callers.
    Fleet,
}

/// The principal that opened a session. Stored with it, across restarts too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opener {
    pub kind: OpenerKind,
    /// The program that the client belongs to.
    pub program: Option<PathBuf>,
    /// The profile of its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_profile: Option<String>,
    /// The daemon of the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<String>,
}

/// Kept in a session's slot.
#[derive(Default)]
struct OpenedBy(Mutex<Opener>);

/// The shell with which the session of a terminal ends. Kept in the session's slot, if it ran when the session was opened: that
/// of a client in another namespace is not known here.
#[derive(Default)]
struct TerminalShell(Mutex<Option<ProcessId>>);

fn note_shell(session: &Session) {
    let shell = shell_of(&session.id).map(|(pid, started)| ProcessId { pid, started });
    if let Some(shell) = shell.filter(|shell| shell.is_alive()) {
        *session.slot::<TerminalShell>().0.lock() = Some(shell);
    }
}

/// Records who opened a session that nobody else has found yet.
pub(crate) fn set_opener(session: &Session, opener: Opener) {
    *session.slot::<OpenedBy>().0.lock() = opener;
}

pub(crate) fn opener_of(session: &Session) -> Opener {
    session.slot::<OpenedBy>().0.lock().clone()
}

/// The parameters of a new session.
pub struct SessionRequest {
    pub id: SessionId,
    /// Absent for a client that names no folder.
    pub cwd: Option<PathBuf>,
    pub roots: Vec<PathBuf>,
    pub client: Option<ClientInfo>,
    pub model: Option<String>,
    /// The variables that the client may set: see [`SessionService::permitted_env`].
    pub env: BTreeMap<String, String>,
    pub filter: SessionFilter,
    /// Each of them narrows it further, as does that of the client's token.
    pub profiles: Vec<ClientProfile>,
}

/// The sessions of a daemon: how they are opened, stored across restarts, and closed.
pub struct SessionService {
    engine: Arc<Engine>,
    store: Arc<Store>,
    builtins: Arc<Toolkit>,
    config: Arc<ActiveConfig>,
    workspaces: Arc<Workspaces>,
    pub(crate) share_codes: ShareCodes,
    /// Far too many sessions are open, and perhaps nobody uses them.
    pub(crate) crowded: Notify,
    /// Sessions of which it could not be read whether an earlier daemon stored one of their id.
    unread: Mutex<HashSet<SessionId>>,
    /// There are such sessions.
    pub(crate) unread_came: Notify,
}

impl SessionService {
    pub fn new(
        engine: &Arc<Engine>,
        store: &Arc<Store>,
        builtins: &Arc<Toolkit>,
        config: &Arc<ActiveConfig>,
        workspaces: &Arc<Workspaces>,
    ) -> Self {
        Self {
            engine: engine.clone(),
            store: store.clone(),
            builtins: builtins.clone(),
            config: config.clone(),
            workspaces: workspaces.clone(),
            share_codes: ShareCodes::default(),
            crowded: Notify::new(),
            unread: Mutex::default(),
            unread_came: Notify::new(),
        }
    }

    /// Adds a session, or returns the existing one of that id; true when it existed. The denials of
    /// its project apply from then on. Reads a small file when the project is new.
    pub fn open(&self, session: Session) -> (Arc<Session>, bool) {
        let project = session.own_project().to_owned();
        self.config.enter(&project);
        let (session, there) = self.engine.sessions.open(session);
        match there {
            true => self.config.release(&project),
            false => {
                self.builtins.note_began(&session);
                note_shell(&session);
            }
        }
        let open = self.engine.sessions.len();
        if open.is_multiple_of(LOOK_AT_SESSIONS_EVERY) && open > self.config.loaded().config.daemon.max_unused_sessions
        {
            self.crowded.notify_one();
        }
        (session, there)
    }

    /// As [`open`](Self::open); a new session belongs to `opener`, and subscribers learn of it.
    pub(crate) fn publish(&self, session: Session, opener: Opener) -> Arc<Session> {
        let (session, there) = self.open(session);
        if !there {
            set_opener(&session, opener);
            let (session_id, cwd) = (session.id.clone(), session.cwd.display().to_string());
            self.engine.events.emit(EventBody::SessionOpened { session_id, cwd });
        }
        session
    }

    /// The open session of this id.
    #[cfg(feature = "fleet")]
    pub(crate) fn find(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.engine.sessions.find(id)
    }

    /// Closes a session and cancels its calls; returns how many. `None` for an unknown one.
    pub fn close(&self, id: &SessionId) -> Option<u64> {
        let session = self.engine.sessions.find(id)?;
        let cancelled = self.engine.sessions.close(id)?;
        self.config.release(session.own_project());
        Some(cancelled)
    }

    /// Closes the sessions that nobody has used for this long, with no background command; returns
    /// their ids. Their stored state is found again when somebody opens them, as after a restart.
    ///
    /// `most`: the number of other idle sessions that stay open, the last used first.
    pub fn close_unused(&self, unused: Option<Duration>, most: usize) -> Vec<SessionId> {
        let runs = |session: &Session| self.has_shells(session);
        let sessions = &self.engine.sessions;
        let mut closed = unused.map_or_else(Vec::new, |unused| sessions.close_unused(unused, runs));
        closed.extend(sessions.close_surplus(most, |_| true, runs));
        closed.iter().for_each(|session| self.config.release(session.own_project()));
        closed.iter().map(|session| session.id.clone()).collect()
    }

    /// Whether it is the session of a terminal whose shell has ended, and neither a connection nor a background command uses it.
    pub(crate) fn is_over(&self, session: &Session) -> bool {
        let has_ended = session
            .slot_if_any::<TerminalShell>()
            .and_then(|shell| *shell.0.lock())
            .is_some_and(|shell| !shell.is_alive());
        has_ended && session.connections() == 0 && !self.has_shells(session)
    }

    /// Closes the sessions of terminals whose shells have ended; returns their ids. Nobody can open them again.
    pub fn close_of_ended_shells(&self) -> Vec<SessionId> {
        let closed = self.engine.sessions.close_unused(Duration::ZERO, |session| !self.is_over(session));
        closed.iter().for_each(|session| self.config.release(session.own_project()));
        closed.iter().map(|session| session.id.clone()).collect()
    }

    /// Closes unused sessions of a daemon of the fleet when it has `most` of them. False when it uses all of them.
    #[cfg(feature = "fleet")]
    pub(crate) fn make_room_for(&self, daemon: &str, most: usize) -> bool {
        let is_its = |session: &Session| opener_of(session).daemon.as_deref() == Some(daemon);
        let is_full = || self.engine.sessions.list().iter().filter(|session| is_its(session)).count() >= most;
        if !is_full() {
            return true;
        }
        for session in self.engine.sessions.close_surplus(most / 2, is_its, |session| self.has_shells(session)) {
            self.config.release(session.own_project());
            self.engine.events.emit(EventBody::SessionClosed { session_id: session.id.clone() });
        }
        !is_full()
    }

    /// Whether background commands of the session are running.
    fn has_shells(&self, session: &Session) -> bool {
        self.builtins.shells.list(Some(&session.id)).iter().any(|shell| shell.ended.is_none())
    }

    /// A new session for the client of a connection.
    ///
    /// # Errors
    /// A path that is not absolute; for a person also one that is not a folder; for a tool's
    /// process one that lies outside of the tool's session; the profile of the client's token does not exist.
    pub fn create(&self, kind: OpenerKind, peer: &Peer, mut open: SessionRequest) -> anyhow::Result<Session> {
        if let Some(name) = &peer.token_profile {
            open.profiles.push(self.config.profile(name).map_err(anyhow::Error::msg)?);
        }
        for profile in &open.profiles {
            let filter = SessionFilter::of_profile(profile).with_context(|| format!("profile {}", profile.name))?;
            open.filter = open.filter.within(filter);
        }
        let begins_in_plan = open.profiles.iter().any(|profile| profile.mode == Mode::Plan);
        let level = open.profiles.iter().filter_map(|profile| profile.level).min();
        let agent = self.proven_agent(kind, peer);
        let session = self.create_in_folders(kind, peer, open)?.with_profile_level(level).with_proven_agent(agent);
        if begins_in_plan {
            session.set_mode(Mode::Plan);
        }
        Ok(session)
    }

    /// The agent that a client is, by its recorded program. Reads a small file if the configuration has a level for an agent.
    fn proven_agent(&self, kind: OpenerKind, peer: &Peer) -> Option<String> {
        let counts = kind == OpenerKind::Agent && !self.config.loaded().policy.levels.agents.is_empty();
        let programs = counts.then(|| agent_programs::load(&self.config.options.paths.agent_programs()))?;
        peer.proven_agent(&programs).map(str::to_owned)
    }

    fn create_in_folders(&self, kind: OpenerKind, peer: &Peer, open: SessionRequest) -> anyhow::Result<Session> {
        match (&peer.owner, kind) {
            (SessionOwner::Tool(starter), _) => Self::session_below(starter, &peer.owner, open),
            // Nothing can be read at the root by default, and grants for projects do not apply
            // there.
            (SessionOwner::UnknownTool | SessionOwner::Plugin { .. }, _) => {
                let open = SessionRequest { roots: Vec::new(), env: BTreeMap::new(), ..open };
                Ok(Session::owned_by(new_session(open, "/".into(), Vec::new(), "/".into(), None), peer.owner.clone()))
            }
            // A person chose the folder of those of the fleet, in the configuration.
            (SessionOwner::Frontend, OpenerKind::Person | OpenerKind::Page | OpenerKind::Fleet) => {
                self.session_of_person(open)
            }
            (SessionOwner::Frontend, OpenerKind::Agent | OpenerKind::Token | OpenerKind::Descendant) => {
                self.session_of_client(kind, peer, open)
            }
        }
    }

    /// A session in a folder that a person chose, for a caller without a process here.
    ///
    /// # Errors
    /// The folder cannot be worked in.
    #[cfg(feature = "fleet")]
    pub(crate) fn in_chosen_folder(&self, open: SessionRequest) -> anyhow::Result<Session> {
        self.session_of_person(open)
    }

    /// For a person's frontend, which may name any folder.
    fn session_of_person(&self, open: SessionRequest) -> anyhow::Result<Session> {
        let real = |text: &Path| -> anyhow::Result<PathBuf> {
            let text = &self.expand_tilde(text);
            anyhow::ensure!(text.is_absolute(), "{} is not an absolute path", text.display());
            real_dir(text).with_context(|| format!("{} is not a folder to work in", text.display()))
        };
        let cwd = real(open.cwd.as_deref().unwrap_or(Path::new("/")))?;
        let project = project_of(&cwd).with_context(|| format!("can't look at {}", cwd.display()))?;
        let roots = open.roots.iter().map(|root| real(root)).collect::<anyhow::Result<Vec<_>>>()?;
        let grants = grant_project_of(&project);
        Ok(Session::new(new_session(open, cwd, roots, project, None)).with_grants_of(grants))
    }

    /// For a client that acts for a model: folders that nobody chose wait for a person. The answer
    /// for a missing folder is the same: the client must not learn whether it exists.
    fn session_of_client(&self, kind: OpenerKind, peer: &Peer, open: SessionRequest) -> anyhow::Result<Session> {
        let home = self.config.options.paths.home.as_deref();
        let gate = ClientGate {
            workspaces: Arc::downgrade(&self.workspaces),
            client: open.client.as_ref().map_or("a client without a name", |client| &client.name).to_owned(),
            started_in: peer.cwd.clone(),
            limits: self.workspace_limits(kind, &open.profiles),
        };
        let gate = gate.shared();
        let named = |path: &Path| -> anyhow::Result<WorkspaceFolder> {
            let path = self.expand_tilde(path);
            anyhow::ensure!(path.is_absolute(), "{} is not an absolute path", path.display());
            let real = real_dir(&path).or_else(|_| resolve(&path, Path::new("/")))?;
            Ok(WorkspaceFolder { named: without_dots(&path), real })
        };
        // If the client's program was started in a place like `/`, as by a desktop, it did not
        // choose a folder.
        let is_default = open.cwd.is_none() || open.cwd == peer.cwd;
        let cwd = open.cwd.as_deref().or(peer.cwd.as_deref()).map(named).transpose()?;
        let cwd = cwd.filter(|cwd| !is_default || !is_wide(&cwd.real, home));
        let roots = open.roots.iter().map(|root| named(root)).collect::<anyhow::Result<Vec<_>>>()?;
        let cwd = cwd.or_else(|| roots.first().cloned());
        let shown = |folder: &WorkspaceFolder| {
            if gate.is_open(&folder.real) { folder.real.clone() } else { folder.named.clone() }
        };
        let work = cwd.as_ref().map_or_else(|| PathBuf::from("/"), shown);
        let project = cwd.as_ref().and_then(|cwd| project_of(&cwd.real).ok()).unwrap_or_else(|| work.clone());
        let others = roots.iter().map(shown).filter(|root| *root != work).collect();
        let mut folders: Vec<WorkspaceFolder> = cwd.into_iter().chain(roots).collect();
        folders.dedup();
        let grants = grant_project_of(&project);
        let workspace = Some(Workspace::new(gate, folders));
        Ok(Session::new(new_session(open, work, others, project, workspace)).with_grants_of(grants))
    }

    fn workspace_limits(&self, kind: OpenerKind, profiles: &[ClientProfile]) -> Vec<WorkspaceLimit> {
        let home = self.config.options.paths.home.as_deref();
        let of_token = (kind == OpenerKind::Token).then(|| self.config.loaded().config.mcp.token.only(home)).flatten();
        let of_token = of_token.map(|folders| WorkspaceLimit { of: "the token", key: "mcp.token".to_owned(), folders });
        let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let of_profile = |profile: &ClientProfile| {
            let key = format!("mcp.profiles.{}", profile.name);
            let folders = profile.workspaces.as_ref()?.iter().map(real).collect();
            Some(WorkspaceLimit { of: "the profile", key, folders })
        };
        of_token.into_iter().chain(profiles.iter().filter_map(of_profile)).collect()
    }

    /// A tool's process works in the folders of its tool's session, in its environment, and sees
    /// its project.
    fn session_below(starter: &Starter, owner: &SessionOwner, open: SessionRequest) -> anyhow::Result<Session> {
        let tool = &starter.session;
        let wanted = open.cwd.clone().unwrap_or_else(|| tool.cwd.clone());
        let cwd = real_dir(&wanted).with_context(|| format!("{} is not a folder to work in", wanted.display()))?;
        for path in std::iter::once(&cwd).chain(&open.roots) {
            let inside = real_dir(path).is_ok_and(|path| tool.contains(&path));
            let words = "is outside the folders of the tool that started this process";
            anyhow::ensure!(inside, "{} {words}", path.display());
        }
        let roots = std::iter::once(&tool.cwd).chain(&tool.roots).cloned().collect();
        let mut env = tool.env.clone();
        env.extend(open.env.clone());
        let open = SessionRequest { env, ..open };
        let new = new_session(open, cwd, roots, tool.own_project().to_owned(), None);
        Ok(Session::owned_by(new, owner.clone()).with_grants_of(tool.own_grant_project().to_owned()))
    }

    /// Splits variables into those that a client may set, and the sorted names of the others.
    pub fn permitted_env(
        &self,
        kind: OpenerKind,
        peer: &Peer,
        env: BTreeMap<String, String>,
    ) -> (BTreeMap<String, String>, Vec<String>) {
        if kind == OpenerKind::Person || env.is_empty() {
            return (env, Vec::new());
        }
        let names = self.config.loaded().config.agents.names();
        // A tool's process chose its own environment: it does not show what a person set.
        let own = if kind == OpenerKind::Agent { peer.lineage.environment() } else { HashMap::new() };
        let may = |name: &String, value: &String| {
            let is_own = || own.get(name).is_some_and(|own| own == value) && !is_secret(name, value);
            is_usable(name, value) && (names.is_match(name) || is_own())
        };
        let (kept, ignored): (BTreeMap<_, _>, BTreeMap<_, _>) =
            env.into_iter().partition(|(name, value)| may(name, value));
        (kept, ignored.into_keys().collect())
    }

    /// A path of a client without a folder here may begin with `~`, the home folder of the daemon's
    /// user.
    pub(crate) fn expand_tilde(&self, path: &Path) -> PathBuf {
        config::expand_home(&path.to_string_lossy(), self.config.options.paths.home.as_deref())
    }
}

fn new_session(
    open: SessionRequest,
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    project: PathBuf,
    workspace: Option<Workspace>,
) -> NewSession {
    let SessionRequest { id, client, model, env, filter, .. } = open;
    NewSession { id, cwd, roots, project, client, model, env, filter, workspace }
}

/// Whether a variable is well-formed and not one of toold's own: a name for the shell (POSIX,
/// section 3.216), and a value that is one line of text.
fn is_usable(name: &str, value: &str) -> bool {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name && !name.starts_with("TOOLD_") && !value.chars().any(char::is_control)
}

/// Whether a variable looks like a secret.
fn is_secret(name: &str, value: &str) -> bool {
    // A value that is too short for a secret would hide the name from the check.
    redact(&format!("{name}=0123456789abcdef")).contains(toold_engine::redact::REDACTED)
        || redact(value).contains(toold_engine::redact::REDACTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_with_secrets_are_known_by_name_or_value() {
        for (name, value) in [("GITHUB_TOKEN", "x"), ("AWS_SECRET_ACCESS_KEY", "x"), ("DB", "postgres://u:pass@h/d")] {
            assert!(is_secret(name, value), "{name}");
        }
        for name in ["PATH", "VIRTUAL_ENV", "NVM_DIR", "CARGO_HOME", "SSH_AUTH_SOCK"] {
            assert!(!is_secret(name, "/home/u/x"), "{name}");
        }
    }
}
