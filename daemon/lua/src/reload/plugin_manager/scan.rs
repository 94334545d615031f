//! Starting loads of entries, by scans, events and polling, and taking their results.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::plugin::kept_versions::VersionChange;
use crate::reload::dirs::ResolvedDir;
use crate::reload::entry::PluginEntry;
use crate::reload::git_lock::IndexLock;
use crate::reload::load_entry::{LoadOutcome, LoadRequest, load_entry};
use crate::reload::options::DirKind;
use crate::reload::plugin_manager::{
    EntryKey, FinishedLoad, ManagerJob, POLL, PendingReload, PluginManager, ReloadMode,
};
use crate::reload::stability::StabilityVerdict;
use crate::reload::watch::changes::WatchTarget;
use crate::reload::watch::poll_reason::{PollReason, PollReasons};
use crate::reload::{Reloaded, UnknownPlugin};
use toold_engine::blocking::run_elsewhere;

/// How long a plugin may take to load before it frees its slot for others.
const PATIENCE: Duration = Duration::from_millis(50);
/// How soon a place is polled again in which something has just changed.
const WHOLE: Duration = Duration::from_millis(50);

impl PluginManager {
    /// Loads every entry of these folders that changed.
    pub(super) fn scan(&mut self, numbers: Vec<usize>) {
        let dirs: Vec<(usize, ResolvedDir)> =
            numbers.iter().filter_map(|number| Some((*number, self.dirs.get(number)?.clone()))).collect();
        self.running_scans += 1;
        self.jobs.spawn(async move {
            let found = run_elsewhere(move || {
                let entries =
                    dirs.iter().flat_map(|(number, dir)| dir.entries().into_iter().map(|path| (*number, path)));
                entries.collect()
            });
            ManagerJob::Scanned(numbers, found.await)
        });
    }

    /// Starts loading an entry.
    pub(super) fn start_load(&mut self, entry: EntryKey, mode: ReloadMode) {
        let Some(dir) = self.dirs.get(&entry.0).filter(|dir| dir.has(&entry.1)) else { return };
        self.newest_load += 1;
        let number = self.newest_load;
        let known = self.entries.entry(entry.clone()).or_insert_with(|| PluginEntry::new(&entry.1));
        known.newest_load = number;
        // It replaces a load that is running.
        let mode = known.pending_mode.map_or(mode, |pending| pending.max(mode));
        known.pending_mode = Some(mode);
        let held = known.stability.held();
        let request = LoadRequest {
            path: entry.1.clone(),
            origin: dir.origin(),
            scope: dir.scope(),
            known: match mode {
                ReloadMode::IfChanged => known.digest.into_iter().chain(held).collect(),
                ReloadMode::Always | ReloadMode::RunScript => Vec::new(),
            },
            stale_locks: self.stability.stale_locks(),
            run: mode == ReloadMode::RunScript,
            kept_versions: self.keeping.versions.clone().filter(|_| known.serving.is_none()),
            may_run: self.may_run(dir),
            trust: matches!(dir.kind, DirKind::Project { .. }).then(|| self.trust.clone()),
            shared: self.shared.clone(),
        };
        let (load_slots, slow_slots) = (self.load_slots.clone(), self.slow_slots.clone());
        self.running_loads += 1;
        self.jobs.spawn(async move {
            let place = load_slots.acquire_owned().await;
            let mut work = tokio::task::spawn_blocking(move || load_entry(&request));
            let is_slow = async {
                tokio::time::sleep(PATIENCE).await;
                slow_slots.acquire_owned().await
            };
            let finished = tokio::select! {
                finished = &mut work => finished,
                // Slow plugins must not keep the others waiting.
                _slow = is_slow => {
                    drop(place);
                    work.await
                }
            };
            let (outcome, kept) =
                finished.unwrap_or_else(|error| (LoadOutcome::broken(&entry.1, &error.to_string()), None));
            ManagerJob::Loaded(Box::new(FinishedLoad { entry, number, outcome, kept }))
        });
    }

