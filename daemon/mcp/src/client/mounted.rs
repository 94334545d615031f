//! The life of one mounted server: it is started by the first call, ended when nobody calls, and started again
//! when it died, each time a little later.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, FusedFuture};
use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use toold_engine::need::Need;
use toold_engine::permission::revoke;
use toold_engine::time::rfc3339;
use toold_host::process::piped_child::{PipedChild, ended};
use toold_host::stderr_log::StderrLog;
use toold_proto::mcp::{McpServer, McpServerState};
use toold_proto::permission::Action;
use toold_proto::tool::{Category, ToolName};

use super::config::{Reach, ServerConfig};
use super::connect::{self, Service};
use super::elicit::Handler;
use super::kept::{self, Kept};
use super::listing::KnownTool;
use super::tap::{Calls, Ears};
use super::tool::target;
use super::{McpServers, lock};
use toold_engine::registry::SourceScope;
use toold_engine::tool_filter::AllowDenyFilter;

/// The first wait after a start that failed; each next one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Starts of a server whose tools nobody knows.
const LEARNING: u32 = 6;
/// Who ran for so long has not failed at once.
const RAN_WELL: Duration = Duration::from_secs(60);
/// What a program wrote before it ended may still be on its way for so long.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// Between two looks at a list that changes all the time.
const BETWEEN_LISTS: Duration = Duration::from_millis(100);
/// How long a server in doubt may take to show that it is there.
const ANSWERS: Duration = Duration::from_secs(5);
/// How long the SDK may take to let go.
const LET_GO: Duration = Duration::from_secs(3);

pub(super) struct Mounted {
    pub(super) config: ServerConfig,
    owner: Weak<McpServers>,
    wanted: AllowDenyFilter,
    phase: watch::Sender<Phase>,
    known: Mutex<Known>,
    busy: Mutex<Busy>,
    /// A call has ended.
    used: Notify,
    chatter: Arc<StderrLog>,
    /// Fires when it is not mounted any more.
    retired: CancellationToken,
    calls: AtomicU64,
    bad_calls: AtomicU64,
    starts: AtomicU64,
}

#[derive(Clone)]
enum Phase {
    Stopped,
    Starting,
    Running(Arc<Live>),
    Failed { why: Arc<str>, again_at: Instant },
}

/// A server that runs.
pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) ears: Arc<Ears>,
    pid: Option<u32>,
    since: SystemTime,
    /// Fires when it takes no calls any more.
    closing: CancellationToken,
    /// Somebody wants it to start anew.
    restart: CancellationToken,
    /// Why it cannot be reached any more, of a server that is not there to say so.
    lost: watch::Sender<Option<String>>,
}

impl Live {
    /// Asks whether it is there at all, after something could not be sent to it.
    pub(super) async fn doubt(&self, why: &str) {
        let answered = timeout(ANSWERS, connect::list_tools(&self.peer)).await;
        if !matches!(answered, Ok(Ok(_))) {
            self.lost.send_replace(Some(why.to_owned()));
        }
    }
}

#[derive(Default)]
struct Known {
    tools: Vec<KnownTool>,
    problems: Vec<String>,
    /// Whether `tools` are this server's, and not of one that was configured otherwise.
    is_own: bool,
    is_old: bool,
    /// Starts and deaths in a row.
    failures: u32,
}

struct Busy {
    running: usize,
    last: Instant,
}

/// A call that counts as one that runs, until it is dropped.
pub(super) struct Begun<'a> {
    pub(super) live: Arc<Live>,
    server: &'a Mounted,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut busy = lock(&self.server.busy);
        busy.running -= 1;
        busy.last = Instant::now();
        drop(busy);
        self.server.used.notify_one();
    }
}

impl Mounted {
    /// With its last known tools. Reads a file.
    pub(super) fn new(owner: &Arc<McpServers>, config: ServerConfig) -> Arc<Self> {
        let kept = kept::load(&owner.options.kept, &config).unwrap_or_default();
        let is_own = kept.digest == config.digest();
        let known = Known { is_own, is_old: is_own && kept.is_old, tools: kept.tools, ..Known::default() };
        Arc::new(Self {
            owner: Arc::downgrade(owner),
            wanted: AllowDenyFilter::new(config.allow.as_deref(), &config.deny),
            phase: watch::Sender::new(Phase::Stopped),
            known: Mutex::new(known),
            busy: Mutex::new(Busy { running: 0, last: Instant::now() }),
            used: Notify::new(),
            chatter: Arc::new(StderrLog::new(&config.name)),
            retired: owner.stop.child_token(),
            calls: AtomicU64::new(0),
            bad_calls: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            config,
        })
    }

