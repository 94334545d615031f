//! Daemons as mounted sources.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::task::TaskTracker;
use toold_client::{Client, ClientError, Items};
use toold_engine::cx::Cx;
use toold_engine::schema::Schema;
use toold_engine::time::rfc3339;
use toold_engine::tool::{Origin, ToolOutput, ToolSpec};
use toold_engine::tool_filter::AllowDenyFilter;
use toold_mounts::MountSupervisor;
use toold_mounts::adapter::{
    CallFailure, ConnectionContext, ListedTool, MountAdapter, MountConnection, MountState, MountSummary, OpenedChannel,
    StartPolicy, ToolListing,
};
use toold_mounts::config::MountConfig;
use toold_mounts::offer_listing::ListedOffers;
use toold_proto::call::{ListTools, ListingMode};
use toold_proto::daemon::NoParams;
use toold_proto::event::SubscribeEvents;
use toold_proto::method::{DaemonGetStatus, DaemonPing, EventsSubscribe, QuestionsSubscribe, RemotesList, ToolsList};
use toold_proto::permission::SubscribePrompts;
use toold_proto::remote::{Remote, RemoteState};
use toold_proto::tool::{Category, Source, SourceKind, ToolName};

use crate::endpoint::{RemoteEndpoint, RemoteOptions};
use crate::link::{RemoteLink, SessionNamer};
use crate::listing::{self, ListedRemoteTool};
use crate::peer::{RemotePeer, open_session};
use crate::{call, connect};

/// How often a daemon is pinged, and how long its answer may take. A connection through a network
/// that is gone ends in no other way.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The mounted daemons of one daemon.
pub type Remotes = MountSupervisor<RemoteAdapter>;

pub struct RemoteAdapter {
    options: RemoteOptions,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RemoteMemory {
    /// The daemons that are reached through it, itself first.
    instances: Vec<String>,
}

impl RemoteAdapter {
    pub fn new(options: RemoteOptions) -> Self {
        Self { options }
    }
}

impl MountAdapter for RemoteAdapter {
    type Endpoint = RemoteEndpoint;
    type Tool = ListedRemoteTool;
    type Memory = RemoteMemory;
    type Channel = Client;
    type Link = RemoteLink;
    /// Events that say that its tools changed.
    type Session = Items<Value>;
    type Status = Remote;

    const SOURCE: SourceKind = SourceKind::Remote;
    const START: StartPolicy = StartPolicy::Always;

    fn label(&self, name: &str) -> String {
        format!("remote daemon {name}")
    }

    /// No MCP server can have a name that begins with `remote:`.
    fn permission_target(&self, remote: &str, upstream_name: &str) -> String {
        format!("remote:{remote}/{upstream_name}")
    }

    fn digest(&self, endpoint: &RemoteEndpoint) -> String {
        endpoint.digest()
    }

    /// A remote's name consists of small letters.
    fn cache_file(&self, config: &MountConfig<RemoteEndpoint>) -> PathBuf {
        self.options.cache_dir.join(format!("{}.json", config.name))
    }

    fn tool_spec(
        &self,
        config: &MountConfig<RemoteEndpoint>,
        name: ToolName,
        ListedRemoteTool(tool): &ListedRemoteTool,
    ) -> Option<ToolSpec> {
        let remote = &config.name;
        Some(ToolSpec {
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
            timeout: config.timeout.or(tool.timeout_ms.map(Duration::from_millis)),
            annotations: tool.annotations,
            version: tool.version.clone(),
            grammar: tool.grammar.clone(),
        })
    }

    fn renames_taken(&self) -> bool {
        false
    }

    fn status(&self, summary: MountSummary<Self>) -> Remote {
        let MountSummary { config, shared, .. } = summary;
        let connection = shared.connection;
        let peer = connection.as_ref().map(|connection| &connection.link.peer);
        Remote {
            name: config.name,
            state: match shared.state {
                MountState::Disabled => RemoteState::Disabled,
                MountState::Stopped | MountState::Starting => RemoteState::Connecting,
                MountState::Running => RemoteState::Connected,
                MountState::Failed => RemoteState::Away,
            },
            transport: config.endpoint.reach.transport().to_owned(),
            pid: connection.as_ref().and_then(|connection| connection.pid),
            since: connection.as_ref().map(|connection| rfc3339(connection.since)),
            version: connection.as_ref().map(|connection| connection.link.version.clone()),
            cwd: peer.map(|peer| peer.cwd.clone()),
            relays_asks: peer.is_some_and(|peer| peer.can_decide),
            instances: summary.memory.instances,
            tools: summary.tools,
            problems: summary.problems,
            error: shared.error,
            retry_ms: shared.retry_ms,
            calls: summary.calls,
            bad_calls: summary.failed_calls,
            running: shared.running,
            connects: summary.connects,
            stderr: summary.stderr,
        }
    }

    async fn open(
        &self,
        config: &MountConfig<RemoteEndpoint>,
        context: &Arc<ConnectionContext>,
    ) -> Result<OpenedChannel<Client>, String> {
        connect::open(&config.endpoint.reach, &self.options, &context.stderr_log).await
    }

