//! A tool of a mounted source, as registered.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::{Need, NeedKind};
use toold_engine::tool::{ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Annotations, ToolName};

use crate::adapter::{ListedTool, MountAdapter};
use crate::mount::{KnownTool, MountedSource};
use crate::offers::remember_links;
use crate::request::{begin, preview, result_of};

pub(crate) struct MountedTool<A: MountAdapter> {
    spec: ToolSpec,
    /// The tool that is called must be the one that was listed.
    known: Arc<KnownTool<A::Tool>>,
    /// At the end of its description.
    notice: Option<String>,
    mount: Arc<MountedSource<A>>,
}

impl<A: MountAdapter> MountedTool<A> {
    /// `None` for a schema that cannot be compiled, which an accepted list does not contain.
    pub(crate) fn new(
        mount: &Arc<MountedSource<A>>,
        name: ToolName,
        known: &Arc<KnownTool<A::Tool>>,
        notice: Option<&str>,
    ) -> Option<Self> {
        let mut spec = mount.adapter.tool_spec(&mount.config, name, &known.tool)?;
        if let Some(notice) = notice {
            spec.description = format!("{}\n\n{notice}", spec.description);
        }
        Some(Self { spec, known: known.clone(), notice: notice.map(str::to_owned), mount: mount.clone() })
    }

    pub(crate) fn upstream_name(&self) -> &str {
        self.known.tool.upstream_name()
    }

    pub(crate) fn is_same(
        &self,
        mount: &Arc<MountedSource<A>>,
        name: &ToolName,
        known: &Arc<KnownTool<A::Tool>>,
        notice: Option<&str>,
    ) -> bool {
        let is_same_tool = || {
            self.upstream_name() == known.tool.upstream_name()
                && self.known.digest == known.digest
                && self.known.tool.meta() == known.tool.meta()
        };
        self.spec.name == *name
            && self.notice.as_deref() == notice
            && Arc::ptr_eq(&self.mount, mount)
            && (Arc::ptr_eq(&self.known, known) || is_same_tool())
    }

    async fn run(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let upstream_name = self.upstream_name();
        let call = begin(&self.mount, Some((upstream_name, &self.known.digest)), cx).await?;
        let mount = &call.mount;
        let result = mount.adapter.call(&mount.config, &call.connection, &self.known.tool, input, cx).await;
        let output = result_of(result, &call, cx).await?;
        remember_links(&self.mount, &output, cx);
        Ok(output)
    }
}

impl<A: MountAdapter> Callable for MountedTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn upstream_name(&self) -> Option<&str> {
        Some(Self::upstream_name(self))
    }

    fn listing_meta(&self) -> Option<&Map<String, Value>> {
        self.known.tool.meta()
    }

    fn needs<'a>(&'a self, input: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        let target = self.mount.adapter.permission_target(&self.mount.config.name, self.upstream_name());
        // A tool that claims to be both tells the person nothing.
        let Annotations { read_only, destructive, .. } = self.spec.annotations;
        let reads_only = self.mount.config.trusts_hints && read_only == Some(true) && destructive != Some(true);
        let need = Need::of_kind(NeedKind::Mcp { reads_only }, target);
        std::future::ready(Ok(vec![need.because(format!("arguments: {}", preview(input)))])).boxed()
    }

    fn lane_patience(&self) -> Option<Duration> {
        self.mount.adapter.lane_patience(&self.mount.config)
    }

    fn limits_structure(&self) -> bool {
        true
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
