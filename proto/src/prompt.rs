//! The text protocol for models without native tool calls, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::SessionId;

/// Params of `prompt.render`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RenderPrompt {
    /// A family of text protocols; `tags` when absent. An unknown one is an error that lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(default)]
    pub detail: Detail,
    /// Only these tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// How much detail a prompt gives about each tool's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    #[default]
    Names,
    Types,
    Schema,
}

/// Answer of `prompt.render`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RenderedPrompt {
    pub text: String,
}

/// Params of `prompt.parse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParsePrompt {
    /// A model's answer.
    pub text: String,
    /// The names of existing tools; calls of others become errors. When absent, any name is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// Answer of `prompt.parse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParsedPrompt {
    /// In the order of the text.
    pub calls: Vec<ParsedCall>,
    /// The text that is neither a call nor thinking.
    pub text: String,
    pub thinking: String,
    /// Parts that could not be parsed with certainty, as sentences that can be sent back to the model.
    pub errors: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParsedCall {
    pub name: String,
    /// An object.
    pub arguments: Value,
}
