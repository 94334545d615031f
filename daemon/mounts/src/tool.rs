//! A tool of a mounted source, as registered.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Category, ToolName};

use crate::adapter::{ListedTool, MountAdapter};
use crate::mount::MountedSource;
use crate::offers::remember_links;
use crate::request::{begin, preview, result_of};

pub(crate) struct MountedTool<A: MountAdapter> {
    spec: ToolSpec,
    upstream_name: String,
    /// The tool that is called must be the one that was listed.
    digest: String,
    meta: Option<Map<String, Value>>,
    mount: Arc<MountedSource<A>>,
}

impl<A: MountAdapter> MountedTool<A> {
    /// `None` for a schema that cannot be compiled, which an accepted list does not contain.
    pub(crate) fn new(mount: &Arc<MountedSource<A>>, name: ToolName, tool: &A::Tool) -> Option<Self> {
        let spec = mount.adapter.tool_spec(&mount.config, name, tool)?;
        let upstream_name = tool.upstream_name().to_owned();
        Some(Self { spec, upstream_name, digest: tool.digest(), meta: tool.meta().cloned(), mount: mount.clone() })
    }

    pub(crate) fn is_same(&self, mount: &Arc<MountedSource<A>>, name: &ToolName, tool: &A::Tool) -> bool {
        self.upstream_name == tool.upstream_name()
            && self.spec.name == *name
            && self.digest == tool.digest()
            && self.meta.as_ref() == tool.meta()
            && Arc::ptr_eq(&self.mount, mount)
    }

    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let call = begin(&self.mount, Some((&self.upstream_name, &self.digest)), cx).await?;
        let mount = &call.mount;
        let result = mount.adapter.call(&mount.config, &call.connection, &self.upstream_name, input, cx).await;
        let output = result_of(result, &call, cx).await?;
        remember_links(&self.mount, &output, cx);
        Ok(output)
    }
}

impl<A: MountAdapter> Callable for MountedTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn listing_meta(&self) -> Option<&Map<String, Value>> {
        self.meta.as_ref()
    }

    fn needs<'a>(&'a self, input: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        let target = self.mount.adapter.permission_target(&self.mount.config.name, &self.upstream_name);
        std::future::ready(Ok(vec![Need::new(Category::Mcp, target).because(preview(input))])).boxed()
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
