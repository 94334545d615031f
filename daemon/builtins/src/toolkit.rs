//! The state that the built-in tools share, one per daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::guarded_files::GuardedFiles;
use toold_engine::need::Need;
use toold_engine::schema::Schema;
use toold_engine::session::Session;
use toold_host::environment::Environment;
use toold_host::kept_programs::KeptPrograms;
use toold_host::sandbox::{FoundSecrets, Sandbox, SessionRecords};
use toold_proto::level::Level;
use toold_proto::tool::SessionId;

use crate::agents::{AgentType, Agents};
use crate::buffers::Buffers;
use crate::checkouts;
use crate::command_changes::CommandChanges;
use crate::journal::Journal;
use crate::locked_installs::{self, LineLocks};
use crate::own_signals;
use crate::shells::BackgroundShells;
use crate::skills::SkillPlaces;
use crate::stamps::Stamps;
use crate::web::Web;

/// The folders, variables and services that the daemon gives its built-in tools.
pub struct Toolkit {
    /// The environment of programs, before the session adds its variables.
    pub environment: Environment,
    pub(crate) places: ToolkitFolders,
    next_file: AtomicU64,
    pub(crate) stamps: Stamps,
    pub(crate) journal: Arc<Journal>,
    pub(crate) command_changes: Arc<CommandChanges>,
    /// Unsaved texts of editors.
    pub buffers: Buffers,
    /// Background commands.
    pub shells: BackgroundShells,
    /// The sandbox of commands.
    pub sandbox: Arc<Sandbox>,
    /// The programs that commands may leave behind.
    pub kept_programs: Mutex<Arc<KeptPrograms>>,
    /// Access to the web, and search.
    pub web: Web,
    /// The available sub-agents.
    pub agents: Agents,
    /// The schema of the arguments of agents' own tools.
    pub(crate) any_object: Schema,
}

/// The folders for the data of built-in tools. Data without a folder is not stored.
#[derive(Debug, Default)]
pub struct ToolkitFolders {
    /// Long results: `SPOOL/SESSION/...`. A session may read its own folder there without being asked. Closing the
    /// session removes the folder.
    pub spool: Option<PathBuf>,
    /// Records of changes, `UNDO/SESSION/...`, and the contents before them. No tool may read them.
    pub undo: Option<PathBuf>,
    /// To-do lists and memories of sessions: `SESSIONS/SESSION/...`.
    pub sessions: Option<PathBuf>,
    /// The user's memories, for all projects.
    pub memories: Option<PathBuf>,
    pub skills: SkillPlaces,
}

impl Toolkit {
    pub fn new(environment: Environment, mut places: ToolkitFolders) -> Self {
        let resolved = |place: PathBuf| toold_host::files::resolve(&place, Path::new("/")).unwrap_or(place);
        places.spool = places.spool.map(resolved);
        let journal = Arc::new(Journal::new(places.undo.clone()));
        Self {
            environment,
            next_file: AtomicU64::new(1),
            stamps: Stamps::default(),
            command_changes: Arc::new(CommandChanges::new(journal.clone())),
            journal,
            buffers: Buffers::default(),
            shells: BackgroundShells::default(),
            sandbox: Arc::default(),
            kept_programs: Mutex::default(),
            web: Web::default(),
            agents: Agents::default(),
            any_object: Schema::compiled_before(json!({"type": "object"})),
            places,
        }
    }

    /// The sub-agent types for a session in `project`, sorted by name. Blocks.
    pub fn agent_types(&self, project: &Path) -> Vec<AgentType> {
        self.agents.types(project, self.places.skills.home.as_deref())
    }

    /// Adds the files that commands of Git overwrite with those of other commits, where the level frees such commands.
    pub async fn add_overwritten(&self, needs: &mut Vec<Need>, level: Level, session: &Session, files: &GuardedFiles) {
        let cancel = CancellationToken::new();
        let reader = (&*self.sandbox, &self.environment, files.policy());
        checkouts::add_overwritten(needs, level, session, reader, &cancel).await;
    }

