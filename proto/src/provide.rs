//! Tools that a frontend provides to the registry.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::Progress;
use crate::tool::{Annotations, Block, CallId, SessionId};

/// Params of `tools.provide`. The tools exist as long as the subscription does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Provide {
    /// The tools that the frontend runs.
    #[serde(default)]
    pub tools: Vec<ProvidedTool>,
    /// Built-ins that this frontend offers to run; their invocations carry `role`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
}

/// What a frontend can do for the daemon besides providing tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Runs sub-agents: `subagent`.
    Agent,
    /// Summarises its conversation: `compact`.
    Compact,
    /// Puts questions to a person in its own way: `question`.
    Question,
}

impl Role {
    /// The built-in that the role runs.
    pub fn tool(self) -> &'static str {
        match self {
            Self::Agent => "subagent",
            Self::Compact => "compact",
            Self::Question => "question",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProvidedTool {
    /// `[a-z][a-z0-9_]*`, at most 64 characters.
    pub name: String,
    pub description: String,
    /// A JSON Schema of an object; any object when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub parallelizable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub annotations: Annotations,
}

/// An item of `tools.provide`: a call for the frontend to run, or the end of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Invocation {
    Call(InvokedCall),
    /// The call was cancelled or timed out; its result no longer counts.
    Cancelled {
        invocation_id: String,
        cancelled: bool,
    },
}

/// Answered by `tools.provide_result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InvokedCall {
    pub invocation_id: String,
    pub name: String,
    pub arguments: Value,
    pub session_id: SessionId,
    pub call_id: CallId,
    pub cwd: String,
    /// Set when the frontend runs a built-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// Params of `tools.provide_result`: `result` or `error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProvideResult {
    /// The id of the invocation.
    pub invocation_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ProvidedResult>,
    /// Why there is no result; becomes a result with `is_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of a provided tool: a text, or more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ProvidedResult {
    Text(String),
    Full {
        content: ProvidedContent,
        #[serde(default)]
        is_error: bool,
        #[serde(default)]
        metadata: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Value>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ProvidedContent {
    Text(String),
    Blocks(Vec<Block>),
}

/// Params of `tools.provide_progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProvideProgress {
    /// The id of the invocation.
    pub invocation_id: String,
    #[serde(flatten)]
    pub progress: Progress,
}

/// Params of `calls.get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GetCall {
    pub call_id: CallId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Params of `calls.begun`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindBegunCalls {
    /// At most 4,096.
    pub call_ids: Vec<CallId>,
}

/// Answer of `calls.begun`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BegunCalls {
    /// Those of the calls that have begun, in this daemon or one before.
    pub begun: Vec<CallId>,
    /// Whether all others have not: the beginning of every call that may change something is recorded before it begins.
    pub complete: bool,
}

/// Params of `calls.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListCalls {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `calls.list`: the session's calls in flight, and detached calls that ended recently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallList {
    /// The oldest first.
    pub calls: Vec<CallInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallInfo {
    pub call_id: CallId,
    pub session_id: SessionId,
    pub tool: String,
    /// The agent, when it uses a tool of its own. `tool` is then the built-in tool that does the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The frontend that opened the session, as it named itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The folder that the call works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The arguments on one line, as in `call.started`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    pub state: CallState,
    /// What a running call waits for; absent while it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<CallWait>,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Its output so far; the middle is cut out when it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<crate::tool::ToolResult>,
    /// A JSON-RPC error object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    Running,
    Finished,
}

/// The reason why a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallWait {
    /// Another call of its session that runs.
    Lane,
    /// Its turn in its plugin, or the result of an identical call that runs.
    Turn,
    /// A person's permission.
    Permission,
    /// A person's answer to a question.
    Answer,
}
