//! The folders in which clients of models may work: those that people chose.
//!
//! A folder is chosen by opening a session there, by `toolctl workspaces allow`, by `[workspaces]
//! allow`, by trusting what it holds, in an agent's own dialog, or by approving it when a client asks. A client that starts in
//! one of the user's folders may work there, too, but nothing beyond reading is free there until a person chooses it.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::{Mutex, RwLock};
use toold_engine::Engine;
use toold_engine::kept::{ChangeEffect, NotKept};
use toold_engine::time::rfc3339;
use toold_engine::workspace::WorkspaceGate;
use toold_proto::workspace::{WorkspaceInfo, WorkspaceSource};
use toold_store::Store;
use toold_store::workspaces::{SavedWorkspace, WorkspaceKind};

use super::agent_trust;
use crate::config::active_config::ActiveConfig;
use crate::config::workspaces::{is_too_broad, is_wide};

/// Why a folder is no workspace now.
#[derive(Debug)]
pub enum WorkspaceError {
    /// It cannot be one, as a sentence for the user.
    Invalid(String),
    Store(NotKept),
}

/// The folders that people chose, across restarts.
pub struct Workspaces {
    engine: Arc<Engine>,
    store: Arc<Store>,
    config: Arc<ActiveConfig>,
    chosen: RwLock<Vec<SavedWorkspace>>,
    /// Choices that were taken back, and are in the store still.
    forgotten: Mutex<HashSet<PathBuf>>,
    /// Serialises changes, so that the store and `chosen` have the same ones.
    changing: Mutex<()>,
}

impl Workspaces {
    /// Loads those of the store.
    pub fn load(engine: &Arc<Engine>, store: &Arc<Store>, config: &Arc<ActiveConfig>) -> Self {
        let workspaces = Self {
            engine: engine.clone(),
            store: store.clone(),
            config: config.clone(),
            chosen: RwLock::default(),
            forgotten: Mutex::default(),
            changing: Mutex::default(),
        };
        workspaces.reload();
        workspaces
    }

    /// Reads those of the store again, which another daemon may have changed, or which could not be read before. Blocks.
    pub fn reload(&self) {
        let _one = self.changing.lock();
        match self.store.load_workspaces() {
            Ok(mut stored) => {
                let forgotten = self.forgotten.lock();
                stored.retain(|known| !forgotten.contains(&known.folder));
                *self.chosen.write() = stored;
            }
            Err(error) => tracing::warn!(%error, "can't read the workspaces that people chose"),
        }
    }

    fn is_chosen(&self, holds: impl Fn(&SavedWorkspace) -> bool) -> bool {
        self.chosen.read().iter().any(holds)
    }

    fn add(&self, workspace: SavedWorkspace) {
        let mut chosen = self.chosen.write();
        chosen.retain(|known| known.folder != workspace.folder || known.kind != workspace.kind);
        chosen.push(workspace);
    }

    /// Records that a person opened a session in this folder, or trusted what it holds. Blocks for a moment.
    pub fn note_opened(&self, folder: &Path) {
        let is_known = |known: &SavedWorkspace| known.kind == WorkspaceKind::Opened && known.folder == folder;
        if !is_too_broad(folder, self.home()) && !self.is_chosen(is_known) {
            self.save(folder.to_owned(), WorkspaceKind::Opened);
        }
    }

    /// Lets every client work in this folder, permanently. Blocks.
    ///
    /// # Errors
    /// It cannot be a workspace, or not be stored; nothing changed.
    pub fn allow(&self, folder: &Path) -> Result<(), WorkspaceError> {
        if is_too_broad(folder, self.home()) {
            let words = "it is too broad; allow folders inside it instead";
            return Err(WorkspaceError::Invalid(format!("{} cannot be a workspace: {words}", folder.display())));
        }
        if let Some(reason) = self.never(folder) {
            return Err(WorkspaceError::Invalid(reason));
        }
        let _one = self.changing.lock();
        let workspace =
            SavedWorkspace { folder: folder.to_owned(), kind: WorkspaceKind::Allowed, at: SystemTime::now() };
        let store = || self.store.save_workspace(&workspace);
        ChangeEffect::Widens.keep(store, |_| self.add(workspace.clone())).map_err(WorkspaceError::Store)?;
        self.forgotten.lock().remove(folder);
        self.engine.policy_changed();
        Ok(())
    }

