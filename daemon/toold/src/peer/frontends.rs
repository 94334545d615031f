//! Tools that frontends provide, while they stay subscribed.
//!
//! A frontend may also offer roles; it then runs the inputs of built-ins.
//!
//! All frontends of one client kind are one source. Where several provide a tool of one name, a
//! call goes to the one of its session, otherwise to one of its project, otherwise to the one that
//! was active last.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toold_engine::Engine;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::registry::{NameTaken, SourceKey, SourceScope};
use toold_engine::roles::Roles;
use toold_engine::schema::{Schema, SchemaError};
use toold_engine::session::Session;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_proto::call::Progress;
use toold_proto::provide::{Invocation, InvokedCall, Provide, ProvidedContent, ProvidedResult, ProvidedTool, Role};
use toold_proto::tool::{Block, Category, InvalidId, Source, SourceKind, ToolName};

/// Invocations that wait for a frontend to read them; with more, calls fail because the frontend is
/// too slow.
const WAITING: usize = 256;

/// The frontends that provide tools. One for each daemon.
#[derive(Default)]
pub struct Frontends {
    state: Mutex<ProviderState>,
    next: AtomicU64,
}

#[derive(Default)]
struct ProviderState {
    /// By client kind.
    providers: HashMap<String, Vec<Arc<Provider>>>,
    invocations: HashMap<String, OpenInvocation>,
}

struct Provider {
    id: u64,
    connection: u64,
    /// The subscription that provides it, under the frontend's own id.
    subscription: String,
    session: Option<Arc<Session>>,
    specs: BTreeMap<ToolName, ToolSpec>,
    roles: BTreeSet<Role>,
    invocations: mpsc::Sender<Invocation>,
    /// When it was last active, as a count.
    active: AtomicU64,
}

/// An invocation without a result yet.
struct OpenInvocation {
    connection: u64,
    result: oneshot::Sender<Result<ToolOutput, ToolError>>,
    progress: mpsc::Sender<Progress>,
}

