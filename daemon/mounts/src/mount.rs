//! One mount: its phase, its known tools, and its running calls. [`lifecycle`] is a run from start
//! to end. [`instances`] are the processes of a mount that is not shared; each has a phase of its own. [`watching`] keeps it
//! connected while clients wait for changes of its resources.

mod instances;
mod lifecycle;
mod watching;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_engine::tool_filter::AllowDenyFilter;
use toold_host::stderr_log::StderrLog;
use toold_proto::mcp::InstanceScope;
use toold_proto::tool::ToolName;

use crate::adapter::{
    AwaySource, InstanceOwner, InstanceSummary, ListedTool, MountAdapter, MountConnection, MountState, MountSummary,
    StartPolicy,
};
use crate::backoff::RestartBackoff;
use crate::config::MountConfig;
use crate::offer_listing::ListedOffers;
use crate::watches::Watches;
use crate::{MountSupervisor, names, tool_cache};

/// The number of attempts to start a source whose tools are not known.
const LEARN_ATTEMPTS: u32 = 6;
/// A call sees the end of a connection before the supervisor knows why.
const REASON_TIMEOUT: Duration = Duration::from_secs(6);

pub(crate) struct MountedSource<A: MountAdapter> {
    pub(crate) config: MountConfig<A::Endpoint>,
    pub(crate) adapter: Arc<A>,
    supervisor: Weak<MountSupervisor<A>>,
    filter: AllowDenyFilter,
    phase: watch::Sender<MountPhase<A>>,
    /// The same for all instances.
    catalog: Arc<Mutex<Catalog<A>>>,
    /// The counts of all instances.
    counts: Arc<SourceCounts>,
    /// The sessions that it serves; `None` for the mount itself.
    owner: Option<InstanceOwner>,
    instances: Mutex<BTreeMap<InstanceOwner, Arc<MountedSource<A>>>>,
    backoff: Mutex<RestartBackoff>,
    usage: Mutex<SourceUsage>,
    call_ended: Notify,
    /// The resources whose changes are wanted of it.
    watches: Arc<Watches>,
    stderr_log: Arc<StderrLog>,
    /// Why the last run ended by itself, for the log of the next one.
    ended_for: Mutex<Option<String>>,
    mounted: Instant,
    /// Fires when it is no longer mounted.
    retired: CancellationToken,
}

/// Counts since the source was mounted.
#[derive(Default)]
struct SourceCounts {
    calls: AtomicU64,
    failed_calls: AtomicU64,
    attempts: AtomicU64,
    connects: AtomicU64,
}

enum MountPhase<A: MountAdapter> {
    Stopped,
    Starting,
    Running(Arc<MountConnection<A>>),
    Failed { why: Arc<str>, retry_at: Instant },
}

/// A tool that a source listed.
pub(crate) struct KnownTool<T> {
    pub(crate) tool: T,
    /// Digest of the tool, which takes time to compute.
    pub(crate) digest: String,
}

impl<T: ListedTool> KnownTool<T> {
    pub(super) fn new(tool: T) -> Arc<Self> {
        let digest = tool.digest();
        Arc::new(Self { tool, digest })
    }
}

/// The offered tools of a mount, and the names that they have here if nothing else has them.
pub(crate) type NamedTools<A> = Arc<Vec<(ToolName, Arc<KnownTool<<A as MountAdapter>::Tool>>)>>;

/// Everything that it is known to offer.
struct Catalog<A: MountAdapter> {
    tools: Vec<Arc<KnownTool<A::Tool>>>,
    /// Made of `tools` when it is needed first.
    named: Option<NamedTools<A>>,
    /// `None` while they are not known.
    offers: Option<ListedOffers>,
    problems: Vec<String>,
    /// The tools that are left out, by the source's own names for them, each with its problem.
    left_out: Vec<(String, String)>,
    /// Whether `tools` come from this endpoint, and not from an earlier one of the same name.
    is_current: bool,
    memory: A::Memory,
}

impl<A: MountAdapter> Catalog<A> {
    /// That of a source which has listed nothing yet.
    fn unknown() -> Self {
        Self {
            tools: Vec::new(),
            named: None,
            offers: None,
            problems: Vec::new(),
            left_out: Vec::new(),
            is_current: false,
            memory: A::Memory::default(),
        }
    }
}

