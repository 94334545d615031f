//! The declaration of a tool, and the result of a call. The trait is [`crate::callable::Callable`].

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toold_proto::cut::cut_chars;
use toold_proto::tool::{Annotations, Block, Category, Source, ToolGrammar, ToolName};

use crate::schema::Schema;

/// How a tool describes itself.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    pub name: ToolName,
    pub label: String,
    pub description: String,
    pub input: Schema,
    pub output: Option<Schema>,
    pub source: Source,
    pub origin: Origin,
    pub parallelizable: bool,
    /// The categories that `needs` may name.
    pub permissions: Vec<Category>,
    /// How long a result may be served again; `None` for tools whose results are not cached.
    pub cache_ttl: Option<Duration>,
    pub timeout: Option<Duration>,
    pub annotations: Annotations,
    pub version: Option<String>,
    /// As `grammar` of `tools.list`.
    pub grammar: Option<ToolGrammar>,
}

impl ToolSpec {
    /// The first sentence of the description, on one line of at most 160 characters; the label of a tool without one.
    pub fn summary(&self) -> String {
        let words: Vec<&str> = self.description.split_whitespace().collect();
        let text = words.join(" ");
        let text = if text.is_empty() { &self.label } else { &text };
        let end = text
            .match_indices(". ")
            .map(|(at, _)| at)
            .find(|at| !text[..*at].ends_with("e.g") && !text[..*at].ends_with("i.e"));
        let sentence = text[..end.unwrap_or(text.len())].trim_end_matches('.');
        cut_chars(sentence, 160, "…").into_owned()
    }

    /// As `tools.list` shows it.
    pub fn describe(&self) -> toold_proto::tool::Tool {
        toold_proto::tool::Tool {
            name: self.name.clone(),
            label: self.label.clone(),
            description: self.description.clone(),
            input_schema: self.input.as_value().clone(),
            output_schema: self.output.as_ref().map(|schema| schema.as_value().clone()),
            source: self.source.clone(),
            parallelizable: self.parallelizable,
            permissions: self.permissions.clone(),
            cacheable: self.cache_ttl.is_some(),
            timeout_ms: self.timeout.map(|timeout| timeout.as_millis() as u64),
            annotations: self.annotations,
            version: self.version.clone(),
            grammar: self.grammar.clone(),
        }
    }
}

/// The origin of a tool, which determines its trust. The order is that of names: an earlier origin
/// keeps a name, a later one is shadowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    Builtin,
    /// The user's own plugin folders, and those named by the configuration.
    UserPlugin,
    ProjectPlugin,
    Mcp,
    Frontend,
}

/// The output of a tool. The pipeline turns it into a `ToolResult`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub content: Vec<Block>,
    pub is_error: bool,
    pub metadata: Map<String, Value>,
    pub structured: Option<Value>,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }

    /// An error, as a sentence that a model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }
}

/// Why a tool returned no output.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ToolError {
    /// The tool failed: becomes a result with `is_error`.
    #[error("{0}")]
    Failed(String),
    /// The daemon ends while a person is asked: becomes a result with `is_error`.
    #[error("{0}")]
    Stopped(&'static str),
    /// A person or a rule denied it: becomes a result with `is_error` that names the rule.
    #[error("{0}")]
    Denied(Arc<Denial>),
    /// The call was cancelled, or its time is over.
    #[error("cancelled")]
    Cancelled,
    /// The tool could not run at all.
    #[error("{0}")]
    Unavailable(String),
    /// A resource is not available now; a later attempt may succeed.
    #[error("{0}")]
    Overloaded(String),
    /// The permission engine is closing or broken.
    #[error("{0}")]
    PermissionEngine(String),
}

/// A denial and its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    pub category: Category,
    pub target: String,
    pub rule: String,
    /// For the model: what was denied, by which rule, and how to proceed.
    pub message: String,
}
