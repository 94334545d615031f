//! The last known tools of each daemon, in a file of its own: what is listed before it is reached, and what tells
//! whether a tool is still the one that was allowed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toold_host::state_file;

use crate::config::RemoteConfig;
use crate::listing::KnownTool;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Of the configuration that it was reached by.
    pub(crate) digest: String,
    pub(crate) tools: Vec<KnownTool>,
    /// The daemons that were reached through it, itself first.
    pub(crate) instances: Vec<String>,
}

/// What a file may have at most, which is more than any list that is taken.
const MAX_BYTES: u64 = 32 << 20;

/// `None` when there is none that can be read, or none of this daemon's.
pub(crate) fn load(dir: &Path, config: &RemoteConfig) -> Option<Kept> {
    let kept: Kept = state_file::load(&path(dir, config), MAX_BYTES)?;
    (kept.digest == config.digest()).then_some(kept)
}

/// Replaces the file. Blocks.
pub(crate) fn save(dir: &Path, config: &RemoteConfig, kept: &Kept) -> std::io::Result<()> {
    state_file::save(&path(dir, config), kept)
}

/// A remote's name is a word of small letters.
fn path(dir: &Path, config: &RemoteConfig) -> PathBuf {
    dir.join(format!("{}.json", config.name))
}
