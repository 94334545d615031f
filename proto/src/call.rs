//! Calling tools: requests, progress.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tool::{Block, CallId, SessionId, Source, Tool, ToolName, ToolResult};

/// Params of `tools.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ListTools {
    /// Words that the name, the label or the description must contain, ignoring case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The kind or the name of a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Only these tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// When absent, the configuration says which list the client gets, unless `query`, `source` or `names` choose tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ListingMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ToolFormat>,
    /// If this is still the revision, the answer is `{revision, epoch, unchanged: true}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_revision: Option<u64>,
    /// The epoch that `if_revision` belongs to; another one never matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_epoch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(flatten)]
    pub provider: ProviderOptions,
}

/// Features of a provider's API that a list makes use of. Each is ignored in the formats of APIs that do not have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProviderOptions {
    /// Anthropic, OpenAI: the provider makes arguments fit the schema, for the tools whose schema it can enforce.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Anthropic: the `examples` of an input schema that fit it become `input_examples`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub input_examples: bool,
    /// Anthropic: arguments are streamed as the model writes them, before it is known that they are JSON.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub eager_input_streaming: bool,
    /// Anthropic, OpenAI Responses: who may call the tools, in the provider's words. Anthropic: `direct`,
    /// `code_execution_20260120` and other versions of that tool. OpenAI: `direct`, `programmatic`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_callers: Vec<String>,
    /// OpenAI: a tool with a grammar is a custom tool, whose input the model writes as plain text. When absent: true for
    /// Responses, false for Chat Completions, where few servers and models know such tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_tools: Option<bool>,
    /// OpenAI Responses: the tools of each source but the built-ins are in a namespace of their own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub namespaces: bool,
}

/// Which tools a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ListingMode {
    #[default]
    All,
    /// The pinned tools, and `tools_search` and `tools_call`, which find and call all others.
    Deferred,
}

/// The form of a list of tools: the daemon's own, or that of a provider's API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolFormat {
    #[default]
    Native,
    Anthropic,
    Openai,
    OpenaiResponses,
    Gemini,
    Mcp,
}

/// Answer of `tools.list`, in the native form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolList {
    /// Grows by one with every change of the registry, and when folders of a session are opened.
    pub revision: u64,
    /// New at each start of the daemon; revisions of two epochs do not compare.
    pub epoch: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
    /// Sorted by name. Absent when `unchanged`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// The tools that the model has to find before it can call them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<ToolName>,
    /// Limits of the provider's API that the list met, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Params of `tools.search`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindTools {
    /// What the tool should do, in a few words. They are compared with names, labels, descriptions and names of arguments.
    /// Without words all tools are found, in the order of their names.
    pub query: String,
    /// How many tools to return; 10 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Return whole descriptions and the schemas of arguments too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schemas: bool,
    /// The kind or the name of a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `tools.search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundTools {
    /// The best first.
    pub tools: Vec<FoundTool>,
    /// How many more were found.
    pub more: usize,
}

/// A tool that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundTool {
    pub name: ToolName,
    /// The first sentence of the description; with `schemas`, all of it.
    pub description: String,
    pub source: Source,
    /// Only with `schemas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
}

/// Params of `tools.schema`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolSchema {
    /// The name of the tool.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Params of `tools.execute`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Execute {
    /// The name of the tool.
    pub name: String,
    /// An object; `null` and absent are `{}`.
    #[serde(default)]
    pub arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Within the session's `cwd` or roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The timeout, in milliseconds: it only shortens the tool's own, or the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Send `tools.progress` notifications before the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
    /// Run the tool even if its result is in the cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_cache: bool,
    /// Let the call continue when its connection closes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detach: bool,
    /// The trace that the call belongs to, in the form of the header `traceparent` (W3C Trace Context).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Params of `tools.cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CancelCall {
    pub call_id: CallId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `tools.cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// False when no such call is in flight in the caller's session.
    pub cancelled: bool,
}

/// Params of the notification `$/cancelRequest`, as in the Language Server Protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CancelRequest {
    /// The id of the request to cancel: a string or an integer.
    pub id: Value,
}

/// Params of the notification `tools.progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallProgress {
    pub call_id: CallId,
    /// Counts from 0 in the order of production, without gaps.
    pub seq: u64,
    /// How many notifications before this one a slow reader has lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    #[serde(flatten)]
    pub progress: Progress,
}

/// Progress of a running call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Progress {
    Output {
        stream: Stream,
        text: String,
    },
    Message {
        text: String,
    },
    Update {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Vec<Block>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Map<String, Value>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Params of `tools.execute_batch`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExecuteBatch {
    /// With a provider's `format` these are that provider's own call blocks, or the message that holds
    /// them; the answer's `results` are then its result blocks.
    pub calls: Vec<BatchCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ToolFormat>,
    #[serde(default)]
    pub strategy: Strategy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Send `tools.progress` before the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

/// One call of a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BatchCall {
    pub name: String,
    #[serde(default)]
    pub arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

/// The order in which the calls of a batch run. Results always come in the order of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// All parallelizable calls at once, then the others one by one.
    #[default]
    Auto,
    Sequential,
    Parallel,
    /// Groups of this many calls, one group after another. At least 1.
    Batched(u32),
}

/// Answer of `tools.execute_batch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BatchResults {
    pub results: Vec<BatchItem>,
}

/// The answer of one call of a batch: `result` or `error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BatchItem {
    pub call_id: CallId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// A JSON-RPC error object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

/// Params of `tools.interrupt`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interrupt {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `tools.interrupt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interrupted {
    /// How many waiting calls were skipped.
    pub skipped: u64,
}
