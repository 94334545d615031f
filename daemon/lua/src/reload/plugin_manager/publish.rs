//! What others see of the plugins, and when all of them were looked at.

use std::sync::Arc;
use std::time::Instant;

use crate::host::DirKind;
use crate::keeper::{Keeper, UnitKey};
use crate::service::Unit;

impl Keeper {
    pub(super) fn show(&self) {
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

    pub(super) fn tell(&mut self) {
        self.shared.engine.offers.commit(std::mem::take(&mut self.offers));
        self.news.drain(..).for_each(|what| self.shared.engine.events.emit(what));
    }

    pub(super) fn settles_at(&self) -> Option<Instant> {
        (self.scanning == 0 && self.shown.settled.borrow().is_none())
            .then(|| self.last_progress + self.shown.settle_patience)
    }

    pub(super) fn settle_if_done(&self) {
        let all_done = self.looking == 0 && self.ready.is_empty();
        if self.settles_at().is_some_and(|at| all_done || at <= Instant::now()) {
            // Whoever arranges holds the other side of this lock, so that what was just asked for is not passed over.
            let newest = self.arranged.borrow();
            if !newest.has_changed() {
                self.shown.settled.send_replace(Some(self.shared.engine.events.next()));
            }
        }
    }
}
