//! The seam between the engine and everything that can be called.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toold_proto::tool::ToolName;

use crate::agent_request::AgentRequest;
use crate::cx::Cx;
use crate::need::Need;
use crate::tool::{ToolError, ToolOutput, ToolSpec};

/// Something that can be called. Built-ins, Lua tools, frontend tools and mounted tools are its
/// implementations; nothing else in the engine knows the difference.
pub trait Callable: Send + Sync + 'static {
    fn spec(&self) -> &ToolSpec;

    /// The name by which rules, grants, hooks, filters and the audit log know it: that of its source, also while lists
    /// show it under another one.
    fn own_name(&self) -> &ToolName {
        &self.spec().name
    }

    /// What the server that it is of calls it; `None` for a tool that is of no other program.
    fn upstream_name(&self) -> Option<&str> {
        None
    }

    /// Statements of its source for certain clients, such as the user interface that shows its results: `_meta` in MCP.
    fn listing_meta(&self) -> Option<&Map<String, Value>> {
        None
    }

    /// The agent, for something that an agent does with a tool of its own.
    fn agent_request(&self) -> Option<&Arc<AgentRequest>> {
        None
    }

    /// Everything that a call with this input will touch, before it touches anything. The input
    /// matches the schema.
    fn needs<'a>(&'a self, input: &'a Value, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>>;

    /// Whether `needs` and the first poll of `call` may block on the system, as with a file system
    /// that does not answer. If so, both always run on a task of their own.
    fn may_block(&self) -> bool {
        false
    }

    /// How long a serial call of its source may have run for this one not to wait for it any more: a client that sends a
    /// call so much later has given the other one up, or wants both at once. `None`: it waits in any case.
    fn lane_patience(&self) -> Option<Duration> {
        None
    }

    /// Whether the structured part of its results counts to their size: it comes from elsewhere, and hosts show it to
    /// models.
    fn limits_structure(&self) -> bool {
        false
    }

    /// Runs the call. It must end soon after `cx.cancel` fires: two seconds later it is dropped.
    /// Its first poll happens on the connection's own task, so long computations go elsewhere.
    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}
