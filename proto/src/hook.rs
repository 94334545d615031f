//! Hooks as clients see them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::{SessionId, Source};

/// Answer of `hooks.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HookList {
    /// In the order in which they run.
    pub hooks: Vec<HookInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HookInfo {
    pub name: String,
    /// `pre_tool`, `post_tool`, `pre_message` or `post_message`.
    pub event: String,
    /// The plugin, or the configuration.
    pub source: Source,
    /// Lower runs first.
    pub priority: i64,
    /// `sync` or `async`.
    pub mode: String,
    pub timeout_ms: u64,
    /// How a failure of the hook counts: `open` lets the call continue, `closed` ends it.
    pub fail: String,
    /// Why its last run failed, for people's frontends; absent when it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Params of `hooks.run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunHooks {
    pub event: MessageEvent,
    /// The message, in any form that the hooks know.
    pub message: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The hooks that a frontend's own loop can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageEvent {
    PreMessage,
    PostMessage,
}

/// Answer of `hooks.run`: the combined answer of all hooks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HookAction {
    pub decision: HookDecision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message after all hooks; absent when none changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_message: Option<Value>,
    /// Text that hooks add to the system prompt, one below another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt_append: Option<String>,
    /// Hooks that failed and were skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// No objection. The permission is still required.
    #[default]
    Allow,
    Deny,
    Modify,
}
