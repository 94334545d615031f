//! How many calls there were, and how they ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use toold_proto::daemon::CallCounts;
use toold_proto::event::Outcome;

const OUTCOMES: [Outcome; 9] = [
    Outcome::Ok,
    Outcome::Error,
    Outcome::Denied,
    Outcome::TimedOut,
    Outcome::Cancelled,
    Outcome::InvalidArgs,
    Outcome::Overloaded,
    Outcome::Failed,
    Outcome::Skipped,
];

#[derive(Default)]
pub struct Counts {
    started: AtomicU64,
    outcomes: [AtomicU64; OUTCOMES.len()],
}

impl Counts {
    pub fn start(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub fn finish(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn read(&self) -> CallCounts {
        // Finished first: read the other way round, a call that ends meanwhile would count as minus one in flight.
        let counted: Vec<u64> = self.outcomes.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let finished = counted.iter().sum();
        let started = self.started.load(Ordering::Relaxed);
        let outcomes: BTreeMap<String, u64> = OUTCOMES
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
        for (index, outcome) in OUTCOMES.into_iter().enumerate() {
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
}
