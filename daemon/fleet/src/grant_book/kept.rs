//! The file that keeps revocations and denying grants: they hold from the start of the daemon on, without the broker.
//!
//! Grants that allow something are never read from a file.

use std::io::{self, ErrorKind};
use std::path::Path;

use serde::{Deserialize, Serialize};
use toold_host::{files, state_file};

/// Bytes of the file: more than anybody's grants need.
const MAX_FILE: u64 = 64 * 1024 * 1024;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptGrants {
    /// Signed messages.
    pub(super) revocations: Vec<String>,
    /// Signed messages.
    pub(super) denials: Vec<String>,
    /// Milliseconds since 1970: revocations before this time may have been lost, so no grant that was made before it
    /// allows anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) allows_since: Option<u64>,
}

impl KeptGrants {
    /// Blocks. Empty if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or does not contain what was written.
    pub(super) fn load(file: &Path) -> io::Result<Self> {
        match files::read_named(file, MAX_FILE) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Blocks. When it returns, the file survives a power failure.
    ///
    /// # Errors
    /// Errors of the file system; the file is unchanged then.
    pub(super) fn save(&self, file: &Path) -> io::Result<()> {
        state_file::save_durably(file, self)
    }
}
