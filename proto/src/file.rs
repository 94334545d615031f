//! File changes of sessions, and unsaved texts of editors, on the wire.

use serde::{Deserialize, Serialize};

use crate::tool::{CallId, SessionId};

/// Params of `files.history`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileHistory {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The changes of every session, including ended ones; for people only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only changes since this time (RFC 3339), or for so long, such as `10min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only changes of calls of this agent or client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only changes below this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// Also give the changes as one diff, with who made them; for people only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff: bool,
    /// The folder to which names in the diff and in notes are relative, if they are below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether the diff is a patch that `git apply` takes in `folder`: what it cannot hold, such as changes elsewhere, is
    /// named in lines that begin with `#`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub patch: bool,
}

/// Answer of `files.history`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileChanges {
    /// The oldest first.
    pub changes: Vec<FileChange>,
    /// How many older changes are left out, because an answer has no room for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub older: u64,
    /// Calls that also changed something which is not recorded, as far as that is known; the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<UnrecordedCall>,
    /// From what was before the first of the changes to what was after the last, as a unified diff. Lines that begin with
    /// `#` say who changed the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileChange {
    pub session_id: SessionId,
    pub call_id: CallId,
    pub tool: String,
    pub path: String,
    /// RFC 3339, UTC.
    pub at: String,
    /// The change made the file.
    pub created: bool,
    /// The change removed the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// The change was undone.
    pub undone: bool,
    /// The agent or client that called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The command line that changed it, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Other calls that ran meanwhile and may have made the change, as `SESSION/CALL`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_with: Vec<String>,
}

/// A call that changed something which is not recorded: undo leaves that as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnrecordedCall {
    pub session_id: SessionId,
    pub call_id: CallId,
    pub tool: String,
    /// RFC 3339, UTC.
    pub at: String,
    /// The command line, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(flatten)]
    pub paths: UnrecordedPaths,
    /// The same as sentences for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Paths that calls changed beside those that are recorded, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnrecordedPaths {
    /// Files and folders that were removed, and of which nothing is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<String>,
    /// The `.git` of repositories whose branches or index may have been changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// Files and folders outside of the session's folders that were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
    /// Files and folders that Git ignored until the call, and in which something was changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// Params of `files.undo`: all changes of a call, or of the call that changed a path last, or of all calls that are named
/// by `since`, `agent` or `every`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UndoFiles {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// Undo the call that changed this file last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Include changes of every session, including ended ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// All changes since this time (RFC 3339), or for so long, such as `10min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// All changes of calls of this agent or client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// All changes of the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub every: bool,
    /// Only report what would be done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// A folder: names in the diff and in notes are relative to it, and `since`, `agent` and `every` select only calls below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// Answer of `files.undo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UndoneFiles {
    pub paths: Vec<String>,
    /// How many paths are not named, because an answer has no room for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Only for a dry run: the unified diff from each file as it is to what it would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Paths that the calls also changed, and that undo leaves as they are.
    #[serde(flatten)]
    pub unrecorded: UnrecordedPaths,
    /// The same as sentences for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Params of `files.forget`: recorded changes to remove, with the former contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ForgetChanges {
    /// A path; the changes of all below it are forgotten too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Forget all changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Answer of `files.forget`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ForgottenChanges {
    /// How many changes were removed.
    pub forgotten: u64,
}

/// Params of `buffers.set`: an editor's unsaved text, which tools see in place of the file while the connection lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetBuffer {
    /// The absolute path of the file.
    pub path: String,
    /// Grows with each change of the text.
    pub version: i64,
    /// The whole text.
    pub text: String,
}

/// Params of `buffers.clear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClearBuffer {
    /// The absolute path of the file.
    pub path: String,
}

/// Answer of `buffers.clear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClearedBuffer {
    /// False when this connection had set no text for the file.
    pub cleared: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
