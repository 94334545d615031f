//! A tool of another daemon.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toold_client::{CallHandle, ClientError};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_proto::call::Execute;
use toold_proto::error::{CANCELLED, UNKNOWN_TOOL};
use toold_proto::tool::{CallId, Category, Source, SourceKind, ToolName, ToolResult};

use crate::listing::KnownTool;
use crate::mounted::{Live, Mounted};

/// Characters of the arguments that a person is shown who is asked.
const SHOWN: usize = 600;

pub(crate) struct RemoteTool {
    spec: ToolSpec,
    own: String,
    /// Of what was listed: the tool that is called must be the one that was seen.
    pub(crate) digest: String,
    mounted: Arc<Mounted>,
}

impl RemoteTool {
    /// `None` for a schema that cannot be compiled, of which there are none in a list that was taken.
    pub(crate) fn new(mounted: &Arc<Mounted>, name: ToolName, known: &KnownTool) -> Option<Self> {
        let (tool, remote) = (&known.0, &mounted.config.name);
        let spec = ToolSpec {
            name,
            label: tool.label.clone(),
            description: format!(
                "{}\n\nRuns on {remote}, another machine: files and commands are those there.",
                tool.description
            ),
            input: Schema::compile_input(tool.input_schema.clone()).ok()?,
            output: tool.output_schema.clone().and_then(|output| Schema::compile(output).ok()),
            source: Source { kind: SourceKind::Remote, name: remote.clone(), path: None },
            origin: Origin::Mcp,
            parallelizable: tool.parallelizable,
            permissions: vec![Category::Mcp],
            cache_ttl: None,
            timeout: mounted.config.timeout.or(tool.timeout_ms.map(std::time::Duration::from_millis)),
            annotations: tool.annotations,
            version: tool.version.clone(),
        };
        Some(Self { spec, own: known.own().to_owned(), digest: known.digest(), mounted: mounted.clone() })
    }

    async fn run(&self, arguments: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let name = &self.mounted.config.name;
        let live = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            live = self.mounted.begin(&self.own, &self.digest) => live.map_err(ToolError::Failed)?,
        };
        let there = live.session(&cx.session);
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            opened = there.opened(&live) => opened.map_err(|why| ToolError::Failed(format!("{name}: {why}")))?,
        }
        let call_id = new_call_id(&live);
        let _entered = there.enter(call_id.clone(), cx.shared());
        // Without it the call goes on, and what it asks is for people there.
        if let Err(error) = there.listen(&live, cx).await {
            tracing::debug!(remote = name, %error, "asks are not passed on");
        }
        let execute = Execute {
            name: self.own.clone(),
            arguments,
            call_id: Some(call_id),
            session_id: Some(there.id.clone()),
            timeout_ms: Some(u64::try_from(cx.deadline.remaining().as_millis()).unwrap_or(u64::MAX)),
            progress: true,
            no_cache: cx.no_cache,
            ..Execute::default()
        };
        let call = live.client.execute(execute).map_err(|error| ToolError::Unavailable(error.to_string()))?;
        match follow(call, cx).await? {
            Ok(result) => Ok(self.output(result)),
            Err(ClientError::Rpc(error)) if error.code == CANCELLED => {
                Err(ToolError::Failed(format!("the call was cancelled on {name}")))
            }
            Err(ClientError::Rpc(error)) => {
                if error.code == UNKNOWN_TOOL {
                    live.changed.notify_one();
                }
                Err(ToolError::Failed(format!("{name} refused the call: {error}")))
            }
            Err(error) => {
                let words =
                    format!("the connection to {name} is gone: {error}; whether the call was done is not known");
                Err(ToolError::Failed(words))
            }
        }
    }

    fn output(&self, result: ToolResult) -> ToolOutput {
        let ToolResult { content, is_error, metadata, structured, .. } = result;
        // Whose paths and numbers these are.
        ToolOutput { content, is_error, metadata, structured }.with("remote", self.mounted.config.name.as_str())
    }
}

/// Tells what the call tells, and gives its answer. A call that ends here is cancelled there.
async fn follow(mut call: CallHandle, cx: &Cx) -> Result<Result<ToolResult, ClientError>, ToolError> {
    loop {
        let told = tokio::select! {
            biased;
            // Dropping it tells the daemon there.
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            told = call.progress() => told,
        };
        let Some(told) = told else { break };
        if let Some(lost) = told.dropped {
            cx.message(format!("{lost} pieces of progress were lost on the way"));
        }
        cx.report(told.progress);
    }
    tokio::select! {
        biased;
        answer = call.answer() => Ok(answer),
        () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
    }
}

/// Ours alone: other daemons may call on behalf of the same session.
fn new_call_id(live: &Live) -> CallId {
    let n = live.next_call.fetch_add(1, Ordering::Relaxed);
    CallId::parse(&format!("{}-{n}", live.mark)).expect("hexadecimal digits and a number are printable")
}

impl Callable for RemoteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, input: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        let text = input.to_string();
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        let need = Need::new(Category::Mcp, target(&self.mounted.config.name, &self.own)).because(shown);
        std::future::ready(Ok(vec![need])).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let _running = self.mounted.count_running();
            let called = self.run(input, cx).await;
            self.mounted.count(called.as_ref().is_ok_and(|output| !output.is_error));
            called
        }
        .boxed()
    }
}

/// What rules and grants name a tool by. No MCP server can be called so.
pub(crate) fn target(remote: &str, own: &str) -> String {
    format!("remote:{remote}/{own}")
}