    /// Loads the plugins again that were refused something while they loaded which is allowed by now.
    pub(super) fn load_refused(&mut self) {
        let allowed = self.shared.load_refusals.allowed_by_now();
        let is_meant = |(number, _): &EntryKey, entry: &PluginEntry| {
            let scope = self.dirs.get(number).map(ResolvedDir::scope);
            allowed.iter().any(|plugin| plugin.name == entry.name && Some(&plugin.scope) == scope.as_ref())
        };
        let keys = self.entries.iter().filter(|(key, entry)| is_meant(key, entry)).map(|(key, _)| key.clone());
        keys.collect::<Vec<_>>().into_iter().for_each(|key| self.start_load(key, ReloadMode::RunScript));
    }

    fn may_run(&self, dir: &ResolvedDir) -> Arc<dyn Fn(&str) -> bool + Send + Sync> {
        let (wanted, scope) = (self.settings.clone(), dir.scope());
        let is_disabled = move |name: &str| wanted.disabled.contains(&(scope.clone(), name.to_owned()));
        match dir.kind {
            DirKind::User | DirKind::Configured | DirKind::Project { .. } => Arc::new(move |name| !is_disabled(name)),
            DirKind::Bundled => {
                let wanted = self.settings.clone();
                Arc::new(move |name| wanted.enabled.contains(name) && !is_disabled(name))
            }
        }
    }

    pub(super) fn finish_job(&mut self, job: ManagerJob) {
        match job {
            ManagerJob::Scanned(dirs, found) => {
                self.running_scans -= 1;
                for number in &dirs {
                    let entries = found.iter().filter(|(dir, _)| dir == number).map(|(_, path)| path.clone());
                    if let Some(dir) = self.dirs.get(number).filter(|dir| !dir.single) {
                        self.keeping.note(VersionChange::Entries(dir.path.clone(), entries.collect()));
                    }
                }
                let known: Vec<EntryKey> = self.entries.keys().filter(|(dir, _)| dirs.contains(dir)).cloned().collect();
                let found: HashSet<EntryKey> = found.into_iter().collect();
                for entry in known.into_iter().filter(|entry| !found.contains(entry)).collect::<Vec<_>>() {
                    self.start_load(entry, ReloadMode::IfChanged);
                }
                let mut found: Vec<EntryKey> = found.into_iter().collect();
                found.sort();
                self.maybe_links.extend(found.iter().cloned());
                found.into_iter().for_each(|entry| self.start_load(entry, ReloadMode::IfChanged));
            }
            ManagerJob::Polled(poller, polled) => {
                self.poller = Some(poller);
                let every = self.poll.unwrap_or(POLL);
                let after = if polled.moving { every.min(WHOLE) } else { every };
                self.poll_at = (!self.polled.is_empty()).then(|| Instant::now() + after);
                for (dir, path) in polled.changed {
                    self.changes.due_now(WatchTarget::Entry(dir, path));
                }
            }
            ManagerJob::Kept => self.keeping.is_running = false,
            ManagerJob::Looked(held) => {
                let ready = self.stability.looked(&held);
                if !ready.is_empty() {
                    self.scan(ready);
                }
            }
            ManagerJob::Loaded(done) => {
                self.running_loads -= 1;
                self.last_progress = Instant::now();
                // A newer load is running: what this one read may be half of a save.
                if self.entries.get(&done.entry).is_some_and(|entry| entry.newest_load == done.number) {
                    self.take_loaded(*done);
                }
            }
        }
    }

    /// Takes the newest result of an entry: its version serves with the next commit, unless it may not be whole.
    fn take_loaded(&mut self, done: FinishedLoad) {
        let FinishedLoad { entry: key, number, outcome, kept } = done;
        let Some(entry) = self.entries.get_mut(&key) else { return };
        match self.stability.judge(&key, entry, outcome) {
            StabilityVerdict::Stable(outcome) => {
                self.ready.push(FinishedLoad { entry: key, number, outcome: *outcome, kept });
                self.commit_at.get_or_insert_with(|| self.stability.commit_at());
            }
            StabilityVerdict::Again(at) => self.changes.due_at(WatchTarget::Entry(key.0, key.1), at),
            StabilityVerdict::GitIsReplacing => {}
        }
    }

