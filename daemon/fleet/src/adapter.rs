//! Daemons and labels of the fleet as mounted sources.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolOutput, ToolSpec};
use toold_engine::tool_filter::AllowDenyFilter;
use toold_mounts::MountSupervisor;
use toold_mounts::adapter::{
    AwaySource, CallFailure, ConnectionContext, MountAdapter, MountConnection, MountSummary, OpenedChannel,
    StartPolicy, ToolListing,
};
use toold_mounts::config::MountConfig;
use toold_mounts::offer_listing::ListedOffers;
use toold_proto::tool::{Category, Source, SourceKind, ToolName};

use crate::away::away;
use crate::call::{self, OutgoingCall};
use crate::directory::Directory;
use crate::listing::{self, ListVersion, ListedFleetTool};
use crate::member::{CurrentMember, Member};
use crate::target::CallTarget;

/// How long a call waits for the first word of the broker after a start.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// The mounted daemons and labels of the fleet.
pub type FleetMounts = MountSupervisor<FleetAdapter>;

pub struct FleetAdapter {
    member: CurrentMember,
    /// The folder of the last known tools. A program that could write there could make a tool look unchanged.
    cache_dir: PathBuf,
}

/// The daemon or the label that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetEndpoint {
    pub target: CallTarget,
    /// The public key of a daemon: one with another key is another daemon.
    pub key: Option<String>,
}

/// Nothing: the directory has a file of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FleetMemory {}

/// A target that is there.
pub struct FleetLink {
    member: Arc<Member>,
    target: CallTarget,
    /// The list that was published last.
    listed: Mutex<ListVersion>,
}

/// The state of a mount.
#[derive(Clone, Debug)]
pub struct FleetMountStatus {
    pub target: CallTarget,
    /// Under their names here, sorted.
    pub tools: Vec<ToolName>,
    /// Tools that were left out of its list, and why.
    pub problems: Vec<String>,
    /// Calls that have ended, how many of them failed, and those that are running.
    pub calls: u64,
    pub bad_calls: u64,
    pub running: u64,
    /// Why it cannot be called.
    pub error: Option<String>,
}

impl FleetAdapter {
    pub fn new(member: CurrentMember, cache_dir: PathBuf) -> Self {
        Self { member, cache_dir }
    }
}

impl MountAdapter for FleetAdapter {
    type Endpoint = FleetEndpoint;
    type Tool = ListedFleetTool;
    type Memory = FleetMemory;
    type Channel = Arc<Member>;
    type Link = FleetLink;
    type Session = ();
    type Status = FleetMountStatus;

    const SOURCE: SourceKind = SourceKind::Fleet;
    const START: StartPolicy = StartPolicy::Always;

    fn label(&self, name: &str) -> String {
        format!("{name} of the fleet")
    }

    /// No MCP server can have a name that begins with `fleet:`.
    fn permission_target(&self, mount: &str, upstream_name: &str) -> String {
        format!("fleet:{mount}/{upstream_name}")
    }

    fn digest(&self, FleetEndpoint { target, key }: &FleetEndpoint) -> String {
        match target {
            CallTarget::Daemon(name) => format!("daemon {name} {}", key.as_deref().unwrap_or_default()),
            CallTarget::Label(label) => format!("label {label}"),
        }
    }

    /// Names in a fleet consist of small letters.
    fn cache_file(&self, config: &MountConfig<FleetEndpoint>) -> PathBuf {
        self.cache_dir.join(format!("{}.json", config.name))
    }

    fn tool_spec(
        &self,
        config: &MountConfig<FleetEndpoint>,
        name: ToolName,
        ListedFleetTool { record, .. }: &ListedFleetTool,
    ) -> Option<ToolSpec> {
        let place = match &config.endpoint.target {
            CallTarget::Daemon(daemon) => format!("on {daemon}, another machine"),
            CallTarget::Label(label) => format!("on any machine with the label {label}"),
        };
        Some(ToolSpec {
            name,
            label: record.label.clone(),
            description: format!("{}\n\nRuns {place}: files and commands are those there.", record.description),
            // Its daemon has compiled it, and tens of thousands would take long.
            input: Schema::compiled_before(record.schema.clone()),
            output: record.output_schema.clone().map(Schema::compiled_before),
            source: Source { kind: SourceKind::Fleet, name: config.name.clone(), path: None },
            origin: Origin::Mcp,
            parallelizable: record.parallelizable,
            permissions: vec![Category::Mcp],
            cache_ttl: None,
            timeout: config.timeout.or(record.timeout_ms.map(Duration::from_millis)),
            annotations: record.annotations,
            version: record.version.clone(),
            grammar: record.grammar.clone(),
        })
    }

    fn renames_taken(&self) -> bool {
        false
    }

    fn status(&self, summary: MountSummary<Self>) -> FleetMountStatus {
        FleetMountStatus {
            target: summary.config.endpoint.target,
            tools: summary.tools,
            problems: summary.problems,
            calls: summary.calls,
            bad_calls: summary.failed_calls,
            running: summary.shared.running,
            error: summary.shared.error,
        }
    }

