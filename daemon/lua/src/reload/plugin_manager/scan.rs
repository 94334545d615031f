//! Looking at entries: which, when, and what comes of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::dirs::Dir;
use crate::host::{DirKind, Reloaded, UnknownPlugin};
use crate::keeper::{Done, How, Job, Keeper, POLL, Reloading, UnitKey, blocking};
use crate::service::Unit;
use crate::unit::{Look, Order, look};
use crate::watch::Place;
use crate::watch::silence::{Silence, Silent};

/// How long a plugin may take to load before it gives its place to others.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long finished loads wait for others of the same scan, so that they are one revision.
const BATCH: Duration = Duration::from_millis(20);
/// How soon a place is looked at again that something was just changed in.
const WHOLE: Duration = Duration::from_millis(50);

impl Keeper {
    /// Looks at every entry of these folders.
    pub(super) fn scan(&mut self, numbers: Vec<usize>) {
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
    pub(super) fn look_at(&mut self, unit: UnitKey, how: How) {
        let Some(dir) = self.dirs.get(&unit.0).filter(|dir| dir.has(&unit.1)) else { return };
        self.looks += 1;
        let number = self.looks;
        let known = self.units.entry(unit.clone()).or_insert_with(|| Unit::new(&unit.1));
        known.looks = number;
        // It takes the place of one that is under way.
        let how = known.wanted.map_or(how, |wanted| wanted.max(how));
        known.wanted = Some(how);
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

    pub(super) fn take(&mut self, job: Job) {
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
            Job::Polled(poller, polled) => {
                self.poller = Some(poller);
                let every = self.poll.unwrap_or(POLL);
                let after = if polled.moving { every.min(WHOLE) } else { every };
                self.poll_at = (!self.silent.is_empty()).then(|| Instant::now() + after);
                for (dir, path) in polled.changed {
                    self.changes.look_now(Place::Entry(dir, path));
                }
            }
            Job::Looked(done) => {
                self.looking -= 1;
                self.last_progress = Instant::now();
                // A newer look is under way: what this one found may be half of a save.
                if let Some(unit) = self.units.get_mut(&done.unit).filter(|unit| unit.looks == done.number) {
                    unit.wanted = None;
                    self.ready.push(*done);
                    self.commit_at.get_or_insert_with(|| Instant::now() + BATCH);
                }
            }
        }
    }

    /// Takes to looking where the system does not tell what changes.
    pub(super) fn heed_silence(&mut self, silent: &Arc<Silent>) {
        if Arc::ptr_eq(silent, &self.silent) {
            return;
        }
        let before = std::mem::replace(&mut self.silent, silent.clone());
        let every = self.poll.unwrap_or(POLL);
        let mut unheard = Vec::new();
        for (place, why) in silent.iter().filter(|(_, why)| **why != Silence::Asked) {
            let path = match place {
                Place::Dir(dir) => self.dirs.get(dir).map(|dir| dir.path.display()),
                Place::Entry(_, path) => Some(path.display()),
            };
            let Some(path) = path else { continue };
            let words = format!("changes of plugins in {path} are looked for every {every:?}: {why}");
            if before.get(place) != Some(why) {
                tracing::warn!("{words}");
            }
            unheard.push(words);
        }
        self.shown.unheard.store(Arc::new(unheard));
        if !silent.is_empty() && self.poller.is_some() {
            self.poll_at = Some(Instant::now());
        }
    }

    /// Begins to look for changes where the system does not tell of them, when it is time to.
    pub(super) fn poll_if_due(&mut self) {
        if self.poll_at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        let Some(mut poller) = self.poller.take() else { return };
        self.poll_at = None;
        let (mut dirs, mut entries) = (Vec::new(), Vec::new());
        for place in self.silent.keys() {
            match place {
                Place::Dir(dir) => dirs.extend(self.dirs.get(dir).map(|of| (*dir, of.clone()))),
                Place::Entry(dir, path) => entries.push((*dir, path.clone())),
            }
        }
        self.jobs.spawn(blocking(move || {
            let polled = poller.poll(&dirs, &entries, SystemTime::now());
            Job::Polled(poller, polled)
        }));
    }

    pub(super) fn reload(&mut self, name: Option<String>, answer: oneshot::Sender<Reloaded>) {
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

    pub(super) fn answer_reloads(&mut self, looked: &[UnitKey]) {
        for reloading in &mut self.reloads {
            reloading.units.retain(|unit| !looked.contains(unit));
        }
        let described = self.shown.described.load_full();
        for done in self.reloads.extract_if(.., |reloading| reloading.units.is_empty()) {
            let _ = done.answer.send(Ok(described.to_vec()));
        }
    }
}
