//! Grants of the person, which are used on other machines and revoked.

use std::time::Duration;

use serde_json::{Value, json};
use toold_tests::Dice;

use crate::fleet_chaos::Ending;
use crate::fleet_chaos::clients::{ChaosCallRecord, Connection};
use crate::fleet_chaos::machines::{Machine, Machines};

/// How long a grant or its revocation may take to arrive; longer when the network is cut.
const TRIES: usize = 100;

/// Makes grants, uses each on one machine, revokes it, and calls again once that machine knows. Returns all calls.
pub(crate) fn grant_and_revoke(machines: &Machines, ending: &Ending, number: u64, seed: u64) -> Vec<ChaosCallRecord> {
    let mut dice = Dice::new(seed);
    let mut calls = Vec::new();
    let home = &machines.all[0];
    let mut round = 0;
    while ending.pause(Duration::from_millis(dice.roll(300))) {
        round += 1;
        let word = format!("g{number}-{round}");
        let (target, caller) = (1 + dice.roll(4) as usize, dice.roll(5) as usize);
        if target == caller {
            continue;
        }
        let (target, caller) = (&machines.all[target], &machines.all[caller]);
        let grant = json!({"action": "allow", "category": "shell", "pattern": format!("echo {word}-**")});
        let Some(made) = home.ask("fleet.grant", grant) else { continue };
        let Some(grant) = made["grants"].as_array().and_then(|grants| grants.last()) else { continue };
        let id = grant["id"].as_str().unwrap().to_owned();
        if arrives(ending, target, &id, true) {
            for n in 0..3 {
                calls.extend(call(caller, target, &format!("{word}-{n}"), false));
            }
        }
        let mut is_revoked = home.ask("fleet.revoke", json!({"id": id})).is_some();
        while !is_revoked && ending.pause(Duration::from_millis(100)) {
            is_revoked = home.ask("fleet.revoke", json!({"id": id})).is_some();
        }
        // A machine that has lost the fleet calls no grant valid, revoked or not.
        if is_revoked && arrives(ending, target, &id, false) {
            for n in 3..5 {
                calls.extend(call(caller, target, &format!("{word}-{n}"), true));
            }
        }
    }
    calls
}

/// Whether a machine comes to know that a grant is valid, or that it is revoked.
fn arrives(ending: &Ending, machine: &Machine, id: &str, valid: bool) -> bool {
    for _ in 0..TRIES {
        let answer = machine.ask("fleet.grants", json!({}));
        let grants = answer.as_ref().and_then(|answer| answer["grants"].as_array());
        if let Some(grants) = grants {
            let known: Option<&Value> = grants.iter().find(|grant| grant["id"] == id);
            if known.is_some_and(|grant| grant["valid"] == true) == valid {
                return true;
            }
        }
        if !ending.pause(Duration::from_millis(50)) {
            return false;
        }
    }
    false
}

fn call(caller: &Machine, target: &Machine, id: &str, after_revocation: bool) -> Option<ChaosCallRecord> {
    let mut link = Connection::open(&caller.socket)?;
    let arguments = json!({"command": format!("echo {id} >> ledger")});
    let (end, text) = link.call(&format!("{}_bash", target.name), arguments, Duration::from_secs(30));
    Some(ChaosCallRecord { id: id.to_owned(), tool: "bash", end, text, after_revocation })
}
