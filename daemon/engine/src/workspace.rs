//! Session folders that were not chosen by a person.
//!
//! Files in a session's folders may be read without an ask, so folders are authority. A person's
//! frontend may choose any. An agent, a model's client or a token names a folder, and works there
//! only if a person has chosen it before, or allows it:
//! [`check_permission`](crate::permission::check_permission) asks once, before the first call that
//! needs the folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use toold_proto::session::WorkspaceState;

/// The folders that people chose, for one client.
pub trait WorkspaceGate: Send + Sync {
    /// Whether the client may work in this folder now. May read the file system; called before
    /// calls that need it.
    fn is_open(&self, folder: &Path) -> bool;

    /// Whether a person chose this folder for the client, or one around it. The client may work in an open folder that nobody
    /// chose, because it was started there, but nothing beyond reading is free in it.
    fn is_chosen(&self, folder: &Path) -> bool;

    /// Why no person can open this folder; `None` when one can.
    fn refuses(&self, folder: &Path) -> Option<String>;

    /// Whether a folder is refused only because it is too broad to be a workspace, such as the home folder. An agent that
    /// asks its own user may work there, although nothing there is free.
    fn is_too_broad(&self, folder: &Path) -> bool;

    /// Records that a person allowed the folders to this client permanently.
    fn remember(&self, folders: &[PathBuf]);

    /// The folders that every client may work in, for a session that named none.
    fn open_to_all(&self) -> Vec<PathBuf>;

    /// The name of the client for the person who is asked.
    fn client(&self) -> &str;
}

/// The state of the folders of one session.
pub struct Workspace {
    pub(crate) gate: Arc<dyn WorkspaceGate>,
    /// False when the client named no valid folder: then the session's `cwd` is none of its
    /// folders.
    pub(crate) has_folder: bool,
    pub(crate) folders: Mutex<WorkspaceFolders>,
}

/// A folder of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceFolder {
    /// As the client named it. Until it is open the client learns nothing else about it, such as
    /// where a link leads.
    pub named: PathBuf,
    /// With links resolved, as shown to the person who is asked.
    pub real: PathBuf,
}

pub(crate) struct WorkspaceFolders {
    /// In the client's order.
    open: Vec<PathBuf>,
    /// The folders in `open` that no person chose.
    unchosen: Vec<PathBuf>,
    pending: Vec<WorkspaceFolder>,
    /// A person refused them: nobody is asked again in this session.
    pub(crate) refused: bool,
}

impl Workspace {
    /// `folders`: the session's `cwd` and roots, in the client's order; empty when it named none.
    pub fn new(gate: Arc<dyn WorkspaceGate>, folders: Vec<WorkspaceFolder>) -> Self {
        let has_folder = !folders.is_empty();
        let (open, pending): (Vec<WorkspaceFolder>, _) =
            folders.into_iter().partition(|folder| gate.is_open(&folder.real));
        let open: Vec<PathBuf> = open.into_iter().map(|folder| folder.real).collect();
        let unchosen = open.iter().filter(|folder| !gate.is_chosen(folder)).cloned().collect();
        Self { gate, has_folder, folders: Mutex::new(WorkspaceFolders { open, unchosen, pending, refused: false }) }
    }

    pub fn state(&self) -> WorkspaceState {
        match (self.has_folder, self.folders.lock().pending.is_empty()) {
            (false, _) => WorkspaceState::None,
            (true, true) => WorkspaceState::Open,
            (true, false) => WorkspaceState::Pending,
        }
    }

    /// The first folder that the client works in and no person chose.
    pub(crate) fn unchosen(&self) -> Option<PathBuf> {
        self.folders.lock().unchosen.first().cloned()
    }

    /// Whether a path lies in a folder that waits for a person's approval.
    pub(crate) fn holds_back(&self, path: &Path) -> bool {
        let holds = |folder: &WorkspaceFolder| path.starts_with(&folder.real) || path.starts_with(&folder.named);
        self.folders.lock().pending.iter().any(holds)
    }

    /// The open folders, and those that every client may use when this one named none.
    pub(crate) fn open_folders(&self) -> Vec<PathBuf> {
        if self.has_folder { self.folders.lock().open.clone() } else { self.gate.open_to_all() }
    }

    /// Checks which folders a person has opened since. Returns those that no person has, and whether any was opened.
    pub(crate) fn refresh(&self) -> (Vec<PathBuf>, bool) {
        // Not under the lock: this may read the file system.
        let opened: Vec<PathBuf> = self.waiting().into_iter().filter(|folder| self.gate.is_chosen(folder)).collect();
        let has_opened = self.open(&opened);
        (self.waiting(), has_opened)
    }

    /// Whether a person chose all of the folders.
    pub(crate) fn is_chosen(&self) -> bool {
        self.waiting().is_empty()
    }

    /// The folders that no person chose.
    fn waiting(&self) -> Vec<PathBuf> {
        let state = self.folders.lock();
        state.pending.iter().map(|folder| &folder.real).chain(&state.unchosen).cloned().collect()
    }

    /// Replaces resolved paths in a text with the names that the client knows.
    pub(crate) fn as_named(&self, text: &str) -> String {
        let state = self.folders.lock();
        let linked =
            state.pending.iter().filter(|folder| folder.real != folder.named && folder.real.parent().is_some());
        let names = linked.map(|folder| (folder.real.display().to_string(), folder.named.display().to_string()));
        names.fold(text.to_owned(), |text, (real, named)| text.replace(&real, &named))
    }

    /// Returns whether any of them was closed until now.
    pub(crate) fn open(&self, folders: &[PathBuf]) -> bool {
        let mut state = self.folders.lock();
        let (opened, pending): (Vec<WorkspaceFolder>, _) =
            std::mem::take(&mut state.pending).into_iter().partition(|folder| folders.contains(&folder.real));
        let before = state.unchosen.len();
        state.unchosen.retain(|folder| !folders.contains(folder));
        let has_opened = !opened.is_empty() || state.unchosen.len() < before;
        state.open.extend(opened.into_iter().map(|folder| folder.real));
        state.pending = pending;
        has_opened
    }
}