struct SourceUsage {
    running: usize,
    /// Whether clients wait for changes of its resources.
    is_watched: bool,
    last_used: Instant,
}

impl SourceUsage {
    fn is_idle(&self) -> bool {
        self.running == 0 && !self.is_watched
    }
}

/// A call that counts as running until this is dropped.
pub(crate) struct SourceCall<A: MountAdapter> {
    pub(crate) connection: Arc<MountConnection<A>>,
    pub(crate) mount: Arc<MountedSource<A>>,
}

impl<A: MountAdapter> Drop for SourceCall<A> {
    fn drop(&mut self) {
        let mut usage = self.mount.usage.lock();
        usage.running -= 1;
        usage.last_used = Instant::now();
        drop(usage);
        self.mount.call_ended.notify_one();
    }
}

impl<A: MountAdapter> MountedSource<A> {
    /// Loads its last known tools. Reads a file.
    pub(crate) fn new(supervisor: &Arc<MountSupervisor<A>>, config: MountConfig<A::Endpoint>) -> Arc<Self> {
        let adapter = supervisor.adapter.clone();
        let mut catalog = Catalog::<A>::unknown();
        if let Some(cached) = tool_cache::load::<A::Tool, A::Memory>(&adapter.cache_file(&config)) {
            catalog.tools = cached.tools.into_iter().map(KnownTool::new).collect();
            catalog.offers = cached.offers;
            catalog.is_current = cached.digest == adapter.digest(&config.endpoint);
            if catalog.is_current {
                catalog.memory = cached.memory;
                catalog.problems = cached.problems;
                catalog.left_out = cached.left_out;
            }
        }
        Arc::new(Self::with_catalog(supervisor, config, Arc::new(Mutex::new(catalog)), supervisor.stop.child_token()))
    }

    fn with_catalog(
        supervisor: &Arc<MountSupervisor<A>>,
        config: MountConfig<A::Endpoint>,
        catalog: Arc<Mutex<Catalog<A>>>,
        retired: CancellationToken,
    ) -> Self {
        Self {
            adapter: supervisor.adapter.clone(),
            supervisor: Arc::downgrade(supervisor),
            filter: AllowDenyFilter::new(config.allow.as_deref(), &config.deny),
            phase: watch::Sender::new(MountPhase::Stopped),
            catalog,
            counts: Arc::default(),
            owner: None,
            instances: Mutex::default(),
            backoff: Mutex::new(RestartBackoff::new()),
            usage: Mutex::new(SourceUsage { running: 0, is_watched: false, last_used: Instant::now() }),
            call_ended: Notify::new(),
            watches: Arc::default(),
            stderr_log: Arc::new(StderrLog::new(&config.name)),
            ended_for: Mutex::default(),
            mounted: Instant::now(),
            retired,
            config,
        }
    }

    /// Its name in errors and in the log.
    pub(crate) fn label(&self) -> String {
        self.adapter.label(&self.config.name)
    }

    /// Starts the background work of its kind, which needs no call.
    pub(crate) fn start(self: Arc<Self>, tasks: &TaskTracker) {
        let is_known = {
            let catalog = self.catalog.lock();
            catalog.is_current && catalog.offers.is_some()
        };
        match A::START {
            _ if !self.config.enabled => {}
            StartPolicy::Always => _ = tasks.spawn(self.keep_connected()),
            StartPolicy::OnDemand if !is_known => _ = tasks.spawn(self.learn_tools()),
            StartPolicy::OnDemand => {}
        }
    }

    /// Starts it until it has listed its tools, or has failed too often: then a call or a restart
    /// retries.
    async fn learn_tools(self: Arc<Self>) {
        for _ in 0..LEARN_ATTEMPTS {
            let Err(why) = self.connection().await else {
                // Whose sessions have processes of their own.
                return if self.config.instances != InstanceScope::Shared {
                    self.halt().await
                };
            };
            let MountPhase::Failed { retry_at, .. } = *self.phase.borrow() else { return };
            tracing::info!(mount = self.label(), %why, "its tools are not known yet");
            tokio::select! {
                () = self.retired.cancelled() => return,
                () = sleep_until(retry_at) => {}
            }
        }
    }

