//! The methods: one file for each group, all of them in [`methods`].

pub(crate) mod agent_requests;
mod audit;
mod blocking;
pub mod byte_stream;
mod cache;
mod calls;
mod commands;
pub(crate) mod compressed;
pub mod connection;
pub(crate) mod daemon;
mod error;
mod events;
mod files;
#[cfg_attr(not(feature = "fleet"), path = "rpc/without_fleet.rs")]
mod fleet;
mod grant_review;
mod hooks;
mod levels;
mod located;
mod lone_surrogates;
mod mcp;
pub mod mcp_host;
pub mod message_budget;
pub mod metrics;
mod notify;
mod observe;
pub mod outboxes;
mod own_rows;
mod page;
pub mod parse_streams;
pub mod parsed_memory;
pub(crate) mod pause;
mod permissions;
mod plugins;
mod prompt;
mod provide;
mod provider_lists;
mod questions;
mod remotes;
mod replay;
mod secrets;
pub(crate) mod session;
mod shells;
mod skills;
mod subscription;
mod tool_costs;
mod tools;
mod workspaces;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use jsonrpsee::core::server::{MethodCallback, MethodResponse, Methods};
use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use jsonrpsee::{Extensions, RpcModule};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toold_builtins::toolkit::Toolkit;
use toold_engine::Engine;
use toold_engine::call::{CallError, Principal};
use toold_engine::session::Session;
use toold_host::secrets::SecretStore;
use toold_lua::reload::PluginHost;
use toold_mcp::client::adapter::McpServers;
use toold_proto::method::Method;
use toold_proto::tool::SessionId;
use toold_remote::adapter::Remotes;
use toold_store::Store;

use crate::config::active_config::ActiveConfig;
use crate::lifecycle::Lifecycle;
use crate::lifecycle::notify::Notifier;
use crate::peer::agent_processes::AgentProcesses;
use crate::peer::fleet::{FleetMounts, FleetService};
use crate::peer::frontends::Frontends;
use crate::peer::sessions::{OpenerKind, SessionRequest, SessionService};
use crate::peer::workspaces::Workspaces;
use crate::rpc::agent_requests::approvals::CommandApprovals;
use crate::rpc::agent_requests::pending::OpenAgentRequests;
use crate::rpc::agent_requests::sessions::ConversationSessions;
use crate::rpc::connection::{ClientConnection, ConnectionLimits, RequestScope, success};
use crate::rpc::error::{internal, needs_code, not_for, not_for_page, not_on_http, too_large, unknown};

/// The state that methods use.
pub struct Services {
    pub engine: Arc<Engine>,
    pub store: Arc<Store>,
    pub plugins: Arc<PluginHost>,
    pub mcp_servers: Arc<McpServers>,
    pub secrets: Arc<SecretStore>,
    pub remotes: Arc<Remotes>,
    pub fleet: Arc<FleetService>,
    pub fleet_mounts: Arc<FleetMounts>,
    pub frontends: Arc<Frontends>,
    /// The shared state of the built-in tools.
    pub builtins: Arc<Toolkit>,
    pub config: Arc<ActiveConfig>,
    pub workspaces: Arc<Workspaces>,
    pub sessions: Arc<SessionService>,
    pub(crate) conversations: ConversationSessions,
    pub(crate) open_requests: OpenAgentRequests,
    pub(crate) command_approvals: CommandApprovals,
    /// Processes that act for models.
    pub agent_processes: Arc<AgentProcesses>,
    pub lifecycle: Arc<Lifecycle>,
    pub notifier: Arc<Notifier>,
    /// The limits over all connections.
    pub limits: Arc<ConnectionLimits>,
    /// The identity of this daemon towards the daemons that mount it.
    pub instance: String,
}

/// All methods of the native dialect.
pub fn methods(services: Arc<Services>) -> anyhow::Result<Methods> {
    let mut module = MethodTable { rpc: RpcModule::new(services.clone()), services };
    session::register(&mut module)?;
    tools::register(&mut module)?;
    tool_costs::register(&mut module)?;
    provide::register(&mut module)?;
    calls::register(&mut module)?;
    permissions::register(&mut module)?;
    levels::register(&mut module)?;
    observe::register(&mut module)?;
    pause::register(&mut module)?;
    replay::register(&mut module)?;
    agent_requests::register(&mut module)?;
    questions::register(&mut module)?;
    shells::register(&mut module)?;
    files::register(&mut module)?;
    commands::register(&mut module)?;
    skills::register(&mut module)?;
    hooks::register(&mut module)?;
    events::register(&mut module)?;
    prompt::register(&mut module)?;
    plugins::register(&mut module)?;
    mcp::register(&mut module)?;
    secrets::register(&mut module)?;
    remotes::register(&mut module)?;
    fleet::register(&mut module)?;
    workspaces::register(&mut module)?;
    notify::register(&mut module)?;
    page::register(&mut module)?;
    cache::register(&mut module)?;
    audit::register(&mut module)?;
    daemon::register(&mut module)?;
    Ok(module.rpc.into())
}

