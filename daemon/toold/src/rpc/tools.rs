//! `tools.*`

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toold_adapters::providers::{self as provider, CallKind, calls_in, most_tools, results_as};
use toold_engine::Engine;
use toold_engine::absent_tools::unknown_tool;
use toold_engine::batch::execute_batch;
use toold_engine::call::{Call, CallError};
use toold_engine::callable::Callable;
use toold_engine::execute::{CallRequest, execute};
use toold_engine::meta_tools::{CALL, SEARCH};
use toold_engine::progress::{ProgressSink, broadcast};
use toold_engine::registry::{Snapshot, ToolView};
use toold_engine::session::{Session, SessionFilter};
use toold_engine::tool::ToolSpec;
use toold_engine::tool_rank::rank;
use toold_proto::call::{
    BatchCall, BatchItem, CallProgress, CancelCall, Cancelled, Execute, FindTools, FoundTool, FoundTools, Interrupt,
    Interrupted, ListTools, ListingMode, Progress, ProviderOptions, Strategy, ToolFormat, ToolSchema,
};
use toold_proto::method::{
    ToolsCancel, ToolsExecute, ToolsExecuteBatch, ToolsInterrupt, ToolsList, ToolsSchema, ToolsSearch,
};
use toold_proto::permission::Verdict;
use toold_proto::tool::{CallId, SessionId, Tool, ToolName, ToolResult};

use crate::lifecycle::traces::in_trace_of;
use crate::rpc::calls::run_detached;
use crate::rpc::error::{invalid_params, of_call};
use crate::rpc::located::{located, may_read};
use crate::rpc::outboxes::OutboxWriter;
use crate::rpc::provider_lists::{self, FinderTools, check_callers};
use crate::rpc::session::may_call_in;
use crate::rpc::{MethodRequest, MethodTable, Right, add, add_async, add_shaped};

/// How many tools a search returns if it does not say so.
const FOUND: usize = 10;

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_shaped::<ToolsList, _, _, _>(module, Right::Anyone, list)?;
    add_async::<ToolsSchema, _>(module, Right::Anyone, schema)?;
    add_async::<ToolsSearch, _>(module, Right::Anyone, search)?;
    add_async::<ToolsExecute, _>(module, Right::Anyone, run)?;
    add_shaped::<ToolsExecuteBatch, _, _, _>(module, Right::Anyone, run_batch)?;
    add::<ToolsCancel>(module, Right::Anyone, |request, cancel: CancelCall| {
        let session = request.session(cancel.session_id.as_ref())?;
        Ok(Cancelled { cancelled: session.cancel(&cancel.call_id) })
    })?;
    add::<ToolsInterrupt>(module, Right::Anyone, |request, interrupt: Interrupt| {
        let session = request.session(interrupt.session_id.as_ref())?;
        Ok(Interrupted { skipped: session.interrupt() })
    })
}

