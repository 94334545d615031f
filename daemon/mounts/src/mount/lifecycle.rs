//! One run of a mount: opening, greeting, listing, observing while it is connected, and ending.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, FusedFuture};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::{KnownTool, MountPhase, MountedSource, SourceUsage};
use crate::MountSupervisor;
use crate::adapter::{
    ConnectionContext, ListedTool, MountAdapter, MountConnection, OpenedChannel, StartPolicy, ToolListing,
};
use crate::grants::revoke_grants;
use crate::program::{self, LAST_OUTPUT, SourceProgram};
use crate::tool_cache::{self, CachedTools};

/// The pause between two lists of a source whose list changes all the time.
const BETWEEN_LISTS: Duration = Duration::from_millis(100);
/// How long closing a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Stands for never.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

type StartedRun<A> = (<A as MountAdapter>::Link, <A as MountAdapter>::Session);

impl<A: MountAdapter> MountedSource<A> {
    pub(super) async fn run(self: Arc<Self>, supervisor: Arc<MountSupervisor<A>>) {
        let began = Instant::now();
        self.stderr_log.forget();
        if let Some(why) = self.ended_for.lock().take() {
            self.stderr_log.line(&format!("[toold] started again: {why}"));
        }
        // A panic must not leave a source in the starting phase for ever.
        let ended = AssertUnwindSafe(self.serve(&supervisor)).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| Err("an internal error ended it".to_owned()));
        let phase = match ended {
            Ok(()) => MountPhase::Stopped,
            Err(why) if self.away().is_some() => {
                tracing::info!(mount = self.label(), why, "a mounted source is away");
                MountPhase::Stopped
            }
            Err(why) => {
                let lasted = self.is_running().then(|| began.elapsed());
                let delay = match (A::START, lasted) {
                    // The next call starts it at once: it served, so a start is worth the trial.
                    (StartPolicy::OnDemand, Some(_)) => {
                        self.backoff.lock().reset();
                        Duration::ZERO
                    }
                    (StartPolicy::OnDemand | StartPolicy::Always, lasted) => self.backoff.lock().after_failure(lasted),
                };
                tracing::warn!(mount = self.label(), why, retry_s = delay.as_secs(), "a mounted source failed");
                *self.ended_for.lock() = lasted.map(|_| why.clone());
                MountPhase::Failed { why: why.into(), retry_at: Instant::now() + delay }
            }
        };
        self.phase.send_replace(phase);
    }

    /// `Ok` when it ended on request.
    async fn serve(self: &Arc<Self>, supervisor: &Arc<MountSupervisor<A>>) -> Result<(), String> {
        let attempt = self.counts.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        let closing = self.retired.child_token();
        let (engine, owner, watches) = (supervisor.engine.clone(), self.owner.clone(), self.watches.clone());
        let stderr_log = self.stderr_log.clone();
        let context = Arc::new(ConnectionContext::new(attempt, engine, owner, stderr_log, closing, watches));
        let deadline = Instant::now() + self.config.start_timeout;
        let OpenedChannel { channel, mut program } = tokio::select! {
            biased;
            () = self.retired.cancelled() => return Ok(()),
            opened = timeout_at(deadline, self.adapter.open(&self.config, &context)) => {
                opened.map_err(|_| self.start_timed_out())??
            }
        };
        let pid = program.as_ref().map(SourceProgram::pid);
        let started = tokio::select! {
            biased;
            () = self.retired.cancelled() => None,
            started = self.connect(supervisor, channel, &context, &mut program, deadline) => Some(started),
        };
        let ended = match started {
            Some(Ok((link, session))) => {
                let link = Arc::new(link);
                let connection =
                    Arc::new(MountConnection { link, context: context.clone(), pid, since: SystemTime::now() });
                self.counts.connects.fetch_add(1, Ordering::Relaxed);
                tracing::info!(mount = self.label(), pid, "a mounted source is connected");
                self.phase.send_replace(MountPhase::Running(connection.clone()));
                self.watch(supervisor, &connection, session, &mut program).await
            }
            Some(Err(why)) => Some(why),
            None => None,
        };
        context.closing.cancel();
        let status = match program {
            Some(program) => program.end().await,
            None => None,
        };
        match ended {
            Some(why) => Err(self.explain(why, status)),
            None => Ok(()),
        }
    }

    fn start_timed_out(&self) -> String {
        format!("it did not start within {} ms", self.config.start_timeout.as_millis())
    }

    /// Introduces the daemon and lists the tools, unless the program ends first.
    async fn connect(
        &self,
        supervisor: &Arc<MountSupervisor<A>>,
        channel: A::Channel,
        context: &Arc<ConnectionContext>,
        program: &mut Option<SourceProgram>,
        deadline: Instant,
    ) -> Result<StartedRun<A>, String> {
        let starting = async {
            let mut memory = self.catalog.lock().memory.clone();
            let connected = self.adapter.connect(&self.config, channel, context, &mut memory).await;
            self.catalog.lock().memory = memory;
            let (link, session) = connected?;
            self.refresh(supervisor, &link).await?;
            Ok((link, session))
        };
        let mut starting = pin!(timeout_at(deadline, starting));
        tokio::select! {
            biased;
            started = &mut starting => started.unwrap_or_else(|_| Err(self.start_timed_out())),
            // Its last answer may still be in the pipe.
            () = program::ended(program) => match timeout(LAST_OUTPUT, starting).await {
                Ok(Ok(Ok(started))) => Ok(started),
                Ok(Ok(Err(_)) | Err(_)) | Err(_) => Err("the program ended".to_owned()),
            },
        }
    }

    /// Runs until the connection ends or should end: `None` when it should, otherwise why it ended.
    async fn watch(
        &self,
        supervisor: &Arc<MountSupervisor<A>>,
        connection: &Arc<MountConnection<A>>,
        session: A::Session,
        program: &mut Option<SourceProgram>,
    ) -> Option<String> {
        let context = &connection.context;
        self.usage.lock().last_used = Instant::now();
        let mut over = pin!(self.adapter.run(connection, session).fuse());
        let mut lost = context.lost.subscribe();
        let mut refreshing: Option<BoxFuture<'_, Result<(), String>>> = None;
        let why = loop {
            let idle_at = self.idle_at(&self.usage.lock());
            tokio::select! {
                biased;
                () = self.retired.cancelled() => {
                    let _ = timeout(LAST_OUTPUT, self.adapter.retire(&connection.link)).await;
                    break None;
                }
                () = context.restart.cancelled() => break None,
                why = &mut over => break Some(why),
                Some(why) = reported_loss(&mut lost) => break Some(why),
                () = program::ended(program) => {
                    // Its last answers may still be in the pipe.
                    let _ = timeout(LAST_OUTPUT, &mut over).await;
                    break Some("the program ended".to_owned());
                }
                done = async { refreshing.as_mut().expect("the branch is disabled without one").await },
                    if refreshing.is_some() =>
                {
                    refreshing = None;
                    if let Err(why) = done {
                        tracing::warn!(mount = self.label(), why, "can't list what it offers: that stays as it was");
                    }
                }
                () = context.lists_changed.notified(), if refreshing.is_none() => {
                    refreshing = Some(self.refresh_soon(supervisor, connection).boxed());
                }
                () = self.call_ended.notified() => {}
                () = sleep_until(idle_at) => {
                    // Under the lock, so that no call begins on a connection that is about to close.
                    let usage = self.usage.lock();
                    if usage.is_idle() && self.idle_at(&usage) <= Instant::now() {
                        context.closing.cancel();
                        tracing::info!(mount = self.label(), "nobody calls it: it is stopped");
                        break None;
                    }
                }
            }
        };
        context.closing.cancel();
        if !over.is_terminated() {
            let _ = timeout(CLOSE_TIMEOUT, over).await;
        }
        why
    }

    pub(super) async fn refresh_soon(
        &self,
        supervisor: &Arc<MountSupervisor<A>>,
        connection: &MountConnection<A>,
    ) -> Result<(), String> {
        let limit = self.config.start_timeout;
        let refreshed = timeout(limit, self.refresh(supervisor, &connection.link)).await;
        sleep(BETWEEN_LISTS).await;
        refreshed.unwrap_or_else(|_| Err(format!("it did not answer within {} ms", limit.as_millis())))
    }

    /// Lists everything that it offers and publishes it. A tool that changed loses its grants: they were given to
    /// a different tool.
    async fn refresh(&self, supervisor: &Arc<MountSupervisor<A>>, link: &A::Link) -> Result<(), String> {
        let listing = self.adapter.list_tools(&self.config, link, &self.filter).await?;
        let ToolListing { mut tools, offers, mut problems, left_out, memory } = listing;
        let before = self.catalog.lock().tools.clone();
        let before: HashMap<&str, &Arc<KnownTool<A::Tool>>> =
            before.iter().map(|known| (known.tool.upstream_name(), known)).collect();
        let mut known_tools = Vec::with_capacity(tools.len());
        tools.retain(|tool| {
            let name = tool.upstream_name();
            let now = KnownTool::new(tool.clone());
            let known = before.get(name);
            let is_same = known.is_none_or(|known| known.digest == now.digest);
            let is_kept = is_same || self.revoke_grants(supervisor, name);
            if !is_kept {
                problems.push(format!("{name} is left out: it changed, and its grants cannot be revoked"));
            } else {
                known_tools.push(now);
            }
            is_kept
        });
        let digest = self.adapter.digest(&self.config.endpoint);
        let cached = CachedTools { digest, tools, offers: Some(offers), problems, left_out, memory };
        {
            let mut catalog = self.catalog.lock();
            catalog.tools = known_tools;
            catalog.named = None;
            catalog.offers = cached.offers.clone();
            catalog.memory = cached.memory.clone();
            catalog.problems = cached.problems.clone();
            catalog.left_out = cached.left_out.clone();
            catalog.is_current = true;
        }
        supervisor.publish();
        let file = self.adapter.cache_file(&self.config);
        let saved = tokio::task::spawn_blocking(move || tool_cache::save(&file, &cached)).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(mount = self.label(), %error, "can't save its tools");
        }
        Ok(())
    }

    fn revoke_grants(&self, supervisor: &MountSupervisor<A>, upstream_name: &str) -> bool {
        let target = self.adapter.permission_target(&self.config.name, upstream_name);
        supervisor.engine.upgrade().is_some_and(|engine| revoke_grants(&engine, target))
    }

    fn explain(&self, why: String, status: Option<ExitStatus>) -> String {
        let mut text = why;
        match status.filter(|status| !status.success()).map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => text.push_str(&format!(" (exit status {code})")),
            Some((None, Some(signal))) => text.push_str(&format!(" (signal {signal})")),
            Some((None, None)) | None => {}
        }
        let own = |line: &&String| !line.starts_with("[toold]");
        if let Some(last) = self.stderr_log.tail().iter().rfind(own) {
            text.push_str(&format!("; last output: {last}"));
        }
        text
    }

    fn idle_at(&self, usage: &SourceUsage) -> Instant {
        match self.config.idle_timeout {
            Some(idle) if usage.is_idle() => usage.last_used + idle,
            Some(_) | None => Instant::now() + A_YEAR,
        }
    }
}

async fn reported_loss(lost: &mut watch::Receiver<Option<String>>) -> Option<String> {
    lost.wait_for(Option::is_some).await.ok().and_then(|why| why.clone())
}