    /// Removes a person's choice of this folder. Sessions that already work there continue. False
    /// when nobody chose it. Blocks.
    ///
    /// # Errors
    /// It could not be stored: the choice is back after a restart.
    pub fn forget(&self, folder: &Path) -> Result<bool, NotKept> {
        let _one = self.changing.lock();
        let known = self.is_chosen(|known| known.folder == folder);
        let forget = |_: Option<&bool>| self.chosen.write().retain(|known| known.folder != folder);
        ChangeEffect::Narrows.keep(|| self.store.forget_workspace(folder), forget).inspect_err(|_| {
            self.forgotten.lock().insert(folder.to_owned());
        })?;
        Ok(known)
    }

    fn save(&self, folder: PathBuf, kind: WorkspaceKind) {
        let _one = self.changing.lock();
        let workspace = SavedWorkspace { folder, kind, at: SystemTime::now() };
        self.add(workspace.clone());
        if let Err(error) = self.store.save_workspace(&workspace) {
            let folder = workspace.folder.display();
            tracing::warn!(%folder, %error, "the workspace is forgotten when the daemon ends");
        }
    }

    /// All of them, as `workspaces.list` shows them.
    pub fn list(&self) -> Vec<WorkspaceInfo> {
        let configured = self.configured().into_iter().map(|folder| WorkspaceInfo {
            path: folder.display().to_string(),
            source: WorkspaceSource::Config,
            client: None,
            at: None,
        });
        let chosen = self.chosen.read().clone().into_iter().map(|known| {
            let (source, client) = match known.kind {
                WorkspaceKind::Opened => (WorkspaceSource::Opened, None),
                WorkspaceKind::Allowed => (WorkspaceSource::Allowed, None),
                WorkspaceKind::Client(client) => (WorkspaceSource::Client, Some(client)),
            };
            WorkspaceInfo { path: known.folder.display().to_string(), source, client, at: Some(rfc3339(known.at)) }
        });
        let mut all: Vec<WorkspaceInfo> = configured.chain(chosen).collect();
        all.sort_by(|a, b| (&a.path, a.source, &a.client).cmp(&(&b.path, b.source, &b.client)));
        all
    }

    /// Whether a person chose this folder, or one above it, for a client of this name or for all. Reads a file if not.
    pub(crate) fn is_chosen_for(&self, client: &str, folder: &Path) -> bool {
        let holds = |place: &Path| !is_too_broad(place, self.home()) && folder.starts_with(place);
        let trusted = || agent_trust::trusted_place(client, folder, self.home()?);
        let counts = |known: &SavedWorkspace| match &known.kind {
            WorkspaceKind::Opened | WorkspaceKind::Allowed => true,
            WorkspaceKind::Client(known) => known == client,
        };
        self.configured().iter().any(|place| holds(place))
            || self.is_chosen(|known| counts(known) && holds(&known.folder))
            || trusted().is_some_and(|place| holds(&place))
    }

    fn configured(&self) -> Vec<PathBuf> {
        let folders = self.config.loaded().config.workspaces.folders(self.home());
        folders.into_iter().map(|folder| folder.canonicalize().unwrap_or(folder)).collect()
    }

    fn home(&self) -> Option<&Path> {
        self.config.options.paths.home.as_deref()
    }

    /// Why no client may ever work in this folder; `None` when a person can allow it.
    fn never(&self, folder: &Path) -> Option<String> {
        let policy = self.engine.policy.load();
        if let Some(own) = policy.control.iter().chain(policy.private.iter()).find(|own| folder.starts_with(own)) {
            let place = if folder == own { "it".to_owned() } else { format!("it lies in {}, which", own.display()) };
            return Some(format!("{} cannot be a workspace: {place} has files of toold itself", folder.display()));
        }
        let is_projects_own =
            |part: &Component<'_>| matches!(part, Component::Normal(name) if *name == ".toold" || *name == ".hygge");
        let at = folder.components().position(|part| is_projects_own(&part))?;
        let project: PathBuf = folder.components().take(at).collect();
        let (folder, project) = (folder.display(), project.display());
        Some(format!(
            "{folder} cannot be a workspace: it has the configuration and plugins of a project; name {project} instead"
        ))
    }
}

