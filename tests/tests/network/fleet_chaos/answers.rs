//! The person at the first machine, who answers what is asked on all of them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use toold_tests::Dice;

use crate::fleet_chaos::Ending;
use crate::fleet_chaos::clients::Connection;
use crate::fleet_chaos::machines::Machines;

/// How often the frontend looks for asks.
const LOOK: Duration = Duration::from_millis(50);

/// The calls about which the person was asked.
#[derive(Default)]
pub(crate) struct PersonAnswers {
    pub(crate) allowed: BTreeSet<String>,
    pub(crate) denied: BTreeSet<String>,
}

/// Answers until it is over, in a frontend that connects again whenever its daemon was killed. Nothing is allowed that only
/// a grant should allow.
pub(crate) fn answer_asks(machines: &Machines, ending: &Ending, seed: u64) -> PersonAnswers {
    let mut dice = Dice::new(seed);
    let mut answers = PersonAnswers::default();
    let mut frontend: Option<Connection> = None;
    while ending.pause(LOOK) {
        let Some(connected) = frontend.as_mut() else {
            frontend = Connection::open(&machines.all[0].socket)
                .and_then(|mut link| link.request("permissions.subscribe", json!({}), None).map(|_| link));
            continue;
        };
        if answer_pending(connected, &mut dice, &mut answers).is_none() {
            frontend = None;
        }
    }
    answers
}

/// `None` when the daemon has gone.
fn answer_pending(frontend: &mut Connection, dice: &mut Dice, answers: &mut PersonAnswers) -> Option<()> {
    let pending = frontend.request("permissions.pending", json!({}), None)?;
    for ask in pending["result"]["asks"].as_array()? {
        let words = ask["target"].as_str().unwrap_or_default();
        let Some(call) = words.strip_prefix("echo ").and_then(|rest| rest.split(' ').next()) else { continue };
        let may_be_allowed = machines_call(call);
        let action = if may_be_allowed && dice.roll(3) > 0 { "allow" } else { "deny" };
        // Before it is sent: whether it arrives is unknown.
        match action {
            "allow" => answers.allowed.insert(call.to_owned()),
            _ => answers.denied.insert(call.to_owned()),
        };
        frontend.request("permissions.reply", json!({"request_id": ask["request_id"], "action": action}), None)?;
    }
    Some(())
}

/// Whether a call was made by a client of a machine, and not in order to try a grant.
fn machines_call(id: &str) -> bool {
    Machines::names().any(|name| id.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')))
}
