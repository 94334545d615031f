//! Slash commands of plugins, and sub-agents, on the wire.

use serde::{Deserialize, Serialize};

use crate::tool::SessionId;

/// Answer of `commands.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommandList {
    pub commands: Vec<CommandInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommandInfo {
    /// Without the slash.
    pub name: String,
    pub description: String,
    pub plugin: String,
}

/// Params of `commands.run`; the answer is a tool's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunCommand {
    /// The name of the command, with or without a slash.
    pub name: String,
    /// The text after the command.
    #[serde(default)]
    pub input: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Send `tools.progress` before the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

/// Answer of `subagents.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubagentList {
    pub subagents: Vec<SubagentInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubagentInfo {
    pub name: String,
    pub description: String,
    pub system_prompt: String,
    /// The tools that it may use; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `config`, the path of a Markdown file, or `plugin NAME`.
    pub source: String,
    /// The plugin that defines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}
