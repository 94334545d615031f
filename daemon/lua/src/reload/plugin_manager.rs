//! The task that owns a host's plugins.
//!
//! Reading files and running scripts happens on blocking threads, separately for each plugin, so that a bad one does
//! not delay the others. [`scan`] starts and ends loads, [`stability`](crate::reload::stability) decides whether what
//! they read is whole, [`plan`] what becomes of it, [`commit`] carries that out for all that came together, and
//! [`publish`] reports it.

mod commit;
mod duplicates;
mod keeping;
mod plan;
pub(crate) mod publish;
mod scan;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toold_engine::blocking::run_elsewhere;
use toold_engine::events::EventSelection;
use toold_engine::offers::SourceOffer;
use toold_engine::registry::SourceKey;
use toold_engine::tool::Origin;
use toold_proto::event::EventBody;
use toold_proto::plugin::PluginStatus;

use crate::plugin::content::ContentTrust;
use crate::plugin::host_resources::HostResources;
use crate::plugin::kept_versions::KeptVersions;
use crate::reload::dirs::ResolvedDir;
use crate::reload::entry::PluginEntry;
use crate::reload::git_lock::IndexLock;
use crate::reload::load_entry::{LoadOutcome, LoadedVersion, WithheldReason};
use crate::reload::options::{DirKind, PluginSettings, SavePatience};
use crate::reload::plugin_manager::commit::Revision;
use crate::reload::plugin_manager::keeping::Keeping;
use crate::reload::plugin_manager::plan::SeenPlugin;
use crate::reload::plugin_manager::publish::PublishedState;
use crate::reload::stability::Stability;
use crate::reload::watch::changes::{PendingChanges, WatchTarget};
use crate::reload::watch::poll::{PollResult, Poller};
use crate::reload::watch::poll_reason::PollReasons;
use crate::reload::watch::{FolderWatcher, Folders};
use crate::reload::{ManagerRequest, Reloaded};

/// How many plugins are loaded at once.
const LOADS: usize = 4;
/// How many further ones are loaded that are slow: on a busy machine all are, and each is slower the more there are.
const SLOW_LOADS: usize = 12;
/// How often folders without reliable events are polled, unless configured.
const POLL: Duration = Duration::from_secs(1);
/// Lua states for parallelizable tools are released after being idle for this long.
const IDLE: Duration = Duration::from_secs(300);
/// They are checked no more often than this.
const MIN_RELEASE_INTERVAL: Duration = Duration::from_millis(50);

/// Folders of projects are numbered from here on, in the order in which they came; all others have lower numbers.
const PROJECTS: usize = 1 << 20;

/// An entry of a folder: by the folder's number, then by path. The first one of a name serves.
pub(crate) type EntryKey = (usize, PathBuf);

struct FinishedLoad {
    entry: EntryKey,
    number: u64,
    outcome: LoadOutcome,
    /// The last good version, if nothing else serves.
    kept: Option<LoadedVersion>,
}

impl FinishedLoad {
    /// What the plan of a revision has to know of it.
    fn seen(&self) -> SeenPlugin {
        let kept = self.kept.as_ref().map(|kept| kept.plugin.name().to_owned());
        match &self.outcome {
            LoadOutcome::Unchanged(_) | LoadOutcome::Locked(_) => SeenPlugin::Unchanged,
            LoadOutcome::Gone => SeenPlugin::Gone,
            LoadOutcome::Withheld { manifest, why: WithheldReason::Disabled, .. } => {
                SeenPlugin::Disabled { name: manifest.name.clone() }
            }
            LoadOutcome::Withheld { manifest, why: WithheldReason::Untrusted, .. } => {
                SeenPlugin::Untrusted { name: manifest.name.clone(), kept }
            }
            LoadOutcome::Failed { name, .. } => SeenPlugin::Failed { name: name.clone(), kept },
            LoadOutcome::Loaded(version) => SeenPlugin::Loaded { name: version.plugin.name().to_owned() },
        }
    }
}