    fn away(&self, config: &MountConfig<FleetEndpoint>) -> Option<AwaySource> {
        let member = self.member.get().filter(|member| member.directory.is_settled())?;
        away(&member.directory, &config.endpoint.target)
    }

    async fn open(
        &self,
        config: &MountConfig<FleetEndpoint>,
        _: &Arc<ConnectionContext>,
    ) -> Result<OpenedChannel<Arc<Member>>, String> {
        let target = &config.endpoint.target;
        let mut members = self.member.changes();
        let known = async {
            let member = members.wait_for(Option::is_some).await.ok().and_then(|member| member.clone())?;
            let mut changes = member.directory.changes();
            // A list that is not complete would replace the one of before the start.
            let is_known = |directory: &Directory| match directory.is_online(target) {
                true => directory.is_complete(),
                false => directory.is_settled(),
            };
            while !is_known(&member.directory) {
                changes.changed().await.ok()?;
            }
            Some(member)
        };
        match timeout(FIRST_WORD, known).await {
            Ok(Some(member)) => match away(&member.directory, target) {
                Some(away) => Err(away.why),
                None => Ok(OpenedChannel { channel: member, program: None }),
            },
            Ok(None) => Err("the daemon is stopping".to_owned()),
            Err(_) => Err(match self.member.get().map(|member| member.broker.state.borrow().clone()) {
                None => "this daemon is in no fleet: `toolctl fleet` shows why".to_owned(),
                Some(state) => match state.error {
                    Some(error) => format!("the broker is not connected: {error}"),
                    None => {
                        "the broker has not listed the fleet's daemons and tools yet: try again in a moment".to_owned()
                    }
                },
            }),
        }
    }

    async fn connect(
        &self,
        config: &MountConfig<FleetEndpoint>,
        member: Arc<Member>,
        _: &Arc<ConnectionContext>,
        _: &mut FleetMemory,
    ) -> Result<(FleetLink, ()), String> {
        Ok((FleetLink { member, target: config.endpoint.target.clone(), listed: Mutex::default() }, ()))
    }

    async fn list_tools(
        &self,
        _: &MountConfig<FleetEndpoint>,
        FleetLink { member, target, listed }: &FleetLink,
        _: &AllowDenyFilter,
    ) -> Result<ToolListing<ListedFleetTool, FleetMemory>, String> {
        *listed.lock() = listing::version(&member.directory, target);
        let (tools, problems) = listing::of_target(&member.directory, target);
        Ok(ToolListing {
            tools,
            offers: ListedOffers::default(),
            problems,
            left_out: Vec::new(),
            memory: FleetMemory {},
        })
    }

    /// Until it is away. Calls that are running then go on: they notice by themselves whether their daemon has gone.
    async fn run(&self, connection: &MountConnection<Self>, (): ()) -> String {
        let context = &connection.context;
        let FleetLink { member, target, listed } = &*connection.link;
        let mut changes = member.directory.changes();
        loop {
            changes.mark_unchanged();
            if let Some(away) = away(&member.directory, target) {
                return away.why;
            }
            if *listed.lock() != listing::version(&member.directory, target) {
                context.report_changed_lists();
            }
            tokio::select! {
                biased;
                () = context.closing.cancelled() => return "it was closed".to_owned(),
                () = member.stop.cancelled() => return "this daemon has left the fleet".to_owned(),
                changed = changes.changed() => if changed.is_err() { return "it was closed".to_owned() },
            }
        }
    }

    async fn retire(&self, _: &FleetLink) {}

    async fn call(
        &self,
        config: &MountConfig<FleetEndpoint>,
        connection: &Arc<MountConnection<Self>>,
        ListedFleetTool { name, record }: &ListedFleetTool,
        arguments: Value,
        cx: &Cx,
    ) -> Result<ToolOutput, CallFailure> {
        let FleetLink { member, target, .. } = &*connection.link;
        let call = OutgoingCall { target, tool: name, record, arguments, timeout: config.timeout };
        Ok(call::call(member, call, cx).await?)
    }
}

/// Has the mounts follow which daemons are there, until `stop` fires.
pub(crate) async fn inform(mounts: Arc<FleetMounts>, current: CurrentMember, stop: CancellationToken) {
    let mut members = current.changes();
    let mut before = None;
    loop {
        let member = members.borrow_and_update().clone();
        let mut changes = member.as_ref().map(|member| member.directory.changes());
        let directory_changed = async {
            match &mut changes {
                Some(changes) => _ = changes.changed().await,
                None => std::future::pending().await,
            }
        };
        let now = member.map(|member| listing::presence(&member.directory));
        if before.as_ref() != Some(&now) {
            before = Some(now);
            mounts.recheck();
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            changed = members.changed() => if changed.is_err() { return },
            () = directory_changed => {}
        }
    }
}
