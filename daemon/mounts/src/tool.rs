//! A tool of a mounted source, as registered.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Category, ToolName};

use crate::adapter::{CallFailure, ListedTool, MountAdapter, StartPolicy};
use crate::mount::MountedSource;

/// Characters of the arguments in a permission prompt.
const MAX_PREVIEW: usize = 600;

pub(crate) struct MountedTool<A: MountAdapter> {
    spec: ToolSpec,
    upstream_name: String,
    /// The tool that is called must be the one that was listed.
    digest: String,
    mount: Arc<MountedSource<A>>,
}

impl<A: MountAdapter> MountedTool<A> {
    /// `None` for a schema that cannot be compiled, which an accepted list does not contain.
    pub(crate) fn new(mount: &Arc<MountedSource<A>>, name: ToolName, tool: &A::Tool) -> Option<Self> {
        let spec = mount.adapter.tool_spec(&mount.config, name, tool)?;
        let upstream_name = tool.upstream_name().to_owned();
        Some(Self { spec, upstream_name, digest: tool.digest(), mount: mount.clone() })
    }

    pub(crate) fn is_same(&self, mount: &Arc<MountedSource<A>>, name: &ToolName, tool: &A::Tool) -> bool {
        self.upstream_name == tool.upstream_name()
            && self.spec.name == *name
            && self.digest == tool.digest()
            && Arc::ptr_eq(&self.mount, mount)
    }

    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let mount = &self.mount.for_session(&cx.session).map_err(ToolError::Failed)?;
        if A::START == StartPolicy::OnDemand && !mount.is_running() {
            // A program may take its time, and callers want to see why they wait.
            cx.message(format!("starting {}", mount.label()));
        }
        let call = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            call = mount.begin_call(&self.upstream_name, &self.digest) => call.map_err(ToolError::Failed)?,
        };
        let result = mount.adapter.call(&mount.config, &call.connection, &self.upstream_name, input, cx).await;
        match result {
            Ok(output) => Ok(output),
            Err(CallFailure::Tool(error)) => Err(error),
            Err(CallFailure::Disconnected) => tokio::select! {
                () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
                why = mount.disconnect_reason(&call.connection) => Err(ToolError::Failed(format!(
                    "the connection to {} was lost: {why}; the call may have been executed",
                    mount.label()
                ))),
            },
        }
    }
}

impl<A: MountAdapter> Callable for MountedTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, input: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        let target = self.mount.adapter.permission_target(&self.mount.config.name, &self.upstream_name);
        let text = input.to_string();
        let mut preview: String = text.chars().take(MAX_PREVIEW).collect();
        if preview.len() < text.len() {
            preview.push('…');
        }
        std::future::ready(Ok(vec![Need::new(Category::Mcp, target).because(preview)])).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let result = self.run(input, cx).await;
            self.mount.count_call(result.as_ref().is_ok_and(|output| !output.is_error));
            result
        }
        .boxed()
    }
}
