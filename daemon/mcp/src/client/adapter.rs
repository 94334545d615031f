//! MCP servers as mounted sources.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::Peer;
use serde_json::Value;
use tokio::time::Instant;
use toold_engine::cx::Cx;
use toold_engine::redact::without_hidden;
use toold_engine::registry::SourceScope;
use toold_engine::schema::Schema;
use toold_engine::time::rfc3339;
use toold_engine::tool::{Origin, ToolOutput, ToolSpec};
use toold_engine::tool_filter::AllowDenyFilter;
use toold_host::descendants::tree_of;
use toold_host::environment::Environment;
use toold_host::secret_text::SecretText;
use toold_host::secrets::{SecretError, SecretStore};
use toold_mounts::MountSupervisor;
use toold_mounts::adapter::{
    CallFailure, ConnectionContext, InstanceOwner, InstanceSummary, MountAdapter, MountConnection, MountState,
    MountSummary, OpenedChannel, StartPolicy, ToolListing,
};
use toold_mounts::config::{MountConfig, MountKey};
use toold_mounts::offer_listing::OfferRequest;
use toold_mounts::watches::Watches;
use toold_proto::mcp::{InstanceScope, McpLogin, McpLoginBegun, McpServer, McpServerInstance, McpServerState};
use toold_proto::tool::{Category, Source, SourceKind, ToolName};

use super::connect::{self, Channel, ClientService, GreetedServer, Greeting, GreetingLifecycle, ServerFailure};
use super::endpoint::ServerEndpoint;
use super::http_client::ServerHttpState;
use super::listing::{ListedServerTool, ServerListing};
use super::logging::RequestedLevel;
use super::logins::{EndedLogin, LoginError, ServerLogins};
use super::memory::ServerMemory;
use super::notifications::Notifications;
use super::requests::ServerRequestHandler;
use super::roots::{self, ToldRoots};
use super::{call, offers, subscriptions, wedged};

/// The mounted servers of one daemon.
pub type McpServers = MountSupervisor<ServerAdapter>;

pub struct ServerAdapter {
    options: ServerOptions,
    logins: ServerLogins,
}

/// The shared settings of all servers.
#[derive(Clone)]
pub struct ServerOptions {
    /// The folder of the files with the last known tools of each.
    pub cache_dir: PathBuf,
    /// The environment of a server's program, in addition to its own `env`.
    pub environment: Environment,
    /// The working folder of a program whose configuration names none.
    pub home: PathBuf,
    pub secrets: Arc<SecretStore>,
}

/// The channel for calls to a server, and for its notifications and requests.
pub struct ServerLink {
    pub(super) peer: Peer<RoleClient>,
    pub(super) notifications: Arc<Notifications>,
    uses_sse: bool,
    pub(super) http: Option<Arc<ServerHttpState>>,
    pub(super) roots: Arc<ToldRoots>,
    pub(super) level: RequestedLevel,
    /// How long its lists are good of whose changes it does not tell.
    pub(super) list_ttl: Mutex<Option<Duration>>,
    /// The memory that the server was greeted with.
    remembered: ServerMemory,
}

/// A client sends the calls of one turn of its model within this time.
const ONE_TURN: Duration = Duration::from_millis(750);

/// The revision that a configuration names; `legacy` is the last one with `initialize`. `None` for an unknown one.
pub fn pinned_revision(name: &str) -> Option<ProtocolVersion> {
    if name == "legacy" {
        return Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
    }
    ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| known.as_str() == name).cloned()
}

/// The names of the revisions that can be chosen, oldest first.
pub fn known_revisions() -> Vec<&'static str> {
    ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect()
}

impl ServerAdapter {
    pub fn new(options: ServerOptions) -> Self {
        Self { logins: ServerLogins::new(options.secrets.clone()), options }
    }

    /// Prepares a login for a person.
    ///
    /// # Errors
    /// Why nobody can log in.
    pub async fn begin_login(
        &self,
        config: &MountConfig<ServerEndpoint>,
        redirect_uri: &str,
    ) -> Result<McpLoginBegun, LoginError> {
        self.logins.begin(config, redirect_uri).await
    }

    /// Ends a login with the URL that its page redirected to. Returns the server, which should be restarted.
    ///
    /// # Errors
    /// Why there is no login.
    pub async fn finish_login(&self, redirected_to: &str) -> Result<MountKey, LoginError> {
        self.logins.finish(redirected_to).await
    }

    /// Forgets a login, and has its tokens revoked, which takes at most 10 s; `None` when there was no login.
    ///
    /// # Errors
    /// The secrets cannot be read or stored.
    pub async fn end_login(&self, server: &MountKey) -> Result<Option<EndedLogin>, SecretError> {
        self.logins.end(server).await
    }

