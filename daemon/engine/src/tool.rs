//! The seam between the engine and everything that can be called.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toold_proto::tool::{Annotations, Block, Category, Source, ToolName};

use crate::cx::Cx;
use crate::need::Need;
use crate::permit::Denial;
use crate::schema::Schema;

/// Something that can be called. Built-ins, Lua tools, frontend tools and mounted tools are its
/// implementations; nothing else in the house knows the difference.
pub trait Tool: Send + Sync + 'static {
    fn spec(&self) -> &ToolSpec;

    /// What a call with this input will touch, before it touches anything. The input fits the schema.
    fn needs<'a>(&'a self, input: &'a Value, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>>;

    /// Whether `needs` and the first poll of `call` may wait for the system, as for a file system that does not answer. Then
    /// both happen on a task of their own, whatever becomes of it.
    fn may_block(&self) -> bool {
        false
    }

    /// Runs. Must end soon after `cx.cancel` fires: two seconds later it is dropped.
    /// Its first poll happens on the connection's own task, so long computations go elsewhere.
    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What a tool says of itself.
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
    /// Which categories `needs` may name.
    pub permissions: Vec<Category>,
    /// How long a result may be served again; `None` for tools whose results are not kept.
    pub cache_ttl: Option<Duration>,
    pub timeout: Option<Duration>,
    pub annotations: Annotations,
    pub version: Option<String>,
}

impl ToolSpec {
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
        }
    }
}

/// Where a tool comes from, as far as trust goes. The order is that of names: an earlier origin
/// keeps a name, a later one is shadowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    Builtin,
    /// The user's own plugin folders, and what the configuration names.
    UserPlugin,
    ProjectPlugin,
    Mcp,
    Frontend,
}

/// What a tool gives. The pipeline makes a `ToolResult` of it.
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

    /// Bad news, in words that a model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }
}

/// Why a tool gave nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ToolError {
    /// Bad news: becomes a result with `is_error`.
    #[error("{0}")]
    Told(String),
    /// Somebody or some rule said no: becomes a result with `is_error` that names the rule.
    #[error("{0}")]
    Denied(Arc<Denial>),
    /// The call was cancelled, or its time is over.
    #[error("cancelled")]
    Cancelled,
    /// The tool could not run at all.
    #[error("{0}")]
    Unavailable(String),
    /// What it needs is not to be had now: another try later may have it.
    #[error("{0}")]
    Overloaded(String),
    /// The permission engine is closing or broken.
    #[error("{0}")]
    PermissionEngine(String),
}
