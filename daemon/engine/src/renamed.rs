//! A tool under another name: it differs from the tool in the name that lists show, and in nothing else.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toold_proto::tool::ToolName;

use crate::callable::Callable;
use crate::cx::Cx;
use crate::need::Need;
use crate::tool::{ToolError, ToolOutput, ToolSpec};

pub(crate) struct RenamedTool {
    spec: ToolSpec,
    tool: Arc<dyn Callable>,
}

impl RenamedTool {
    pub(crate) fn new(tool: &Arc<dyn Callable>, name: ToolName) -> Self {
        Self { spec: ToolSpec { name, ..tool.spec().clone() }, tool: tool.clone() }
    }
}

impl Callable for RenamedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn own_name(&self) -> &ToolName {
        self.tool.own_name()
    }

    fn listing_meta(&self) -> Option<&Map<String, Value>> {
        self.tool.listing_meta()
    }

    fn needs<'a>(&'a self, input: &'a Value, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        self.tool.needs(input, cx)
    }

    fn may_block(&self) -> bool {
        self.tool.may_block()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.tool.call(input, cx)
    }
}
