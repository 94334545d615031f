//! What breaks, and is whole again after a while.

use std::collections::BTreeMap;
use std::time::Duration;

use toold_tests::Dice;

use crate::fleet_chaos::Ending;
use crate::fleet_chaos::machines::Machines;

/// How often each fault happened.
pub(crate) type FaultCounts = BTreeMap<&'static str, u64>;

fn between(dice: &mut Dice, least: u64, most: u64) -> Duration {
    Duration::from_millis(least + dice.roll(most - least))
}

/// Kills daemons, and stops their processes for a while, as a machine that sleeps does.
pub(crate) fn break_machines(machines: &Machines, ending: &Ending, seed: u64) -> FaultCounts {
    let mut dice = Dice::new(seed);
    let mut counts = FaultCounts::new();
    while ending.pause(between(&mut dice, 300, 2_500)) {
        let machine = dice.pick(&machines.all);
        let mut daemon = machine.daemon.lock();
        let fault = match dice.roll(3) {
            0 => {
                daemon.signal("KILL");
                daemon.wait();
                ending.pause(between(&mut dice, 0, 2_000));
                daemon.start_again();
                "daemons killed"
            }
            1 => {
                daemon.restart("TERM");
                "daemons restarted"
            }
            _ => {
                daemon.signal("STOP");
                ending.pause(between(&mut dice, 200, 4_000));
                daemon.signal("CONT");
                "machines asleep"
            }
        };
        *counts.entry(fault).or_default() += 1;
    }
    counts
}

/// Cuts, slows and closes connections to the broker, and kills it.
pub(crate) fn break_networks(machines: &Machines, ending: &Ending, seed: u64) -> FaultCounts {
    let mut dice = Dice::new(seed);
    let mut counts = FaultCounts::new();
    while ending.pause(between(&mut dice, 300, 2_500)) {
        let proxy = &dice.pick(&machines.all).proxy;
        let fault = match dice.roll(10) {
            0 | 1 => {
                let mut nats = machines.nats.lock();
                nats.kill();
                ending.pause(between(&mut dice, 0, 2_000));
                nats.start_again();
                "servers killed"
            }
            2..=4 => {
                proxy.cut();
                ending.pause(between(&mut dice, 500, 6_000));
                proxy.heal();
                "short partitions"
            }
            5 => {
                proxy.cut();
                ending.pause(Machines::long_partition());
                proxy.heal();
                "long partitions"
            }
            6 | 7 => {
                proxy.delay(between(&mut dice, 10, 300));
                ending.pause(between(&mut dice, 500, 4_000));
                proxy.delay(Duration::ZERO);
                "slow networks"
            }
            _ => {
                proxy.close();
                "connections closed"
            }
        };
        *counts.entry(fault).or_default() += 1;
    }
    counts
}