/// The answer of `tools.list`, in any format.
#[derive(Serialize)]
struct Listed {
    revision: u64,
    epoch: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unchanged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deferred: Vec<ToolName>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

async fn list(request: MethodRequest, list: ListTools) -> Result<Listed, ErrorObjectOwned> {
    let session = request.session(list.session_id.as_ref())?;
    request.services.plugins.settled().await;
    let engine = &request.services.engine;
    let snapshot = engine.registry.snapshot();
    let (revision, epoch) = (snapshot.revision, engine.events.epoch().to_owned());
    let same_epoch = list.if_epoch.as_ref().is_none_or(|known| *known == epoch);
    if list.if_revision == Some(revision) && same_epoch {
        return Ok(Listed {
            revision,
            epoch,
            unchanged: true,
            tools: None,
            deferred: Vec::new(),
            warnings: Vec::new(),
        });
    }
    let format = list.format.unwrap_or_default();
    check_callers(format, &list.provider).map_err(|error| invalid_params(&error))?;
    let chooses = list.query.is_some() || list.source.is_some() || list.names.is_some();
    let mode = list.mode.unwrap_or_else(|| if chooses { ListingMode::All } else { listing_of(&snapshot, &session) });
    let view = snapshot.view(session.project());
    // A provider's list needs all tools: its API has deferred tools of its own, or a limit.
    let of_provider = most_tools(format).is_some();
    let mut tools = listed(engine, &snapshot, view, if of_provider { ListingMode::All } else { mode });
    tools.retain(|tool| wanted(tool, &list, &session));
    tools.sort_by_cached_key(|tool| tool.own_name.map(|own| rank(engine, own)));
    let is_deferred = |tool: &ListedSpec| {
        let is_pinned = tool.own_name.is_none_or(|own| snapshot.tool_settings().pins(own));
        of_provider && mode == ListingMode::Deferred && !is_pinned
    };
    let tools = tools.iter().map(|tool| (described(tool.spec, &list.provider), is_deferred(tool))).collect();
    let meta_tool =
        |name: &str| engine.meta_tools.specs(view).find(|spec| spec.name.as_str() == name).map(ToolSpec::describe);
    let finders = meta_tool(SEARCH).zip(meta_tool(CALL)).map(|(search, call)| FinderTools { search, call });
    let written = provider_lists::list(format, tools, finders, &list.provider);
    let (deferred, warnings) = (written.deferred, written.warnings);
    Ok(Listed { revision, epoch, unchanged: false, tools: Some(written.tools), deferred, warnings })
}

/// Without the examples of arguments that do not fit the schema, if they are asked for: a provider refuses the whole list.
fn described(spec: &ToolSpec, options: &ProviderOptions) -> Tool {
    let mut tool = spec.describe();
    if options.input_examples
        && let Some(Value::Array(examples)) = tool.input_schema.get_mut("examples")
    {
        examples.retain(|example| spec.input.check(example).is_empty());
    }
    tool
}

/// The list that a client gets if it does not choose one.
pub(super) fn listing_of(snapshot: &Snapshot, session: &Session) -> ListingMode {
    let of_client = || snapshot.tool_settings().listing_of(session.client.as_ref().map(|client| client.name.as_str()));
    session.filter.listing().unwrap_or_else(of_client)
}

/// A tool of a list.
pub(super) struct ListedSpec<'v> {
    pub(super) spec: &'v ToolSpec,
    /// `None` for `tools_search` and `tools_call`, which find and call only what their caller sees.
    own_name: Option<&'v ToolName>,
}

impl ListedSpec<'_> {
    pub(super) fn is_seen(&self, session: &Session) -> bool {
        self.is_allowed(&session.filter)
    }

    pub(super) fn is_allowed(&self, filter: &SessionFilter) -> bool {
        self.own_name.is_none_or(|own| filter.allows(own, self.spec))
    }

    pub(super) fn is_meta_tool(&self) -> bool {
        self.own_name.is_none()
    }
}

/// The tools that a list has before the session's filter, by name.
pub(super) fn listed<'v>(
    engine: &'v Engine,
    snapshot: &Snapshot,
    view: &'v ToolView,
    mode: ListingMode,
) -> Vec<ListedSpec<'v>> {
    let is_in = |tool: &&Arc<dyn Callable>| mode == ListingMode::All || snapshot.tool_settings().pins(tool.own_name());
    let tools = view.iter().filter(is_in);
    let mut all: Vec<ListedSpec> =
        tools.map(|tool| ListedSpec { spec: tool.spec(), own_name: Some(tool.own_name()) }).collect();
    if mode == ListingMode::Deferred {
        all.extend(engine.meta_tools.specs(view).map(|spec| ListedSpec { spec, own_name: None }));
        all.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    }
    all
}

fn wanted(tool: &ListedSpec, list: &ListTools, session: &Session) -> bool {
    let spec = tool.spec;
    let name = spec.name.as_str();
    let by_source = |source: &String| spec.source.is_of(source);
    let by_words = |query: &String| {
        let text = format!("{name} {} {}", spec.label, spec.description).to_lowercase();
        query.to_lowercase().split_whitespace().all(|word| text.contains(word))
    };
    tool.is_seen(session)
        && list.source.as_ref().is_none_or(by_source)
        && list.names.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
        && list.query.as_ref().is_none_or(by_words)
}

