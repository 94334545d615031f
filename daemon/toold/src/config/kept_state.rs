//! Small states that outlive the daemon, each in a file of its own.

use std::path::Path;

use serde::Serialize;
use toold_host::state_file;

/// Writes a state, or removes its file for `None`. Blocks.
///
/// # Errors
/// The file cannot be written or removed.
pub(crate) fn keep<T: Serialize>(state: Option<&T>, file: &Path) -> Result<(), String> {
    let Some(state) = state else {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("can't remove {}: {error}", file.display()))
            }
            Ok(()) | Err(_) => Ok(()),
        };
    };
    state_file::save_durably(file, state).map_err(|error| format!("can't write {}: {error}", file.display()))
}
