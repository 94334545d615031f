//! The task that owns a host's plugins.
//!
//! Looking at files and running scripts is done on blocking threads, each plugin by itself, so that a
//! bad one delays no other. What they give is committed here, several at a time when they come
//! together.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toold_engine::events::Emitted;
use toold_engine::offers::Offer;
use toold_engine::registry::{Change, Scope, SourceKey};
use toold_engine::tool::Origin;
use toold_proto::event::What;
use toold_proto::plugin::{Plugin as Description, PluginError, PluginStatus};

use crate::command::Command;
use crate::content::Trust;
use crate::dirs::Dir;
use crate::host::{Arrangement, DirKind, Order as HostOrder, Reloaded, UnknownPlugin};
use crate::plugin::{Shared, Subagent};
use crate::service::{Put, Serving, Unit};
use crate::unit::{Look, Order, Withheld, look};
use crate::watch::{Changes, Folders, Place, Watch};

/// How many plugins are loaded at once. One that takes longer than [`PATIENCE`] gives its place away.
const LOADS: usize = 4;
const PATIENCE: Duration = Duration::from_millis(50);
/// How long finished loads wait for others of the same scan, so that they are one revision.
const BATCH: Duration = Duration::from_millis(20);
/// Machines that serve parallelizable tools go when they were idle for so long.
const REST: Duration = Duration::from_secs(300);

/// What others see of the plugins.
pub(crate) struct Shown {
    pub(crate) described: Arc<ArcSwap<Vec<Description>>>,
    pub(crate) subagents: Arc<ArcSwap<Vec<Subagent>>>,
    pub(crate) commands: Arc<ArcSwap<Vec<Command>>>,
    pub(crate) settled: Arc<watch::Sender<bool>>,
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
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    IfChanged,
    /// Puts the plugin into service again.
    Again,
    /// Runs its script, too, even when it is known what that registers.
    Anew,
}

