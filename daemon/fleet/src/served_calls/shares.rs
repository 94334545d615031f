//! Whose call is next when more machines call than this daemon has places for.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::names::FleetName;

/// A machine whose call was refused tries again before this time is over, or not at all.
const TRIES_AGAIN: Duration = Duration::from_millis(2_500);

/// The machines that have calls here, and those that have been refused.
#[derive(Default)]
pub(crate) struct CallerShares {
    callers: BTreeMap<FleetName, CallerShare>,
}

#[derive(Default)]
struct CallerShare {
    running: usize,
    waiting: Option<Waiting>,
}

/// Since the first of the refused attempts, and the last one.
#[derive(Clone, Copy)]
struct Waiting {
    since: Instant,
    tried: Instant,
}

impl CallerShares {
    /// Whether a call of this machine may have one of the `free` places; counts it as running then. The places go to the machine
    /// with the fewest running calls first, and of those to the one that has waited longest.
    pub(crate) fn enter(&mut self, from: &FleetName, free: usize, now: Instant) -> bool {
        self.callers.retain(|_, caller| {
            caller.waiting = caller.waiting.filter(|waiting| now.duration_since(waiting.tried) <= TRIES_AGAIN);
            caller.running > 0 || caller.waiting.is_some()
        });
        let own = self.callers.entry(from.clone()).or_default();
        let since = own.waiting.map_or(now, |waiting| waiting.since);
        let own = (own.running, since);
        let others = self.callers.iter().filter(|(name, _)| *name != from);
        let mut waiting = others.filter_map(|(_, caller)| Some((caller.running, caller.waiting?.since)));
        let enters = waiting.by_ref().filter(|other| *other < own).count() < free;
        let caller = self.callers.entry(from.clone()).or_default();
        caller.running += usize::from(enters);
        caller.waiting = (!enters).then_some(Waiting { since, tried: now });
        enters
    }

    /// A call runs again.
    pub(crate) fn resume(&mut self, from: &FleetName) {
        self.callers.entry(from.clone()).or_default().running += 1;
    }

    /// A call that ran does so no more.
    pub(crate) fn leave(&mut self, from: &FleetName) {
        if let Some(caller) = self.callers.get_mut(from) {
            caller.running = caller.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 4;

    struct Scene {
        shares: CallerShares,
        running: usize,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            Self { shares: CallerShares::default(), running: 0, now: Instant::now() }
        }

        /// Calls come one after another; which of them enter.
        fn try_all(&mut self, callers: &str) -> String {
            let enters = |name: &char| {
                self.now += Duration::from_millis(1);
                let enters = self.shares.enter(&named(*name), MOST - self.running, self.now);
                self.running += usize::from(enters);
                enters
            };
            callers.chars().filter(enters).collect()
        }

        fn leave(&mut self, name: char) {
            self.shares.leave(&named(name));
            self.running -= 1;
        }
    }

    fn named(name: char) -> FleetName {
        FleetName::parse(&name.to_string()).unwrap()
    }

    #[test]
    fn a_machine_alone_has_all_places_and_shares_them_with_those_that_come() {
        let mut scene = Scene::new();
        assert_eq!(scene.try_all("aaaaaab"), "aaaa");
        scene.leave('a');
        assert_eq!(scene.try_all("aaabb"), "b", "the one without a call is first");
        scene.leave('a');
        assert_eq!(scene.try_all("aab"), "b", "it has fewer");
        scene.leave('a');
        assert_eq!(scene.try_all("bba"), "a", "now the other one has");
        scene.leave('b');
        assert_eq!(scene.try_all("acb"), "c");
    }

    #[test]
    fn of_two_that_wait_the_first_is_first_and_one_that_has_given_up_is_not_waited_for() {
        let mut scene = Scene::new();
        assert_eq!(scene.try_all("aaaabc"), "aaaa");
        scene.leave('a');
        assert_eq!(scene.try_all("cacab"), "b");
        scene.leave('a');
        scene.now += TRIES_AGAIN;
        assert_eq!(scene.try_all("a"), "a", "nobody has tried for so long");
    }
}
