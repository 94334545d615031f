//! Tools as they describe themselves, and the results of their calls.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::cut::cut_chars;

/// A tool as `tools.list` and `tools.schema` show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tool {
    pub name: ToolName,
    /// For people; a mounted server's own name where that is not a valid tool name.
    pub label: String,
    pub description: String,
    /// A JSON Schema of draft 2020-12; its root is an object schema.
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    pub source: Source,
    /// Whether calls may run beside others of the same session.
    pub parallelizable: bool,
    /// The categories of permission that calls may need.
    pub permissions: Vec<Category>,
    pub cacheable: bool,
    /// The tool's own time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub annotations: Annotations,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// For a tool whose arguments are one string: the grammar of that string. Providers that have such tools let the
    /// model write it as it is, and not as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<ToolGrammar>,
}

/// The grammar of a tool's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolGrammar {
    pub syntax: GrammarSyntax,
    pub definition: String,
}

/// The only argument of a tool whose input is one string, which is required; `None` for any other tool.
pub fn only_text_argument(input_schema: &Value) -> Option<&str> {
    let properties = input_schema.get("properties")?.as_object()?;
    let (name, schema) = properties.iter().next().filter(|_| properties.len() == 1)?;
    let required = input_schema.get("required")?.as_array()?;
    (schema.get("type")? == "string" && required.iter().any(|one| one == name)).then_some(name)
}

/// The language of a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GrammarSyntax {
    /// The grammar language of the parser Lark.
    Lark,
    /// A regular expression, in the syntax of Rust's `regex`.
    Regex,
}

/// Who owns a tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Source {
    pub kind: SourceKind,
    pub name: String,
    /// The file or folder of a plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Source {
    /// Whether the text names this source: by its kind or by its name.
    pub fn is_of(&self, kind_or_name: &str) -> bool {
        self.kind.as_str() == kind_or_name || self.name == kind_or_name
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Builtin,
    Plugin,
    Frontend,
    Mcp,
    /// Another daemon.
    Remote,
    /// A daemon or a label of the fleet.
    Fleet,
}

impl SourceKind {
    /// In the order in which they are listed for people.
    pub const ALL: [Self; 6] = [Self::Builtin, Self::Frontend, Self::Mcp, Self::Plugin, Self::Remote, Self::Fleet];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Plugin => "plugin",
            Self::Frontend => "frontend",
            Self::Mcp => "mcp",
            Self::Remote => "remote",
            Self::Fleet => "fleet",
        }
    }
}

/// In rules and grants of [`Category::Mcp`], the names of a server's resources begin with this; no tool may have such a name.
pub const RESOURCE_TARGET: &str = "resource/";
/// The same for its prompts.
pub const PROMPT_TARGET: &str = "prompt/";

/// The category of a permission: which rules and grants apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Category {
    #[serde(rename = "file.read")]
    FileRead,
    #[serde(rename = "file.write")]
    FileWrite,
    #[serde(rename = "shell")]
    Shell,
    #[serde(rename = "network")]
    Network,
    #[serde(rename = "mcp")]
    Mcp,
    #[serde(rename = "agent")]
    Agent,
    #[serde(rename = "plugin")]
    Plugin,
}

impl Category {
    pub const ALL: [Self; 7] =
        [Self::FileRead, Self::FileWrite, Self::Shell, Self::Network, Self::Mcp, Self::Agent, Self::Plugin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::FileRead => "file.read",
            Self::FileWrite => "file.write",
            Self::Shell => "shell",
            Self::Network => "network",
            Self::Mcp => "mcp",
            Self::Agent => "agent",
            Self::Plugin => "plugin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == text)
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Hints for frontends, as in MCP's tool annotations. They are claims, not facts: a decision depends only on those of a server that
/// a person trusts. A hint that a tool does not declare is absent, which claims nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    /// Whether clients that can fetch results later get a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskUse>,
}

/// When an MCP client with the tasks extension gets a task instead of a result. When absent: if the call takes
/// unusually long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskUse {
    /// Unless the call ends within a moment; asks that come first are asked first.
    Optional,
    /// Always; MCP clients of a revision with the extension that do not support it are refused.
    Required,
}

/// The member of a result's metadata that is `true` when the daemon ended before the call began, while a person was asked or
/// the call waited for another one: nothing was run, and the call may be repeated at the next daemon.
pub const NOT_RUN: &str = "not_run";

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolResult {
    pub call_id: CallId,
    /// For the model.
    pub content: Vec<Block>,
    /// The tool failed; the content says why.
    pub is_error: bool,
    /// For frontends and the audit log, not for the model.
    pub metadata: Map<String, Value>,
    /// A value that matches the tool's `output_schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// From the start of the tool to its end, without waiting for people or lanes.
    pub duration_ms: u64,
    pub cached: bool,
}

impl ToolResult {
    /// Whether the call may be repeated at the next daemon; see [`NOT_RUN`].
    pub fn is_not_run(&self) -> bool {
        self.metadata.get(NOT_RUN) == Some(&Value::Bool(true))
    }

