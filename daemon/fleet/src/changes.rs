//! Tells subscribers of the daemon's events that the fleet has changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;
use toold_proto::event::EventBody;

use crate::member::Member;

/// The shortest time between two events.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs until this daemon leaves the fleet.
pub(crate) async fn run(member: &Arc<Member>) {
    let mut shown = None;
    loop {
        let current = digest(member);
        if shown.replace(current) != Some(current) {
            member.engine.events.emit(EventBody::FleetChanged {});
        }
        tokio::select! {
            biased;
            () = member.stop.cancelled() => return,
            () = sleep(INTERVAL) => {}
        }
    }
}

/// Digest of everything that `fleet.status` shows, but for times and counters that only grow.
fn digest(member: &Member) -> u64 {
    let mut hasher = DefaultHasher::new();
    let broker = member.broker.state.borrow().clone();
    (broker.connected, broker.connects, broker.error, member.problems()).hash(&mut hasher);
    member.settings.load().labels.hash(&mut hasher);
    member.grants.valid().hash(&mut hasher);
    member.counts.running.load(Ordering::Relaxed).hash(&mut hasher);
    member.directory.read(|daemons| {
        for (name, daemon) in daemons {
            (name, daemon.is_away, daemon.tools.len(), &daemon.problems).hash(&mut hasher);
            if let Some(record) = &daemon.record {
                (&record.instance, &record.labels, &record.people).hash(&mut hasher);
                (record.tools, record.running, record.max_calls).hash(&mut hasher);
            }
        }
    });
    hasher.finish()
}