    async fn connect(
        &self,
        config: &MountConfig<RemoteEndpoint>,
        client: Client,
        context: &Arc<ConnectionContext>,
        _: &mut RemoteMemory,
    ) -> Result<(RemoteLink, Items<Value>), String> {
        let text = |error: ClientError| error.to_string();
        let status = client.call::<DaemonGetStatus>(NoParams {}).await.map_err(text)?;
        let ours = toold_proto::PROTOCOL;
        if status.protocol != ours {
            let (theirs, version) = (status.protocol, status.version);
            return Err(format!("protocol mismatch: it speaks {theirs} (version {version}), this daemon {ours}"));
        }
        // A daemon that does not know its own instance is at least not this one.
        let instance = status.instance.unwrap_or(status.epoch);
        if instance == self.options.instance {
            return Err("it is this daemon itself".to_owned());
        }
        let namer = SessionNamer { secret: self.options.secret, remote: config.name.clone() };
        let base_session = namer.name("/");
        let opened = open_session(&client, base_session.clone(), &config.endpoint.cwd).await.map_err(text)?;
        // A client that may answer questions may answer permission prompts too.
        let prompts = SubscribePrompts { session_id: Some(base_session.clone()) };
        let can_decide = client.subscribe::<QuestionsSubscribe>(prompts).await.is_ok();
        let kinds = Some(vec!["tools.changed".to_owned()]);
        let events = SubscribeEvents { kinds, ..SubscribeEvents::default() };
        let events = client.subscribe_as::<EventsSubscribe, Value>(events).await.map_err(text)?;
        let peer = RemotePeer {
            client,
            name: config.name.clone(),
            cwd: opened.cwd,
            can_decide,
            closing: context.closing.clone(),
            tasks: TaskTracker::new(),
        };
        let link = RemoteLink {
            peer: Arc::new(peer),
            context: context.clone(),
            base_session,
            instance,
            version: status.version,
            call_prefix: namer.name(&format!("/{}", context.attempt)).as_str()[2..18].to_owned(),
            namer,
            next_call: AtomicU64::new(0),
            sessions: Mutex::default(),
        };
        Ok((link, events))
    }

    async fn list_tools(
        &self,
        config: &MountConfig<RemoteEndpoint>,
        link: &RemoteLink,
        filter: &AllowDenyFilter,
    ) -> Result<ToolListing<ListedRemoteTool, RemoteMemory>, String> {
        let list = async {
            let client = &link.peer.client;
            // The daemons that are mounted there. An older daemon does not know the method.
            let theirs = client.call::<RemotesList>(NoParams {}).await.map(|list| list.remotes).unwrap_or_default();
            let session_id = Some(link.base_session.clone());
            let params = ListTools { mode: Some(ListingMode::All), session_id, ..ListTools::default() };
            let list = client.call::<ToolsList>(params).await.map_err(|error| error.to_string())?;
            let memory = RemoteMemory { instances: listing::instances(&link.instance, &theirs) };
            let tools = list.tools.unwrap_or_default();
            let (tools, problems) = listing::accept(tools, &theirs, &self.options.instance, filter);
            Ok(ToolListing { tools, offers: ListedOffers::default(), problems, left_out: Vec::new(), memory })
        };
        timeout(config.start_timeout, list).await.unwrap_or_else(|_| {
            let why = format!("it did not list its tools within {} ms", config.start_timeout.as_millis());
            link.context.report_lost(why.clone());
            Err(why)
        })
    }

    async fn run(&self, connection: &MountConnection<Self>, mut events: Items<Value>) -> String {
        let (link, context) = (&connection.link, &connection.context);
        let client = &link.peer.client;
        let mut ping = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let follow = async {
            loop {
                tokio::select! {
                    event = events.next() => match event {
                        Some(_) => context.report_changed_lists(),
                        None => return client.closed().await.to_string(),
                    },
                    _ = ping.tick() => {
                        if timeout(PING_TIMEOUT, client.call::<DaemonPing>(NoParams {})).await.is_err() {
                            return format!("it did not answer for {} s", PING_TIMEOUT.as_secs());
                        }
                        link.close_abandoned_sessions().await;
                    }
                }
            }
        };
        let why = tokio::select! {
            biased;
            () = context.closing.cancelled() => "it was closed".to_owned(),
            why = client.closed() => why.to_string(),
            why = follow => why,
        };
        context.closing.cancel();
        link.peer.tasks.close();
        link.peer.tasks.wait().await;
        why
    }

    /// Closes the remote sessions, which nobody resumes.
    async fn retire(&self, link: &RemoteLink) {
        link.close_all_sessions().await;
    }

    async fn call(
        &self,
        config: &MountConfig<RemoteEndpoint>,
        connection: &Arc<MountConnection<Self>>,
        tool: &ListedRemoteTool,
        input: Value,
        cx: &Cx,
    ) -> Result<ToolOutput, CallFailure> {
        Ok(call::call(&config.name, &connection.link, tool.upstream_name(), input, cx).await?)
    }
}
