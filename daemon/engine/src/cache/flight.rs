//! Identical calls that are in flight at the same time: one runs, the others follow it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::cache::{CacheKey, CachedOutcome};
use crate::cx::Cx;

/// The calls that others may follow.
#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<CacheKey, Flight>>);

/// A call that runs, or is about to.
#[derive(Clone)]
pub(crate) struct Flight {
    pub(crate) leader: Arc<Cx>,
    phase: watch::Receiver<FlightPhase>,
}

#[derive(Clone)]
pub(crate) enum FlightPhase {
    /// It looks up a result, or waits for its turn.
    Waits,
    Runs,
    Ended {
        outcome: Arc<CachedOutcome>,
        /// The result was stored already.
        cached: bool,
    },
}

pub(crate) enum FlightRole {
    Leads(Leading),
    Follows(Flight),
}

/// The leadership of a flight. If it is dropped without an end, a follower leads.
pub(crate) struct Leading {
    flights: Arc<Flights>,
    key: CacheKey,
    phase: watch::Sender<FlightPhase>,
}

impl Flights {
    /// The first call with a key leads.
    pub(crate) fn join(self: &Arc<Self>, key: &CacheKey, cx: &Arc<Cx>) -> FlightRole {
        match self.0.lock().entry(key.clone()) {
            Entry::Occupied(flight) => FlightRole::Follows(flight.get().clone()),
            Entry::Vacant(place) => {
                let (sender, phase) = watch::channel(FlightPhase::Waits);
                place.insert(Flight { leader: cx.clone(), phase });
                FlightRole::Leads(Leading { flights: self.clone(), key: key.clone(), phase: sender })
            }
        }
    }
}

impl Flight {
    /// The next phase; `None` when the leader gave up. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<FlightPhase> {
        self.phase.changed().await.ok()?;
        Some(self.phase.borrow_and_update().clone())
    }

    pub(crate) fn now(&mut self) -> FlightPhase {
        self.phase.borrow_and_update().clone()
    }
}

impl Leading {
    pub(crate) fn runs(&self) {
        self.phase.send_replace(FlightPhase::Runs);
    }

    pub(crate) fn end(self, outcome: Arc<CachedOutcome>, cached: bool) {
        self.phase.send_replace(FlightPhase::Ended { outcome, cached });
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        self.flights.0.lock().remove(&self.key);
    }
}
