//! Work that a frontend offers to do for the daemon: running a sub-agent, summarising the conversation,
//! asking a person a question in its own way.

use futures_util::future::BoxFuture;
use serde_json::Value;
use toold_proto::provide::Role;

use crate::cx::Cx;
use crate::tool::{ToolError, ToolOutput};

/// The frontends that offer roles.
pub trait Roles: Send + Sync {
    /// Runs a built-in's input in the frontend that is closest to the call. `None` when none offers
    /// the role. Ends soon after the call's token fires.
    fn run<'a>(&'a self, role: Role, input: Value, cx: &'a Cx) -> BoxFuture<'a, Option<Result<ToolOutput, ToolError>>>;
}

impl Cx {
    /// Runs this call in a frontend that offers the role; `None` where none does.
    pub async fn run_role(&self, role: Role, input: Value) -> Option<Result<ToolOutput, ToolError>> {
        self.engine.roles.as_ref()?.run(role, input, self).await
    }
}