/// Why tools cannot be provided.
#[derive(Debug, thiserror::Error)]
pub enum CannotProvide {
    #[error(transparent)]
    Name(#[from] InvalidId),
    #[error("tool {0} is named twice")]
    Twice(ToolName),
    #[error("tool {tool}: {error}")]
    Schema { tool: ToolName, error: SchemaError },
    #[error(transparent)]
    Taken(#[from] NameTaken),
}

/// A frontend's provided tools; they are removed when this is dropped.
pub struct ProvidedTools {
    frontends: Arc<Frontends>,
    engine: Arc<Engine>,
    kind: String,
    id: u64,
    pub invocations: mpsc::Receiver<Invocation>,
}

impl Frontends {
    /// Adds a frontend's tools to the registry, all or none.
    pub fn provide(
        self: &Arc<Self>,
        engine: &Arc<Engine>,
        (connection, subscription): (u64, String),
        session: Option<Arc<Session>>,
        Provide { tools, roles }: &Provide,
    ) -> Result<ProvidedTools, CannotProvide> {
        let client = session.as_ref().and_then(|session| session.client.as_ref());
        let kind = client.map_or_else(|| format!("connection {connection}"), |client| client.name.clone());
        let mut specs = BTreeMap::new();
        for tool in tools {
            let spec = spec_of(tool, &kind)?;
            if let Some(twice) = specs.insert(spec.name.clone(), spec) {
                return Err(CannotProvide::Twice(twice.name));
            }
        }
        let (sender, invocations) = mpsc::channel(WAITING);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let active = AtomicU64::new(id);
        let roles = roles.iter().copied().collect();
        let provider =
            Arc::new(Provider { id, connection, subscription, session, specs, roles, invocations: sender, active });
        let mut state = self.state.lock();
        state.providers.entry(kind.clone()).or_default().push(provider);
        if let Err(taken) = self.commit(&state, engine, &kind) {
            self.remove(&mut state, engine, &kind, id);
            return Err(taken.into());
        }
        drop(state);
        Ok(ProvidedTools { frontends: self.clone(), engine: engine.clone(), kind, id, invocations })
    }

    /// Removes the tools of a subscription before the task that serves it learns of its end.
    pub fn take_back(self: &Arc<Self>, engine: &Engine, connection: u64, subscription: &str) {
        let mut state = self.state.lock();
        let mut all =
            state.providers.iter().flat_map(|(kind, providers)| providers.iter().map(move |provider| (kind, provider)));
        let its = all.find(|(_, provider)| provider.connection == connection && provider.subscription == subscription);
        if let Some((kind, id)) = its.map(|(kind, provider)| (kind.clone(), provider.id)) {
            self.remove(&mut state, engine, &kind, id);
        }
    }

    /// Ends an invocation. False for one that is not open, or not this connection's.
    pub fn answer(&self, connection: u64, invocation: &str, result: Result<ProvidedResult, String>) -> bool {
        let mut state = self.state.lock();
        if state.invocations.get(invocation).is_none_or(|open| open.connection != connection) {
            return false;
        }
        let open = state.invocations.remove(invocation).expect("it was just found");
        drop(state);
        // Fails when the call's caller has given up meanwhile.
        let _ = open.result.send(result.map(output_of).map_err(ToolError::Failed));
        true
    }

    /// Reports an invocation's progress; lost when the caller is slow. False as for
    /// [`answer`](Self::answer).
    pub fn report_progress(&self, connection: u64, invocation: &str, progress: Progress) -> bool {
        let state = self.state.lock();
        match state.invocations.get(invocation).filter(|open| open.connection == connection) {
            Some(open) => {
                let _ = open.progress.try_send(progress);
                true
            }
            None => false,
        }
    }

    /// Rebuilds the tools of one client kind from all its providers; the newest describes a tool.
    fn commit(self: &Arc<Self>, state: &ProviderState, engine: &Engine, kind: &str) -> Result<(), NameTaken> {
        let key = SourceKey { kind: SourceKind::Frontend, name: kind.to_owned(), scope: SourceScope::Global };
        let mut specs = BTreeMap::new();
        for provider in state.providers.get(kind).into_iter().flatten() {
            specs.extend(provider.specs.iter().map(|(name, spec)| (name.clone(), spec.clone())));
        }
        if specs.is_empty() {
            engine.registry.remove(key);
            return Ok(());
        }
        let tools = specs.into_values().map(|spec| {
            Arc::new(LentTool { spec, frontends: self.clone(), kind: kind.to_owned() }) as Arc<dyn Callable>
        });
        engine.registry.put(key, Origin::Frontend, tools.collect())
    }

    fn remove(self: &Arc<Self>, state: &mut ProviderState, engine: &Engine, kind: &str, id: u64) {
        let Some(providers) = state.providers.get_mut(kind) else { return };
        let Some(at) = providers.iter().position(|provider| provider.id == id) else { return };
        providers.remove(at);
        if providers.is_empty() {
            state.providers.remove(kind);
        }
        if let Err(taken) = self.commit(state, engine, kind) {
            tracing::warn!(%taken, "can't update a frontend's tools");
        }
    }

    /// The provider that should run a call: of its session, otherwise of its project, otherwise the
    /// last active one.
    fn choose(&self, session: &Session, can: impl Fn(&str, &Provider) -> bool) -> Option<Arc<Provider>> {
        let state = self.state.lock();
        let all =
            state.providers.iter().flat_map(|(kind, providers)| providers.iter().map(move |provider| (kind, provider)));
        let able = all.filter(|(kind, provider)| can(kind, provider)).map(|(_, provider)| provider);
        let nearness = |provider: &Arc<Provider>| {
            let its = provider.session.as_ref();
            let same_session = its.is_some_and(|its| its.id == session.id);
            let same_project = its.is_some_and(|its| its.project() == session.project());
            (same_session, same_project, provider.active.load(Ordering::Relaxed))
        };
        able.max_by_key(|provider| nearness(provider)).cloned()
    }

    /// Runs a call in a provider, and waits for its result. `name` is the tool's name in the
    /// frontend.
    async fn invoke(
        &self,
        provider: &Provider,
        name: &str,
        role: Option<Role>,
        input: Value,
        cx: &Cx,
    ) -> Result<ToolOutput, ToolError> {
        let gone = || ToolError::Failed(format!("the frontend that runs {name} is gone"));
        let id = format!("inv_{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (result, mut answered) = oneshot::channel();
        let (progress, mut updates) = mpsc::channel(WAITING);
        let open = OpenInvocation { connection: provider.connection, result, progress };
        self.state.lock().invocations.insert(id.clone(), open);
        let _close = Close { frontends: self, id: &id };
        let call = InvokedCall {
            invocation_id: id.clone(),
            name: name.to_owned(),
            arguments: input,
            session_id: cx.session.id.clone(),
            call_id: cx.call_id.clone(),
            cwd: cx.cwd.display().to_string(),
            role,
        };
        match provider.invocations.try_send(Invocation::Call(call)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(gone()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                return Err(ToolError::Failed(format!("the frontend that runs {name} takes no calls: {WAITING} wait")));
            }
        }
        loop {
            tokio::select! {
                biased;
                Some(progress) = updates.recv() => cx.report(progress),
                result = &mut answered => {
                    let now = self.next.fetch_add(1, Ordering::Relaxed);
                    provider.active.store(now, Ordering::Relaxed);
                    return result.unwrap_or_else(|_| Err(gone()));
                }
                () = provider.invocations.closed() => return Err(gone()),
                () = cx.cancel.cancelled() => {
                    // Lost when the frontend is that slow; its late result is ignored anyway.
                    let cancelled = Invocation::Cancelled { invocation_id: id.clone(), cancelled: true };
                    let _ = provider.invocations.try_send(cancelled);
                    return Err(ToolError::Cancelled);
                }
            }
        }
    }
}

impl Drop for ProvidedTools {
    fn drop(&mut self) {
        let mut state = self.frontends.state.lock();
        self.frontends.remove(&mut state, &self.engine, &self.kind, self.id);
    }
}

struct LentTool {
    spec: ToolSpec,
    frontends: Arc<Frontends>,
    kind: String,
}

impl Callable for LentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        async { Ok(vec![Need::new(Category::Plugin, self.spec.name.as_str())]) }.boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.invoke(input, cx).boxed()
    }
}

impl LentTool {
    async fn invoke(&self, input: Value, cx: &Cx) -> Result<ToolOutput, ToolError> {
        let name = &self.spec.name;
        let provides = |kind: &str, provider: &Provider| kind == self.kind && provider.specs.contains_key(name);
        let provider = self.frontends.choose(&cx.session, provides);
        let gone = || ToolError::Failed(format!("{}, which provided {name}, is gone", self.kind));
        self.frontends.invoke(&*provider.ok_or_else(gone)?, name.as_str(), None, input, cx).await
    }
}

impl Roles for Frontends {
    fn run<'a>(&'a self, role: Role, input: Value, cx: &'a Cx) -> BoxFuture<'a, Option<Result<ToolOutput, ToolError>>> {
        async move {
            let provider = self.choose(&cx.session, |_, provider| {
                // Only the frontend of a conversation can summarise it.
                let own = provider.session.as_ref().is_some_and(|session| session.id == cx.session.id);
                provider.roles.contains(&role) && (role != Role::Compact || own)
            })?;
            Some(self.invoke(&provider, role.tool(), Some(role), input, cx).await)
        }
        .boxed()
    }
}

/// Removes an invocation, however its call ends.
struct Close<'a> {
    frontends: &'a Frontends,
    id: &'a str,
}

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.frontends.state.lock().invocations.remove(self.id);
    }
}

