//! Calls that a tool makes.

use std::sync::Arc;

use serde_json::Value;
use toold_proto::tool::ToolResult;

use super::{CallRequest, execute};
use crate::call::{Call, CallError};
use crate::cx::Cx;

/// How deep calls may nest.
const MAX_DEPTH: u32 = 8;

impl Cx {
    /// Calls another tool from inside this one, with this call's session, folders and remaining
    /// time. Its needs carry this call's chain of plugins.
    ///
    /// # Errors
    /// As [`execute`]; `Failed` when calls nest deeper than [`MAX_DEPTH`].
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<ToolResult, CallError> {
        self.call_tool_as(self.chain.clone(), name, arguments).await
    }

    /// The same on behalf of a hook, whose plugin is not this call's: the needs carry its `chain`.
    ///
    /// # Errors
    /// As [`Cx::call_tool`].
    pub async fn call_tool_as(
        &self,
        chain: Arc<[String]>,
        name: &str,
        arguments: Value,
    ) -> Result<ToolResult, CallError> {
        if self.depth >= MAX_DEPTH {
            return Err(CallError::Failed(format!("calls nest deeper than {MAX_DEPTH} levels")));
        }
        let call = Call {
            name: name.to_owned(),
            arguments,
            call_id: None,
            session: self.session.clone(),
            cwd: Some(self.cwd.clone()),
            timeout: Some(self.deadline.remaining()),
            no_cache: self.no_cache,
            caller: self.caller.clone(),
            progress: Vec::new(),
            cancel: self.cancel.child_token(),
            chain,
            depth: self.depth + 1,
            holds_lane: self.holds_lane,
        };
        // Boxed: a call inside a call inside a call has no fixed size.
        execute(&self.engine, CallRequest { outer: Some(self), ..call.into() }).await
    }
}
