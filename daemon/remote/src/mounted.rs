//! The life of one mounted daemon: it is connected to at once, kept connected, and tried again when it is gone, each
//! time a little later.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_client::{Client, Items};
use toold_engine::callable::Callable;
use toold_engine::need::Need;
use toold_engine::permission::revoke;
use toold_engine::registry::RegistryChange;
use toold_engine::session::Session;
use toold_engine::time::rfc3339;
use toold_engine::tool::Origin;
use toold_engine::tool_filter::AllowDenyFilter;
use toold_host::process::piped_child::{PipedChild, ended};
use toold_host::stderr_log::StderrLog;
use toold_proto::call::ListTools;
use toold_proto::daemon::NoParams;
use toold_proto::event::SubscribeEvents;
use toold_proto::method::{DaemonGetStatus, DaemonPing, EventsSubscribe, QuestionsSubscribe, RemotesList, ToolsList};
use toold_proto::permission::{Action, SubscribePrompts};
use toold_proto::remote::{Remote, RemoteState};
use toold_proto::tool::{Category, SessionId, ToolName};

use crate::config::RemoteConfig;
use crate::connect::{self, Link};
use crate::kept::{self, Kept};
use crate::listing::{self, KnownTool};
use crate::session::{self, There};
use crate::tool::{RemoteTool, target};
use crate::{Remotes, lock, source};

/// The first wait after a connection that failed; each next one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Who was there for so long has not failed at once.
const RAN_WELL: Duration = Duration::from_secs(60);
/// What a program wrote before it ended may still be on its way for so long.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// Between two looks at a list that changes all the time.
const BETWEEN_LISTS: Duration = Duration::from_millis(100);
/// How often it is asked whether it is there, and how long it may take to say so. A connection through a network that
/// is gone ends in no other way.
const ASK_EVERY: Duration = Duration::from_secs(20);
const ANSWERS: Duration = Duration::from_secs(20);
/// Why a connection ended that somebody wants to be made anew.
const ANEW: &str = "it is connected anew";

pub(crate) struct Mounted {
    pub(crate) config: RemoteConfig,
    wanted: AllowDenyFilter,
    phase: watch::Sender<Phase>,
    known: Mutex<Known>,
    chatter: Arc<StderrLog>,
    /// Somebody wants it to be connected anew.
    again: Notify,
    /// Fires when it is not mounted any more.
    retired: CancellationToken,
    calls: AtomicU64,
    bad_calls: AtomicU64,
    running: AtomicU64,
    connects: AtomicU64,
}

#[derive(Clone)]
enum Phase {
    Connecting,
    Connected(Arc<Live>),
    Away { why: Arc<str>, again_at: Instant },
}

#[derive(Default)]
struct Known {
    tools: Vec<KnownTool>,
    instances: Vec<String>,
    problems: Vec<String>,
    /// As the registry has them. It owns them: they own what holds this.
    published: Vec<Weak<RemoteTool>>,
    name_problems: Vec<String>,
}

/// A connection, as long as it lives.
pub(crate) struct Live {
    pub(crate) client: Client,
    pub(crate) name: String,
    /// The folder there that calls work in.
    pub(crate) cwd: String,
    /// Whether what is asked there may be answered from here.
    pub(crate) decides: bool,
    /// What calls are named with, so that no other daemon's are called so.
    pub(crate) mark: String,
    pub(crate) next_call: AtomicU64,
    /// Its tools are others than those that are known.
    pub(crate) changed: Notify,
    /// Fires when the connection is over.
    pub(crate) gone: CancellationToken,
    pub(crate) tasks: TaskTracker,
    secret: [u8; 32],
    sessions: Mutex<HashMap<SessionId, Arc<There>>>,
    /// For the daemon itself, which lists tools in it.
    base: SessionId,
    instance: String,
    version: String,
    pid: Option<u32>,
    since: SystemTime,
}

