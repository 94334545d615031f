//! This daemon's part in its fleet: joins it, leaves it, and keeps all parts running while the broker is connected.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_engine::Engine;
use toold_proto::event::EventBody;

use crate::adapter::{self, FleetMounts};
use crate::grant_book::FleetGrantBook;
use crate::host::FleetHost;
use crate::member::{CurrentMember, Member};
use crate::settings::WantedSettings;
use crate::{announce, ask, audit, changes, follow, grants, serve, service, show_asks};

/// How long after a failure a part is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long after a failure to join it is tried again.
const REJOIN: Duration = Duration::from_secs(5);
/// How long leaving the fleet may take.
const LEAVE: Duration = Duration::from_secs(1);

pub struct Fleet {
    engine: Arc<Engine>,
    host: Arc<dyn FleetHost>,
    grants: Arc<FleetGrantBook>,
    member: CurrentMember,
    wanted: watch::Sender<WantedSettings>,
    /// Why this daemon is no member although it is configured.
    error: Mutex<Option<String>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Fleet {
    /// In no fleet until it is configured; `member` is filled then. `state_dir` is for what must outlive the process. Stop it
    /// with [`Fleet::stop`].
    pub fn start(engine: &Arc<Engine>, host: Arc<dyn FleetHost>, member: CurrentMember, state_dir: &Path) -> Arc<Self> {
        let fleet = Arc::new(Self {
            engine: engine.clone(),
            host,
            grants: FleetGrantBook::new(engine, state_dir.join("grants.json")),
            member,
            wanted: watch::Sender::new(None),
            error: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        fleet.tasks.spawn(fleet.clone().follow_settings());
        fleet.tasks.spawn(fleet.grants.clone().follow_lease(fleet.stop.clone()));
        fleet
    }

    /// Joins, leaves or changes the fleet, in the background. Grants that deny something hold when it returns. Blocks.
    pub fn configure(&self, settings: WantedSettings) {
        self.wanted.send_if_modified(|wanted| {
            let is_new = *wanted != settings;
            if is_new {
                self.grants.configure(&settings);
            }
            *wanted = settings;
            is_new
        });
    }

    /// The grants of persons, valid in the whole fleet.
    pub fn grants(&self) -> &FleetGrantBook {
        &self.grants
    }

    /// The settings that were configured last.
    pub fn wanted(&self) -> WantedSettings {
        self.wanted.borrow().clone()
    }

    /// Has the mounts follow which daemons of the fleet are there.
    pub fn inform(&self, mounts: &Arc<FleetMounts>) {
        self.tasks.spawn(adapter::inform(mounts.clone(), self.member.clone(), self.stop.clone()));
    }

    /// This daemon as a member; `None` while it is in no fleet.
    pub fn member(&self) -> Option<Arc<Member>> {
        self.member.get()
    }

    /// The member that is current at any time.
    pub fn current(&self) -> &CurrentMember {
        &self.member
    }

    /// Why this daemon is no member although it is configured, as a sentence for the user.
    pub fn error(&self) -> Option<String> {
        self.error.lock().clone()
    }

    /// Leaves the fleet; returns when everything has ended.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn follow_settings(self: Arc<Self>) {
        let mut wanted = self.wanted.subscribe();
        let mut running: Option<RunningMember> = None;
        loop {
            let settings = wanted.borrow_and_update().clone();
            // Keys and credentials may be made later.
            let may_succeed_later = matches!(settings, Some(Ok(_)));
            running = self.apply(settings, running).await;
            self.engine.events.emit(EventBody::FleetChanged {});
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                changed = wanted.changed() => if changed.is_err() { break },
                () = sleep(REJOIN), if running.is_none() && may_succeed_later => {}
            }
        }
        self.leave(running).await;
    }

    async fn apply(&self, settings: WantedSettings, running: Option<RunningMember>) -> Option<RunningMember> {
        let settings = match settings {
            Some(Ok(settings)) => settings,
            Some(Err(why)) => {
                self.report(Some(why));
                self.leave(running).await;
                return None;
            }
            None => {
                self.report(None);
                self.leave(running).await;
                return None;
            }
        };
        if let Some(running) = running {
            if running.member.connection == settings.connection {
                self.report(None);
                running.member.reconfigure(settings);
                return Some(running);
            }
            self.leave(Some(running)).await;
        }
        let stop = self.stop.child_token();
        match Member::join(settings, self.grants.clone(), self.engine.clone(), self.host.clone(), stop).await {
            Ok(member) => {
                self.report(None);
                self.member.set(Some(member.clone()));
                member.tasks.spawn(follow::keep_time(member.clone()));
                let running = member.clone();
                let task = tokio::spawn(async move {
                    tokio::join!(run(running.clone()), changes::run(&running));
                });
                Some(RunningMember { member, task })
            }
            Err(why) => {
                self.report(Some(why));
                None
            }
        }
    }

    /// Notes why this daemon is no member, or that nothing is wrong.
    fn report(&self, why: Option<String>) {
        let mut error = self.error.lock();
        if let Some(why) = why.as_ref().filter(|why| error.as_ref() != Some(*why)) {
            tracing::error!(why, "this daemon is in no fleet");
        }
        *error = why;
    }

    async fn leave(&self, running: Option<RunningMember>) {
        let Some(RunningMember { member, task }) = running else { return };
        self.member.set(None);
        member.stop.cancel();
        if let Err(error) = task.await {
            tracing::error!(%error, "a part of the fleet failed");
        }
        member.tasks.close();
        member.tasks.wait().await;
        ask::leave(&member).await;
    }
}

struct RunningMember {
    member: Arc<Member>,
    task: tokio::task::JoinHandle<()>,
}

/// Runs all parts whenever the broker is connected, until the member leaves.
async fn run(member: Arc<Member>) {
    audit::prepare(&member).await;
    let mut state = member.broker.state.clone();
    loop {
        let connected = async { state.wait_for(|state| state.connected).await.map(|state| state.connects) };
        let connects = tokio::select! {
            biased;
            () = member.stop.cancelled() => break,
            connects = connected => match connects {
                Ok(connects) => connects,
                Err(_) => break,
            },
        };
        let parts = async {
            while let Err(why) = member.broker.prepare().await {
                member.note_problem("the broker", Some(why));
                sleep(RETRY).await;
            }
            member.note_problem("the broker", None);
            // A revocation that was made meanwhile counts before the first call.
            let others = async {
                member.grants.synced().await;
                // Or the fleet would see the tools of plugins go and come at each start.
                member.host.tools_loaded().await;
                tokio::join!(
                    keep(&member, "the directory", follow::run),
                    keep(&member, "announcing", announce::run),
                    keep(&member, "asks", ask::run),
                    keep(&member, "others' asks", show_asks::run),
                    keep(&member, "calls", serve::run),
                    keep(&member, "the audit log", audit::run),
                    keep(&member, "the services API", service::run),
                )
            };
            tokio::join!(keep(&member, "grants", grants::run), others)
        };
        tokio::select! {
            biased;
            () = member.stop.cancelled() => break,
            lost = state.wait_for(|state| !state.connected || state.connects != connects) => {
                if lost.is_err() { break }
                tracing::info!("the connection to the broker was lost");
            }
            _ = parts => {}
        }
    }
    if timeout(LEAVE, announce::leave(&member)).await.is_err() {
        tracing::debug!("the broker did not hear that this daemon leaves");
    }
}

/// Runs a part again whenever it fails.
async fn keep<'m>(
    member: &'m Arc<Member>,
    part: &'static str,
    run: impl AsyncFn(&'m Arc<Member>) -> Result<(), String>,
) {
    loop {
        if let Err(why) = run(member).await {
            tracing::warn!(part, why, "a part of the fleet failed");
            member.note_problem(part, Some(why));
        }
        sleep(RETRY).await;
        // Somebody may have deleted a bucket. If it can't be made again, the part fails again and reports it.
        let _ = member.broker.prepare().await;
        member.note_problem(part, None);
    }
}