    /// Whether nobody knows yet what it offers.
    pub(super) fn wants_to_learn(&self) -> bool {
        self.config.enabled && !lock(&self.known).is_own
    }

    /// Starts it until it has told what it offers, or has failed for too often; then only a restart helps.
    pub(super) async fn learn(self: Arc<Self>) {
        for _ in 0..LEARNING {
            let Err(why) = self.live().await else { return };
            let again_at = match &*self.phase.borrow() {
                Phase::Failed { again_at, .. } => *again_at,
                Phase::Stopped | Phase::Starting | Phase::Running(_) => return,
            };
            tracing::info!(server = self.config.name, %why, "the tools of an MCP server are not known yet");
            tokio::select! {
                () = self.retired.cancelled() => return,
                () = sleep_until(again_at) => {}
            }
        }
    }

    pub(super) fn runs(&self) -> bool {
        matches!(&*self.phase.borrow(), Phase::Running(_))
    }

    /// The tools that are offered of it.
    pub(super) fn offered(&self) -> Vec<KnownTool> {
        let known = lock(&self.known);
        let is_offered = |tool: &&KnownTool| self.wanted.takes(&tool.own);
        match self.config.enabled && known.is_own {
            true => known.tools.iter().filter(is_offered).cloned().collect(),
            false => Vec::new(),
        }
    }

    /// Ends it for good; its owner waits until it is gone.
    pub(super) fn retire(&self) {
        self.retired.cancel();
    }

