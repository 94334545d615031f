//! The folders of a session that no person chose.
//!
//! What lies in a session's folders may be read without an ask, so folders are authority. A person's frontend takes
//! any. An agent, a model's client or a token names a folder, and works there only if a person did, or allows it:
//! [`require`] asks once, before the first call that needs the folder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toold_proto::permission::{Scope, Verdict};
use toold_proto::session::{Mode, WorkspaceState};
use toold_proto::tool::Category;

use crate::asks::{self, Answer};
use crate::cx::Cx;
use crate::need::Need;
use crate::permit::{judge, refuse};
use crate::policy::Decision;
use crate::tool::ToolError;

/// What the daemon knows of folders that people chose, for one client.
pub trait WorkspaceGate: Send + Sync {
    /// Whether the client may work in this folder by now. May read the file system; called before calls that need it.
    fn is_open(&self, folder: &Path) -> bool;

    /// Why no person can open this folder; `None` when one can.
    fn refuses(&self, folder: &Path) -> Option<String>;

    /// A person allowed the folders to this client, for good.
    fn remember(&self, folders: &[PathBuf]);

    /// The folders that every client may work in, for a session that named none.
    fn open_to_all(&self) -> Vec<PathBuf>;

    /// How the person who is asked knows the client.
    fn client(&self) -> &str;
}

/// What becomes of the folders of one session.
pub struct Workspace {
    gate: Arc<dyn WorkspaceGate>,
    /// False when the client named no folder that counts as one: then the session's `cwd` is none of its folders.
    has_folder: bool,
    state: Mutex<State>,
}

/// A folder of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// As the client named it. Until it is open the client learns nothing else of it, such as where a link leads.
    pub named: PathBuf,
    /// With links resolved, which is what the person who is asked sees.
    pub real: PathBuf,
}

struct State {
    /// In the client's order.
    open: Vec<PathBuf>,
    pending: Vec<Folder>,
    /// A person refused them: nobody is asked again in this session.
    refused: bool,
}