impl Live {
    /// The session there for one here.
    pub(crate) fn session(&self, session: &Arc<Session>) -> Arc<There> {
        let make = || Arc::new(There::new(named(&self.secret, &self.name, session.id.as_str()), session));
        lock(&self.sessions).entry(session.id.clone()).or_insert_with(make).clone()
    }

    /// Those whose sessions here are gone.
    fn left(&self) -> Vec<Arc<There>> {
        let mut sessions = lock(&self.sessions);
        let left: Vec<SessionId> =
            sessions.iter().filter(|(_, there)| there.is_left()).map(|(id, _)| id.clone()).collect();
        left.iter().filter_map(|id| sessions.remove(id)).collect()
    }
}

/// A name for a session there that nobody can guess, and that is the same when the connection is another one.
fn named(secret: &[u8; 32], remote: &str, session: &str) -> SessionId {
    let hash = blake3::keyed_hash(secret, format!("{remote}\0{session}").as_bytes()).to_hex();
    SessionId::parse(&format!("r-{}", &hash[..32])).expect("hexadecimal digits fit")
}

/// Counts as running, until it is dropped.
pub(crate) struct Running<'a>(&'a AtomicU64);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Mounted {
    /// With its last known tools. Reads a file.
    pub(crate) fn new(owner: &Arc<Remotes>, config: RemoteConfig) -> Arc<Self> {
        let kept = kept::load(&owner.options.kept, &config).unwrap_or_default();
        let known = Known { tools: kept.tools, instances: kept.instances, ..Known::default() };
        // Globs that cannot be read were told where the configuration is read.
        let wanted = AllowDenyFilter::new(config.allow.as_deref(), &config.deny);
        Arc::new(Self {
            wanted,
            phase: watch::Sender::new(Phase::Connecting),
            known: Mutex::new(known),
            chatter: Arc::new(StderrLog::new(&config.name)),
            again: Notify::new(),
            retired: owner.stop.child_token(),
            calls: AtomicU64::new(0),
            bad_calls: AtomicU64::new(0),
            running: AtomicU64::new(0),
            connects: AtomicU64::new(0),
            config,
        })
    }

    /// Leaves it for good; its owner waits until it is gone.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }

    pub(crate) fn count_running(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(&self.running)
    }

