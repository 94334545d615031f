//! Agents that are observed, which outlives the daemon: their own tools are judged and recorded, and left to them.

use std::path::Path;
use std::time::{Duration, SystemTime};

use toold_engine::time::{from_rfc3339, rfc3339};
use toold_host::state_file;
use toold_proto::permission::ObservedAgents;

/// A longer file is not one of ours.
const MAX_BYTES: u64 = 4_096;

pub const DEFAULT_DAYS: u64 = 7;
pub const MAX_DAYS: u64 = 90;

/// From now on, for some days.
pub fn from_now(by: String, agent: Option<String>, days: u64) -> ObservedAgents {
    let now = SystemTime::now();
    let until = now + Duration::from_secs(days.min(MAX_DAYS) * 24 * 3600);
    ObservedAgents { by, since: rfc3339(now), until: rfc3339(until), agent }
}

/// Whether it is about this agent, or about any for `None`, and not over.
pub fn covers(observed: &ObservedAgents, agent: Option<&str>) -> bool {
    let is_about = match (&observed.agent, agent) {
        (Some(only), Some(agent)) => only == agent,
        (None, _) | (_, None) => true,
    };
    is_about && from_rfc3339(&observed.until).is_some_and(|until| SystemTime::now() < until)
}

/// The stored state. A file that cannot be read observes nothing: then toold decides.
pub fn load(file: &Path) -> Option<ObservedAgents> {
    state_file::load(file, MAX_BYTES)
}