/// What a load does beyond checking whether files changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReloadMode {
    IfChanged,
    /// Puts the plugin into service again.
    Always,
    /// Also runs its script, even if its registrations are cached.
    RunScript,
}

enum ManagerJob {
    Loaded(Box<FinishedLoad>),
    Scanned(Vec<usize>, Vec<EntryKey>),
    /// The last good versions are on disk.
    Kept,
    /// The locks of git that are still held.
    Looked(Vec<IndexLock>),
    Polled(Poller, PollResult),
}

struct PendingReload {
    entries: HashSet<EntryKey>,
    answer: oneshot::Sender<Reloaded>,
}

/// Owns all state of the plugins.
pub(crate) struct PluginManager {
    newest_settings: watch::Receiver<PluginSettings>,
    /// The settings that are in force.
    settings: Arc<PluginSettings>,
    trust: Arc<dyn ContentTrust>,
    poll: Option<Duration>,
    stability: Stability,
    keeping: Keeping,
    dirs: BTreeMap<usize, ResolvedDir>,
    folders: Arc<Folders>,
    changes: Arc<PendingChanges>,
    /// Where the system does not report all changes.
    polled: Arc<PollReasons>,
    /// `None` while it is polling.
    poller: Option<Poller>,
    poll_at: Option<Instant>,
    next_dir: usize,
    shared: Arc<HostResources>,
    published: Arc<PublishedState>,
    entries: BTreeMap<EntryKey, PluginEntry>,
    jobs: JoinSet<ManagerJob>,
    load_slots: Arc<Semaphore>,
    slow_slots: Arc<Semaphore>,
    /// Loaded, but not yet in service.
    ready: Vec<FinishedLoad>,
    commit_at: Option<Instant>,
    last_progress: Instant,
    /// Running loads, and running scans.
    running_loads: usize,
    running_scans: usize,
    /// The number of the newest load.
    newest_load: u64,
    reloads: Vec<PendingReload>,
    /// Entries that a scan found, to be watched if they are links.
    maybe_links: Vec<EntryKey>,
    /// Events that are emitted once everybody can see what they report.
    pending_events: Vec<EventBody>,
    /// Resources and prompts that sources have from now on.
    offers: Vec<(SourceKey, Origin, SourceOffer)>,
}