    pub(super) fn count(&self, is_good: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !is_good {
            self.bad_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins a call of a tool that was seen with this digest; starts the server where it does not run.
    ///
    /// # Errors
    /// Why it cannot be called, for a model.
    pub(super) async fn begin(self: &Arc<Self>, own: &str, digest: &str) -> Result<Begun<'_>, String> {
        let name = &self.config.name;
        loop {
            let live = self.live().await.map_err(|why| format!("the MCP server {name} does not run: {why}"))?;
            {
                let mut busy = lock(&self.busy);
                if live.closing.is_cancelled() {
                    continue;
                }
                busy.running += 1;
            }
            let begun = Begun { live, server: self };
            let known = lock(&self.known);
            let tool = known.tools.iter().find(|tool| tool.own == own);
            return match tool {
                Some(tool) if tool.digest() == digest => {
                    drop(known);
                    Ok(begun)
                }
                Some(_) => {
                    Err(format!("{own} of the MCP server {name} has changed: look at it anew before it is called"))
                }
                None => Err(format!("the MCP server {name} has no tool {own} any more")),
            };
        }
    }

    /// The server as it runs, started if need be. Whoever comes while it starts waits for the same start; whoever
    /// comes soon after it failed hears so at once.
    ///
    /// # Errors
    /// Why it does not run, for people.
    pub(super) async fn live(self: &Arc<Self>) -> Result<Arc<Live>, Arc<str>> {
        let mut phases = self.phase.subscribe();
        loop {
            if self.retired.is_cancelled() {
                return Err("it is not mounted any more".into());
            }
            self.phase.send_if_modified(|phase| {
                let begins = match phase {
                    Phase::Stopped => true,
                    Phase::Failed { again_at, .. } => *again_at <= Instant::now(),
                    Phase::Starting | Phase::Running(_) => false,
                };
                let Some(owner) = self.owner.upgrade().filter(|_| begins) else { return false };
                *phase = Phase::Starting;
                owner.tasks.spawn(self.clone().run(owner.clone()));
                true
            });
            match &*phases.borrow_and_update() {
                Phase::Running(live) if !live.closing.is_cancelled() => return Ok(live.clone()),
                Phase::Failed { why, again_at } => {
                    let wait = again_at.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
                    return Err(match wait > 0.0 {
                        true => format!("{why} (it is tried again by a call after {wait} s)").into(),
                        false => why.clone(),
                    });
                }
                Phase::Running(_) | Phase::Starting | Phase::Stopped => {}
            }
            if phases.changed().await.is_err() {
                return Err("the daemon stops".into());
            }
        }
    }

    /// Why a server that ran does not any more.
    pub(super) async fn why_gone(&self, live: &Arc<Live>) -> Arc<str> {
        let mut phases = self.phase.subscribe();
        let is_over = |phase: &Phase| !matches!(phase, Phase::Running(now) if Arc::ptr_eq(now, live));
        let over = timeout(LET_GO * 2, phases.wait_for(is_over)).await;
        match over {
            Ok(Ok(phase)) => match &*phase {
                Phase::Failed { why, .. } => why.clone(),
                Phase::Stopped | Phase::Starting | Phase::Running(_) => "it was stopped".into(),
            },
            Ok(Err(_)) | Err(_) => "its connection is closed".into(),
        }
    }

    pub(super) async fn restart(self: &Arc<Self>) {
        lock(&self.known).failures = 0;
        let mut phases = self.phase.subscribe();
        let before = self.phase.borrow().clone();
        match &before {
            Phase::Running(live) => {
                live.restart.cancel();
                let _ = phases.wait_for(|phase| !matches!(phase, Phase::Running(now) if Arc::ptr_eq(now, live))).await;
            }
            Phase::Failed { .. } => _ = self.phase.send_replace(Phase::Stopped),
            Phase::Starting | Phase::Stopped => {}
        }
        if self.config.enabled {
            // Why it does not start is shown with its state.
            let _ = self.live().await;
        }
    }

    /// One run, from start to end.
    async fn run(self: Arc<Self>, owner: Arc<McpServers>) {
        let began = Instant::now();
        self.starts.fetch_add(1, Ordering::Relaxed);
        self.chatter.forget();
        // A panic must not leave behind a server that starts for ever.
        let ended = AssertUnwindSafe(self.serve(&owner)).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| Err("it could not be kept".to_owned()));
        let phase = match ended {
            Ok(()) => Phase::Stopped,
            Err(why) => {
                let did_run = matches!(&*self.phase.borrow(), Phase::Running(_));
                let mut known = lock(&self.known);
                known.failures = if did_run && began.elapsed() >= RAN_WELL { 1 } else { known.failures + 1 };
                let wait = match known.failures {
                    // One death may be bad luck.
                    1 if did_run => Duration::ZERO,
                    failures => (FIRST_WAIT * 2u32.saturating_pow((failures - 1).min(10))).min(LONGEST_WAIT),
                };
                tracing::warn!(server = self.config.name, why, wait_s = wait.as_secs(), "an MCP server does not run");
                Phase::Failed { why: why.into(), again_at: Instant::now() + wait }
            }
        };
        self.phase.send_replace(phase);
    }

    /// `Ok` when it ended because it should.
    async fn serve(self: &Arc<Self>, owner: &Arc<McpServers>) -> Result<(), String> {
        let ears = Arc::new(Ears { calls: Calls::default(), changed: Notify::new(), chatter: self.chatter.clone() });
        let opened = connect::open(&self.config.reach, &owner.options, &ears).await?;
        let (wires, mut talker, stderr) = opened.split();
        let pid = talker.as_ref().map(PipedChild::pid);
        let closing = self.retired.child_token();
        let handler = Handler { server: self.config.name.clone(), ears: ears.clone() };
        let starting = async {
            let is_old = lock(&self.known).is_old;
            let greeted = connect::greet(wires, handler, is_old, &closing).await;
            // Some end when they are greeted in a way that they don't know: the next time, in the other way.
            let service = greeted.inspect_err(|_| lock(&self.known).is_old = !is_old)?;
            self.refresh(owner, service.peer()).await?;
            Ok::<Service, String>(service)
        };
        let started = tokio::select! {
            biased;
            () = self.retired.cancelled() => Err(None),
            started = timeout(self.config.start_timeout, starting) => started.map_err(|_| {
                Some(format!("it did not start within {} ms", self.config.start_timeout.as_millis()))
            }).and_then(|started| started.map_err(Some)),
        };
        let ended = match started {
            Ok(service) => {
                let live = Arc::new(Live {
                    peer: service.peer().clone(),
                    ears,
                    pid,
                    since: SystemTime::now(),
                    closing: closing.clone(),
                    restart: CancellationToken::new(),
                    lost: watch::Sender::new(None),
                });
                tracing::info!(server = self.config.name, pid, "an MCP server runs");
                self.phase.send_replace(Phase::Running(live.clone()));
                self.tend(owner, &live, service, &mut talker).await
            }
            Err(why) => why,
        };
        closing.cancel();
        let mut status = None;
        if let Some(talker) = talker {
            status = talker.end().await;
        }
        if let Some(mut stderr) = stderr
            && timeout(LAST_WORDS, &mut stderr).await.is_err()
        {
            stderr.abort();
        }
        let Some(why) = ended else { return Ok(()) };
        Err(self.explain(why, status))
    }