    /// The login of a server that has asked for one. Reads the secrets.
    pub async fn login_status(&self, config: &MountConfig<ServerEndpoint>) -> Option<McpLogin> {
        match &config.endpoint {
            ServerEndpoint::Http { url, oauth, .. } if oauth.grant.is_attended() => {
                self.logins.status(&config.key(), url).await
            }
            ServerEndpoint::Http { .. }
            | ServerEndpoint::Stdio { .. }
            | ServerEndpoint::Socket { .. }
            | ServerEndpoint::Unusable { .. } => None,
        }
    }

    /// A failure as a sentence for the user. One for want of a login names the command for it.
    pub(super) async fn explain(&self, config: &MountConfig<ServerEndpoint>, failure: ServerFailure) -> String {
        let challenge = match failure {
            ServerFailure::Other(why) => return why,
            ServerFailure::NeedsLogin(challenge) => challenge,
        };
        let ServerEndpoint::Http { url, headers, oauth } = &config.endpoint else {
            return "it refuses requests without a login".to_owned();
        };
        if has_authorization(headers) {
            return "it does not accept the token in `headers` of its configuration".to_owned();
        }
        if !oauth.grant.is_attended() {
            return self.logins.explain_unattended(&config.key(), challenge);
        }
        let url = self.options.secrets.fill(url).await.ok();
        self.logins.explain(&config.key(), url.as_deref(), oauth, challenge).await
    }
}

/// `None` for one that neither runs nor has failed.
fn instance(summary: &InstanceSummary<ServerAdapter>) -> Option<McpServerInstance> {
    let state = match summary.state {
        MountState::Stopped | MountState::Disabled => return None,
        MountState::Starting => McpServerState::Starting,
        MountState::Running => McpServerState::Running,
        MountState::Failed => McpServerState::Failed,
    };
    let (session, project) = match &summary.owner {
        Some(InstanceOwner::Session(id)) => (Some(id.clone()), None),
        Some(InstanceOwner::Project(root)) => (None, Some(root.display().to_string())),
        None => (None, None),
    };
    let connection = summary.connection.as_ref();
    let (pid, since) =
        (connection.and_then(|connection| connection.pid), connection.map(|connection| connection.since));
    let tree = pid.and_then(tree_of);
    Some(McpServerInstance {
        session,
        project,
        state,
        pid,
        since: since.map(rfc3339),
        uptime_s: since.map(|since| since.elapsed().unwrap_or_default().as_secs_f64()),
        memory_bytes: tree.map(|tree| tree.resident_bytes),
        processes: tree.map(|tree| tree.processes),
        running: summary.running,
        error: summary.error.as_deref().map(|error| without_hidden(error).into_owned()),
    })
}

fn busiest(instances: &[McpServerInstance]) -> McpServerState {
    let has = |state| instances.iter().any(|instance| instance.state == state);
    match () {
        () if has(McpServerState::Running) => McpServerState::Running,
        () if has(McpServerState::Starting) => McpServerState::Starting,
        () => McpServerState::Stopped,
    }
}

impl MountAdapter for ServerAdapter {
    type Endpoint = ServerEndpoint;
    type Tool = ListedServerTool;
    type Memory = ServerMemory;
    type Channel = Channel;
    type Link = ServerLink;
    type Session = ClientService;
    type Status = McpServer;

    const SOURCE: SourceKind = SourceKind::Mcp;
    const START: StartPolicy = StartPolicy::OnDemand;

    fn label(&self, name: &str) -> String {
        format!("MCP server {name}")
    }

    /// The server's name in the configuration, and its own name for the tool.
    fn permission_target(&self, server: &str, upstream_name: &str) -> String {
        format!("{server}/{upstream_name}")
    }

    fn digest(&self, endpoint: &ServerEndpoint) -> String {
        endpoint.digest()
    }

    fn cache_file(&self, config: &MountConfig<ServerEndpoint>) -> PathBuf {
        let (scope, name) = config.key();
        let id = blake3::hash(format!("{scope:?}\0{name}").as_bytes()).to_hex();
        let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
        let name: String = name.chars().filter(allowed).take(40).collect();
        self.options.cache_dir.join(format!("{name}-{}.json", &id[..12]))
    }

