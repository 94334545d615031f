//! The recent log lines, notices and messages of plugins, on the wire.

use serde::{Deserialize, Serialize};

use crate::event::Event;

/// Params of `plugins.logs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogsOfPlugin {
    /// Absent for all plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Answer of `plugins.logs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PluginLogs {
    /// Events of the kinds `log`, `notice`, `message` and `plugin.*` that are still buffered; the oldest first.
    pub events: Vec<Event>,
    /// The newest event of any kind; `events.subscribe {since}` continues after it.
    pub seq: u64,
    pub epoch: String,
}