/// The methods during registration.
struct MethodTable {
    rpc: RpcModule<Arc<Services>>,
    services: Arc<Services>,
}

/// A request: the daemon, and its connection.
pub struct MethodRequest {
    pub services: Arc<Services>,
    pub scope: Arc<RequestScope>,
}

/// The callers that a method accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Every client that may connect.
    Anyone,
    /// Every client but the page.
    Program,
    /// People's frontends, the page and administrators; never an agent or a process below a tool.
    Decider,
    /// The same, without the page.
    Administrator,
    /// People's frontends on the socket and on stdio; nobody on HTTP.
    LocalPerson,
}

type MethodAnswer<M> = Result<<M as Method>::Answer, ErrorObjectOwned>;

/// Registers a method that answers at once.
fn add<M: Method>(
    module: &mut MethodTable,
    right: Right,
    run: impl Fn(MethodRequest, M::Params) -> MethodAnswer<M> + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let services = module.services.clone();
    let callback = move |id: Id<'_>, params: Params<'_>, max: usize, extensions: Extensions| {
        let answer = enter(&services, M::NAME, right, &extensions)
            .and_then(|request| run(request, read_params(&params)?))
            .and_then(|answer| write_answer(&id, &answer));
        respond(&id, answer, max, &extensions)
    };
    module.rpc.verify_and_insert(M::NAME, MethodCallback::Sync(Arc::new(callback)))?;
    Ok(())
}

/// Registers a method that may wait.
fn add_async<M: Method, F>(
    module: &mut MethodTable,
    right: Right,
    run: impl Fn(MethodRequest, M::Params) -> F + Send + Sync + 'static,
) -> anyhow::Result<()>
where
    F: Future<Output = MethodAnswer<M>> + Send + 'static,
{
    add_shaped::<M, M::Params, M::Answer, F>(module, right, run)
}

/// Work that is dropped when its caller cancels it, or leaves.
async fn unless_cancelled<T>(
    request: &MethodRequest,
    work: impl Future<Output = Result<T, ErrorObjectOwned>>,
) -> Result<T, ErrorObjectOwned> {
    tokio::select! {
        done = work => done,
        () = request.scope.cancel.cancelled() => Err(error::of_call(CallError::Cancelled)),
    }
}

/// Registers a method some of whose parameters or answers have another shape than its usual one, as
/// with the formats of model providers.
fn add_shaped<M: Method, P, A, F>(
    module: &mut MethodTable,
    right: Right,
    run: impl Fn(MethodRequest, P) -> F + Send + Sync + 'static,
) -> anyhow::Result<()>
where
    P: DeserializeOwned + Send + 'static,
    A: Serialize + Send + 'static,
    F: Future<Output = Result<A, ErrorObjectOwned>> + Send + 'static,
{
    let run = move |request: MethodRequest, params: &Params<'_>, id: Id<'static>| match read_params(params) {
        Ok(params) => {
            let running = run(request, params);
            async move { write_answer(&id, &running.await?) }.boxed()
        }
        Err(error) => ready(Err(error)).boxed(),
    };
    insert_async(module, M::NAME, right, Box::new(run))
}

/// A method that may wait: reads its parameters, and gives the text of its response. A boxed function, so that all
/// methods share the code around it.
type AsyncMethod = dyn Fn(MethodRequest, &Params<'_>, Id<'static>) -> BoxFuture<'static, ResponseText> + Send + Sync;

/// The JSON text of a response with a result.
type ResponseText = Result<Vec<u8>, ErrorObjectOwned>;

fn insert_async(
    module: &mut MethodTable,
    name: &'static str,
    right: Right,
    run: Box<AsyncMethod>,
) -> anyhow::Result<()> {
    let services = module.services.clone();
    let callback = move |id: Id<'static>, params: Params<'static>, _, max: usize, extensions: Extensions| {
        let request = enter(&services, name, right, &extensions);
        let running = request.map(|request| run(request, &params, id.clone()));
        async move {
            let answer = match running {
                Ok(running) => running.await,
                Err(error) => Err(error),
            };
            respond(&id, answer, max, &extensions)
        }
        .boxed()
    };
    module.rpc.verify_and_insert(name, MethodCallback::Async(Arc::new(callback)))?;
    Ok(())
}

/// The request of a method call, if its caller may call the method.
fn enter(
    services: &Arc<Services>,
    method: &str,
    right: Right,
    extensions: &Extensions,
) -> Result<MethodRequest, ErrorObjectOwned> {
    let request = MethodRequest::of(services, extensions)?;
    check_right(method, right, &request)?;
    Ok(request)
}

fn write_answer(id: &Id<'_>, answer: &impl Serialize) -> ResponseText {
    success(id, answer).map_err(|error| internal(&format!("the answer cannot be written: {error}")))
}

