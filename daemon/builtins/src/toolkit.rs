//! The state that the built-in tools share. One for each daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toold_engine::cx::Cx;
use toold_engine::session::Session;
use toold_host::environment::Environment;
use toold_host::sandbox::Sandbox;
use toold_proto::tool::SessionId;

use crate::agents::{AgentType, Agents};
use crate::buffers::Buffers;
use crate::journal::Journal;
use crate::shells::BackgroundShells;
use crate::skills::SkillPlaces;
use crate::stamps::Stamps;
use crate::web::Web;

/// The folders, variables and services that the daemon gives its built-in tools.
pub struct Toolkit {
    /// What programs get, before the session adds its own.
    pub environment: Environment,
    pub(crate) places: ToolkitFolders,
    next_file: AtomicU64,
    pub(crate) stamps: Stamps,
    pub(crate) journal: Journal,
    /// What editors have open and not saved.
    pub buffers: Buffers,
    /// The commands in the background.
    pub shells: BackgroundShells,
    /// What confines commands.
    pub sandbox: Arc<Sandbox>,
    /// How the web is reached, and searched.
    pub web: Web,
    /// The sub-agents that there are.
    pub agents: Agents,
}

/// The folders for data of built-in tools; data without a folder is not kept.
#[derive(Debug, Default)]
pub struct ToolkitFolders {
    /// Long results: `SPOOL/SESSION/...`. A session may read what lies in its own folder there without asking;
    /// whoever closes the session removes it.
    pub spool: Option<PathBuf>,
    /// What was in files before they were changed: `UNDO/SESSION/...`, no tool's to read.
    pub undo: Option<PathBuf>,
    /// What a session has to do and remembers: `SESSIONS/SESSION/...`.
    pub sessions: Option<PathBuf>,
    /// The user's memories, for all projects.
    pub memories: Option<PathBuf>,
    pub skills: SkillPlaces,
}

impl Toolkit {
    pub fn new(environment: Environment, mut places: ToolkitFolders) -> Self {
        let resolved = |place: PathBuf| toold_host::files::resolve(&place, Path::new("/")).unwrap_or(place);
        places.spool = places.spool.map(resolved);
        Self {
            environment,
            next_file: AtomicU64::new(1),
            stamps: Stamps::default(),
            journal: Journal::new(places.undo.clone()),
            buffers: Buffers::default(),
            shells: BackgroundShells::default(),
            sandbox: Arc::default(),
            web: Web::default(),
            agents: Agents::default(),
            places,
        }
    }

    /// The kinds of sub-agents for a session in `project`, sorted by name. Blocks.
    pub fn agent_types(&self, project: &Path) -> Vec<AgentType> {
        self.agents.types(project, self.places.skills.home.as_deref())
    }

    pub fn skill_places(&self) -> &SkillPlaces {
        &self.places.skills
    }

    /// The folder of the call's session in the spool.
    pub(crate) fn session_spool(&self, cx: &Cx) -> Option<PathBuf> {
        self.places.spool.as_ref().map(|spool| spool.join(cx.session.id.as_str()))
    }

    /// Where a session's list and memories are kept.
    pub(crate) fn session_folder(&self, session: &Session) -> Option<PathBuf> {
        self.folder_of(&session.id)
    }

    pub(crate) fn folder_of(&self, session: &SessionId) -> Option<PathBuf> {
        self.places.sessions.as_ref().map(|sessions| sessions.join(session.as_str()))
    }

    /// A path for a long output of this call. Nothing is made there.
    pub(crate) fn spool_file(&self, cx: &Cx) -> Option<PathBuf> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        let call: String = cx.call_id.as_str().chars().take(64).map(plain).collect();
        // A daemon that was here before may have left a file of the same number.
        let process = std::process::id();
        self.session_spool(cx).map(|folder| folder.join(format!("{call}.{process}.{number}.out")))
    }
}
