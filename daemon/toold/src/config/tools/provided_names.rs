//! The names of tools that frontends provided, also in the past: `config check` runs without them, and would take their names
//! for mistakes.

use std::collections::BTreeSet;

use toold_host::state_file;

use crate::config::paths::DaemonPaths;

/// Further names are not remembered.
const MAX_NAMES: usize = 1_000;
/// A daemon never writes a larger file.
const MAX_BYTES: u64 = 1 << 17;

/// All names. Blocks.
pub(super) fn read(paths: &DaemonPaths) -> BTreeSet<String> {
    state_file::load(&paths.provided_tools(), MAX_BYTES).unwrap_or_default()
}

/// Adds names. Blocks.
pub fn remember(paths: &DaemonPaths, names: &[String]) {
    let mut known = read(paths);
    let before = known.len();
    let room = MAX_NAMES.saturating_sub(before);
    let new: Vec<String> = names.iter().filter(|name| !known.contains(*name)).take(room).cloned().collect();
    known.extend(new);
    if known.len() == before {
        return;
    }
    if let Err(error) = state_file::save(&paths.provided_tools(), &known) {
        tracing::warn!(%error, "can't remember the names of provided tools: `config check` will not know them");
    }
}
