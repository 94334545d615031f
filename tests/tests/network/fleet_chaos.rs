//! Five daemons of a fleet on five networks, with clocks that differ, while clients call and everything that can break
//! breaks: daemons and the broker are killed, machines sleep, networks are cut, slow, or lose their connections.
//!
//! `CHAOS_SECONDS` makes it longer than 30 seconds; `CHAOS_SEED` repeats the random choices of a run, which prints it.

mod answers;
mod checks;
mod clients;
mod faults;
mod machines;
mod revocations;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use toold_tests::setting;

use crate::fleet_chaos::answers::answer_asks;
use crate::fleet_chaos::clients::{ChaosCallRecord, call_until};
use crate::fleet_chaos::faults::{break_machines, break_networks};
use crate::fleet_chaos::machines::Machines;
use crate::fleet_chaos::revocations::grant_and_revoke;

/// Fires when the chaos is over.
#[derive(Default)]
struct Ending {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Ending {
    /// Waits for this time, or until it is over; false then.
    fn pause(&self, time: Duration) -> bool {
        let mut is_over = self.is_over.lock();
        self.changed.wait_while_for(&mut is_over, |is_over| !*is_over, time);
        !*is_over
    }

    fn end(&self) {
        *self.is_over.lock() = true;
        self.changed.notify_all();
    }
}

/// Ends it also when a thread panics.
struct EndsOnDrop<'e>(&'e Ending);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Clients at each daemon.
const CLIENTS: u64 = 2;

#[test]
fn whatever_breaks_each_call_ends_once_and_runs_at_most_once() {
    let Some(machines) = Machines::start() else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (seconds, seed) = (setting("CHAOS_SECONDS", 30), setting("CHAOS_SEED", now));
    println!("CHAOS_SECONDS={seconds} CHAOS_SEED={seed}");
    let ending = Ending::default();
    let (machines, ending) = (&machines, &ending);
    let mut counts = BTreeMap::new();
    let (calls, answers) = std::thread::scope(|scope| {
        let ends = EndsOnDrop(ending);
        let mut callers = Vec::new();
        for at in 0..machines.all.len() {
            for client in 0..CLIENTS {
                let seed = seed.wrapping_add(100 + 10 * at as u64 + client);
                callers.push(scope.spawn(move || call_until(machines, ending, at, client, seed)));
            }
        }
        for number in 0..2 {
            callers
                .push(scope.spawn(move || grant_and_revoke(machines, ending, number, seed.wrapping_add(200 + number))));
        }
        let faults = [
            scope.spawn(move || break_machines(machines, ending, seed.wrapping_add(1))),
            scope.spawn(move || break_networks(machines, ending, seed.wrapping_add(2))),
        ];
        let person = scope.spawn(move || answer_asks(machines, ending, seed.wrapping_add(3)));
        ending.pause(Duration::from_secs(seconds));
        drop(ends);
        for fault in faults {
            counts.extend(fault.join().unwrap());
        }
        let calls: Vec<ChaosCallRecord> = callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
        (calls, person.join().unwrap())
    });
    checks::check(machines, &calls, &answers, counts);
}
