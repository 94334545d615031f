//! The folders in which clients of models may work: those that people chose.
//!
//! A folder is chosen by opening a session there, by `toolctl workspaces allow`, by `[workspaces] allow`, or by
//! approving it when a client asks. A client that starts in a folder of the user's may work there, too.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Deserialize;
use toold_engine::time::rfc3339;
use toold_engine::workspace::WorkspaceGate;
use toold_proto::workspace::{WorkspaceInfo, WorkspaceSource};
use toold_store::StoreError;
use toold_store::workspaces::{SavedWorkspace, WorkspaceKind};

use crate::config;
use crate::daemon::State;

/// `[workspaces]`: folders in which agents, MCP clients and holders of tokens may work without being asked about.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspacesConfig {
    /// Absolute paths of folders, which may begin with `~/`; what lies in them is included. Not `/`, nor the home
    /// folder as a whole.
    pub allow: Vec<String>,
}

impl WorkspacesConfig {
    /// The folders, as they are written, without those that are wrong.
    pub fn folders(&self, home: Option<&Path>) -> Vec<PathBuf> {
        let folder = |text: &String| folder(text, home).ok();
        self.allow.iter().filter_map(folder).collect()
    }

    /// What is wrong with each.
    pub fn problems(&self, home: Option<&Path>) -> Vec<String> {
        self.allow.iter().filter_map(|text| folder(text, home).err()).collect()
    }
}

/// A folder that a configuration names.
///
/// # Errors
/// It can be no workspace, in words for people.
pub fn folder(text: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    if text.contains(['*', '?', '[']) {
        let before = text.split(['*', '?', '[']).next().unwrap_or_default().trim_end_matches('/');
        return Err(format!(
            "{text:?} is a pattern, but a workspace is a folder with all that lies in it: did you mean {before:?}?"
        ));
    }
    let path = config::absolute(text, home)?;
    let lexical = without_dots(&path);
    match is_wide(&lexical, home) {
        true => Err(format!("{text:?} cannot be a workspace: too much lies in it; name the folders in it instead")),
        false => Ok(lexical),
    }
}

/// The folders that people chose, across restarts.
#[derive(Default)]
pub struct Workspaces(RwLock<Vec<SavedWorkspace>>);

impl Workspaces {
    pub fn new(kept: Vec<SavedWorkspace>) -> Self {
        Self(RwLock::new(kept))
    }

    fn any(&self, holds: impl Fn(&SavedWorkspace) -> bool) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().any(holds)
    }

    fn all(&self) -> Vec<SavedWorkspace> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, workspace: SavedWorkspace) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.folder != workspace.folder || known.kind != workspace.kind);
        all.push(workspace);
    }

    fn forget(&self, folder: &Path) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|known| known.folder != folder);
    }
}

impl State {
    /// A person's frontend opened a session in this folder. Blocks for a moment.
    pub fn note_opened_workspace(&self, folder: &Path) {
        let is_known = |known: &SavedWorkspace| known.kind == WorkspaceKind::Opened && known.folder == folder;
        if !is_wide(folder, self.home()) && !self.workspaces.any(is_known) {
            self.keep_workspace(folder.to_owned(), WorkspaceKind::Opened);
        }
    }

    /// Lets every client work in this folder, for good. Blocks.
    ///
    /// # Errors
    /// It can be no workspace, in words for people; nothing changed.
    pub fn allow_workspace(&self, folder: &Path) -> Result<(), String> {
        if is_wide(folder, self.home()) {
            let words = "too much lies in it; allow the folders in it instead";
            return Err(format!("{} cannot be a workspace: {words}", folder.display()));
        }
        if let Some(reason) = self.never(folder) {
            return Err(reason);
        }
        self.keep_workspace(folder.to_owned(), WorkspaceKind::Allowed);
        self.engine.policy_changed();
        Ok(())
    }

    /// Forgets how people chose this folder. Sessions that work there by now go on. False when nobody chose it. Blocks.
    ///
    /// # Errors
    /// It is forgotten until the daemon ends, and known again after that.
    pub fn forget_workspace(&self, folder: &Path) -> Result<bool, StoreError> {
        let known = self.workspaces.any(|known| known.folder == folder);
        self.workspaces.forget(folder);
        self.store.forget_workspace(folder)?;
        Ok(known)
    }

    fn keep_workspace(&self, folder: PathBuf, kind: WorkspaceKind) {
        let workspace = SavedWorkspace { folder, kind, at: SystemTime::now() };
        self.workspaces.add(workspace.clone());
        if let Err(error) = self.store.save_workspace(&workspace) {
            let folder = workspace.folder.display();
            tracing::warn!(%folder, %error, "the workspace is forgotten when the daemon ends");
        }
    }

