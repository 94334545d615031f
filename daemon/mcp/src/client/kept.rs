//! The last known tools of each server, in a file of its own: what is listed before it ever runs.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::ServerConfig;
use super::listing::KnownTool;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Of the configuration that the server had then.
    pub(super) digest: String,
    pub(super) tools: Vec<KnownTool>,
    /// It did not bear being asked in the newer way.
    #[serde(default)]
    pub(super) is_old: bool,
}

/// What a file may have at most, which is more than any list that is taken.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// `None` when there is none that can be read: then the server is asked.
pub(super) fn load(dir: &Path, config: &ServerConfig) -> Option<Kept> {
    let path = path(dir, config);
    if std::fs::metadata(&path).ok()?.len() > MAX_BYTES {
        return None;
    }
    let text = std::fs::read(&path).ok()?;
    serde_json::from_slice(&text).inspect_err(|error| tracing::warn!(path = %path.display(), %error, "not used")).ok()
}

/// Replaces the file. Blocks.
pub(super) fn save(dir: &Path, config: &ServerConfig, kept: &Kept) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = path(dir, config);
    let new = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    file.sync_data()?;
    std::fs::rename(&new, &path)
}

fn path(dir: &Path, config: &ServerConfig) -> PathBuf {
    let (scope, name) = config.key();
    let id = blake3::hash(format!("{scope:?}\0{name}").as_bytes()).to_hex();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').take(40).collect();
    dir.join(format!("{name}-{}.json", &id[..12]))
}
