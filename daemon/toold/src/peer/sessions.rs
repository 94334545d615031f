//! How sessions are made: in which folders, with which variables, for whom.
//!
//! A person's frontend chooses both. For all others they are authority: a folder is what may be read, and a variable
//! such as `PATH` or `GIT_EXTERNAL_DIFF` turns an allowed command into any program. What a process below a tool gets is
//! what its tool's session has.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use globset::{Glob, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toold_engine::redact::redact;
use toold_engine::session::{Hold, NewSession, Session, SessionFilter, Starter};
use toold_engine::workspace::{Workspace, WorkspaceFolder};
use toold_host::files::resolve;
use toold_proto::session::ClientInfo;
use toold_proto::tool::SessionId;

use crate::config;
use crate::config::project_folder::{project_of, real_dir};
use crate::daemon::{State, random_hex};
use crate::peer::Peer;
use crate::peer::workspaces::{ClientGate, is_wide, without_dots};

/// `[agents]`: clients that act for a model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsConfig {
    /// Names of variables that an agent, an MCP client, a holder of a token or a process below a tool may set for its
    /// session, whatever their values; `*` stands for any text. A variable with the value that the client's own process
    /// was started with is always taken, unless it holds a secret.
    pub env: Vec<String>,
}

impl Default for AgentsConfig {
    fn default() -> Self {
        let env = ["LANG", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR", "CI"];
        Self { env: env.map(str::to_owned).to_vec() }
    }
}

impl AgentsConfig {
    /// What is wrong with each name.
    pub fn problems(&self) -> Vec<String> {
        self.env.iter().filter_map(|name| is_variable(name).err()).collect()
    }

    /// The names, compiled. One that is wrong matches nothing.
    fn names(&self) -> GlobSet {
        let mut set = GlobSetBuilder::new();
        self.env.iter().filter_map(|name| Glob::new(name).ok()).for_each(|glob| _ = set.add(glob));
        set.build().unwrap_or_default()
    }
}

/// # Errors
/// No variable can have this name, or nothing matches this pattern; in words for people.
fn is_variable(name: &str) -> Result<(), String> {
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '*');
    match is_plain && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(()),
        false => Err(format!("{name:?} is no name of a variable: did you mean {plain:?}?")),
    }
}

/// What a session may be opened with. A client that sends more is mistaken, or wants to keep others waiting.
pub(crate) const MAX_VARIABLES: usize = 4_096;
pub(crate) const MAX_ROOTS: usize = 256;

/// What kind of principal opened a session, which decides who may join it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenerKind {
    #[default]
    Person,
    /// A client that acts for a model.
    Agent,
    /// Whoever has a token that may call: on a network, and no person as far as anybody knows.
    Token,
    /// What a tool started.
    Descendant,
}

/// Who opened a session. Kept with it, across restarts too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opener {
    pub kind: OpenerKind,
    /// The program that the client belongs to.
    pub program: Option<PathBuf>,
}

/// Kept in a session's slot.
#[derive(Default)]
struct OpenedBy(Mutex<Opener>);

/// Says who opened a session that nobody else has found yet.
pub(crate) fn set_opener(session: &Session, opener: Opener) {
    *session.slot::<OpenedBy>().0.lock().unwrap_or_else(PoisonError::into_inner) = opener;
}