    /// All of them, as `workspaces.list` shows them.
    pub fn list_workspaces(&self) -> Vec<WorkspaceInfo> {
        let configured = self.configured_workspaces().into_iter().map(|folder| WorkspaceInfo {
            path: folder.display().to_string(),
            source: WorkspaceSource::Config,
            client: None,
            at: None,
        });
        let chosen = self.workspaces.all().into_iter().map(|known| {
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

    /// Whether a person chose this folder, or one above it, for a client of this name or for all.
    pub(crate) fn is_chosen_for(&self, client: &str, folder: &Path) -> bool {
        let holds = |place: &Path| !is_wide(place, self.home()) && folder.starts_with(place);
        let counts = |known: &SavedWorkspace| match &known.kind {
            WorkspaceKind::Opened | WorkspaceKind::Allowed => true,
            WorkspaceKind::Client(known) => known == client,
        };
        self.configured_workspaces().iter().any(|place| holds(place))
            || self.workspaces.any(|known| counts(known) && holds(&known.folder))
    }

    fn configured_workspaces(&self) -> Vec<PathBuf> {
        let folders = self.loaded().config.workspaces.folders(self.home());
        folders.into_iter().map(|folder| folder.canonicalize().unwrap_or(folder)).collect()
    }

    fn home(&self) -> Option<&Path> {
        self.options.places.home.as_deref()
    }

    /// Why no client may ever work in this folder; `None` when a person can let it.
    fn never(&self, folder: &Path) -> Option<String> {
        let policy = self.engine.policy.load();
        let own = policy.control.iter().chain(policy.private.iter()).find(|own| folder.starts_with(own));
        let named = folder
            .components()
            .any(|part| matches!(part, Component::Normal(name) if name == ".toold" || name == ".hygge"));
        (own.is_some() || named).then(|| {
            let folder = folder.display();
            format!(
                "{folder} cannot be a workspace: it holds files of toold itself, such as its configuration or plugins"
            )
        })
    }
}

/// What one client may do about folders.
pub(crate) struct ClientGate {
    pub(crate) state: Weak<State>,
    /// As it calls itself.
    pub(crate) client: String,
    /// The folder that its process worked in when it connected.
    pub(crate) started_in: Option<PathBuf>,
    /// It has a token, and works in these folders alone; `None` for all that people chose.
    pub(crate) only: Option<Vec<PathBuf>>,
}

impl ClientGate {
    fn is_chosen(&self, state: &State, folder: &Path) -> bool {
        state.is_chosen_for(&self.client, folder)
    }

    /// Whether the client's process works in this folder, and started where people keep their work.
    fn is_started_in(&self, state: &State, folder: &Path) -> bool {
        self.started_in.as_deref().is_some_and(|own| {
            let is_systems = ["/proc", "/sys", "/dev"].iter().any(|place| own.starts_with(place));
            let plain = !(is_hidden(own) || is_systems) || self.is_chosen(state, own);
            folder.starts_with(own) && plain && !is_wide(own, state.home())
        })
    }

    fn is_narrowed_away(&self, folder: &Path) -> bool {
        self.only.as_ref().is_some_and(|only| !only.iter().any(|place| folder.starts_with(place)))
    }
}

impl WorkspaceGate for ClientGate {
    fn is_open(&self, folder: &Path) -> bool {
        let Some(state) = self.state.upgrade() else { return false };
        state.never(folder).is_none()
            && !self.is_narrowed_away(folder)
            && (self.is_chosen(&state, folder) || self.is_started_in(&state, folder))
    }

    fn refuses(&self, folder: &Path) -> Option<String> {
        let state = self.state.upgrade()?;
        if is_wide(folder, state.home()) {
            let words = "too much lies in it; a person can allow a folder in it with: toolctl workspaces allow DIR";
            return Some(format!("{} cannot be a workspace: {words}", folder.display()));
        }
        if self.is_narrowed_away(folder) {
            return Some(format!("the token does not reach {}: see mcp.token.workspaces", folder.display()));
        }
        state.never(folder)
    }

    fn remember(&self, folders: &[PathBuf]) {
        let Some(state) = self.state.upgrade() else { return };
        for folder in folders {
            state.keep_workspace(folder.clone(), WorkspaceKind::Client(self.client.clone()));
        }
    }

    fn open_to_all(&self) -> Vec<PathBuf> {
        let Some(state) = self.state.upgrade() else { return Vec::new() };
        let allowed = state.workspaces.all().into_iter().filter(|known| known.kind == WorkspaceKind::Allowed);
        let mut all: Vec<PathBuf> = allowed.map(|known| known.folder).collect();
        all.extend(state.configured_workspaces());
        all.retain(|folder| !self.is_narrowed_away(folder) && state.never(folder).is_none());
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

/// `/`, the home folder and what lies above it: too much lies in them.
pub(crate) fn is_wide(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder))
}

fn is_hidden(folder: &Path) -> bool {
    folder.components().any(|part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b".")))
}

/// An absolute path without `.` and `..`, taken as text: nothing is looked at.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => _ = plain.pop(),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_can_be_no_workspace_is_an_error_that_says_what_was_meant() {
        let home = Some(Path::new("/home/u"));
        for wrong in ["src", "/", "/home/u", "/home", "~", "~/", "/home/u/../u", ""] {
            assert!(folder(wrong, home).is_err(), "{wrong}");
        }
        assert!(folder("~/src/**", home).unwrap_err().contains("\"~/src\""));
        assert_eq!(folder("~/src", home).unwrap(), Path::new("/home/u/src"));
        assert_eq!(folder("/srv/x/../y/", home).unwrap(), Path::new("/srv/y"));
    }

    #[test]
    fn hidden_folders_are_known_wherever_they_stand() {
        assert!(is_hidden(Path::new("/home/u/.config/x")) && is_hidden(Path::new("/home/u/.ssh")));
        assert!(!is_hidden(Path::new("/home/u/src")));
    }
}