/// Answers a request. The result is left in its scope, serialised; jsonrpsee would write it in
/// pieces, checking the length each time, and then parse it again.
fn respond(id: &Id<'_>, answer: ResponseText, max: usize, extensions: &Extensions) -> MethodResponse {
    let left = answer.and_then(|json| {
        if json.len() > max {
            return Err(too_large(json.len(), max));
        }
        scope(extensions)?.answer(json);
        Ok(())
    });
    let Err(error) = left else { return MethodResponse::notification() };
    let response = MethodResponse::error(id.clone(), error);
    // An error may quote the parameters.
    match response.as_json().get().len() {
        length if length > max => MethodResponse::error(id.clone(), too_large(length, max)),
        _ => response,
    }
}

fn check_right(method: &str, right: Right, request: &MethodRequest) -> Result<(), ErrorObjectOwned> {
    match right {
        Right::Anyone => Ok(()),
        Right::Program => not_the_page(method, request),
        Right::Decider => decides(method, request),
        Right::Administrator => decides(method, request).and_then(|()| not_the_page(method, request)),
        Right::LocalPerson => match request.connection().peer.principal {
            Principal::TokenAdmin => Err(not_on_http(method)),
            Principal::Page => Err(not_for_page(method)),
            Principal::Person | Principal::Agent | Principal::ToolDescendant | Principal::TokenCall => {
                decides(method, request)
            }
        },
    }
}

/// Rejects callers that may not decide for a person.
fn decides(method: &str, request: &MethodRequest) -> Result<(), ErrorObjectOwned> {
    if may_decide(request) {
        request.connection().peer.record_frontend();
        return Ok(());
    }
    let connection = request.connection();
    match connection.peer.needs_code().filter(|_| !connection.is_agent()) {
        Some(why) => Err(needs_code(method, why)),
        None => Err(not_for(method, connection.peer.agent_above().map(|agent| agent.pid))),
    }
}

fn not_the_page(method: &str, request: &MethodRequest) -> Result<(), ErrorObjectOwned> {
    match request.connection().peer.principal {
        Principal::Page => Err(not_for_page(method)),
        Principal::Person
        | Principal::Agent
        | Principal::ToolDescendant
        | Principal::TokenCall
        | Principal::TokenAdmin => Ok(()),
    }
}

/// The name that the caller's client reports.
fn client_name(request: &MethodRequest) -> Option<String> {
    let connection = request.connection();
    let of_session = || connection.session()?.client.as_ref().map(|client| client.name.clone());
    connection.peer.page.map(str::to_owned).or_else(of_session)
}

fn may_decide(request: &MethodRequest) -> bool {
    request.connection().may_decide()
}

/// Parameters by name; absent ones are `{}`, and unknown members are ignored.
fn read_params<T: DeserializeOwned>(params: &Params) -> Result<T, ErrorObjectOwned> {
    let text = params.as_str().unwrap_or("{}");
    if !text.trim_start().starts_with('{') {
        return Err(error::invalid_params("expected parameters by name: an object"));
    }
    serde_json::from_str(text).map_err(|error| {
        if let Some(words) = lone_surrogates::found_in(text) {
            return error::invalid_params(&words);
        }
        // Its place in the text says nothing to a person, whose program wrote the text.
        let (words, place) = (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
        error::invalid_params(words.strip_suffix(&place).unwrap_or(&words))
    })
}

fn scope(extensions: &Extensions) -> Result<&Arc<RequestScope>, ErrorObjectOwned> {
    extensions.get::<Arc<RequestScope>>().ok_or_else(|| internal("the request came on no connection"))
}

impl MethodRequest {
    fn of(services: &Arc<Services>, extensions: &Extensions) -> Result<Self, ErrorObjectOwned> {
        Ok(Self { services: services.clone(), scope: scope(extensions)?.clone() })
    }

    pub fn connection(&self) -> &Arc<ClientConnection> {
        &self.scope.connection
    }

    /// The session of a request: the one it names, otherwise the connection's, otherwise one of its
    /// own.
    pub fn session(&self, named: Option<&SessionId>) -> Result<Arc<Session>, ErrorObjectOwned> {
        if let Some(id) = named {
            let session = self.services.engine.sessions.find(id).ok_or_else(|| unknown("session", id.as_str()))?;
            session::may_use(self, &session)?;
            return Ok(session);
        }
        if let Some(session) = self.connection().session() {
            return Ok(session);
        }
        self.own_session()
    }

    /// A session for a connection that opened none, in the working folder of its process.
    fn own_session(&self) -> Result<Arc<Session>, ErrorObjectOwned> {
        let connection = self.connection();
        let kind = connection.kind();
        let mut request = SessionRequest {
            id: session::own_id(connection),
            cwd: connection.peer.folder(),
            roots: Vec::new(),
            client: None,
            model: None,
            env: Default::default(),
            filter: Default::default(),
            profiles: Vec::new(),
        };
        if kind != OpenerKind::Agent && !request.cwd.as_ref().is_some_and(|cwd| cwd.is_dir()) {
            request.cwd = (kind != OpenerKind::Token).then(|| "/".into());
        }
        let session = self.services.sessions.create(kind, &connection.peer, request);
        let session = session::publish(self, session.map_err(|error| internal(&format!("{error:#}")))?);
        connection.bind_own(session.clone());
        Ok(session)
    }
}
