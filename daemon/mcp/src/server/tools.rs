//! `tools/list` and `tools/call`, on the registry and the pipeline of the native dialect.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value};
use toold_adapters::providers::tools_as;
use toold_engine::Engine;
use toold_engine::call::CallError;
use toold_engine::callable::Callable;
use toold_engine::detached::Detached;
use toold_engine::execute::{CallRequest, execute};
use toold_engine::meta_tools::{CALL, inner_call};
use toold_engine::session::Session;
use toold_engine::tool::ToolSpec;
use toold_proto::call::{ListingMode, ToolFormat};
use toold_proto::tool::{TaskUse, ToolResult};

use crate::server::meta_tools;
use crate::server::request::RequestEnd;
use crate::server::request_session::{client_of, is_modern};
use crate::server::request_state::StateBinding;
use crate::server::running_request::{RequestOutcome, RequestResult};
use crate::server::tasks::TaskHandover;
use crate::server::{CallFuture, McpClientServer, content, short_names, tasks, tool_meta};

/// How long a client may use a list without requesting it again: a plugin is often saved again within seconds.
pub(super) const LIST_TTL_MS: u64 = 1_000;

pub(super) async fn list(
    server: &McpClientServer,
    context: &RequestContext<RoleServer>,
) -> Result<ListToolsResult, ErrorData> {
    let session = server.session(context).await?;
    let mode = server.listing(context)?;
    server.mcp.host.settled().await;
    server.mcp.host.first_lists().await;
    let engine = server.mcp.engine();
    let snapshot = engine.registry.snapshot();
    let view = snapshot.view(session.project());
    let is_in = |tool: &dyn Callable| {
        session.filter.allows(tool.own_name(), tool.spec())
            && (mode == ListingMode::All || snapshot.tool_settings().pins(tool.own_name()))
    };
    let is_alone = session.filter.only_source().is_some();
    let is_pinned = |tool: &dyn Callable| snapshot.tool_settings().pins(tool.own_name());
    let shown = view.iter().filter(|tool| is_in(tool.as_ref()));
    let shown = shown.map(|tool| ToolListEntry {
        spec: tool.spec(),
        meta: tool.listing_meta(),
        is_pinned: is_pinned(tool.as_ref()),
        upstream_name: tool.upstream_name().filter(|_| is_alone),
    });
    let mut listed: Vec<ToolListEntry<'_>> = shown.collect();
    // The client reaches no other tools, unless its list is short.
    if meta_tools::are_offered(server, mode, context) && (!is_alone || mode == ListingMode::Deferred) {
        let meta_tools = engine.meta_tools.specs(view);
        listed.extend(meta_tools.map(|spec| ToolListEntry { spec, meta: None, is_pinned: false, upstream_name: None }));
        listed.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    }
    let result_size = engine.settings.load().max_result_text;
    let keeps_root = is_modern(context);
    let limit = short_names::limit(server, client_of(context).map(|client| client.name).as_deref());
    let tools = listed.into_iter().filter_map(|listed| {
        let mut tool = describe(listed.spec)?;
        if keeps_root {
            // The stateless revisions have all keywords of JSON Schema at the root, too (SEP-2106).
            let spec = listed.spec.describe();
            tool.description = Some(spec.description.into());
            tool.input_schema = Arc::new(spec.input_schema.as_object().cloned().unwrap_or_default());
        }
        if let Some(name) = listed.upstream_name {
            tool.name = name.to_owned().into();
        }
        if let Some(short) = short_names::shortened(&tool.name, limit) {
            tool.name = short.into();
        }
        tool_meta::add(&mut tool, listed.meta, result_size, listed.is_pinned);
        Some(tool)
    });
    let list = ListToolsResult::with_all_items(tools.collect());
    Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
}

/// A tool of a list.
struct ToolListEntry<'a> {
    spec: &'a ToolSpec,
    /// The `_meta` of its source.
    meta: Option<&'a Map<String, Value>>,
    is_pinned: bool,
    /// The name for a client that sees this source alone: it stands for the server itself.
    upstream_name: Option<&'a str>,
}

pub(super) fn describe(spec: &ToolSpec) -> Option<Tool> {
    let Value::Array(mut described) = tools_as(ToolFormat::Mcp, &[spec.describe()]) else { return None };
    let tool = serde_json::from_value(described.pop()?);
    tool.inspect_err(|error| tracing::error!(tool = %spec.name, %error, "a tool cannot be described")).ok()
}