    fn tool_spec(
        &self,
        config: &MountConfig<ServerEndpoint>,
        name: ToolName,
        tool: &ListedServerTool,
    ) -> Option<ToolSpec> {
        let is_plain = name.as_str().ends_with(&format!("_{}", tool.upstream_name));
        Some(ToolSpec {
            label: tool.title.clone().filter(|_| is_plain).unwrap_or_else(|| tool.upstream_name.clone()),
            name,
            description: tool.description.clone(),
            input: Schema::compile_input(tool.input.clone()).ok()?,
            output: tool.output.clone().and_then(|output| Schema::compile(output).ok()),
            source: Source { kind: SourceKind::Mcp, name: config.name.clone(), path: None },
            origin: Origin::Mcp,
            // Its server's claim, which is enough to decide which calls may run in parallel.
            parallelizable: config.parallel.unwrap_or(tool.annotations.read_only == Some(true)),
            permissions: vec![Category::Mcp],
            cache_ttl: None,
            timeout: config.timeout,
            annotations: tool.annotations,
            version: None,
            grammar: None,
        })
    }

    fn lane_patience(&self, config: &MountConfig<ServerEndpoint>) -> Option<Duration> {
        (config.parallel != Some(false)).then_some(ONE_TURN)
    }

    fn renames_taken(&self) -> bool {
        true
    }

    fn status(&self, summary: MountSummary<Self>) -> McpServer {
        let MountSummary { config, shared, instances, .. } = summary;
        let all: Vec<McpServerInstance> = std::iter::once(&shared).chain(&instances).filter_map(instance).collect();
        // A mount whose sessions have processes of their own runs when one of them does.
        let (state, error) = match (shared.state, &config.endpoint) {
            (MountState::Stopped, ServerEndpoint::Unusable { why }) => (McpServerState::Failed, Some(why.clone())),
            (MountState::Disabled, _) => (McpServerState::Disabled, None),
            (MountState::Stopped, _) => (busiest(&all), None),
            (MountState::Starting, _) => (McpServerState::Starting, None),
            (MountState::Running, _) => (McpServerState::Running, None),
            (MountState::Failed, _) => (McpServerState::Failed, shared.error.clone()),
        };
        let connection = shared.connection;
        let info = std::iter::once(&connection).chain(instances.iter().map(|instance| &instance.connection));
        let info = info.flatten().find_map(|connection| connection.link.peer.peer_info());
        let since = connection.as_ref().map(|connection| connection.since);
        McpServer {
            name: config.name,
            project: match config.scope {
                SourceScope::Global => None,
                SourceScope::Project(path) => Some(path.display().to_string()),
            },
            state,
            scope: config.instances,
            running: all.iter().map(|instance| instance.running).sum(),
            instances: all,
            max_instances: match config.instances {
                InstanceScope::Shared => 1,
                InstanceScope::Project | InstanceScope::Session => config.max_instances as u64,
            },
            transport: config.endpoint.transport().to_owned(),
            pid: connection.as_ref().and_then(|connection| connection.pid),
            since: since.map(rfc3339),
            uptime_s: since.map(|since| since.elapsed().unwrap_or_default().as_secs_f64()),
            protocol: info.map(|info| info.protocol_version.to_string()),
            tools: summary.tools,
            problems: summary.problems,
            error: error.map(|error| without_hidden(&error).into_owned()),
            secrets: config.endpoint.secrets(),
            login: None,
            login_redirect: config.endpoint.login_redirect().map(ToString::to_string),
            retry_ms: shared.retry_ms,
            calls: summary.calls,
            bad_calls: summary.failed_calls,
            starts: summary.attempts,
            stderr: summary.stderr,
        }
    }

    async fn open(
        &self,
        config: &MountConfig<ServerEndpoint>,
        context: &Arc<ConnectionContext>,
    ) -> Result<OpenedChannel<Channel>, String> {
        let mut opened = connect::open(&config.endpoint, &self.options, &context.stderr_log).await?;
        // A token of the configuration is used as it is.
        if let (ServerEndpoint::Http { headers, oauth, .. }, Channel::Http { address, login, .. }) =
            (&config.endpoint, &mut opened.channel)
            && !has_authorization(headers)
        {
            let (key, url) = (config.key(), &address.url);
            let access = match oauth.grant.is_attended() {
                true => self.logins.resume(&key, url).await?,
                false => self.logins.access(&key, url, oauth).await?,
            };
            *login = access.map(Box::new);
        }
        Ok(opened)
    }

