//! Folders and files that come, go and are written while they are looked for.

use std::path::Path;
use std::time::Duration;

/// How often [`until_still`] looks. Each change is one more time, so only somebody who makes and removes folders all the
/// time comes to it.
const TRIES: usize = 100;

/// How long an empty file that was not closed is waited for: whoever emptied it is about to write it, and may be kept
/// from it by a busy machine or a slow network.
pub const EMPTY: Duration = Duration::from_secs(1);

/// Whether there is a file, with nothing in it.
pub fn is_empty_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() == 0)
}

/// The folders above a path that are there, the nearest first.
pub fn above(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1).filter(|folder| folder.is_dir())
}

/// Looks at what is there and watches it, until it is the same before and after: what came between was told to nobody.
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
