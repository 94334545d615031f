//! `tools/list` and `tools/call`, on the registry and the pipeline of the native dialect.

use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use toold_adapters::providers::tools_as;
use toold_engine::Engine;
use toold_engine::call::CallError;
use toold_engine::detached::Detached;
use toold_engine::execute::execute;
use toold_engine::session::Session;
use toold_engine::tool::ToolSpec;
use toold_proto::call::ToolFormat;
use toold_proto::tool::{TaskUse, ToolResult};

use crate::server::meta_tools::{self, Meta};
use crate::server::request::Served;
use crate::server::rounds::Binding;
use crate::server::tasks::Handing;
use crate::server::view::is_modern;
use crate::server::work::{Finished, Outcome};
use crate::server::{Called, Server, content, tasks};

/// How long a list may be taken for true without asking: a plugin is often saved again within seconds.
pub(super) const LIST_TTL_MS: u64 = 1_000;

pub(super) async fn list(server: &Server, context: &RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
    let session = server.view(context).await?;
    server.mcp.host.settled().await;
    let mut tools = visible(server.mcp.engine(), &session);
    if meta_tools::are_offered(server, context) {
        // A tool of the registry keeps its name.
        let own = meta_tools::all().into_iter().filter(|own| tools.iter().all(|tool| tool.name != own.name));
        let own: Vec<Tool> = own.collect();
        tools.extend(own);
        tools.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let list = ListToolsResult::with_all_items(tools);
    Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
}

/// A session's tools, sorted by name.
pub(super) fn visible(engine: &Engine, session: &Session) -> Vec<Tool> {
    let snapshot = engine.registry.snapshot();
    let view = snapshot.view(session.project());
    let seen = view.iter().map(|tool| tool.spec()).filter(|spec| session.filter.allows(spec));
    seen.filter_map(describe).collect()
}

pub(super) fn describe(spec: &ToolSpec) -> Option<Tool> {
    let Value::Array(mut described) = tools_as(ToolFormat::Mcp, &[spec.describe()]) else { return None };
    let tool = serde_json::from_value(described.pop()?);
    tool.inspect_err(|error| tracing::error!(tool = %spec.name, %error, "a tool cannot be described")).ok()
}

pub(super) async fn call(
    server: &Server,
    mut request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let binding = Binding::new("tools/call", &request.name, request.arguments.as_ref(), &server.connection);
    let answers = request.input_responses.take().unwrap_or_default();
    if let Some(state) = request.request_state.take() {
        return response(server.come_again(&state, answers, binding, context).await?);
    }
    let session = server.view(&context).await?;
    let (mut name, mut arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
    if meta_tools::is_one(server, &session, &name, &context) {
        match meta_tools::read(server, &session, &name, arguments) {
            Meta::Answer(result) => return Ok(result.into()),
            Meta::Call(inner, with) => (name, arguments) = (inner, with),
        }
    }
    let engine = server.mcp.engine().clone();
    // No call slips through before the hooks of plugins that are loading.
    server.mcp.host.settled().await;
    let any_structure = is_modern(&context);
    let wanted = task_use(&engine, &session, &name);
    let handing = match tasks::are_taken(&context) {
        true => Handing::of(wanted, server.mcp.host.task_after()),
        false if wanted == Some(TaskUse::Required) && is_modern(&context) => return Err(tasks::missing()),
        false => None,
    };
    // As in the convention for traces over MCP.
    let traceparent = context.meta.get("traceparent").and_then(Value::as_str).map(str::to_owned);
    let host = server.mcp.host.clone();
    let handed_over = handing.as_ref().map(|handing| handing.done.clone());
    let served = server.carry_out(session, answers, binding, context, handing, move |mut call| {
        call.name = name;
        call.arguments = Value::Object(arguments);
        let work = async move {
            let detached = Detached::of(&call);
            let called: Called = async move { execute(&engine, call).await }.boxed();
            let answer = match traceparent {
                Some(parent) => host.in_trace_of(&parent, called).await,
                None => called.await,
            };
            if handed_over.is_some_and(|it_was| it_was.load(Ordering::Relaxed)) {
                detached.keep(&answer);
            }
            finished(answer, any_structure)
        };
        work.boxed()
    });
    response(served.await)
}

pub(super) fn knows(engine: &Engine, session: &Session, name: &str) -> bool {
    engine.registry.snapshot().view(session.project()).find(name).is_some()
}

/// What a tool says of itself and tasks. Of one that is not there nothing is wanted.
fn task_use(engine: &Engine, session: &Session, name: &str) -> Option<TaskUse> {
    engine.registry.snapshot().view(session.project()).find(name)?.spec().annotations.task
}

fn finished(answer: Result<ToolResult, CallError>, any_structure: bool) -> Finished {
    match answer {
        Ok(result) => Ok(Outcome::Tool(content::result(result, any_structure))),
        Err(error @ CallError::UnknownTool { .. }) => Err(ErrorData::invalid_params(error.to_string(), None)),
        Err(CallError::Cancelled) => Ok(Outcome::Cancelled),
        // What a model can read it can act on.
        Err(error) => Ok(Outcome::Tool(content::failed(&error))),
    }
}

fn response(served: Served) -> Result<CallToolResponse, ErrorData> {
    match served {
        Served::Finished(Ok(Outcome::Tool(result))) => Ok(result.into()),
        Served::Finished(Ok(Outcome::Cancelled)) => Ok(content::failed(&CallError::Cancelled).into()),
        Served::Task(task) => Ok(task.into()),
        Served::Finished(Ok(Outcome::Prompt(_) | Outcome::Resource(_))) => {
            Err(ErrorData::internal_error("the work was another request's", None))
        }
        Served::Finished(Err(error)) => Err(error),
        Served::InputRequired(required) => Ok(required.into()),
        Served::Cancelled => Ok(CallToolResult::error(vec![ContentBlock::text("the call was cancelled")]).into()),
    }
}

/// For the check of headers that repeat arguments: what is known without a session.
pub(super) fn global(server: &Server, name: &str) -> Option<Tool> {
    let snapshot = server.mcp.engine().registry.snapshot();
    snapshot.global().find(name).and_then(|tool| describe(tool.spec()))
}
