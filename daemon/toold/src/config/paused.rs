//! The pause of everything, which outlives the daemon: a restart does not resume.

use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toold_engine::replay::PAUSED;
use toold_engine::time::rfc3339;
use toold_host::files;

/// A longer file is not one of ours.
const MAX_BYTES: u64 = 4_096;

/// Who paused everything, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedBy {
    pub by: String,
    /// RFC 3339, UTC.
    pub at: String,
}

impl PausedBy {
    pub fn now(by: String) -> Self {
        Self { by, at: rfc3339(SystemTime::now()) }
    }

    /// For people and models.
    pub fn describe(&self) -> String {
        format!("{PAUSED}{} at {}", self.by, self.at)
    }

    /// The stored state. A file that cannot be read is a pause: somebody paused, or the state is not known.
    pub fn load(file: &Path) -> Option<Self> {
        let text = match files::read_text(file, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                return Some(Self { by: format!("{} ({error})", file.display()), at: "an unknown time".to_owned() });
            }
        };
        let unread = || Self { by: "somebody".to_owned(), at: "an unknown time".to_owned() };
        Some(serde_json::from_str(&text).unwrap_or_else(|_| unread()))
    }
}
