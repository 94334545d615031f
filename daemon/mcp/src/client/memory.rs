//! The daemon's memory of a server between its starts.

use rmcp::model::ServerPeerInfo;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServerMemory {
    /// It must be greeted with `initialize`, as before revision 2026-07-28.
    #[serde(default, rename = "is_old")]
    pub(super) uses_initialize: bool,
    /// It speaks HTTP with SSE, and no Streamable HTTP.
    #[serde(default)]
    pub(super) uses_sse: bool,
    /// The version of the server of which this was learned.
    #[serde(default)]
    version: Option<String>,
}

impl ServerMemory {
    /// The next memory of a server that was greeted with this one. Nothing is learned of the revision that a
    /// configuration chooses. Another version than the one that was learned of may speak the newer revisions: the next
    /// start tries them.
    pub(super) fn learned(&self, info: Option<&ServerPeerInfo>, is_pinned: bool, uses_sse: bool) -> Self {
        let version = info.and_then(|info| Some(info.server_info.as_ref()?.version.clone()));
        let is_as_before = !self.uses_initialize || self.version.is_none() || self.version == version;
        let speaks_old = info.is_some_and(|info| info.protocol_version.has_initialize());
        Self { uses_initialize: !is_pinned && is_as_before && speaks_old, uses_sse, version }
    }
}