    /// Until it ends or should end: `None` when it should, else why.
    async fn tend(
        self: &Arc<Self>,
        owner: &Arc<McpServers>,
        live: &Arc<Live>,
        service: Service,
        talker: &mut Option<PipedChild>,
    ) -> Option<String> {
        lock(&self.busy).last = Instant::now();
        // Held, since changes are told for as long as it is.
        let _subscription = connect::subscribe(&live.peer).await;
        let mut over = Box::pin(service.waiting().fuse());
        let mut lost = live.lost.subscribe();
        let mut refreshing: Option<BoxFuture<'_, Result<(), String>>> = None;
        let why = loop {
            let idle_at = self.idle_at();
            tokio::select! {
                biased;
                () = self.retired.cancelled() => break None,
                () = live.restart.cancelled() => break None,
                _ = &mut over => break Some("it closed the connection".to_owned()),
                Some(why) = is_lost(&mut lost) => break Some(why),
                () = ended(talker) => {
                    // What it said last is still in the pipe.
                    let _ = timeout(LAST_WORDS, &mut over).await;
                    break Some("it ended".to_owned());
                }
                done = async { refreshing.as_mut().expect("looked at only if there is one").await }, if refreshing.is_some() => {
                    refreshing = None;
                    if let Err(error) = done {
                        tracing::warn!(server = self.config.name, error, "the tools of an MCP server stay as they were");
                    }
                }
                () = live.ears.changed.notified(), if refreshing.is_none() => {
                    refreshing = Some(self.refresh_soon(owner, live).boxed());
                }
                () = self.used.notified() => {}
                () = sleep_until(idle_at) => {
                    let busy = lock(&self.busy);
                    if busy.running == 0 && self.idle_at_of(&busy) <= Instant::now() {
                        live.closing.cancel();
                        tracing::info!(server = self.config.name, "nobody calls an MCP server: it is stopped");
                        break None;
                    }
                }
            }
        };
        live.closing.cancel();
        if !over.is_terminated() {
            let _ = timeout(LET_GO, over).await;
        }
        why
    }

    async fn refresh_soon(&self, owner: &Arc<McpServers>, live: &Live) -> Result<(), String> {
        let refreshed = timeout(self.config.start_timeout, self.refresh(owner, &live.peer)).await;
        tokio::time::sleep(BETWEEN_LISTS).await;
        refreshed.unwrap_or_else(|_| Err("it did not list its tools in time".to_owned()))
    }