async fn search(request: MethodRequest, asked: FindTools) -> Result<FoundTools, ErrorObjectOwned> {
    let session = request.session(asked.session_id.as_ref())?;
    request.services.plugins.settled().await;
    let snapshot = request.services.engine.registry.snapshot();
    let found = snapshot.view(session.project()).search(&asked.query, |tool| {
        session.filter.allows(tool.own_name(), tool.spec())
            && asked.source.as_ref().is_none_or(|source| tool.spec().source.is_of(source))
    });
    let shown = asked.limit.unwrap_or(FOUND).min(found.len());
    let tools = found[..shown].iter().map(|tool| tool.spec()).map(|spec| FoundTool {
        name: spec.name.clone(),
        description: if asked.schemas { spec.description.clone() } else { spec.summary() },
        source: spec.source.clone(),
        input_schema: asked.schemas.then(|| spec.input.as_value().clone()),
    });
    Ok(FoundTools { tools: tools.collect(), more: found.len() - shown })
}

async fn schema(request: MethodRequest, asked: ToolSchema) -> Result<Tool, ErrorObjectOwned> {
    let session = request.session(asked.session_id.as_ref())?;
    request.services.plugins.settled().await;
    let snapshot = request.services.engine.registry.snapshot();
    let view = snapshot.view(session.project());
    if let Some(spec) = request.services.engine.meta_tools.specs(view).find(|spec| spec.name.as_str() == asked.name) {
        return Ok(spec.describe());
    }
    match view.find(&asked.name).filter(|tool| session.filter.allows(tool.own_name(), tool.spec())) {
        Some(tool) => Ok(tool.spec().describe()),
        None => Err(of_call(unknown_tool(&request.services.engine, &session, &asked.name))),
    }
}

async fn run(request: MethodRequest, mut execute_params: Execute) -> Result<ToolResult, ErrorObjectOwned> {
    let turn = request.connection().arrivals.next();
    let (detach, traceparent) = (execute_params.detach, execute_params.traceparent.take());
    let call = to_call(&request, execute_params)?;
    let services = &request.services;
    // No call runs before the hooks of plugins that are loading.
    if !services.plugins.is_settled() {
        services.plugins.settled().await;
    }
    // On the heap: both are large, and every enclosing future would move them.
    let ran = async {
        match detach {
            true => {
                drop(turn);
                Box::pin(run_detached(&request, call)).await
            }
            false => execute(&services.engine, CallRequest::in_turn(call, Some(turn))).await.map_err(of_call),
        }
    };
    in_trace_of(traceparent.as_deref(), ran).await
}

/// The params of `tools.execute_batch`, whose calls may be in a provider's format.
#[derive(Deserialize)]
struct BatchParams {
    #[serde(default)]
    calls: Value,
    #[serde(default)]
    format: ToolFormat,
    #[serde(default)]
    strategy: Strategy,
    session_id: Option<SessionId>,
    #[serde(default)]
    progress: bool,
}

#[derive(Serialize)]
struct BatchResponse {
    results: Value,
}

async fn run_batch(request: MethodRequest, batch: BatchParams) -> Result<BatchResponse, ErrorObjectOwned> {
    if batch.strategy == Strategy::Batched(0) {
        return Err(invalid_params("strategy: batched takes units of at least 1 call"));
    }
    match batch.format {
        ToolFormat::Native => native_batch(&request, batch).await,
        ToolFormat::Anthropic
        | ToolFormat::Openai
        | ToolFormat::OpenaiResponses
        | ToolFormat::Gemini
        | ToolFormat::Mcp => provider_batch(&request, batch).await,
    }
}

async fn native_batch(request: &MethodRequest, mut batch: BatchParams) -> Result<BatchResponse, ErrorObjectOwned> {
    let Value::Array(calls) = batch.calls.take() else {
        return Err(invalid_params("calls: expected a list of calls"));
    };
    let read = calls.into_iter().enumerate().map(|(at, call)| {
        serde_json::from_value(call).map_err(|error| invalid_params(&format!("calls[{at}]: {error}")))
    });
    let calls: Vec<BatchCall> = read.collect::<Result<_, _>>()?;
    let (ids, answers) = run_all(request, calls, &batch).await?;
    let results: Vec<BatchItem> = ids
        .into_iter()
        .zip(answers)
        .map(|(call_id, answer)| match answer {
            Ok(result) => BatchItem { call_id, result: Some(result), error: None },
            Err(error) => BatchItem { call_id, result: None, error: serde_json::to_value(of_call(error)).ok() },
        })
        .collect();
    Ok(BatchResponse { results: json!(results) })
}