    async fn connect(
        &self,
        config: &MountConfig<ServerEndpoint>,
        channel: Channel,
        context: &Arc<ConnectionContext>,
        memory: &mut ServerMemory,
    ) -> Result<(ServerLink, ClientService), String> {
        let notifications = Arc::new(Notifications::new(context.clone()));
        let (server, roots) = (config.name.clone(), Arc::<ToldRoots>::default());
        let pinned = config.revision.as_deref().and_then(pinned_revision);
        let handler = ServerRequestHandler {
            server,
            notifications: notifications.clone(),
            roots: roots.clone(),
            revision: pinned.clone().filter(ProtocolVersion::has_initialize).unwrap_or(ProtocolVersion::V_2025_11_25),
        };
        let remembered = memory.clone();
        let (uses_initialize, uses_sse) = (memory.uses_initialize, memory.uses_sse);
        let lifecycle = match &pinned {
            Some(revision) if revision.has_initialize() => GreetingLifecycle::Initialize,
            Some(_) => GreetingLifecycle::Discover,
            None if uses_initialize => GreetingLifecycle::Initialize,
            None => GreetingLifecycle::Either,
        };
        let greeting = Greeting { lifecycle, uses_sse, start_timeout: config.start_timeout };
        let greeted = match connect::greet(channel, handler, greeting, &context.closing).await {
            Ok(greeted) => greeted,
            Err(failure) => {
                if let (ServerFailure::Other(_), None) = (&failure, &pinned) {
                    // Some servers exit at a greeting that they don't know: the next attempt uses the other one.
                    memory.uses_initialize = !uses_initialize;
                    // It may have become a server of Streamable HTTP.
                    memory.uses_sse = false;
                }
                return Err(self.explain(config, failure).await);
            }
        };
        let GreetedServer { service, uses_sse, http } = greeted;
        let level = RequestedLevel::default();
        let (peer, list_ttl) = (service.peer().clone(), Mutex::default());
        Ok((ServerLink { peer, notifications, uses_sse, http, roots, level, list_ttl, remembered }, service))
    }

    async fn list_tools(
        &self,
        config: &MountConfig<ServerEndpoint>,
        link: &ServerLink,
        _: &AllowDenyFilter,
    ) -> Result<ToolListing<ListedServerTool, ServerMemory>, String> {
        let list = match connect::list_tools(&link.peer).await {
            Ok(list) => list,
            Err(failure) => return Err(self.explain(config, failure).await),
        };
        let info = link.peer.peer_info();
        let memory = link.remembered.learned(info.as_deref(), config.revision.is_some(), link.uses_sse);
        let offered = offers::list(&link.peer, Instant::now() + config.start_timeout / 2).await;
        let problems = list.problems.iter().cloned().chain(offered.problems).collect();
        let ServerListing { tools, left_out, ttl, .. } = list;
        let reports = |info: Arc<ServerPeerInfo>| info.capabilities.tools.as_ref()?.list_changed;
        let is_reported = info.and_then(reports) == Some(true);
        *link.list_ttl.lock() = ttl.filter(|_| !is_reported).into_iter().chain(offered.ttl).min();
        Ok(ToolListing { tools, offers: offered.offers, problems, left_out, memory })
    }

    async fn run(&self, connection: &MountConnection<Self>, service: ClientService) -> String {
        // Held, since changes are reported for as long as it is.
        let link = &connection.link;
        let subscription = connect::subscribe(&link.peer).await;
        if subscription.is_some() {
            // The lists may have changed after they were read and before this subscription began: read them again.
            connection.context.report_changed_lists();
        }
        tokio::select! {
            _ = service.waiting() => {}
            why = wedged::found(connection) => return why,
            () = roots::follow(&link.peer, &link.roots, &connection.context) => unreachable!("it never returns"),
            () = subscriptions::renew_lists(&link.list_ttl, &connection.context) => unreachable!("it never returns"),
        }
        "it closed the connection".to_owned()
    }

    async fn retire(&self, _: &ServerLink) {}

    async fn call(
        &self,
        config: &MountConfig<ServerEndpoint>,
        connection: &Arc<MountConnection<Self>>,
        tool: &Self::Tool,
        input: Value,
        cx: &Cx,
    ) -> Result<ToolOutput, CallFailure> {
        call::call(self, config, connection, tool, input, cx).await
    }

    async fn request(
        &self,
        config: &MountConfig<ServerEndpoint>,
        connection: &Arc<MountConnection<Self>>,
        request: OfferRequest,
        cx: &Cx,
    ) -> Result<ToolOutput, CallFailure> {
        offers::request(self, config, connection, request, cx).await
    }

    async fn watch(&self, _: &MountConfig<ServerEndpoint>, connection: &Arc<MountConnection<Self>>, watches: &Watches) {
        subscriptions::follow(&connection.link.peer, watches).await;
    }
}

fn has_authorization(headers: &BTreeMap<String, SecretText>) -> bool {
    headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
}