    /// Looks at the locks of git that are waited for, if it is time to.
    pub(super) fn look_at_locks_if_due(&mut self) {
        let Some(locks) = self.stability.locks_to_look_at() else { return };
        self.jobs
            .spawn(run_elsewhere(move || ManagerJob::Looked(locks.into_iter().filter(IndexLock::is_held).collect())));
    }

    /// Starts polling where the system does not report all changes.
    pub(super) fn update_polling(&mut self, polled: &Arc<PollReasons>) {
        if Arc::ptr_eq(polled, &self.polled) {
            return;
        }
        let before = std::mem::replace(&mut self.polled, polled.clone());
        let every = self.poll.unwrap_or(POLL);
        let mut poll_notices = Vec::new();
        for (place, why) in polled.iter().filter(|(_, why)| **why != PollReason::Asked) {
            let path = match place {
                WatchTarget::Dir(dir) => self.dirs.get(dir).map(|dir| dir.path.display()),
                WatchTarget::Entry(_, path) => Some(path.display()),
            };
            let Some(path) = path else { continue };
            let words = format!("plugins in {path} are checked for changes every {every:?}: {why}");
            if before.get(place) != Some(why) {
                tracing::warn!("{words}");
            }
            poll_notices.push(words);
        }
        self.published.poll_notices.store(Arc::new(poll_notices));
        if !polled.is_empty() && self.poller.is_some() {
            self.poll_at = Some(Instant::now());
        }
    }

    /// Polls for changes, if it is time to.
    pub(super) fn poll_if_due(&mut self) {
        if self.poll_at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        let Some(mut poller) = self.poller.take() else { return };
        self.poll_at = None;
        let (mut dirs, mut entries) = (Vec::new(), Vec::new());
        for place in self.polled.keys() {
            match place {
                WatchTarget::Dir(dir) => dirs.extend(self.dirs.get(dir).map(|of| (*dir, of.clone()))),
                WatchTarget::Entry(dir, path) => entries.push((*dir, path.clone())),
            }
        }
        self.jobs.spawn(run_elsewhere(move || {
            let polled = poller.poll(&dirs, &entries, SystemTime::now());
            ManagerJob::Polled(poller, polled)
        }));
    }

    pub(super) fn reload(&mut self, name: Option<String>, answer: oneshot::Sender<Reloaded>) {
        let chosen = |entry: &PluginEntry| name.as_ref().is_none_or(|name| entry.name == *name);
        let entries: HashSet<EntryKey> =
            self.entries.iter().filter(|(_, entry)| chosen(entry)).map(|(key, _)| key.clone()).collect();
        match name {
            Some(name) if entries.is_empty() => {
                // Fails when nobody waits any more, here and below.
                let _ = answer.send(Err(UnknownPlugin(name)));
                return;
            }
            Some(_) => {}
            None => self.scan(self.dirs.keys().copied().collect()),
        }
        for entry in &entries {
            self.start_load(entry.clone(), ReloadMode::RunScript);
        }
        if entries.is_empty() {
            let _ = answer.send(Ok(Vec::new()));
            return;
        }
        self.reloads.push(PendingReload { entries, answer });
    }

    pub(super) fn answer_reloads(&mut self, finished: &[EntryKey]) {
        for reloading in &mut self.reloads {
            reloading.entries.retain(|entry| !finished.contains(entry));
        }
        let described = self.published.described.load_full();
        for done in self.reloads.extract_if(.., |reloading| reloading.entries.is_empty()) {
            let _ = done.answer.send(Ok(described.to_vec()));
        }
    }
}