impl PluginManager {
    pub(crate) fn new(
        newest_settings: watch::Receiver<PluginSettings>,
        trust: Arc<dyn ContentTrust>,
        poll: Option<Duration>,
        patience: SavePatience,
        kept_versions: Option<KeptVersions>,
        shared: Arc<HostResources>,
        published: Arc<PublishedState>,
    ) -> Self {
        Self {
            newest_settings,
            settings: Arc::default(),
            trust,
            poll,
            stability: Stability::new(patience),
            keeping: Keeping::new(kept_versions),
            dirs: BTreeMap::new(),
            folders: Arc::default(),
            changes: Arc::default(),
            polled: Arc::default(),
            poller: Some(Poller::default()),
            poll_at: None,
            next_dir: PROJECTS,
            shared,
            published,
            entries: BTreeMap::new(),
            jobs: JoinSet::new(),
            load_slots: Arc::new(Semaphore::new(LOADS)),
            slow_slots: Arc::new(Semaphore::new(SLOW_LOADS)),
            ready: Vec::new(),
            commit_at: None,
            last_progress: Instant::now(),
            running_loads: 0,
            running_scans: 0,
            newest_load: 0,
            reloads: Vec::new(),
            maybe_links: Vec::new(),
            pending_events: Vec::new(),
            offers: Vec::new(),
        }
    }

    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<ManagerRequest>, stop: CancellationToken) {
        let changes = self.changes.clone();
        let mut watching = {
            let (folders, changes, poll_all) = (self.folders.clone(), changes.clone(), self.poll.is_some());
            run_elsewhere(move || FolderWatcher::start(folders, changes, poll_all)).await
        };
        let mut events = self.shared.engine.events.subscribe(EventSelection::NoCalls, None).receiver;
        let mut policy = self.shared.engine.policy_changes();
        let release_every = self.shared.release_after.map_or(IDLE, |after| IDLE.min(after.max(MIN_RELEASE_INTERVAL)));
        let mut release_at = Instant::now() + release_every;
        watching = self.apply_settings(watching).await;
        loop {
            let (due, next) = changes.take_due();
            let mut maybe_links = std::mem::take(&mut self.maybe_links);
            for place in due {
                match place {
                    WatchTarget::Dir(dir) => {
                        let Some(folder) = self.folders.load().get(&dir).cloned() else { continue };
                        watching = run_elsewhere(move || {
                            watching.follow(dir, &folder);
                            watching
                        })
                        .await;
                        self.scan(vec![dir]);
                    }
                    WatchTarget::Entry(dir, path) if self.stability.waits_again(dir, &path) => {}
                    WatchTarget::Entry(dir, path) if self.dirs.get(&dir).is_some_and(|dir| dir.has(&path)) => {
                        maybe_links.push((dir, path.clone()));
                        self.start_load((dir, path), ReloadMode::IfChanged);
                    }
                    WatchTarget::Entry(..) => {}
                }
            }
            if !maybe_links.is_empty() {
                let (watch, followed) = run_elsewhere(move || {
                    maybe_links.retain(|(dir, path)| watching.follow_link(*dir, path));
                    (watching, maybe_links)
                })
                .await;
                watching = watch;
                // It may have changed after it was loaded, and before it was watched.
                followed.into_iter().for_each(|link| self.start_load(link, ReloadMode::IfChanged));
                // Loads that ended meanwhile are not counted yet, which is no sign that nothing happens.
                self.last_progress = Instant::now();
            }
            self.update_polling(watching.polled());
            self.poll_if_due();
            self.look_at_locks_if_due();
            let is_idle = self.running_loads == 0 && self.running_scans == 0;
            if self.commit_at.is_some_and(|at| is_idle || at <= Instant::now()) {
                self.commit();
            }
            self.settle_if_done();
            self.keep_versions();
            if release_at <= Instant::now() {
                release_at = Instant::now() + release_every;
                self.entries
                    .values()
                    .filter_map(|entry| entry.serving.as_ref())
                    .for_each(|serving| serving.states.release_idle(IDLE));
            }
            let wake_at =
                [next, self.commit_at, self.settles_at(), self.poll_at, self.stability.look_at(), Some(release_at)]
                    .into_iter()
                    .flatten()
                    .min();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ManagerRequest::Reload { name, answer }) = inbox.recv() => self.reload(name, answer),
                Ok(()) = self.newest_settings.changed() => watching = self.apply_settings(watching).await,
                Some(job) = self.jobs.join_next() => self.finish_job(job.expect("panics of loads are caught")),
                () = changes.wake.notified() => {}
                Ok(()) = policy.changed() => self.load_refused(),
                event = events.recv() => self.on_event(event),
                () = tokio::time::sleep_until(wake_at.unwrap_or_else(Instant::now).into()), if wake_at.is_some() => {}
            }
        }
        run_elsewhere(move || drop(watching)).await;
        self.shut_down().await;
    }

    /// Applies the newest settings: folders that are no longer named go out of service, new ones are watched and
    /// loaded.
    async fn apply_settings(&mut self, mut watching: FolderWatcher) -> FolderWatcher {
        let next = Arc::new(self.newest_settings.borrow_and_update().clone());
        let before = std::mem::replace(&mut self.settings, next.clone());
        self.shared.tables.store(Arc::new(next.tables.clone()));
        let mut dirs = {
            // Links in their paths are followed.
            let next = next.clone();
            run_elsewhere(move || next.dirs.iter().cloned().map(ResolvedDir::new).collect::<Vec<_>>()).await
        };
        let of_projects = dirs.extract_if(.., |dir| matches!(dir.kind, DirKind::Project { .. })).collect::<Vec<_>>();
        let mut numbered: BTreeMap<usize, ResolvedDir> = dirs.into_iter().enumerate().collect();
        for dir in of_projects {
            let known = self.dirs.iter().find(|(_, known)| **known == dir).map(|(number, _)| *number);
            let number = known.unwrap_or_else(|| {
                self.next_dir += 1;
                self.next_dir
            });
            numbered.insert(number, dir);
        }
        let only_in = |ours: &BTreeMap<usize, ResolvedDir>, others: &BTreeMap<usize, ResolvedDir>| -> Vec<usize> {
            ours.iter().filter(|(number, dir)| others.get(number) != Some(*dir)).map(|(number, _)| *number).collect()
        };
        let (gone, new) = (only_in(&self.dirs, &numbered), only_in(&numbered, &self.dirs));
        let of = |dirs: &BTreeMap<usize, ResolvedDir>, numbers: &[usize]| -> Vec<(usize, ResolvedDir)> {
            numbers.iter().map(|number| (*number, dirs[number].clone())).collect()
        };
        let (left, came) = (of(&self.dirs, &gone), of(&numbered, &new));
        self.close(&gone);
        self.dirs = numbered;
        self.folders.store(Arc::new(self.dirs.clone()));
        // Watching begins before scanning, so that no change is missed between the two.
        watching = run_elsewhere(move || {
            left.iter().for_each(|(number, dir)| watching.forget(*number, dir));
            came.iter().for_each(|(number, dir)| watching.follow(*number, dir));
            watching
        })
        .await;
        if !new.is_empty() {
            self.scan(new);
        }
        let stale: Vec<EntryKey> = self
            .entries
            .iter()
            .filter(|(key, entry)| self.is_stale(key, entry, &before))
            .map(|(key, _)| key.clone())
            .collect();
        stale.into_iter().for_each(|key| self.start_load(key, ReloadMode::Always));
        // Waiting for what was just started begins now, however long ago anything ended.
        self.last_progress = Instant::now();
        watching
    }

    /// Takes the plugins in these folders out of service.
    fn close(&mut self, dirs: &[usize]) {
        let mut revision = Revision::default();
        for (key, entry) in self.entries.extract_if(.., |key, _| dirs.contains(&key.0)).collect::<Vec<_>>() {
            self.retire(entry.serving, &key.1, &mut revision);
            revision.freed.push(entry.name);
        }
        if revision.freed.is_empty() {
            return;
        }
        self.enter(revision);
        self.publish();
        self.emit_events();
    }

    /// Whether a plugin may be different now, because of the settings or its configuration table.
    fn is_stale(&self, key: &EntryKey, entry: &PluginEntry, before: &PluginSettings) -> bool {
        let Some(dir) = self.dirs.get(&key.0) else { return false };
        let scope = dir.scope();
        let table = |of: &PluginSettings| of.tables.get(&scope).and_then(|tables| tables.get(&entry.name)).cloned();
        let switched = |of: &PluginSettings| {
            (of.disabled.contains(&(scope.clone(), entry.name.clone())), of.enabled.contains(&entry.name))
        };
        // Trust may have changed since it was checked, also for a load whose result is not committed yet.
        let is_judged = matches!(dir.kind, DirKind::Project { .. }) && entry.pending_mode.is_some();
        entry.status == Some(PluginStatus::Untrusted)
            || is_judged
            || switched(before) != switched(&self.settings)
            || table(before) != table(&self.settings)
    }

    /// The host stops: takes everything out of service.
    async fn shut_down(mut self) {
        while self.jobs.join_next().await.is_some() {}
        self.keeping.is_running = false;
        self.keep_versions();
        while self.jobs.join_next().await.is_some() {}
        let mut revision = Revision::default();
        for (key, entry) in std::mem::take(&mut self.entries) {
            self.retire(entry.serving, &key.1, &mut revision);
        }
        self.shared.engine.registry.commit(revision.changes);
        self.publish();
        self.emit_events();
        if let Some(kept) = self.shared.registration_cache.clone() {
            run_elsewhere(move || kept.clean()).await;
        }
    }
}
