//! The task that owns a host's plugins.
//!
//! Looking at files and running scripts is done on blocking threads, each plugin by itself, so that a
//! bad one delays no other. What they give is committed here, several at a time when they come
//! together: [`looks`] begins and ends looks, [`commit`] puts what they gave into service, [`show`] tells of it.

mod commit;
mod looks;
mod show;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toold_engine::events::EventSelection;
use toold_engine::offers::SourceOffer;
use toold_engine::registry::SourceKey;
use toold_engine::tool::Origin;
use toold_proto::event::EventBody;
use toold_proto::plugin::{Plugin as Description, PluginStatus};

use crate::command::Command;
use crate::content::Trust;
use crate::dirs::Dir;
use crate::host::{Arrangement, DirKind, Order as HostOrder, Reloaded};
use crate::keeper::commit::Plan;
use crate::plugin::{Shared, Subagent};
use crate::service::Unit;
use crate::unit::Look;
use crate::watch::poll::{Polled, Poller};
use crate::watch::silence::Silent;
use crate::watch::{Changes, Folders, Place, Watch};

/// How many plugins are loaded at once.
const LOADS: usize = 4;
/// How often a place is looked at that tells nothing by itself, unless the configuration says how often.
const POLL: Duration = Duration::from_secs(1);
/// Machines that serve parallelizable tools go when they were idle for so long.
const REST: Duration = Duration::from_secs(300);
/// They are looked at no more often than this.
const SOONEST: Duration = Duration::from_millis(50);

/// What others see of the plugins.
pub(crate) struct Shown {
    pub(crate) described: Arc<ArcSwap<Vec<Description>>>,
    pub(crate) subagents: Arc<ArcSwap<Vec<Subagent>>>,
    pub(crate) commands: Arc<ArcSwap<Vec<Command>>>,
    /// Folders and entries that are looked at again and again though nobody asked for that, in words for people.
    pub(crate) unheard: Arc<ArcSwap<Vec<String>>>,
    pub(crate) settled: Arc<watch::Sender<Option<u64>>>,
    pub(crate) settle_patience: Duration,
}

/// Folders of projects have numbers from here on, in the order in which they came; all others count before them.
const PROJECTS: usize = 1 << 20;

/// An entry of a folder: by the folder's number, then by path. The first of a name serves.
type UnitKey = (usize, PathBuf);

struct Done {
    unit: UnitKey,
    number: u64,
    look: Look,
}

/// When a look does more than to see whether files changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    IfChanged,
    /// Puts the plugin into service again.
    Again,
    /// Runs its script, too, even when it is known what that registers.
    Anew,
}

enum Job {
    Looked(Box<Done>),
    Scanned(Vec<usize>, Vec<UnitKey>),
    Polled(Poller, Polled),
}

struct Reloading {
    units: HashSet<UnitKey>,
    answer: oneshot::Sender<Reloaded>,
}

/// Owns all state.
pub(crate) struct Keeper {
    arranged: watch::Receiver<Arrangement>,
    /// What is in force of it.
    arrangement: Arc<Arrangement>,
    trust: Arc<dyn Trust>,
    poll: Option<Duration>,
    dirs: BTreeMap<usize, Dir>,
    folders: Arc<Folders>,
    changes: Arc<Changes>,
    /// Where the system does not tell what changes.
    silent: Arc<Silent>,
    /// `None` while it looks.
    poller: Option<Poller>,
    poll_at: Option<Instant>,
    next_dir: usize,
    shared: Arc<Shared>,
    shown: Shown,
    units: BTreeMap<UnitKey, Unit>,
    jobs: JoinSet<Job>,
    places: Arc<Semaphore>,
    /// Loaded and not yet in service.
    ready: Vec<Done>,
    commit_at: Option<Instant>,
    last_progress: Instant,
    /// Looks under way, and scans.
    looking: usize,
    scanning: usize,
    /// How many looks there were.
    looks: u64,
    reloads: Vec<Reloading>,
    /// Entries that a scan found, to be watched where they are links.
    seen: Vec<UnitKey>,
    /// Events that are told once everybody can see what they tell of.
    news: Vec<EventBody>,
    /// What sources offer from now on beside tools.
    offers: Vec<(SourceKey, Origin, SourceOffer)>,
}

