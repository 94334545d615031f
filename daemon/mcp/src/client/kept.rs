//! The last known tools of each server, in a file of its own: what is listed before it ever runs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toold_host::state_file;

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
    state_file::load(&path(dir, config), MAX_BYTES)
}

/// Replaces the file. Blocks.
pub(super) fn save(dir: &Path, config: &ServerConfig, kept: &Kept) -> std::io::Result<()> {
    state_file::save(&path(dir, config), kept)
}

fn path(dir: &Path, config: &ServerConfig) -> PathBuf {
    let (scope, name) = config.key();
    let id = blake3::hash(format!("{scope:?}\0{name}").as_bytes()).to_hex();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').take(40).collect();
    dir.join(format!("{name}-{}.json", &id[..12]))
}