/// An unreadable call is answered in its place, since providers want a result for each call.
async fn provider_batch(request: &MethodRequest, batch: BatchParams) -> Result<BatchResponse, ErrorObjectOwned> {
    let session = request.session(batch.session_id.as_ref())?;
    request.services.plugins.settled().await;
    let snapshot = request.services.engine.registry.snapshot();
    let view = snapshot.view(session.project());
    let schema_of = |name: &str| view.find(name).map(|tool| tool.spec().input.as_value().clone());
    let blocks = calls_in(batch.format, &batch.calls, &schema_of);
    let calls = blocks.iter().flatten().map(|call| BatchCall {
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        call_id: call.call_id.clone(),
    });
    let (_, answers) = run_all(request, calls.collect(), &batch).await?;
    let answers: Vec<Result<ToolResult, String>> =
        answers.into_iter().map(|answer| answer.map_err(|error| error.to_string())).collect();
    let found_in = |result: &ToolResult| {
        let names = result.structured.as_ref()?.get("tools")?.as_array()?.iter();
        let found = names.filter_map(|tool| Some(view.find(tool.get("name")?.as_str()?)?.spec().describe()));
        Some(found.collect::<Vec<Tool>>())
    };
    // An API that has deferred tools of its own loads those that a search found. OpenAI's has a call of its own for that.
    let searches = |call: &provider::ProviderCall| {
        let by_name = batch.format == ToolFormat::Anthropic && call.name == SEARCH;
        (by_name || call.form.kind == CallKind::ToolSearch) && view.find(SEARCH).is_none()
    };
    let found: Vec<Option<Vec<Tool>>> = blocks
        .iter()
        .flatten()
        .zip(&answers)
        .map(|(call, answer)| answer.as_ref().ok().filter(|_| searches(call)).and_then(found_in))
        .collect();
    let mut answered = answers.iter().zip(&found);
    let refused: Vec<String> =
        blocks.iter().map(|block| block.as_ref().err().map_or_else(String::new, ToString::to_string)).collect();
    let shown: Vec<provider::ProviderAnswer> = blocks
        .iter()
        .zip(&refused)
        .map(|(block, refused)| match block {
            Ok(call) => provider::ProviderAnswer {
                call_id: call.call_id.as_ref().map(CallId::as_str),
                name: &call.name,
                form: &call.form,
                outcome: match answered.next() {
                    Some((Ok(_), Some(tools))) => provider::AnswerOutcome::Found(tools),
                    Some((Ok(result), None)) => provider::AnswerOutcome::Result(result),
                    Some((Err(words), _)) => provider::AnswerOutcome::Error(words),
                    None => provider::AnswerOutcome::Error("the call was not run"),
                },
            },
            Err(call) => provider::ProviderAnswer {
                call_id: call.call_id.as_ref().map(CallId::as_str),
                name: call.name.as_deref().unwrap_or_default(),
                form: &call.form,
                outcome: provider::AnswerOutcome::Error(refused),
            },
        })
        .collect();
    Ok(BatchResponse { results: results_as(batch.format, &shown) })
}

type BatchOutcomes = (Vec<CallId>, Vec<Result<ToolResult, CallError>>);

async fn run_all(
    request: &MethodRequest,
    calls: Vec<BatchCall>,
    batch: &BatchParams,
) -> Result<BatchOutcomes, ErrorObjectOwned> {
    let calls = calls.into_iter().map(|call| {
        let BatchCall { name, arguments, call_id } = call;
        let (session_id, progress) = (batch.session_id.clone(), batch.progress);
        to_call(request, Execute { name, arguments, call_id, session_id, progress, ..Execute::default() })
    });
    let mut calls = calls.collect::<Result<Vec<Call>, _>>()?;
    for call in &mut calls {
        call.cancel = request.scope.cancel.child_token();
    }
    let services = &request.services;
    services.plugins.settled().await;
    let ids: Vec<CallId> = calls.iter().filter_map(|call| call.call_id.clone()).collect();
    Ok((ids, execute_batch(&services.engine, calls, batch.strategy).await))
}

