//! Folders that come and go while they are looked for.

use std::path::Path;

/// How often [`until_still`] looks. Each change is one more time, so only somebody who makes and removes folders all the
/// time comes to it.
const TRIES: usize = 100;

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