    /// Marks the needs of a command line of a session that its level frees if it runs confined, as
    /// [`Sandbox::mark_confined`]. Blocks for a moment at most.
    pub fn mark_confined(&self, needs: &mut [Need], level: Level, session: &Session, cwd: &Path, files: &GuardedFiles) {
        let locks = LineLocks::known(needs, session);
        let _ = self.mark_confined_by(needs, level, session, cwd, (files, &locks));
    }

    /// The same with these lock files.
    pub(crate) fn mark_confined_by(
        &self,
        needs: &mut [Need],
        level: Level,
        session: &Session,
        cwd: &Path,
        (files, locks): (&GuardedFiles, &LineLocks),
    ) -> Option<FoundSecrets> {
        let keeps = |files: &[&Path]| self.command_changes.keeps(session, files);
        let made = |path: &Path| self.command_changes.made(session, path);
        let is_locked = |need: &Need| locks.is_free(need);
        let records = SessionRecords { keeps: &keeps, made: &made, is_locked: &is_locked };
        own_signals::mark(needs, session);
        self.sandbox.mark_confined(needs, level, session, cwd, (files, Some(&records)))
    }

    /// Records what a session finds when it begins. Reads a few small files.
    pub fn note_began(&self, session: &Session) {
        locked_installs::note_began(session);
    }

    /// Records that a session has begun before, with an earlier daemon or before it was closed as unused.
    pub fn note_restored(&self, session: &Session) {
        locked_installs::note_restored(session);
    }

    pub fn skill_places(&self) -> &SkillPlaces {
        &self.places.skills
    }

    /// Removes recorded changes that are too old, if `may_remove` allows it for one more of that many, and the contents that
    /// nobody needs. Blocks.
    pub fn clean_changes(&self, may_remove: &mut dyn FnMut(u64) -> bool) {
        // Of commands that a killed daemon has left, too: they need contents that nobody else does.
        self.command_changes.wait_until_recorded();
        self.journal.clean(may_remove, || self.command_changes.needed());
    }

    /// Sets how long a command waits for the index of its folder, before and after it; by default 300 ms.
    pub fn wait_for_changes(&self, wait: std::time::Duration) {
        self.command_changes.set_wait(wait);
    }

    /// Whether commands of another daemon may run beside those of this one, as around a restart: what changes meanwhile is undone
    /// only when it is named.
    pub fn set_beside_another_daemon(&self, is_beside: bool) {
        self.command_changes.set_beside_another_daemon(is_beside);
    }

    /// Forgets the recorded changes of `path` and of all below it, or all, with their contents; returns how many there
    /// were. Blocks.
    ///
    /// # Errors
    /// A record cannot be changed.
    pub fn forget_changes(&self, path: Option<&Path>) -> std::io::Result<usize> {
        let forgotten = self.journal.forget(path)?;
        self.command_changes.forget();
        Ok(forgotten)
    }

    /// The spool folder of the call's session.
    pub(crate) fn session_spool(&self, cx: &Cx) -> Option<PathBuf> {
        self.places.spool.as_ref().map(|spool| spool.join(cx.session.id.as_str()))
    }

    /// The folder of a session's to-do list and memories.
    pub(crate) fn session_folder(&self, session: &Session) -> Option<PathBuf> {
        self.folder_of(&session.id)
    }

    pub(crate) fn folder_of(&self, session: &SessionId) -> Option<PathBuf> {
        self.places.sessions.as_ref().map(|sessions| sessions.join(session.as_str()))
    }

    /// A path for a long output of this call. Creates nothing.
    pub(crate) fn spool_file(&self, cx: &Cx) -> Option<PathBuf> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        let call: String = cx.call_id.as_str().chars().take(64).map(plain).collect();
        // An earlier daemon may have left a file with the same number.
        let process = std::process::id();
        self.session_spool(cx).map(|folder| folder.join(format!("{call}.{process}.{number}.out")))
    }
}
