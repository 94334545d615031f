//! The programs of agents that a person has recorded with `toolctl agents install`. They are
//! compared where peers are identified.

use std::path::Path;

use toold_host::state_file;
use toold_proto::agent_programs::AgentPrograms;

/// A longer file is not one of ours.
const MAX_BYTES: u64 = 64 * 1024;

/// The programs that the daemon's file records; none when it cannot be read. Blocks for a moment.
pub(crate) fn load(file: &Path) -> AgentPrograms {
    state_file::load(file, MAX_BYTES).unwrap_or_default()
}