    /// Asks what it offers, and makes it known. What was allowed of a tool that is another one now is not any more.
    async fn refresh(&self, owner: &Arc<McpServers>, peer: &Peer<RoleClient>) -> Result<(), String> {
        let listing = connect::list_tools(peer).await?;
        let is_old = peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize());
        let before = lock(&self.known).tools.clone();
        let mut problems = listing.problems;
        let mut tools = listing.tools;
        tools.retain(|tool| {
            let was = before.iter().find(|was| was.own == tool.own);
            let stays = was.is_none_or(|was| was.digest() == tool.digest());
            match stays || self.forget_grants(owner, &tool.own) {
                true => true,
                false => {
                    problems.push(format!("{} is left out: it changed, and its grants cannot be taken back", tool.own));
                    false
                }
            }
        });
        {
            let mut known = lock(&self.known);
            known.tools = tools;
            known.problems = problems;
            known.is_own = true;
            known.is_old = is_old;
        }
        owner.publish();
        self.keep(owner).await;
        Ok(())
    }

    async fn keep(&self, owner: &McpServers) {
        let (dir, config) = (owner.options.kept.clone(), self.config.clone());
        let kept = {
            let known = lock(&self.known);
            Kept { digest: config.digest(), tools: known.tools.clone(), is_old: known.is_old }
        };
        let saved = tokio::task::spawn_blocking(move || kept::save(&dir, &config, &kept)).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(server = self.config.name, %error, "can't keep the tools of an MCP server");
        }
    }

    /// False when a grant could not be taken back.
    fn forget_grants(&self, owner: &McpServers, own: &str) -> bool {
        let Some(engine) = owner.engine.upgrade() else { return false };
        let need = Need::new(Category::Mcp, target(&self.config.name, own));
        let grants = engine.grants.snapshot();
        let lost = grants.iter().filter(|grant| {
            grant.category == need.category && grant.action == Action::Allow && grant.pattern.matches(&need).is_some()
        });
        let mut all = true;
        for grant in lost {
            tracing::warn!(
                target = need.target,
                grant = grant.id,
                "a tool changed: what was granted for it is not any more"
            );
            if let Err(error) = revoke(&engine, &grant.id) {
                tracing::error!(target = need.target, grant = grant.id, error, "a grant stays");
                all = false;
            }
        }
        all
    }

    fn explain(&self, why: String, status: Option<std::process::ExitStatus>) -> String {
        use std::os::unix::process::ExitStatusExt;
        let mut text = why;
        match status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => text.push_str(&format!(", with status {code}")),
            Some((None, Some(signal))) => text.push_str(&format!(", by signal {signal}")),
            Some((None, None)) | None => {}
        }
        if let Some(last) = self.chatter.tail().last() {
            text.push_str(&format!("; its last words: {last}"));
        }
        text
    }

    fn idle_at(&self) -> Instant {
        self.idle_at_of(&lock(&self.busy))
    }

    fn idle_at_of(&self, busy: &Busy) -> Instant {
        let far = Duration::from_secs(365 * 24 * 3600);
        match self.config.idle_timeout {
            Some(idle) if busy.running == 0 => busy.last + idle,
            Some(_) | None => Instant::now() + far,
        }
    }

    pub(super) fn status(&self, tools: Vec<ToolName>, mut name_problems: Vec<String>) -> McpServer {
        let phase = self.phase.borrow().clone();
        let now = Instant::now();
        let (state, error, retry_ms, live) = match phase {
            _ if !self.config.enabled => (McpServerState::Disabled, None, None, None),
            Phase::Stopped => match &self.config.reach {
                Reach::Unusable { why } => (McpServerState::Failed, Some(why.clone()), None, None),
                Reach::Stdio { .. } | Reach::Socket { .. } | Reach::Http { .. } => {
                    (McpServerState::Stopped, None, None, None)
                }
            },
            Phase::Starting => (McpServerState::Starting, None, None, None),
            Phase::Running(live) => (McpServerState::Running, None, None, Some(live)),
            Phase::Failed { why, again_at } => {
                let wait = again_at.saturating_duration_since(now).as_millis() as u64;
                (McpServerState::Failed, Some(why.to_string()), Some(wait), None)
            }
        };
        let info = live.as_ref().and_then(|live| live.peer.peer_info());
        let known = lock(&self.known);
        let mut problems = known.problems.clone();
        problems.append(&mut name_problems);
        McpServer {
            name: self.config.name.clone(),
            project: match &self.config.scope {
                SourceScope::Global => None,
                SourceScope::Project(path) => Some(path.display().to_string()),
            },
            state,
            transport: self.config.reach.as_str().to_owned(),
            pid: live.as_ref().and_then(|live| live.pid),
            since: live.as_ref().map(|live| rfc3339(live.since)),
            uptime_s: live.as_ref().map(|live| live.since.elapsed().unwrap_or_default().as_secs_f64()),
            protocol: info.as_ref().map(|info| info.protocol_version.to_string()),
            tools,
            problems,
            error,
            retry_ms,
            calls: self.calls.load(Ordering::Relaxed),
            bad_calls: self.bad_calls.load(Ordering::Relaxed),
            running: lock(&self.busy).running as u64,
            starts: self.starts.load(Ordering::Relaxed),
            stderr: self.chatter.tail(),
        }
    }
}

async fn is_lost(lost: &mut watch::Receiver<Option<String>>) -> Option<String> {
    lost.wait_for(Option::is_some).await.ok().and_then(|why| why.clone())
}