impl Workspace {
    /// `folders`: the session's `cwd` and roots, in the client's order; empty when it named none.
    pub fn new(gate: Arc<dyn WorkspaceGate>, folders: Vec<Folder>) -> Self {
        let has_folder = !folders.is_empty();
        let (open, pending): (Vec<Folder>, _) = folders.into_iter().partition(|folder| gate.is_open(&folder.real));
        let open = open.into_iter().map(|folder| folder.real).collect();
        Self { gate, has_folder, state: Mutex::new(State { open, pending, refused: false }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn state(&self) -> WorkspaceState {
        match (self.has_folder, self.lock().pending.is_empty()) {
            (false, _) => WorkspaceState::None,
            (true, true) => WorkspaceState::Open,
            (true, false) => WorkspaceState::Pending,
        }
    }

    /// Whether a path lies in a folder that waits for a person's approval.
    fn holds_back(&self, path: &Path) -> bool {
        let holds = |folder: &Folder| path.starts_with(&folder.real) || path.starts_with(&folder.named);
        self.lock().pending.iter().any(holds)
    }

    /// The folders that are open, and those that every client may use when this one named none.
    pub(crate) fn open_folders(&self) -> Vec<PathBuf> {
        if self.has_folder { self.lock().open.clone() } else { self.gate.open_to_all() }
    }

    /// Looks again which folders a person has opened since. Gives those that are still closed.
    fn refresh(&self) -> Vec<PathBuf> {
        let pending: Vec<PathBuf> = self.lock().pending.iter().map(|folder| folder.real.clone()).collect();
        // Not under the lock: this may read the file system.
        let opened: Vec<PathBuf> = pending.into_iter().filter(|folder| self.gate.is_open(folder)).collect();
        self.open(&opened);
        self.lock().pending.iter().map(|folder| folder.real.clone()).collect()
    }

    /// A text with the names that the client knows in place of where they lead.
    fn as_named(&self, text: &str) -> String {
        let state = self.lock();
        let linked =
            state.pending.iter().filter(|folder| folder.real != folder.named && folder.real.parent().is_some());
        let names = linked.map(|folder| (folder.real.display().to_string(), folder.named.display().to_string()));
        names.fold(text.to_owned(), |text, (real, named)| text.replace(&real, &named))
    }

    fn open(&self, folders: &[PathBuf]) {
        let mut state = self.lock();
        let (opened, pending): (Vec<Folder>, _) =
            std::mem::take(&mut state.pending).into_iter().partition(|folder| folders.contains(&folder.real));
        state.open.extend(opened.into_iter().map(|folder| folder.real));
        state.pending = pending;
    }
}

/// Approval of the session's folders, if a need is the first that uses them. True when folders were opened.
///
/// # Errors
/// As [`crate::permit::permit`]; a session without a folder is told how a person opens one.
pub(crate) async fn require(cx: &Cx, need: &Need, decision: &Decision) -> Result<bool, ToolError> {
    let Some(workspace) = cx.session.topmost().workspace() else { return Ok(false) };
    if decision.verdict == Verdict::Deny || cx.session.mode() == Mode::Yolo {
        return Ok(false);
    }
    if !workspace.has_folder {
        return match uses_no_folder(cx, need, decision) {
            true => refuse(cx, need, "no workspace".to_owned(), no_folder(need)).map(|()| false),
            false => Ok(false),
        };
    }
    if !uses(workspace, cx, need, decision) {
        return Ok(false);
    }
    let folders = workspace.refresh();
    // The folder may be open by now.
    let Some(first) = folders.first().filter(|_| uses(workspace, cx, need, decision)) else { return Ok(true) };
    // Who is asked sees where links lead, and who is refused does not.
    let as_named = |words: &str| workspace.as_named(words);
    let told = Need { workspace: true, ..Need::new(Category::FileRead, as_named(&first.to_string_lossy())) };
    if let Some(reason) = folders.iter().find_map(|folder| workspace.gate.refuses(folder)) {
        let words = format!("not allowed: {}", as_named(&reason));
        return refuse(cx, &told, "workspaces".to_owned(), words).map(|()| false);
    }
    let ask = Need { workspace: true, ..Need::new(Category::FileRead, first.to_string_lossy()) };
    let ask = ask.because(reason(&folders, workspace.gate.client()));
    if workspace.lock().refused {
        let words = as_named(&refused(&folders));
        return refuse(cx, &told, "workspace refused".to_owned(), words).map(|()| false);
    }
    let decision = judge(cx, &[], &ask);
    match Box::pin(asks::ask(cx, &[], &ask, &decision)).await? {
        Answer::Allowed { rule, scope } => {
            cx.record(&ask, "allow", rule);
            workspace.open(&folders);
            if scope.is_some_and(|scope| scope != Scope::Session) {
                workspace.gate.remember(&folders);
            }
            cx.engine.policy_changed();
            Ok(true)
        }
        Answer::Denied { rule, message } => {
            if rule.starts_with(asks::ANSWER) {
                workspace.lock().refused = true;
            }
            refuse(cx, &told, rule, as_named(&message)).map(|()| false)
        }
    }
}

fn uses(workspace: &Workspace, cx: &Cx, need: &Need, decision: &Decision) -> bool {
    match need.category {
        // A command reads what it likes in the folder that it runs in, whatever rule allows it.
        Category::Shell | Category::Agent => workspace.holds_back(&cx.cwd),
        // A rule or a grant that names the file decides alone.
        Category::FileRead | Category::FileWrite => {
            decision.verdict == Verdict::Ask && workspace.holds_back(Path::new(&need.target))
        }
        Category::Network | Category::Mcp | Category::Plugin => false,
    }
}

/// Whether a need cannot be met in a session without a folder.
fn uses_no_folder(cx: &Cx, need: &Need, decision: &Decision) -> bool {
    match need.category {
        Category::Shell | Category::Agent => !cx.session.places().iter().any(|place| cx.cwd.starts_with(place)),
        Category::FileRead | Category::FileWrite => {
            let target = Path::new(&need.target);
            decision.verdict == Verdict::Ask && !cx.session.places().iter().any(|place| target.starts_with(place))
        }
        Category::Network | Category::Mcp | Category::Plugin => false,
    }
}

fn no_folder(need: &Need) -> String {
    format!(
        "not allowed: {} {}: this session has no folder to work in. Open a folder with: toolctl workspaces allow DIR",
        need.category, need.target
    )
}

/// What the person who is asked reads.
fn reason(folders: &[PathBuf], client: &str) -> String {
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let noun = if names.len() == 1 { "a workspace" } else { "workspaces" };
    format!("use {} as {noun} of {client}: its tools may read everything in there", names.join(" and "))
}

fn refused(folders: &[PathBuf]) -> String {
    let first = folders.first().map(|folder| folder.display().to_string()).unwrap_or_default();
    format!("not allowed: a person refused {first} as a workspace. To allow it: {}", asks::workspace_command(&first))
}