pub(crate) fn opener_of(session: &Session) -> Opener {
    session.slot::<OpenedBy>().0.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What a session is asked to be.
pub struct SessionRequest {
    pub id: SessionId,
    /// Absent for a client that names no folder.
    pub cwd: Option<PathBuf>,
    pub roots: Vec<PathBuf>,
    pub client: Option<ClientInfo>,
    pub model: Option<String>,
    /// Those that the client may set: see [`State::permitted_env`].
    pub env: BTreeMap<String, String>,
    pub filter: SessionFilter,
}

impl State {
    /// A new session for whoever is at the other end of a connection.
    ///
    /// # Errors
    /// A path that is not absolute; of a person also one that is no folder, of what a tool started one that lies
    /// outside of the tool's session.
    pub fn new_session_for(
        self: &Arc<Self>,
        kind: OpenerKind,
        peer: &Peer,
        open: SessionRequest,
    ) -> anyhow::Result<Session> {
        match (&peer.hold, kind) {
            (Hold::Tool(starter), _) => Self::session_below(starter, &peer.hold, open),
            // Nothing can be read at the root by default, and what was granted for projects does not count there.
            (Hold::Unknown, _) => {
                let open = SessionRequest { roots: Vec::new(), env: BTreeMap::new(), ..open };
                Ok(Session::held(new_session(open, "/".into(), Vec::new(), "/".into(), None), peer.hold.clone()))
            }
            (Hold::Free, OpenerKind::Person) => self.session_of_person(open),
            (Hold::Free, OpenerKind::Agent | OpenerKind::Token | OpenerKind::Descendant) => {
                self.session_of_client(kind, peer, open)
            }
        }
    }

    /// For a person's frontend, which may name any folder.
    fn session_of_person(&self, open: SessionRequest) -> anyhow::Result<Session> {
        let real = |text: &Path| -> anyhow::Result<PathBuf> {
            let text = &self.without_tilde(text);
            anyhow::ensure!(text.is_absolute(), "{} is no absolute path", text.display());
            real_dir(text).with_context(|| format!("{} is no folder to work in", text.display()))
        };
        let cwd = real(open.cwd.as_deref().unwrap_or(Path::new("/")))?;
        let project = project_of(&cwd).with_context(|| format!("can't look at {}", cwd.display()))?;
        let roots = open.roots.iter().map(|root| real(root)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Session::new(new_session(open, cwd, roots, project, None)))
    }

    /// For a client that acts for a model: folders that nobody chose wait for a person. That, and no more, is the answer
    /// for a folder that is not there: its existence is not the client's to learn.
    fn session_of_client(
        self: &Arc<Self>,
        kind: OpenerKind,
        peer: &Peer,
        open: SessionRequest,
    ) -> anyhow::Result<Session> {
        let home = self.options.places.home.as_deref();
        let gate = ClientGate {
            state: Arc::downgrade(self),
            client: open.client.as_ref().map_or("a client without a name", |client| &client.name).to_owned(),
            started_in: peer.cwd.clone(),
            only: (kind == OpenerKind::Token).then(|| self.loaded().config.mcp.token.only(home)).flatten(),
        };
        let gate = gate.shared();
        let named = |path: &Path| -> anyhow::Result<WorkspaceFolder> {
            let path = self.without_tilde(path);
            anyhow::ensure!(path.is_absolute(), "{} is no absolute path", path.display());
            let real = real_dir(&path).or_else(|_| resolve(&path, Path::new("/")))?;
            Ok(WorkspaceFolder { named: without_dots(&path), real })
        };
        // Where a program was started that is no place of work, such as `/` for one of a desktop, none was meant.
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
        Ok(Session::new(new_session(open, work, others, project, Some(Workspace::new(gate, folders)))))
    }

    /// What a tool started works in the places of its tool's session, in its environment, and sees its project.
    fn session_below(starter: &Starter, hold: &Hold, open: SessionRequest) -> anyhow::Result<Session> {
        let tool = &starter.session;
        let wanted = open.cwd.clone().unwrap_or_else(|| tool.cwd.clone());
        let cwd = real_dir(&wanted).with_context(|| format!("{} is no folder to work in", wanted.display()))?;
        for path in std::iter::once(&cwd).chain(&open.roots) {
            let inside = real_dir(path).is_ok_and(|path| tool.contains(&path));
            let words = "is outside of the folders of the tool that started this";
            anyhow::ensure!(inside, "{} {words}", path.display());
        }
        let roots = std::iter::once(&tool.cwd).chain(&tool.roots).cloned().collect();
        let mut env = tool.env.clone();
        env.extend(open.env.clone());
        let open = SessionRequest { env, ..open };
        Ok(Session::held(new_session(open, cwd, roots, tool.own_project().to_owned(), None), hold.clone()))
    }

    /// Of the variables that a client wants to set those that it may, and the names of the others, sorted.
    pub fn permitted_env(
        &self,
        kind: OpenerKind,
        peer: &Peer,
        env: BTreeMap<String, String>,
    ) -> (BTreeMap<String, String>, Vec<String>) {
        if kind == OpenerKind::Person || env.is_empty() {
            return (env, Vec::new());
        }
        let names = self.loaded().config.agents.names();
        // What was started by a tool chose its own environment: it says nothing of what a person set.
        let own = if kind == OpenerKind::Agent { peer.lineage.environment() } else { HashMap::new() };
        let may = |name: &String, value: &String| {
            let is_own = || own.get(name).is_some_and(|own| own == value) && !is_secret(name, value);
            is_usable(name, value) && (names.is_match(name) || is_own())
        };
        let (kept, ignored): (BTreeMap<_, _>, BTreeMap<_, _>) =
            env.into_iter().partition(|(name, value)| may(name, value));
        (kept, ignored.into_keys().collect())
    }

    /// A path of a client that knows no folder here may begin with `~`, the home folder of the daemon's user.
    pub(crate) fn without_tilde(&self, path: &Path) -> PathBuf {
        config::expand_home(&path.to_string_lossy(), self.options.places.home.as_deref())
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

/// Whether a variable is one that programs know what to do with, and none of toold's own: a name for the shell (POSIX,
/// section 3.216), and a value that is one line of text.
fn is_usable(name: &str, value: &str) -> bool {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name && !name.starts_with("TOOLD_") && !value.chars().any(char::is_control)
}

/// Whether a variable looks as if it holds a secret.
fn is_secret(name: &str, value: &str) -> bool {
    // A value that is too short for a secret would hide the name from the check.
    redact(&format!("{name}=0123456789abcdef")).contains(toold_engine::redact::REDACTED)
        || redact(value).contains(toold_engine::redact::REDACTED)
}

/// How long a code is good.
pub(crate) const SHARE_FOR: Duration = Duration::from_secs(600);
/// How codes begin; no client may name a session so.
const SHARE: &str = "share-";
const MAX_SHARES: usize = 1_000;

/// Codes by which agents join sessions that people handed on. Each is good once.
#[derive(Default)]
pub(crate) struct Shares(Mutex<HashMap<SessionId, (SessionId, Instant)>>);

impl Shares {
    /// A code for a session; `None` when too many wait.
    pub(crate) fn make(&self, session: &SessionId) -> Option<SessionId> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, (_, made)| made.elapsed() < SHARE_FOR);
        if codes.len() >= MAX_SHARES {
            return None;
        }
        let code = SessionId::parse(&format!("{SHARE}{}", random_hex(16))).expect("hexadecimal digits fit");
        codes.insert(code.clone(), (session.clone(), Instant::now()));
        Some(code)
    }

    /// The session that a code was made for. It is good no more then.
    pub(crate) fn take(&self, code: &SessionId) -> Option<SessionId> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.remove(code).filter(|(_, made)| made.elapsed() < SHARE_FOR).map(|(session, _)| session)
    }
}

pub(crate) fn is_share_code(id: &SessionId) -> bool {
    id.as_str().starts_with(SHARE)
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

    #[test]
    fn names_that_no_variable_has_are_errors() {
        assert!(is_variable("LC_*").is_ok() && is_variable("CI").is_ok());
        assert!(is_variable("$PATH").unwrap_err().contains("\"PATH\""));
        for wrong in ["", "1A", "A=B", "A B"] {
            assert!(is_variable(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_code_is_good_once() {
        let shares = Shares::default();
        let session = SessionId::parse("s").unwrap();
        let code = shares.make(&session).unwrap();
        assert!(is_share_code(&code));
        assert_eq!(shares.take(&code), Some(session));
        assert_eq!(shares.take(&code), None);
    }
}
