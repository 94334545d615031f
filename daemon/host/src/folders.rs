//! Folders and files that may appear, disappear and be written while they are looked up.

use std::path::Path;
use std::time::Duration;

/// How often [`until_still`] looks. Each change causes one more look, so only a process that creates and removes
/// folders all the time reaches the limit.
const TRIES: usize = 100;

/// How long to wait for an empty file that was not closed: its writer is about to fill it, and may be delayed by a busy
/// machine or a slow network.
pub const EMPTY: Duration = Duration::from_secs(1);

/// Whether the file exists and is empty.
pub fn is_empty_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() == 0)
}

/// The existing folders above a path, nearest first.
pub fn above(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1).filter(|folder| folder.is_dir())
}

/// Calls `look` and `watch` until `look` returns the same before and after `watch`: changes in between would go
/// unnoticed.
///
/// # Errors
/// The first one of `watch`.
pub fn until_still<T: PartialEq, E>(look: impl Fn() -> T, mut watch: impl FnMut(&T) -> Result<(), E>) -> Result<(), E> {
    for _ in 0..TRIES {
        let seen = look();
        watch(&seen)?;
        if look() == seen {
            break;
        }
    }
    Ok(())
}