enum Job {
    Looked(Box<Done>),
    Scanned(Vec<usize>, Vec<UnitKey>),
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
    news: Vec<What>,
    /// What sources offer from now on beside tools.
    offers: Vec<(SourceKey, Origin, Offer)>,
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
        let changes = Arc::<Changes>::default();
        let mut watching = {
            let (folders, changes, poll) = (self.folders.clone(), changes.clone(), self.poll);
            blocking(move || Watch::start(folders, changes, poll)).await
        };
        let mut events = self.shared.engine.events.subscribe(None).receiver;
        let mut rests_at = Instant::now() + REST;
        watching = self.arrange(watching).await;
        loop {
            let (due, next) = changes.take_due();
            let mut maybe_links = std::mem::take(&mut self.seen);
            for place in due {
                match place {
                    Place::Dir(dir) => {
                        let Some(folder) = self.folders.load().get(&dir).cloned() else { continue };
                        watching = blocking(move || {
                            watching.follow(&folder);
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
            if self.commit_at.is_some_and(|at| self.looking == 0 || at <= Instant::now()) {
                self.commit();
            }
            self.settle_if_done();
            if rests_at <= Instant::now() {
                rests_at = Instant::now() + REST;
                self.units
                    .values()
                    .filter_map(|unit| unit.serving.as_ref())
                    .for_each(|serving| serving.version.rest(REST));
            }
            let wake_at = [next, self.commit_at, self.settles_at(), Some(rests_at)].into_iter().flatten().min();
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
        let left: Vec<PathBuf> = gone.iter().map(|number| self.dirs[number].folder().to_owned()).collect();
        self.close(&gone);
        self.dirs = numbered;
        let folders: BTreeMap<usize, PathBuf> =
            self.dirs.iter().map(|(number, dir)| (*number, dir.folder().to_owned())).collect();
        let came: Vec<PathBuf> = new.iter().map(|number| folders[number].clone()).collect();
        self.folders.store(Arc::new(folders.clone()));
        // Listening begins before looking, so that no change falls between the two.
        watching = blocking(move || {
            let unused = left.iter().filter(|folder| !folders.values().any(|used| used == *folder));
            unused.for_each(|folder| watching.forget(folder));
            came.iter().for_each(|folder| watching.follow(folder));
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
        unit.status == Some(PluginStatus::Untrusted)
            || switched(before) != switched(&self.arrangement)
            || table(before) != table(&self.arrangement)
    }

    /// Looks at every entry of these folders.
    fn scan(&mut self, numbers: Vec<usize>) {
        let dirs: Vec<(usize, Dir)> =
            numbers.iter().filter_map(|number| Some((*number, self.dirs.get(number)?.clone()))).collect();
        self.scanning += 1;
        self.jobs.spawn(async move {
            let found = blocking(move || {
                let entries =
                    dirs.iter().flat_map(|(number, dir)| dir.entries().into_iter().map(|path| (*number, path)));
                entries.collect()
            });
            Job::Scanned(numbers, found.await)
        });
    }

    /// Begins a look at an entry.
    fn look_at(&mut self, unit: UnitKey, how: How) {
        let Some(dir) = self.dirs.get(&unit.0).filter(|dir| dir.has(&unit.1)) else { return };
        self.looks += 1;
        let number = self.looks;
        let known = self.units.entry(unit.clone()).or_insert_with(|| Unit::new(&unit.1));
        known.looks = number;
        let order = Order {
            path: unit.1.clone(),
            origin: dir.origin(),
            scope: dir.scope(),
            known: known.digest.filter(|_| how == How::IfChanged),
            run: how == How::Anew,
            may_run: self.may_run(dir),
            trust: matches!(dir.kind, DirKind::Project { .. }).then(|| self.trust.clone()),
            shared: self.shared.clone(),
        };
        let places = self.places.clone();
        self.looking += 1;
        self.jobs.spawn(async move {
            let place = places.acquire_owned().await;
            let mut work = tokio::task::spawn_blocking(move || look(order));
            let looked = tokio::select! {
                looked = &mut work => looked,
                () = tokio::time::sleep(PATIENCE) => {
                    // Slow ones must not keep the others waiting.
                    drop(place);
                    work.await
                }
            };
            let look = looked.unwrap_or_else(|error| Look::broken(&unit.1, &error.to_string()));
            Job::Looked(Box::new(Done { unit, number, look }))
        });
    }

    fn may_run(&self, dir: &Dir) -> Arc<dyn Fn(&str) -> bool + Send + Sync> {
        let (wanted, scope) = (self.arrangement.clone(), dir.scope());
        let is_disabled = move |name: &str| wanted.disabled.contains(&(scope.clone(), name.to_owned()));
        match dir.kind {
            DirKind::User | DirKind::Configured | DirKind::Project { .. } => Arc::new(move |name| !is_disabled(name)),
            DirKind::Bundled => {
                let wanted = self.arrangement.clone();
                Arc::new(move |name| wanted.enabled.contains(name) && !is_disabled(name))
            }
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Scanned(dirs, found) => {
                self.scanning -= 1;
                let known: Vec<UnitKey> = self.units.keys().filter(|(dir, _)| dirs.contains(dir)).cloned().collect();
                let found: HashSet<UnitKey> = found.into_iter().collect();
                for unit in known.into_iter().filter(|unit| !found.contains(unit)).collect::<Vec<_>>() {
                    self.look_at(unit, How::IfChanged);
                }
                let mut found: Vec<UnitKey> = found.into_iter().collect();
                found.sort();
                self.seen.extend(found.iter().cloned());
                found.into_iter().for_each(|unit| self.look_at(unit, How::IfChanged));
            }
            Job::Looked(done) => {
                self.looking -= 1;
                self.last_progress = Instant::now();
                // A newer look is under way: what this one found may be half of a save.
                if self.units.get(&done.unit).is_some_and(|unit| unit.looks == done.number) {
                    self.ready.push(*done);
                    self.commit_at.get_or_insert_with(|| Instant::now() + BATCH);
                }
            }
        }
    }

    /// Puts all that is ready into service as one revision.
    fn commit(&mut self) {
        self.commit_at = None;
        let mut ready = std::mem::take(&mut self.ready);
        // Its file changed again since: what was read of it may be half of a save.
        ready.retain(|done| self.units.get(&done.unit).is_some_and(|unit| unit.looks == done.number));
        // Where two plugins want one tool, the earlier folder has it, then the earlier name.
        ready.sort_by(|a, b| a.unit.cmp(&b.unit));
        let looked: Vec<UnitKey> = ready.iter().map(|done| done.unit.clone()).collect();
        let mut plan = Plan::default();
        for done in ready {
            self.plan(done, &mut plan);
        }
        let answers = self.shared.engine.registry.commit(plan.changes);
        for (place, unit, put) in plan.puts {
            match &answers[place] {
                Ok(()) => self.serve(&unit, put),
                Err(taken) => {
                    let error = plain_error(taken.to_string());
                    self.fail(&unit, error, true);
                }
            }
        }
        for name in plan.freed {
            self.look_at_shadowed(&name);
        }
        self.show();
        self.tell();
        self.answer_reloads(&looked);
    }

    fn plan(&mut self, done: Done, plan: &mut Plan) {
        let Done { unit: key, look, .. } = done;
        match look {
            Look::Unchanged => {}
            Look::Gone => {
                if let Some(unit) = self.units.remove(&key) {
                    self.retire(unit.serving, &key.1, plan);
                    plan.freed.push(unit.name);
                }
            }
            Look::Withheld { digest, manifest, why } => {
                let Some(unit) = self.units.get_mut(&key) else { return };
                if unit.serving.is_none() {
                    unit.name = manifest.name.clone();
                }
                unit.learn(Some(digest), Some(manifest));
                unit.error = None;
                match why {
                    Withheld::Disabled => {
                        unit.status = Some(PluginStatus::Disabled);
                        let serving = unit.serving.take();
                        plan.freed.push(unit.name.clone());
                        self.retire(serving, &key.1, plan);
                    }
                    // The version that was trusted last serves on.
                    Withheld::Untrusted => {
                        unit.status = Some(PluginStatus::Untrusted);
                        let (plugin, path) = (unit.name.clone(), key.1.display().to_string());
                        self.news.push(What::PluginUntrusted { plugin, path });
                    }
                }
            }
            Look::Failed { digest, name, manifest, error, name_taken } => {
                let Some(unit) = self.units.get_mut(&key) else { return };
                unit.learn(digest, manifest);
                if unit.serving.is_none() {
                    unit.name = name;
                }
                self.fail(&key, error, name_taken);
            }
            Look::Loaded { digest, plugin, loaded, registered } => {
                let Some(unit) = self.units.get_mut(&key) else { return };
                let name_before = std::mem::replace(&mut unit.name, plugin.name().to_owned());
                unit.learn(Some(digest), Some(plugin.manifest.clone()));
                if name_before != plugin.name() {
                    plan.freed.push(name_before);
                }
                if self.is_shadowed(&key) {
                    return self.shadow(&key, plan);
                }
                let put = Put::new(plugin, loaded.map(|loaded| *loaded), *registered);
                let unit = self.units.get(&key);
                if let Some(old) = unit.and_then(|unit| unit.serving.as_ref()).filter(|old| old.key != put.key) {
                    plan.changes.push(Change::Remove { key: old.key.clone() });
                }
                let later: Vec<UnitKey> = self.rivals(&key).filter(|rival| **rival > key).cloned().collect();
                later.iter().for_each(|rival| self.shadow(rival, plan));
                let (key_of, origin, tools) = (put.key.clone(), put.version.plugin.origin, put.tools.clone());
                plan.puts.push((plan.changes.len(), key, put));
                plan.changes.push(Change::Put { key: key_of, origin, tools });
            }
        }
    }

    fn serve(&mut self, key: &UnitKey, put: Put) {
        let Some(unit) = self.units.get_mut(key) else { return };
        let plugin = &put.version.plugin;
        let tools: Vec<String> = put.tools.iter().map(|tool| tool.spec().name.to_string()).collect();
        self.shared.engine.hooks.replace(&put.key, put.hooks);
        self.offers.push((put.key.clone(), plugin.origin, put.offer));
        tracing::info!(plugin = plugin.name(), path = %plugin.path.display(), tools = tools.len(), "plugin loaded");
        self.news.push(What::PluginLoaded {
            plugin: plugin.name().to_owned(),
            path: plugin.path.display().to_string(),
            tools: tools.clone(),
        });
        (unit.status, unit.error, unit.name_taken) = (Some(PluginStatus::Loaded), None, false);
        unit.serving = Some(Serving {
            key: put.key,
            tools,
            subagents: put.subagents,
            commands: put.commands,
            loaded_at: SystemTime::now(),
            version: put.version,
        });
    }

    /// The version in service stays there.
    fn fail(&mut self, key: &UnitKey, error: PluginError, name_taken: bool) {
        let Some(unit) = self.units.get_mut(key) else { return };
        tracing::warn!(
            plugin = unit.name, path = %key.1.display(), file = error.file, line = error.line,
            source_line = error.source_line, "plugin failed to load: {}", error.message
        );
        self.news.push(What::PluginFailed {
            plugin: unit.name.clone(),
            path: key.1.display().to_string(),
            error: error.clone(),
        });
        (unit.status, unit.error, unit.name_taken) = (Some(PluginStatus::Failed), Some(error), name_taken);
    }

    /// Takes what served out of service.
    fn retire(&mut self, serving: Option<Serving>, path: &Path, plan: &mut Plan) {
        let Some(serving) = serving else { return };
        self.shared.engine.hooks.replace(&serving.key, Vec::new());
        self.offers.push((serving.key.clone(), Origin::UserPlugin, Offer::default()));
        tracing::info!(plugin = serving.key.name, path = %path.display(), "plugin unloaded");
        self.news.push(What::PluginUnloaded { plugin: serving.key.name.clone(), path: path.display().to_string() });
        plan.changes.push(Change::Remove { key: serving.key });
    }

    fn shadow(&mut self, key: &UnitKey, plan: &mut Plan) {
        let Some(unit) = self.units.get_mut(key) else { return };
        (unit.status, unit.error) = (Some(PluginStatus::Shadowed), None);
        let serving = unit.serving.take();
        self.retire(serving, &key.1, plan);
    }

    fn is_shadowed(&self, key: &UnitKey) -> bool {
        self.rivals(key).any(|rival| rival < key)
    }

    /// Other entries that some session would see under the same name, and that may run.
    fn rivals<'a>(&'a self, key: &'a UnitKey) -> impl Iterator<Item = &'a UnitKey> {
        let name = self.units.get(key).map(|unit| unit.name.as_str());
        let scope_of = |key: &UnitKey| self.dirs.get(&key.0).map_or(Scope::Global, Dir::scope);
        let scope = scope_of(key);
        self.units.iter().filter_map(move |(other, unit)| {
            let others = scope_of(other);
            let overlaps = others == Scope::Global || scope == Scope::Global || others == scope;
            let withheld = matches!(unit.status, Some(PluginStatus::Disabled | PluginStatus::Untrusted));
            let runs = unit.serving.is_some() || !withheld;
            (other != key && Some(unit.name.as_str()) == name && overlaps && runs).then_some(other)
        })
    }

    /// A name is free: whoever was kept from it gets its turn.
    fn look_at_shadowed(&mut self, name: &str) {
        let waiting = |unit: &Unit| unit.status == Some(PluginStatus::Shadowed) && unit.name == name;
        let keys: Vec<UnitKey> =
            self.units.iter().filter(|(_, unit)| waiting(unit)).map(|(key, _)| key.clone()).collect();
        keys.into_iter().for_each(|key| self.look_at(key, How::Again));
    }

    /// Plugins that failed because of a tool's name are tried again when names are free.
    fn heed(&mut self, event: Result<Arc<Emitted>, broadcast::error::RecvError>) {
        let freed = match event {
            Ok(emitted) => matches!(&emitted.what, What::ToolsChanged { removed, .. } if !removed.is_empty()),
            Err(_) => true,
        };
        if freed {
            let keys: Vec<UnitKey> =
                self.units.iter().filter(|(_, unit)| unit.name_taken).map(|(key, _)| key.clone()).collect();
            keys.into_iter().for_each(|key| self.look_at(key, How::Again));
        }
    }

    fn reload(&mut self, name: Option<String>, answer: oneshot::Sender<Reloaded>) {
        let chosen = |unit: &Unit| name.as_ref().is_none_or(|name| unit.name == *name);
        let units: HashSet<UnitKey> =
            self.units.iter().filter(|(_, unit)| chosen(unit)).map(|(key, _)| key.clone()).collect();
        match name {
            Some(name) if units.is_empty() => {
                // Fails when nobody waits any more, here and below.
                let _ = answer.send(Err(UnknownPlugin(name)));
                return;
            }
            Some(_) => {}
            None => self.scan(self.dirs.keys().copied().collect()),
        }
        for unit in &units {
            self.look_at(unit.clone(), How::Anew);
        }
        if units.is_empty() {
            let _ = answer.send(Ok(Vec::new()));
            return;
        }
        self.reloads.push(Reloading { units, answer });
    }

    fn answer_reloads(&mut self, looked: &[UnitKey]) {
        for reloading in &mut self.reloads {
            reloading.units.retain(|unit| !looked.contains(unit));
        }
        let described = self.shown.described.load_full();
        for done in self.reloads.extract_if(.., |reloading| reloading.units.is_empty()) {
            let _ = done.answer.send(Ok(described.to_vec()));
        }
    }

    fn show(&self) {
        let mut units: Vec<(&UnitKey, &Unit)> = self.units.iter().collect();
        units.sort_by(|(a, x), (b, y)| (a.0, &x.name, &a.1).cmp(&(b.0, &y.name, &b.1)));
        let described = units.iter().filter_map(|(key, unit)| {
            let (project, bundled) = match self.dirs.get(&key.0).map(|dir| &dir.kind) {
                Some(DirKind::Project { project }) => (Some(project.as_path()), false),
                Some(DirKind::Bundled) => (None, true),
                Some(DirKind::User | DirKind::Configured) | None => (None, false),
            };
            unit.describe(&key.1, project, bundled)
        });
        let described = described.collect();
        self.shown.described.store(Arc::new(described));
        let serving = || units.iter().filter_map(|(_, unit)| unit.serving.as_ref());
        self.shown.subagents.store(Arc::new(serving().flat_map(|serving| serving.subagents.clone()).collect()));
        self.shown.commands.store(Arc::new(serving().flat_map(|serving| serving.commands.clone()).collect()));
    }

    fn tell(&mut self) {
        self.shared.engine.offers.commit(std::mem::take(&mut self.offers));
        self.news.drain(..).for_each(|what| self.shared.engine.events.emit(what));
    }

    fn settles_at(&self) -> Option<Instant> {
        (self.scanning == 0 && !*self.shown.settled.borrow()).then(|| self.last_progress + self.shown.settle_patience)
    }

    fn settle_if_done(&self) {
        let all_done = self.looking == 0 && self.ready.is_empty();
        if self.settles_at().is_some_and(|at| all_done || at <= Instant::now()) {
            // Whoever arranges holds the other side of this lock, so that what was just asked for is not passed over.
            let newest = self.arranged.borrow();
            if !newest.has_changed() {
                self.shown.settled.send_replace(true);
            }
        }
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

/// The changes of one revision.
#[derive(Default)]
struct Plan {
    changes: Vec<Change>,
    /// Which change puts which plugin into service.
    puts: Vec<(usize, UnitKey, Put)>,
    /// Names of plugins that somebody else may have now.
    freed: Vec<String>,
}

fn plain_error(message: String) -> PluginError {
    PluginError { message, file: None, line: None, source_line: None, traceback: None }
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
