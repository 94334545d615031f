//! The last known tools of each daemon, in a file of its own: what is listed before it is reached, and what tells
//! whether a tool is still the one that was allowed.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

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
    let path = path(dir, config);
    if std::fs::metadata(&path).ok()?.len() > MAX_BYTES {
        return None;
    }
    let kept: Result<Kept, _> = serde_json::from_slice(&std::fs::read(&path).ok()?);
    let kept = kept.inspect_err(|error| tracing::warn!(path = %path.display(), %error, "not used")).ok()?;
    (kept.digest == config.digest()).then_some(kept)
}

/// Replaces the file. Blocks.
pub(crate) fn save(dir: &Path, config: &RemoteConfig, kept: &Kept) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = path(dir, config);
    let new = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    file.sync_data()?;
    std::fs::rename(&new, &path)
}

/// A remote's name is a word of small letters.
fn path(dir: &Path, config: &RemoteConfig) -> PathBuf {
    dir.join(format!("{}.json", config.name))
}