    /// Starts it whenever it is not running, until it is retired.
    async fn keep_connected(self: Arc<Self>) {
        let Some(mut rechecks) = self.supervisor.upgrade().map(|supervisor| supervisor.rechecks.subscribe()) else {
            return;
        };
        let mut phases = self.phase.subscribe();
        while !self.retired.is_cancelled() {
            rechecks.mark_unchanged();
            self.start_if_due();
            let retry_at = match *phases.borrow_and_update() {
                MountPhase::Failed { retry_at, .. } => Some(retry_at),
                MountPhase::Stopped | MountPhase::Starting | MountPhase::Running(_) => None,
            };
            let retry = async {
                match retry_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.retired.cancelled() => return,
                changed = phases.changed() => if changed.is_err() { return },
                changed = rechecks.changed() => if changed.is_err() { return },
                () = retry => {}
            }
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(&*self.phase.borrow(), MountPhase::Running(_))
    }

    /// Its offered tools. The same object as before while they have not changed.
    pub(crate) fn offered_tools(&self) -> NamedTools<A> {
        let mut catalog = self.catalog.lock();
        if !self.config.enabled || !catalog.is_current {
            return NamedTools::<A>::default();
        }
        if let Some(named) = &catalog.named {
            return named.clone();
        }
        let offered = catalog.tools.iter().filter(|known| self.filter.takes(known.tool.upstream_name()));
        let offered: Vec<Arc<KnownTool<A::Tool>>> = offered.cloned().collect();
        let upstream: Vec<&str> = offered.iter().map(|known| known.tool.upstream_name()).collect();
        let names = names::assign(&self.config.name, &upstream);
        catalog.named.insert(Arc::new(names.into_iter().zip(offered).collect())).clone()
    }

    /// Why it is not there, if that is known.
    pub(crate) fn away(&self) -> Option<AwaySource> {
        self.adapter.away(&self.config).filter(|_| self.config.enabled)
    }

    /// Forgets that it has failed.
    pub(crate) fn retry_now(&self) {
        self.phase.send_if_modified(|phase| {
            let has_failed = matches!(phase, MountPhase::Failed { .. });
            if has_failed {
                self.backoff.lock().reset();
                *phase = MountPhase::Stopped;
            }
            has_failed
        });
    }

    /// Its resources and prompts.
    pub(crate) fn offers(&self) -> ListedOffers {
        let catalog = self.catalog.lock();
        let known = catalog.offers.clone().filter(|_| self.config.enabled && catalog.is_current);
        known.unwrap_or_default()
    }

    /// Whether it is in its first start, and has listed nothing yet.
    fn is_new(&self) -> bool {
        let is_known = self.catalog.lock().is_current;
        self.config.enabled && !is_known && self.away().is_none() && self.counts.attempts.load(Ordering::Relaxed) <= 1
    }

    /// Waits until a source that is new has listed its tools or failed, at most for `limit` after it was mounted.
    pub(crate) async fn first_list(&self, limit: Duration) {
        if !self.is_new() {
            return;
        }
        let mut phases = self.phase.subscribe();
        let is_over = |phase: &MountPhase<A>| matches!(phase, MountPhase::Running(_) | MountPhase::Failed { .. });
        let _ = timeout_at(self.mounted + limit, phases.wait_for(is_over)).await;
    }

    /// The tools that it listed, whether they are offered or not; `None` while they are not known.
    pub(crate) fn listed_tools(&self) -> Option<Vec<Arc<KnownTool<A::Tool>>>> {
        let catalog = self.catalog.lock();
        catalog.is_current.then(|| catalog.tools.clone())
    }

    /// Why the tool that would have this name here is left out, with the source's own name for it; `None` for any other.
    pub(crate) fn left_out(&self, name: &str) -> Option<(String, String)> {
        let catalog = self.catalog.lock();
        let named =
            |own: &str| names::assign(&self.config.name, &[own]).iter().any(|assigned| assigned.as_str() == name);
        catalog.left_out.iter().find(|(own, _)| named(own)).cloned()
    }

    /// Whether the configuration offers a tool of this name in the source.
    pub(crate) fn takes(&self, upstream_name: &str) -> bool {
        self.filter.takes(upstream_name)
    }

    /// Stops it permanently. Its tasks belong to the supervisor, which waits for them.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }

    pub(crate) fn count_call(&self, is_good: bool) {
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        if !is_good {
            self.counts.failed_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins a call of a tool that was listed with this digest; starts the source if it is not running.
    ///
    /// # Errors
    /// Why it cannot be called, as a sentence for a model.
    pub(crate) async fn begin_call(
        self: &Arc<Self>,
        upstream_name: &str,
        digest: &str,
    ) -> Result<SourceCall<A>, String> {
        let call = self.begin_request().await?;
        let label = self.label();
        let catalog = self.catalog.lock();
        let known = catalog.tools.iter().find(|known| known.tool.upstream_name() == upstream_name);
        match known.map(|known| known.digest == digest) {
            Some(true) => {}
            Some(false) => {
                return Err(format!(
                    "the tool {upstream_name} of {label} has changed: read its description again before you call it"
                ));
            }
            None => return Err(format!("{label} no longer has a tool {upstream_name}")),
        }
        drop(catalog);
        Ok(call)
    }

    /// Begins any other request; starts the source if it is not running.
    ///
    /// # Errors
    /// As for a call.
    pub(crate) async fn begin_request(self: &Arc<Self>) -> Result<SourceCall<A>, String> {
        loop {
            let connection = self.connection().await;
            let connection = connection.map_err(|why| format!("{} is not available: {why}", self.label()))?;
            let mut usage = self.usage.lock();
            if !connection.context.closing.is_cancelled() {
                usage.running += 1;
                drop(usage);
                return Ok(SourceCall { connection, mount: self.clone() });
            }
        }
    }

    /// The connection, which is made if there is none. Callers that arrive meanwhile wait for the
    /// same attempt; callers soon after a failure get its error at once.
    ///
    /// # Errors
    /// Why it is not running, as a sentence for the user.
    async fn connection(self: &Arc<Self>) -> Result<Arc<MountConnection<A>>, Arc<str>> {
        let mut phases = self.phase.subscribe();
        loop {
            if self.retired.is_cancelled() {
                return Err("it is not mounted any more".into());
            }
            if let Some(away) = self.away() {
                return Err(away.why.into());
            }
            self.start_if_due();
            match &*phases.borrow_and_update() {
                MountPhase::Running(connection) if !connection.context.closing.is_cancelled() => {
                    return Ok(connection.clone());
                }
                MountPhase::Failed { why, retry_at } => {
                    let wait = retry_at.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
                    return Err(match A::START {
                        _ if wait <= 0.0 => why.clone(),
                        StartPolicy::OnDemand => format!("{why} (a call after {wait} s starts it again)").into(),
                        StartPolicy::Always => format!("{why} (the next attempt is in {wait} s)").into(),
                    });
                }
                MountPhase::Running(_) | MountPhase::Starting | MountPhase::Stopped => {}
            }
            if phases.changed().await.is_err() {
                return Err("the daemon is stopping".into());
            }
        }
    }

    /// Starts a run, unless there is one, it is too early for the next, or the source is away.
    fn start_if_due(self: &Arc<Self>) {
        if self.away().is_some() {
            return;
        }
        self.phase.send_if_modified(|phase| {
            let is_due = match phase {
                MountPhase::Stopped => true,
                MountPhase::Failed { retry_at, .. } => *retry_at <= Instant::now(),
                MountPhase::Starting | MountPhase::Running(_) => false,
            };
            let Some(supervisor) = self.supervisor.upgrade().filter(|_| is_due) else { return false };
            *phase = MountPhase::Starting;
            supervisor.tasks.spawn(self.clone().run(supervisor.clone()));
            true
        });
    }

    /// Why a connection that a call used is closed.
    pub(crate) async fn disconnect_reason(&self, connection: &Arc<MountConnection<A>>) -> Arc<str> {
        let mut phases = self.phase.subscribe();
        let is_over = |phase: &MountPhase<A>| !is_running_on(phase, connection);
        match timeout(REASON_TIMEOUT, phases.wait_for(is_over)).await {
            Ok(Ok(phase)) => match &*phase {
                MountPhase::Failed { why, .. } => why.clone(),
                MountPhase::Stopped | MountPhase::Starting | MountPhase::Running(_) => "it was stopped".into(),
            },
            Ok(Err(_)) | Err(_) => "the connection is closed".into(),
        }
    }

    /// Ends the connection, if there is one; returns when it has ended. The next call makes another one.
    async fn halt(&self) {
        let mut phases = self.phase.subscribe();
        // A start that is on its way began before whatever calls for this one.
        let _ = phases.wait_for(|phase| !matches!(phase, MountPhase::Starting)).await;
        let running = match &*self.phase.borrow() {
            MountPhase::Running(connection) => Some(connection.clone()),
            MountPhase::Stopped | MountPhase::Starting | MountPhase::Failed { .. } => None,
        };
        if let Some(connection) = running {
            connection.context.restart.cancel();
            let _ = phases.wait_for(|phase| !is_running_on(phase, &connection)).await;
        }
    }

    pub(crate) async fn restart(self: &Arc<Self>) {
        self.backoff.lock().reset();
        self.end_instances().await;
        self.halt().await;
        self.retry_now();
        if self.config.enabled {
            // The status shows why it does not start.
            let _ = self.connection().await;
            if self.config.instances != InstanceScope::Shared {
                self.halt().await;
            }
        }
    }

    /// Starts it if it does not run, however often it failed, and lists what it offers again.
    ///
    /// # Errors
    /// Why it does not start, or why its lists cannot be read.
    pub(crate) async fn list_again(self: &Arc<Self>, supervisor: &Arc<MountSupervisor<A>>) -> Result<(), String> {
        self.retry_now();
        let connection = self.connection().await.map_err(|why| why.to_string())?;
        let listed = self.refresh_soon(supervisor, &connection).await;
        if self.config.instances != InstanceScope::Shared {
            self.halt().await;
        }
        listed
    }

    fn instance_summary(&self) -> InstanceSummary<A> {
        let (mut connection, mut error, mut retry_ms) = (None, None, None);
        let state = match &*self.phase.borrow() {
            _ if !self.config.enabled => MountState::Disabled,
            MountPhase::Stopped => match self.away() {
                Some(away) => {
                    error = Some(away.why);
                    MountState::Failed
                }
                None => MountState::Stopped,
            },
            MountPhase::Starting => MountState::Starting,
            MountPhase::Running(running) => {
                connection = Some(running.clone());
                MountState::Running
            }
            MountPhase::Failed { why, retry_at } => {
                error = Some(why.to_string());
                retry_ms = Some(retry_at.saturating_duration_since(Instant::now()).as_millis() as u64);
                MountState::Failed
            }
        };
        let running = self.usage.lock().running as u64;
        InstanceSummary { owner: self.owner.clone(), state, connection, error, retry_ms, running }
    }

    pub(crate) fn summary(&self, tools: Vec<ToolName>, name_problems: Vec<String>) -> MountSummary<A> {
        let instances: Vec<Arc<Self>> = self.instances.lock().values().cloned().collect();
        let mut stderr = self.stderr_log.tail();
        stderr.extend(instances.iter().flat_map(|instance| instance.stderr_log.tail()));
        let instances = instances.iter().map(|instance| instance.instance_summary());
        let catalog = self.catalog.lock();
        MountSummary {
            config: self.config.clone(),
            shared: self.instance_summary(),
            instances: instances.filter(|instance| instance.state != MountState::Stopped).collect(),
            memory: catalog.memory.clone(),
            tools,
            problems: catalog.problems.iter().cloned().chain(name_problems).collect(),
            calls: self.counts.calls.load(Ordering::Relaxed),
            failed_calls: self.counts.failed_calls.load(Ordering::Relaxed),
            attempts: self.counts.attempts.load(Ordering::Relaxed),
            connects: self.counts.connects.load(Ordering::Relaxed),
            stderr,
        }
    }
}

fn is_running_on<A: MountAdapter>(phase: &MountPhase<A>, connection: &Arc<MountConnection<A>>) -> bool {
    matches!(phase, MountPhase::Running(now) if Arc::ptr_eq(now, connection))
}