fn spec_of(tool: &ProvidedTool, kind: &str) -> Result<ToolSpec, CannotProvide> {
    let name = ToolName::parse(&tool.name)?;
    let schema = |error| CannotProvide::Schema { tool: name.clone(), error };
    let input = tool.input_schema.clone().unwrap_or_else(|| serde_json::json!({"type": "object"}));
    Ok(ToolSpec {
        label: tool.label.clone().unwrap_or_else(|| tool.name.clone()),
        description: tool.description.clone(),
        input: Schema::compile_input(input).map_err(schema)?,
        output: tool.output_schema.clone().map(Schema::compile).transpose().map_err(schema)?,
        source: Source { kind: SourceKind::Frontend, name: kind.to_owned(), path: None },
        origin: Origin::Frontend,
        parallelizable: tool.parallelizable,
        // A frontend's statements about permissions and caching are ignored.
        permissions: vec![Category::Plugin],
        cache_ttl: None,
        timeout: tool.timeout_ms.map(Duration::from_millis),
        annotations: tool.annotations,
        version: None,
        grammar: None,
        name,
    })
}

fn output_of(result: ProvidedResult) -> ToolOutput {
    match result {
        ProvidedResult::Text(text) => ToolOutput::text(text),
        ProvidedResult::Full { content, is_error, metadata, structured } => {
            let content = match content {
                ProvidedContent::Text(text) => vec![Block::text(text)],
                ProvidedContent::Blocks(blocks) => blocks,
            };
            ToolOutput { content, is_error, metadata, structured }
        }
    }
}
