//! The text protocol for models without native tool calls, on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::ListingMode;
use crate::tool::SessionId;

/// Params of `prompt.render`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RenderPrompt {
    /// A family of text protocols; `tags` when absent. An unknown one is an error that lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(default)]
    pub detail: Detail,
    /// Only these tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// As for `tools.list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ListingMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// How much detail a prompt gives about each tool's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    #[default]
    Names,
    Types,
    Schema,
}

/// Answer of `prompt.render`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RenderedPrompt {
    pub text: String,
}

/// Params of `prompt.parse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParsePrompt {
    /// A model's answer.
    pub text: String,
    /// The names of existing tools; calls of others become errors. When absent, any name is accepted, and the schemas of
    /// the daemon's own tools say which arguments are strings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// Params of `prompt.parse_stream`: a model's answer, as it comes in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParseStream {
    pub action: StreamAction,
    /// The stream that `open` returned. It belongs to its connection, and ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_id: Option<String>,
    /// The next part of the answer, of any length; for `push`, and for `open` and `end` too.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// For `open`: as in `prompt.parse`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// For `open`: whether the model's template has opened the thinking, so that the text begins within it. When absent, a
    /// close tag without its open tag says so, and until then each call waits for the end of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
}

/// A step of `prompt.parse_stream`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StreamAction {
    /// Begins a stream.
    #[default]
    Open,
    /// Reads a part of the text.
    Push,
    /// The text has ended.
    End,
}

/// Answer of `prompt.parse_stream`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParsedStream {
    pub stream_id: String,
    /// The parts that this text completed, in order. A call is there once nothing that follows can change it.
    pub pieces: Vec<StreamedPiece>,
    /// At the end: everything, as `prompt.parse` returns it for the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parsed: Option<ParsedPrompt>,
}

/// A part of a model's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StreamedPiece {
    /// Neither a call nor thinking. One text may come in several pieces.
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    Call {
        call: ParsedCall,
    },
    /// A part that could not be parsed with certainty, as a sentence that can be sent back to the model.
    Error {
        message: String,
    },
    /// All that came before was thinking, and this is it: a close tag came without an open one. At most once a stream.
    WasThinking {
        text: String,
    },
}

/// Answer of `prompt.parse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParsedPrompt {
    /// In the order of the text.
    pub calls: Vec<ParsedCall>,
    /// The text that is neither a call nor thinking.
    pub text: String,
    pub thinking: String,
    /// Parts that could not be parsed with certainty, as sentences that can be sent back to the model.
    pub errors: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParsedCall {
    pub name: String,
    /// An object.
    pub arguments: Value,
}