    /// The text blocks, one below another.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Block::as_text).collect();
        texts.join("\n")
    }
}

/// A piece of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    Image {
        /// Base64 (RFC 4648, section 4).
        data: String,
        mime_type: String,
    },
    Audio {
        /// Base64 (RFC 4648, section 4).
        data: String,
        mime_type: String,
    },
    /// A resource with its contents, or a link to one: without `text` and `blob`.
    Resource {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Base64 (RFC 4648, section 4).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
        /// Only for a link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Only for a link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The `_meta` of a mounted MCP server, unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<Map<String, Value>>,
    },
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } | Self::Audio { .. } | Self::Resource { .. } => None,
        }
    }

    /// Removes blanks from the data, and puts a text in place of a block whose data is not Base64: providers refuse whole
    /// conversations with such a block in them.
    pub fn make_readable(&mut self) {
        let (kind, data) = match self {
            Self::Image { data, mime_type } => (mime_type.clone(), data),
            Self::Audio { data, mime_type } => (mime_type.clone(), data),
            Self::Resource { uri, blob: Some(blob), .. } => (uri.clone(), blob),
            Self::Text { .. } | Self::Resource { .. } => return,
        };
        if data.bytes().any(|byte| byte.is_ascii_whitespace()) {
            data.retain(|c| !c.is_ascii_whitespace());
        }
        if !is_base64(data) {
            *self = Self::text(format!("[{kind} is left out: its data is not Base64]"));
        }
    }
}

/// Base64 as RFC 4648 has it in section 4, with its padding.
fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

/// A name of a tool: `[a-z][a-z0-9_]*`, at most 64 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ToolName(Arc<str>);

/// The id of a call, as the client or its model's provider chose it: any text of 1 to 49152 bytes, unique among its
/// session's calls in flight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CallId(Arc<str>);

/// The id of a session: `[A-Za-z0-9_-]{1,64}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    #[error("{0:?} is not a tool name: expected [a-z][a-z0-9_]*, at most 64 characters")]
    ToolName(String),
    #[error("{0:?} is not a call id: expected a text of 1 to {MAX_CALL_ID} bytes")]
    CallId(String),
    #[error("{0:?} is not a session id: expected [A-Za-z0-9_-], 1 to 64 characters")]
    SessionId(String),
}

impl ToolName {
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let mut bytes = text.bytes();
        let fits = text.len() <= 64
            && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if fits { Ok(Self(text.into())) } else { Err(InvalidId::ToolName(shortened(text))) }
    }
}

/// Bytes of a call's id. Every event of a call has it.
pub const MAX_CALL_ID: usize = 48 * 1024;

impl CallId {
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        if (1..=MAX_CALL_ID).contains(&text.len()) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidId::CallId(shortened(text)))
        }
    }
}

/// For people and logs: short, and without characters that control a terminal. Programs use `as_str`.
impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX: usize = 128;
        // Nearly all ids.
        if self.0.len() <= MAX && self.0.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return f.write_str(&self.0);
        }
        for c in self.0.chars().take(MAX) {
            match c {
                c if c.is_control()
                    || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
                {
                    write!(f, "{}", c.escape_unicode())?;
                }
                c => fmt::Write::write_char(f, c)?,
            }
        }
        if self.0.chars().nth(MAX).is_some() { f.write_str("…") } else { Ok(()) }
    }
}

impl SessionId {
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let fits =
            (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if fits { Ok(Self(text.into())) } else { Err(InvalidId::SessionId(shortened(text))) }
    }
}

/// An error must not carry a megabyte back to its sender.
fn shortened(text: &str) -> String {
    cut_chars(text, 80, "…").into_owned()
}

macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}
text_id!(ToolName);
text_id!(CallId);
text_id!(SessionId);

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_are_lower_case_words() {
        for good in ["a", "read", "git_log2", &"a".repeat(64)] {
            assert!(ToolName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "_a", "a-b", "a b", "é", &"a".repeat(65)] {
            assert!(ToolName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_of_calls_are_any_text_and_are_shown_in_short() {
        for good in ["call 1 / ü", "a\nb", "\0", &"é".repeat(10_000), &"x".repeat(MAX_CALL_ID)] {
            let id = CallId::parse(good).unwrap();
            assert_eq!(id.as_str(), good);
            assert_eq!(serde_json::from_value::<CallId>(serde_json::json!(id)).unwrap(), id);
        }
        assert!(CallId::parse("").is_err() && CallId::parse(&"x".repeat(MAX_CALL_ID + 1)).is_err());
        let shown = |text: &str| CallId::parse(text).unwrap().to_string();
        assert_eq!(shown("call 1 / ü"), "call 1 / ü");
        assert_eq!(shown("a\x1b[2J\n\u{202e}b"), "a\\u{1b}[2J\\u{a}\\u{202e}b");
        assert_eq!(shown(&"x".repeat(129)), "x".repeat(128) + "…");
    }

    #[test]
    fn ids_of_sessions_are_names() {
        assert!(SessionId::parse("s-1_B").is_ok());
        assert!(SessionId::parse("../x").is_err());
    }
}
