//! The number of calls, and how they ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use toold_proto::daemon::CallCounts;
use toold_proto::event::Outcome;

/// The stage that a call is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// Its tool runs, whatever the tool waits for.
    Running,
    /// Waits for its session's lane.
    Lane,
    /// Waits for its turn in its plugin, or for an identical call that is already running.
    Turn,
    /// Waits for a person: for permission, or for an answer.
    Person,
}

#[derive(Default)]
pub struct Counts {
    started: AtomicU64,
    outcomes: [AtomicU64; Outcome::ALL.len()],
    at: [AtomicU64; 4],
}

/// Counts a call in a stage until it is dropped.
pub struct StageGuard<'c>(&'c AtomicU64);

impl Drop for StageGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counts {
    pub fn start(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub fn finish(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call in this stage until the guard is dropped.
    pub fn enter(&self, at: CallStage) -> StageGuard<'_> {
        let count = &self.at[at as usize];
        count.fetch_add(1, Ordering::Relaxed);
        StageGuard(count)
    }

    /// How many calls are in this stage. A call that waits within its tool is counted in both stages.
    pub fn now(&self, at: CallStage) -> u64 {
        self.at[at as usize].load(Ordering::Relaxed)
    }

    pub fn read(&self) -> CallCounts {
        // Finished first: in the other order, a call that ends meanwhile would count as minus one
        // in flight.
        let counted: Vec<u64> = self.outcomes.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let finished = counted.iter().sum();
        let started = self.started.load(Ordering::Relaxed);
        let outcomes: BTreeMap<String, u64> = Outcome::ALL
            .iter()
            .zip(counted)
            .filter(|(_, count)| *count > 0)
            .map(|(outcome, count)| (outcome.as_str().to_owned(), count))
            .collect();
        CallCounts { started, finished, in_flight: started.saturating_sub(finished), outcomes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_by_name() {
        for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, index);
        }
        let counts = Counts::default();
        counts.start();
        counts.start();
        counts.finish(Outcome::Skipped);
        let read = counts.read();
        assert_eq!((read.started, read.finished, read.in_flight), (2, 1, 1));
        assert_eq!(read.outcomes, BTreeMap::from([("skipped".to_owned(), 1)]));
    }

    #[test]
    fn calls_are_counted_where_they_are() {
        let counts = Counts::default();
        let (running, person) = (counts.enter(CallStage::Running), counts.enter(CallStage::Person));
        assert_eq!(
            [CallStage::Running, CallStage::Lane, CallStage::Turn, CallStage::Person].map(|at| counts.now(at)),
            [1, 0, 0, 1]
        );
        drop((running, person));
        assert_eq!([CallStage::Running, CallStage::Person].map(|at| counts.now(at)), [0, 0]);
    }
}
