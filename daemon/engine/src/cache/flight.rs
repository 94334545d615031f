//! Identical calls that are in flight at the same time: one runs, the others follow it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use crate::cache::{Key, Outcome};
use crate::cx::Cx;

/// The calls that others may follow.
#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<Key, Flight>>);

/// A call that runs, or is about to.
#[derive(Clone)]
pub(crate) struct Flight {
    pub(crate) leader: Arc<Cx>,
    phase: watch::Receiver<Phase>,
}

#[derive(Clone)]
pub(crate) enum Phase {
    /// It looks for a result, or waits for its turn.
    Waits,
    Runs,
    Ended {
        outcome: Arc<Outcome>,
        /// It had been there already.
        cached: bool,
    },
}

pub(crate) enum Joined {
    Leads(Leading),
    Follows(Flight),
}

/// The place of a leader. Dropped without an end, it leaves the place to its followers.
pub(crate) struct Leading {
    flights: Arc<Flights>,
    key: Key,
    phase: watch::Sender<Phase>,
}

impl Flights {
    /// The first call with a key leads.
    pub(crate) fn join(self: &Arc<Self>, key: &Key, cx: &Arc<Cx>) -> Joined {
        match self.lock().entry(key.clone()) {
            Entry::Occupied(flight) => Joined::Follows(flight.get().clone()),
            Entry::Vacant(place) => {
                let (sender, phase) = watch::channel(Phase::Waits);
                place.insert(Flight { leader: cx.clone(), phase });
                Joined::Leads(Leading { flights: self.clone(), key: key.clone(), phase: sender })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Flight>> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

impl Flight {
    /// The next phase; `None` when the leader gave up. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Phase> {
        self.phase.changed().await.ok()?;
        Some(self.phase.borrow_and_update().clone())
    }

    pub(crate) fn now(&mut self) -> Phase {
        self.phase.borrow_and_update().clone()
    }
}

impl Leading {
    pub(crate) fn runs(&self) {
        self.phase.send_replace(Phase::Runs);
    }

    pub(crate) fn end(self, outcome: Arc<Outcome>, cached: bool) {
        self.phase.send_replace(Phase::Ended { outcome, cached });
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.key);
    }
}
