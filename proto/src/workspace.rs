//! Folders in which clients of models may work.

use serde::{Deserialize, Serialize};

use crate::tool::SessionId;

/// Answer of `workspaces.list`, `workspaces.allow` and `workspaces.forget`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkspaceList {
    /// By their paths.
    pub workspaces: Vec<WorkspaceInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkspaceInfo {
    /// With links resolved.
    pub path: String,
    pub source: WorkspaceSource,
    /// The client that may use it; absent when all may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// When a person chose it: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// How a person chose a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceSource {
    /// `[workspaces] allow` of the configuration.
    Config,
    /// `workspaces.allow`.
    Allowed,
    /// A person's frontend opened a session there.
    Opened,
    /// A person approved it when a client asked.
    Client,
}

/// Params of `workspaces.allow` and `workspaces.forget`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NameWorkspace {
    /// An absolute path of a folder.
    pub path: String,
}

/// Params of `session.share`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShareSession {
    /// The connection's own session when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `session.share`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SharedSession {
    /// The code: `session.open` takes it once as `session_id`. It does not open a session in the mode `yolo`.
    pub code: SessionId,
    /// For how many seconds the code is valid.
    pub expires_in: u64,
}