/// The permissions of one client on folders.
pub(crate) struct ClientGate {
    pub(crate) workspaces: Weak<Workspaces>,
    /// The name that it reports.
    pub(crate) client: String,
    /// The folder of its process when it connected.
    pub(crate) started_in: Option<PathBuf>,
    /// Each leaves out some of the folders that people chose.
    pub(crate) limits: Vec<WorkspaceLimit>,
}

/// The only folders that a token or a profile reaches.
pub(crate) struct WorkspaceLimit {
    /// `the token` or `the profile`.
    pub(crate) of: &'static str,
    /// The section of the configuration that names the folders.
    pub(crate) key: String,
    pub(crate) folders: Vec<PathBuf>,
}

impl ClientGate {
    fn is_chosen_in(&self, workspaces: &Workspaces, folder: &Path) -> bool {
        workspaces.is_chosen_for(&self.client, folder)
    }

    fn may_be_open(&self, workspaces: &Workspaces, folder: &Path) -> bool {
        workspaces.never(folder).is_none() && self.limit(folder).is_none()
    }

    /// Whether the client's process works in this folder, and started where people keep their work.
    fn is_started_in(&self, workspaces: &Workspaces, folder: &Path) -> bool {
        self.started_in.as_deref().is_some_and(|own| {
            let is_systems = ["/proc", "/sys", "/dev"].iter().any(|place| own.starts_with(place));
            let plain = !(is_hidden(own) || is_systems) || self.is_chosen_in(workspaces, own);
            folder.starts_with(own) && plain && !is_wide(own, workspaces.home())
        })
    }

    /// The limit that leaves this folder out.
    fn limit(&self, folder: &Path) -> Option<&WorkspaceLimit> {
        self.limits.iter().find(|limit| !limit.folders.iter().any(|place| folder.starts_with(place)))
    }
}

impl WorkspaceGate for ClientGate {
    fn is_open(&self, folder: &Path) -> bool {
        let Some(workspaces) = self.workspaces.upgrade() else { return false };
        self.may_be_open(&workspaces, folder)
            && (self.is_started_in(&workspaces, folder) || self.is_chosen_in(&workspaces, folder))
    }

    fn is_chosen(&self, folder: &Path) -> bool {
        let Some(workspaces) = self.workspaces.upgrade() else { return false };
        self.may_be_open(&workspaces, folder) && self.is_chosen_in(&workspaces, folder)
    }

    fn refuses(&self, folder: &Path) -> Option<String> {
        let workspaces = self.workspaces.upgrade()?;
        if is_wide(folder, workspaces.home()) {
            let words = "it is too broad; you can allow a folder inside it with: toolctl workspaces allow DIR";
            return Some(format!("{} cannot be a workspace: {words}", folder.display()));
        }
        if let Some(WorkspaceLimit { of, key, .. }) = self.limit(folder) {
            return Some(format!("{of} does not reach {}: see {key}.workspaces", folder.display()));
        }
        workspaces.never(folder)
    }

    fn is_too_broad(&self, folder: &Path) -> bool {
        let Some(workspaces) = self.workspaces.upgrade() else { return false };
        is_wide(folder, workspaces.home()) && self.limit(folder).is_none() && workspaces.never(folder).is_none()
    }

    fn remember(&self, folders: &[PathBuf]) {
        let Some(workspaces) = self.workspaces.upgrade() else { return };
        for folder in folders {
            workspaces.save(folder.clone(), WorkspaceKind::Client(self.client.clone()));
        }
    }

    fn open_to_all(&self) -> Vec<PathBuf> {
        let Some(workspaces) = self.workspaces.upgrade() else { return Vec::new() };
        let allowed = workspaces.chosen.read().clone().into_iter().filter(|known| known.kind == WorkspaceKind::Allowed);
        let mut all: Vec<PathBuf> = allowed.map(|known| known.folder).collect();
        all.extend(workspaces.configured());
        all.retain(|folder| self.limit(folder).is_none() && workspaces.never(folder).is_none());
        all
    }

    fn client(&self) -> &str {
        &self.client
    }
}

impl ClientGate {
    pub(crate) fn shared(self) -> Arc<dyn WorkspaceGate> {
        Arc::new(self)
    }
}

fn is_hidden(folder: &Path) -> bool {
    folder.components().any(|part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_folders_are_known_wherever_they_stand() {
        assert!(is_hidden(Path::new("/home/u/.config/x")) && is_hidden(Path::new("/home/u/.ssh")));
        assert!(!is_hidden(Path::new("/home/u/src")));
    }
}