pub(super) fn to_call(request: &MethodRequest, params: Execute) -> Result<Call, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    may_call_in(request, &session)?;
    if !(params.arguments.is_null() || params.arguments.is_object()) {
        return Err(invalid_params("arguments: expected an object or null"));
    }
    let cwd = params.cwd.as_deref().map(|cwd| within(&request.services.engine, &session, cwd)).transpose()?;
    let call_id = params.call_id.unwrap_or_else(|| request.services.engine.new_call_id());
    let mut progress: Vec<Arc<dyn ProgressSink>> = Vec::new();
    if params.progress {
        progress
            .push(Arc::new(ProgressNotifications::new(call_id.clone(), request.connection().outbox.writer().clone())));
    }
    let engine = &request.services.engine;
    progress.push(broadcast(engine, &call_id, &session.id));
    Ok(Call {
        name: params.name,
        arguments: params.arguments,
        call_id: Some(call_id),
        chain: session.chain(),
        session,
        cwd,
        timeout: params.timeout_ms.map(Duration::from_millis),
        no_cache: params.no_cache,
        caller: request.connection().caller.clone(),
        progress,
        cancel: request.scope.cancel.clone(),
        depth: 0,
        holds_lane: false,
    })
}

/// A call's own folder lies within its session's. Places outside, or unreadable ones, are not
/// examined.
pub(super) fn within(engine: &Engine, session: &Session, cwd: &str) -> Result<PathBuf, ErrorObjectOwned> {
    let found = located(engine, session, &session.cwd.join(cwd))
        .map_err(|error| invalid_params(&format!("cwd: {cwd}: {error}")))?;
    if found.judged_as.is_some() || !session.contains(&found.path) {
        let own = session.cwd.display();
        return Err(invalid_params(&format!("cwd: {cwd} is outside the session's folder {own}")));
    }
    if found.path == session.cwd {
        return Ok(found.path);
    }
    match may_read(engine, session, &found.path) {
        Verdict::Allow => crate::config::project_folder::real_dir(&found.path)
            .map_err(|error| invalid_params(&format!("cwd: {cwd}: {error}"))),
        // Whether such a folder exists is revealed only when a tool was allowed to look there.
        Verdict::Ask => Ok(found.path),
        Verdict::Deny => Err(invalid_params(&format!("cwd: {cwd} may not be read: name another folder"))),
    }
}

/// Sends a call's progress to the connection that made it.
struct ProgressNotifications {
    call_id: CallId,
    outbox: OutboxWriter,
    dropped: AtomicU64,
}

impl ProgressNotifications {
    fn new(call_id: CallId, outbox: OutboxWriter) -> Self {
        Self { call_id, outbox, dropped: AtomicU64::new(0) }
    }
}

impl ProgressSink for ProgressNotifications {
    fn send(&self, seq: u64, progress: &Progress) {
        #[derive(Serialize)]
        struct OutgoingProgress<'a> {
            jsonrpc: &'static str,
            method: &'static str,
            params: &'a CallProgress,
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        let sent = self.outbox.try_send(|| {
            let params = CallProgress {
                call_id: self.call_id.clone(),
                seq,
                dropped: (dropped > 0).then_some(dropped),
                progress: progress.clone(),
            };
            let notification = OutgoingProgress { jsonrpc: "2.0", method: "tools.progress", params: &params };
            to_raw_value(&notification)
                .inspect_err(|error| tracing::error!(%error, call = %self.call_id, "progress cannot be written"))
                .ok()
        });
        match sent {
            true => self.dropped.fetch_sub(dropped, Ordering::Relaxed),
            false => self.dropped.fetch_add(1, Ordering::Relaxed),
        };
    }
}