    pub(crate) fn count(&self, is_good: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !is_good {
            self.bad_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The connection for a call of a tool that was seen with this digest. Waits while it is being connected.
    ///
    /// # Errors
    /// Why it cannot be called, for a model.
    pub(crate) async fn begin(&self, own: &str, digest: &str) -> Result<Arc<Live>, String> {
        let name = &self.config.name;
        let mut phases = self.phase.subscribe();
        let live = loop {
            if self.retired.is_cancelled() {
                return Err(format!("{name} is not mounted any more"));
            }
            match &*phases.borrow_and_update() {
                Phase::Connected(live) => break live.clone(),
                Phase::Away { why, again_at } => {
                    let wait = again_at.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
                    return Err(format!("{name} cannot be reached: {why} (it is tried again in {wait} s)"));
                }
                Phase::Connecting => {}
            }
            tokio::select! {
                () = self.retired.cancelled() => {}
                changed = phases.changed() => changed.map_err(|_| "the daemon stops".to_owned())?,
            }
        };
        let known = lock(&self.known);
        match known.tools.iter().find(|tool| tool.own() == own) {
            Some(tool) if tool.digest() == digest => Ok(live),
            Some(_) => Err(format!("{own} of {name} has changed: look at it anew before it is called")),
            None => Err(format!("{name} has no tool {own} any more")),
        }
    }

    /// Ends the connection and makes it again; waits until it is there or has failed.
    pub(crate) async fn reconnect(&self) {
        if !self.config.enabled {
            return;
        }
        let mut phases = self.phase.subscribe();
        let before = match &*phases.borrow_and_update() {
            Phase::Connected(live) => Some(live.clone()),
            Phase::Connecting | Phase::Away { .. } => None,
        };
        // One that is being made is as new as can be.
        if before.is_some() || matches!(&*self.phase.borrow(), Phase::Away { .. }) {
            self.again.notify_one();
        }
        let is_over = |phase: &Phase| match (phase, &before) {
            (Phase::Connected(now), Some(before)) => !Arc::ptr_eq(now, before),
            (Phase::Connected(_), None) => true,
            (Phase::Away { .. } | Phase::Connecting, _) => false,
        };
        let settled = async {
            while phases.changed().await.is_ok() {
                let phase = phases.borrow_and_update().clone();
                // The end of the one before is no answer.
                if is_over(&phase) || matches!(&phase, Phase::Away { why, .. } if **why != *ANEW) {
                    return;
                }
            }
        };
        let _ = timeout(self.config.start_timeout, settled).await;
    }

    /// From now on until it is retired.
    pub(crate) async fn keep(self: Arc<Self>, owner: Arc<Remotes>) {
        let mut failures = 0;
        while !self.retired.is_cancelled() {
            let began = Instant::now();
            self.chatter.forget();
            self.phase.send_replace(Phase::Connecting);
            // A panic must not leave behind one that connects for ever.
            let ended = AssertUnwindSafe(self.serve(&owner)).catch_unwind().await;
            let Err(why) = ended.unwrap_or_else(|_| Err("it could not be kept".to_owned())) else { break };
            let was_there = matches!(&*self.phase.borrow(), Phase::Connected(_));
            failures = if was_there && began.elapsed() >= RAN_WELL { 1 } else { failures + 1 };
            let wait = match failures {
                _ if why == ANEW => Duration::ZERO,
                // One end may be bad luck.
                1 if was_there => Duration::ZERO,
                failures => (FIRST_WAIT * 2u32.saturating_pow((failures - 1).min(10))).min(LONGEST_WAIT),
            };
            tracing::warn!(remote = self.config.name, why, wait_s = wait.as_secs(), "a mounted daemon is away");
            let again_at = Instant::now() + wait;
            self.phase.send_replace(Phase::Away { why: why.into(), again_at });
            tokio::select! {
                () = self.retired.cancelled() => {}
                () = self.again.notified(), if wait > Duration::ZERO => failures = 0,
                () = sleep_until(again_at) => {}
            }
        }
        self.phase.send_replace(Phase::Away { why: "it is not mounted any more".into(), again_at: Instant::now() });
    }

    /// One connection, from its begin to its end; `Ok` when it is not wanted any more.
    async fn serve(self: &Arc<Self>, owner: &Arc<Remotes>) -> Result<(), String> {
        let starting = async {
            let Link { client, talker, stderr } =
                connect::open(&self.config.reach, &owner.options, &self.chatter).await?;
            let pid = talker.as_ref().map(PipedChild::pid);
            Ok::<_, String>((client, talker, stderr, pid))
        };
        let (client, mut talker, stderr, pid) = tokio::select! {
            biased;
            () = self.retired.cancelled() => return Ok(()),
            opened = timeout(self.config.start_timeout, starting) => opened.map_err(|_| self.too_slow())??,
        };
        let started = tokio::select! {
            biased;
            () = self.retired.cancelled() => Ok(None),
            () = ended(&mut talker) => Err("the program ended".to_owned()),
            greeted = timeout(self.config.start_timeout, self.greet(owner, &client, pid)) => {
                greeted.map_err(|_| self.too_slow()).and_then(|greeted| greeted.map(Some))
            }
        };
        let over = match started {
            Ok(Some((live, events))) => {
                self.connects.fetch_add(1, Ordering::Relaxed);
                tracing::info!(remote = self.config.name, pid, "a mounted daemon is connected");
                self.phase.send_replace(Phase::Connected(live.clone()));
                let over = self.tend(owner, &live, events, &mut talker).await;
                live.gone.cancel();
                live.tasks.close();
                live.tasks.wait().await;
                over
            }
            Ok(None) => Ok(()),
            Err(why) => Err(why),
        };
        drop(client);
        let mut status = None;
        if let Some(talker) = talker {
            status = talker.end().await;
        }
        if let Some(mut stderr) = stderr
            && timeout(LAST_WORDS, &mut stderr).await.is_err()
        {
            stderr.abort();
        }
        over.map_err(|why| self.explain(why, status))
    }

    fn too_slow(&self) -> String {
        format!("it did not answer within {} ms", self.config.start_timeout.as_millis())
    }

    /// Looks who it is, and learns what it offers.
    async fn greet(
        self: &Arc<Self>,
        owner: &Arc<Remotes>,
        client: &Client,
        pid: Option<u32>,
    ) -> Result<(Arc<Live>, Items<Value>), String> {
        let words = |error: toold_client::ClientError| error.to_string();
        let status = client.call::<DaemonGetStatus>(NoParams {}).await.map_err(words)?;
        if status.protocol != toold_proto::PROTOCOL {
            let ours = toold_proto::PROTOCOL;
            return Err(format!("it speaks protocol {} (version {}), and we {ours}", status.protocol, status.version));
        }
        // One that does not know its own name is at least not this one.
        let instance = status.instance.unwrap_or_else(|| status.epoch.clone());
        if instance == owner.options.instance {
            return Err("it is this very daemon".to_owned());
        }
        let (secret, name) = (owner.options.secret, self.config.name.clone());
        let n = self.connects.load(Ordering::Relaxed);
        let base = named(&secret, &name, "/");
        let mut live = Live {
            client: client.clone(),
            cwd: self.config.cwd.clone(),
            decides: false,
            mark: named(&secret, &name, &format!("/{n}")).as_str()[2..18].to_owned(),
            next_call: AtomicU64::new(0),
            changed: Notify::new(),
            gone: CancellationToken::new(),
            tasks: TaskTracker::new(),
            secret,
            name,
            sessions: Mutex::default(),
            base,
            instance,
            version: status.version,
            pid,
            since: SystemTime::now(),
        };
        let opened = session::open(&live, live.base.clone(), &self.config.cwd).await.map_err(words)?;
        live.cwd = opened.cwd;
        // Who may answer questions may answer all.
        let wanted = SubscribePrompts { session_id: Some(live.base.clone()) };
        live.decides = client.subscribe::<QuestionsSubscribe>(wanted).await.is_ok();
        let kinds = Some(vec!["tools.changed".to_owned()]);
        let events = SubscribeEvents { kinds, ..SubscribeEvents::default() };
        let events = client.subscribe_as::<EventsSubscribe, Value>(events).await.map_err(words)?;
        self.refresh(owner, &live).await?;
        Ok((Arc::new(live), events))
    }

    /// Until it ends or should end.
    async fn tend(
        self: &Arc<Self>,
        owner: &Arc<Remotes>,
        live: &Arc<Live>,
        mut events: Items<Value>,
        talker: &mut Option<PipedChild>,
    ) -> Result<(), String> {
        let mut ask = interval_at(Instant::now() + ASK_EVERY, ASK_EVERY);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let work = async {
            loop {
                tokio::select! {
                    event = events.next() => match event {
                        Some(_) => live.changed.notify_one(),
                        None => return live.client.closed().await.to_string(),
                    },
                    () = live.changed.notified() => {
                        match timeout(self.config.start_timeout, self.refresh(owner, live)).await {
                            Ok(Ok(())) => {}
                            Ok(Err(why)) => tracing::warn!(remote = live.name, why, "its tools stay as they were"),
                            Err(_) => return self.too_slow(),
                        }
                        tokio::time::sleep(BETWEEN_LISTS).await;
                    }
                    _ = ask.tick() => {
                        if timeout(ANSWERS, live.client.call::<DaemonPing>(NoParams {})).await.is_err() {
                            return format!("it does not answer for {} s", ANSWERS.as_secs());
                        }
                        for there in live.left() {
                            there.close(live).await;
                        }
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = self.retired.cancelled() => {
                let _ = timeout(LAST_WORDS, self.close_sessions(live)).await;
                Ok(())
            }
            () = self.again.notified() => Err(ANEW.to_owned()),
            why = live.client.closed() => Err(why.to_string()),
            () = ended(talker) => Err("the program ended".to_owned()),
            why = work => Err(why),
        }
    }

    /// Those that nobody comes back to.
    async fn close_sessions(&self, live: &Live) {
        let sessions: Vec<Arc<There>> = lock(&live.sessions).drain().map(|(_, there)| there).collect();
        for there in sessions {
            there.close(live).await;
        }
        let base = toold_proto::session::CloseSession { session_id: live.base.clone() };
        let _ = live.client.call::<toold_proto::method::SessionClose>(base).await;
    }

    /// Asks what it offers, and makes it known. What was allowed of a tool that is another one now is not any more.
    async fn refresh(self: &Arc<Self>, owner: &Arc<Remotes>, live: &Live) -> Result<(), String> {
        // Those that are mounted there, of which an older daemon knows nothing.
        let theirs = live.client.call::<RemotesList>(NoParams {}).await.map(|list| list.remotes).unwrap_or_default();
        let params = ListTools { session_id: Some(live.base.clone()), ..ListTools::default() };
        let list = live.client.call::<ToolsList>(params).await.map_err(|error| error.to_string())?;
        let mut listing = listing::take(list.tools.unwrap_or_default(), &theirs, &owner.options.instance, &self.wanted);
        let before = lock(&self.known).tools.clone();
        let changed =
            |tool: &KnownTool| before.iter().any(|was| was.own() == tool.own() && was.digest() != tool.digest());
        let keeps = |tool: &KnownTool| !changed(tool) || self.forget_grants(owner, tool.own());
        let (tools, lost): (Vec<_>, Vec<_>) = listing.tools.into_iter().partition(keeps);
        for tool in lost {
            let own = tool.own();
            listing.problems.push(format!("{own} is left out: it changed, and its grants cannot be taken back"));
        }
        let kept = {
            let mut known = lock(&self.known);
            known.tools = tools;
            known.instances = listing::instances(&live.instance, &theirs);
            known.problems = listing.problems;
            Kept { digest: self.config.digest(), tools: known.tools.clone(), instances: known.instances.clone() }
        };
        self.publish(owner);
        let (dir, config) = (owner.options.kept.clone(), self.config.clone());
        let saved = tokio::task::spawn_blocking(move || kept::save(&dir, &config, &kept)).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(remote = self.config.name, %error, "can't keep the tools of a mounted daemon");
        }
        Ok(())
    }

    /// Brings the registry up to what is known; nothing happens when nothing changed.
    pub(crate) fn publish(self: &Arc<Self>, owner: &Remotes) {
        let Some(engine) = owner.engine.upgrade() else { return };
        let key = source(&self.config.name);
        let (mut tools, mut problems) = (Vec::new(), Vec::new());
        let before: Vec<Arc<RemoteTool>> = lock(&self.known).published.iter().filter_map(Weak::upgrade).collect();
        let known = match self.config.enabled {
            true => lock(&self.known).tools.clone(),
            false => Vec::new(),
        };
        for tool in known.iter().filter(|tool| self.wanted.takes(tool.own())) {
            let name = listing::name(&self.config.name, tool.own());
            if engine.registry.holder(&name, &key, Origin::Mcp).is_some() {
                problems.push(format!("{} is left out: the name {name} is taken", tool.own()));
                continue;
            }
            // One that is as it was stays the same one, or it would be told as changed.
            match before.iter().find(|made| made.spec().name == name && made.digest == tool.digest()) {
                Some(made) => tools.push(made.clone()),
                None => tools.extend(RemoteTool::new(self, name, tool).map(Arc::new)),
            }
        }
        {
            let mut known = lock(&self.known);
            known.name_problems = problems;
            known.published = tools.iter().map(Arc::downgrade).collect();
            if tools.len() == before.len() && tools.iter().zip(&before).all(|(now, was)| Arc::ptr_eq(now, was)) {
                return;
            }
        }
        let tools = tools.into_iter().map(|tool| tool as Arc<dyn Callable>).collect();
        for answer in engine.registry.commit(vec![RegistryChange::Put { key, origin: Origin::Mcp, tools }]) {
            if let Err(taken) = answer {
                // Somebody took a name between the look and the step; the next list tries again.
                tracing::warn!(%taken, "the tools of a mounted daemon are not there");
                lock(&self.known).published = Vec::new();
            }
        }
    }

    /// False when a grant could not be taken back.
    fn forget_grants(&self, owner: &Remotes, own: &str) -> bool {
        let Some(engine) = owner.engine.upgrade() else { return false };
        let need = Need::new(Category::Mcp, target(&self.config.name, own));
        let grants = engine.grants.snapshot();
        let is_lost = |category, action| category == need.category && action == Action::Allow;
        let lost = grants
            .iter()
            .filter(|grant| is_lost(grant.category, grant.action) && grant.pattern.matches(&need).is_some());
        lost.fold(true, |all, grant| {
            tracing::warn!(
                target = need.target,
                grant = grant.id,
                "a tool changed: what was granted for it is not any more"
            );
            let forgotten = revoke(&engine, &grant.id);
            if let Err(error) = &forgotten {
                tracing::error!(target = need.target, grant = grant.id, error, "a grant stays");
            }
            all && forgotten.is_ok()
        })
    }

    fn explain(&self, why: String, status: Option<std::process::ExitStatus>) -> String {
        let mut text = why;
        if text == ANEW {
            return text;
        }
        if let Some(status) = status.filter(|status| !status.success()) {
            text.push_str(&format!(", {status}"));
        }
        if let Some(last) = self.chatter.tail().last() {
            text.push_str(&format!("; its last words: {last}"));
        }
        text
    }

    pub(crate) fn status(&self) -> Remote {
        let phase = self.phase.borrow().clone();
        let (state, error, retry_ms, live) = match phase {
            _ if !self.config.enabled => (RemoteState::Disabled, None, None, None),
            Phase::Connecting => (RemoteState::Connecting, None, None, None),
            Phase::Connected(live) => (RemoteState::Connected, None, None, Some(live)),
            Phase::Away { why, again_at } => {
                let wait = again_at.saturating_duration_since(Instant::now()).as_millis() as u64;
                (RemoteState::Away, Some(why.to_string()), Some(wait), None)
            }
        };
        let known = lock(&self.known);
        let mut tools: Vec<ToolName> =
            known.published.iter().filter_map(Weak::upgrade).map(|tool| tool.spec().name.clone()).collect();
        tools.sort();
        Remote {
            name: self.config.name.clone(),
            state,
            transport: self.config.reach.as_str().to_owned(),
            pid: live.as_ref().and_then(|live| live.pid),
            since: live.as_ref().map(|live| rfc3339(live.since)),
            version: live.as_ref().map(|live| live.version.clone()),
            cwd: live.as_ref().map(|live| live.cwd.clone()),
            relays_asks: live.as_ref().is_some_and(|live| live.decides),
            instances: known.instances.clone(),
            tools,
            problems: known.problems.iter().chain(&known.name_problems).cloned().collect(),
            error,
            retry_ms,
            calls: self.calls.load(Ordering::Relaxed),
            bad_calls: self.bad_calls.load(Ordering::Relaxed),
            running: self.running.load(Ordering::Relaxed),
            connects: self.connects.load(Ordering::Relaxed),
            stderr: self.chatter.tail(),
        }
    }
}