impl Keeper {
    pub(crate) fn new(
        arranged: watch::Receiver<Arrangement>,
        trust: Arc<dyn Trust>,
        poll: Option<Duration>,
        shared: Arc<Shared>,
        shown: Shown,
    ) -> Self {
        Self {
            arranged,
            arrangement: Arc::default(),
            trust,
            poll,
            dirs: BTreeMap::new(),
            folders: Arc::default(),
            changes: Arc::default(),
            silent: Arc::default(),
            poller: Some(Poller::default()),
            poll_at: None,
            next_dir: PROJECTS,
            shared,
            shown,
            units: BTreeMap::new(),
            jobs: JoinSet::new(),
            places: Arc::new(Semaphore::new(LOADS)),
            ready: Vec::new(),
            commit_at: None,
            last_progress: Instant::now(),
            looking: 0,
            scanning: 0,
            looks: 0,
            reloads: Vec::new(),
            seen: Vec::new(),
            news: Vec::new(),
            offers: Vec::new(),
        }
    }

    pub(crate) async fn keep(mut self, mut inbox: mpsc::Receiver<HostOrder>, stop: CancellationToken) {
        let changes = self.changes.clone();
        let mut watching = {
            let (folders, changes, looks) = (self.folders.clone(), changes.clone(), self.poll.is_some());
            blocking(move || Watch::start(folders, changes, looks)).await
        };
        let mut events = self.shared.engine.events.subscribe(EventSelection::NoCalls, None).receiver;
        let rests_every = self.shared.release_after.map_or(REST, |after| REST.min(after.max(SOONEST)));
        let mut rests_at = Instant::now() + rests_every;
        watching = self.arrange(watching).await;
        loop {
            let (due, next) = changes.take_due();
            let mut maybe_links = std::mem::take(&mut self.seen);
            for place in due {
                match place {
                    Place::Dir(dir) => {
                        let Some(folder) = self.folders.load().get(&dir).cloned() else { continue };
                        watching = blocking(move || {
                            watching.follow(dir, &folder);
                            watching
                        })
                        .await;
                        self.scan(vec![dir]);
                    }
                    Place::Entry(dir, path) if self.dirs.get(&dir).is_some_and(|dir| dir.has(&path)) => {
                        maybe_links.push((dir, path.clone()));
                        self.look_at((dir, path), How::IfChanged);
                    }
                    Place::Entry(..) => {}
                }
            }
            if !maybe_links.is_empty() {
                let (watch, followed) = blocking(move || {
                    maybe_links.retain(|(dir, path)| watching.follow_link(*dir, path));
                    (watching, maybe_links)
                })
                .await;
                watching = watch;
                // It may have changed after it was looked at, and before it was watched.
                followed.into_iter().for_each(|link| self.look_at(link, How::IfChanged));
                // What ended meanwhile is not taken yet, and no sign of silence.
                self.last_progress = Instant::now();
            }
            self.heed_silence(watching.silent());
            self.poll_if_due();
            if self.commit_at.is_some_and(|at| self.looking == 0 || at <= Instant::now()) {
                self.commit();
            }
            self.settle_if_done();
            if rests_at <= Instant::now() {
                rests_at = Instant::now() + rests_every;
                self.units
                    .values()
                    .filter_map(|unit| unit.serving.as_ref())
                    .for_each(|serving| serving.version.rest(REST));
            }
            let wake_at =
                [next, self.commit_at, self.settles_at(), self.poll_at, Some(rests_at)].into_iter().flatten().min();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(HostOrder::Reload { name, answer }) = inbox.recv() => self.reload(name, answer),
                Ok(()) = self.arranged.changed() => watching = self.arrange(watching).await,
                Some(job) = self.jobs.join_next() => self.take(job.expect("looking at a plugin does not panic")),
                () = changes.wake.notified() => {}
                event = events.recv() => self.heed(event),
                () = tokio::time::sleep_until(wake_at.unwrap_or_else(Instant::now).into()), if wake_at.is_some() => {}
            }
        }
        blocking(move || drop(watching)).await;
        self.leave().await;
    }

    /// Does what is wanted now: folders that are no longer named go out of service, new ones are watched and looked at.
    async fn arrange(&mut self, mut watching: Watch) -> Watch {
        let next = Arc::new(self.arranged.borrow_and_update().clone());
        let before = std::mem::replace(&mut self.arrangement, next.clone());
        self.shared.tables.store(Arc::new(next.tables.clone()));
        let mut dirs = {
            // Links in their paths are followed.
            let next = next.clone();
            blocking(move || next.dirs.iter().cloned().map(Dir::new).collect::<Vec<_>>()).await
        };
        let of_projects = dirs.extract_if(.., |dir| matches!(dir.kind, DirKind::Project { .. })).collect::<Vec<_>>();
        let mut numbered: BTreeMap<usize, Dir> = dirs.into_iter().enumerate().collect();
        for dir in of_projects {
            let known = self.dirs.iter().find(|(_, known)| **known == dir).map(|(number, _)| *number);
            let number = known.unwrap_or_else(|| {
                self.next_dir += 1;
                self.next_dir
            });
            numbered.insert(number, dir);
        }
        let only_in = |ours: &BTreeMap<usize, Dir>, others: &BTreeMap<usize, Dir>| -> Vec<usize> {
            ours.iter().filter(|(number, dir)| others.get(number) != Some(*dir)).map(|(number, _)| *number).collect()
        };
        let (gone, new) = (only_in(&self.dirs, &numbered), only_in(&numbered, &self.dirs));
        let of = |dirs: &BTreeMap<usize, Dir>, numbers: &[usize]| -> Vec<(usize, Dir)> {
            numbers.iter().map(|number| (*number, dirs[number].clone())).collect()
        };
        let (left, came) = (of(&self.dirs, &gone), of(&numbered, &new));
        self.close(&gone);
        self.dirs = numbered;
        self.folders.store(Arc::new(self.dirs.clone()));
        // Listening begins before looking, so that no change falls between the two.
        watching = blocking(move || {
            left.iter().for_each(|(number, dir)| watching.forget(*number, dir));
            came.iter().for_each(|(number, dir)| watching.follow(*number, dir));
            watching
        })
        .await;
        if !new.is_empty() {
            self.scan(new);
        }
        let stale: Vec<UnitKey> = self
            .units
            .iter()
            .filter(|(key, unit)| self.is_stale(key, unit, &before))
            .map(|(key, _)| key.clone())
            .collect();
        stale.into_iter().for_each(|key| self.look_at(key, How::Again));
        // It is waited for what was just begun, however long ago anything ended.
        self.last_progress = Instant::now();
        watching
    }

    /// Takes what is in these folders out of service.
    fn close(&mut self, dirs: &[usize]) {
        let mut plan = Plan::default();
        for (key, unit) in self.units.extract_if(.., |key, _| dirs.contains(&key.0)).collect::<Vec<_>>() {
            self.retire(unit.serving, &key.1, &mut plan);
            plan.freed.push(unit.name);
        }
        if plan.freed.is_empty() {
            return;
        }
        self.shared.engine.registry.commit(plan.changes);
        plan.freed.iter().for_each(|name| self.look_at_shadowed(name));
        self.show();
        self.tell();
    }

    /// Whether a plugin may be another thing now, by what is wanted of it or by what it is given.
    fn is_stale(&self, key: &UnitKey, unit: &Unit, before: &Arrangement) -> bool {
        let Some(dir) = self.dirs.get(&key.0) else { return false };
        let scope = dir.scope();
        let table = |of: &Arrangement| of.tables.get(&scope).and_then(|tables| tables.get(&unit.name)).cloned();
        let switched = |of: &Arrangement| {
            (of.disabled.contains(&(scope.clone(), unit.name.clone())), of.enabled.contains(&unit.name))
        };
        // Whom a person trusts may have changed since it was asked for, also for a look that nobody has heard of yet.
        let is_judged = matches!(dir.kind, DirKind::Project { .. })
            && (unit.wanted.is_some() || self.ready.iter().any(|done| done.unit == *key));
        unit.status == Some(PluginStatus::Untrusted)
            || is_judged
            || switched(before) != switched(&self.arrangement)
            || table(before) != table(&self.arrangement)
    }

    /// The host stops: nothing serves any more.
    async fn leave(mut self) {
        while self.jobs.join_next().await.is_some() {}
        let mut plan = Plan::default();
        for (key, unit) in std::mem::take(&mut self.units) {
            self.retire(unit.serving, &key.1, &mut plan);
        }
        self.shared.engine.registry.commit(plan.changes);
        self.show();
        self.tell();
        if let Some(kept) = self.shared.kept.clone() {
            blocking(move || kept.clean()).await;
        }
    }
}

/// Does what blocks on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