pub(super) async fn call(
    server: &McpClientServer,
    mut request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let mut turn = server.connection.arrivals.take(&context.id);
    let binding = StateBinding::new("tools/call", &request.name, request.arguments.as_ref(), &server.connection);
    let answers = request.input_responses.take().unwrap_or_default();
    if let Some(state) = request.request_state.take() {
        return response(server.resume(&state, answers, binding, context).await?);
    }
    let session = server.session(&context).await?;
    let (mut name, mut arguments) = (request.name.into_owned(), Value::Object(request.arguments.unwrap_or_default()));
    // A client may know the tools from an earlier time, and call one before its server is connected.
    let is_known = || of_only_source(server.mcp.engine(), &session, &name).is_some();
    if !knows(server.mcp.engine(), &session, &name) && !is_known() {
        // This may take long, and other calls do not wait for it.
        turn = None;
        server.mcp.host.settled().await;
        server.mcp.host.first_lists().await;
    }
    if let Some(own) = of_only_source(server.mcp.engine(), &session, &name) {
        name = own;
    } else if !knows(server.mcp.engine(), &session, &name) {
        let limit = short_names::limit(server, client_of(&context).map(|client| client.name).as_deref());
        if let Some(own) = short_names::of_shortened(server, &session, &name, limit) {
            name = own;
        }
    }
    if meta_tools::is_withheld(server, &session, &name, server.listing(&context)?, &context) {
        return Err(ErrorData::invalid_params(format!("there is no tool {name}"), None));
    }
    // As the engine would do it: the tool that is called says whether it wants a task.
    if name == CALL && !knows(server.mcp.engine(), &session, CALL) {
        (name, arguments) = match inner_call(arguments) {
            Ok(inner) => inner,
            Err(error) => return Ok(content::failed(&error).into()),
        };
    }
    let engine = server.mcp.engine().clone();
    // A call before this would miss the hooks of plugins that are loading.
    server.mcp.host.settled().await;
    let any_structure = is_modern(&context);
    let preference = task_use(&engine, &session, &name);
    let handover = match tasks::are_accepted(&context) {
        true => TaskHandover::of(preference, server.mcp.host.task_after()),
        false if preference == Some(TaskUse::Required) && is_modern(&context) => return Err(tasks::missing()),
        false => None,
    };
    // The name that the convention for traces over MCP prescribes.
    let traceparent = context.meta.get("traceparent").and_then(Value::as_str).map(str::to_owned);
    let host = server.mcp.host.clone();
    let became_task = handover.as_ref().map(|handover| handover.done.clone());
    let served = server.run(session, answers, binding, context, handover, move |mut call| {
        call.name = name;
        call.arguments = arguments;
        let work = async move {
            let detached = Detached::of(&engine, &call);
            let called: CallFuture = async move { execute(&engine, CallRequest::in_turn(call, turn)).await }.boxed();
            let answer = match traceparent {
                Some(parent) => host.in_trace_of(&parent, called).await,
                None => called.await,
            };
            if became_task.is_some_and(|became| became.load(Ordering::Relaxed)) {
                detached.keep(&answer);
            }
            finished(answer, any_structure)
        };
        work.boxed()
    });
    response(served.await)
}

/// The name here of a tool that a client which sees one source alone calls as that source does.
fn of_only_source(engine: &Engine, session: &Session, name: &str) -> Option<String> {
    session.filter.only_source()?;
    let snapshot = engine.registry.snapshot();
    let is_seen = |tool: &dyn Callable| session.filter.allows(tool.own_name(), tool.spec());
    let mut tools = snapshot.view(session.project()).iter();
    let tool = tools.find(|tool| tool.upstream_name() == Some(name) && is_seen(tool.as_ref()))?;
    Some(tool.spec().name.as_str().to_owned())
}

fn knows(engine: &Engine, session: &Session, name: &str) -> bool {
    engine.registry.snapshot().view(session.project()).find(name).is_some()
}

/// A tool's preference for tasks; `None` for a tool that does not exist.
fn task_use(engine: &Engine, session: &Session, name: &str) -> Option<TaskUse> {
    engine.registry.snapshot().view(session.project()).find(name)?.spec().annotations.task
}

fn finished(answer: Result<ToolResult, CallError>, any_structure: bool) -> RequestResult {
    match answer {
        Ok(result) => Ok(RequestOutcome::Tool(content::result(result, any_structure))),
        Err(error @ CallError::UnknownTool { .. }) => Err(ErrorData::invalid_params(error.to_string(), None)),
        Err(CallError::Cancelled) => Ok(RequestOutcome::Cancelled),
        // As a result, so that the model can read it and act on it.
        Err(error) => Ok(RequestOutcome::Tool(content::failed(&error))),
    }
}

fn response(served: RequestEnd) -> Result<CallToolResponse, ErrorData> {
    match served {
        RequestEnd::Finished(Ok(RequestOutcome::Tool(result))) => Ok(result.into()),
        RequestEnd::Finished(Ok(RequestOutcome::Cancelled)) => Ok(content::failed(&CallError::Cancelled).into()),
        RequestEnd::Task(task) => Ok(task.into()),
        RequestEnd::Finished(Ok(RequestOutcome::Prompt(_) | RequestOutcome::Resource(_))) => {
            Err(ErrorData::internal_error("the result belongs to another kind of request", None))
        }
        RequestEnd::Finished(Err(error)) => Err(error),
        RequestEnd::InputRequired(required) => Ok(required.into()),
        RequestEnd::Cancelled => Ok(CallToolResult::error(vec![ContentBlock::text("the call was cancelled")]).into()),
    }
}

/// A tool that is known without a session, for the check of headers that repeat arguments.
pub(super) fn global_tool(server: &McpClientServer, name: &str) -> Option<Tool> {
    let snapshot = server.mcp.engine().registry.snapshot();
    snapshot.global().find(name).and_then(|tool| describe(tool.spec()))
}
