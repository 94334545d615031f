//! Paths of files that may not exist yet.

use std::path::{Component, Path, PathBuf};

/// An absolute path with `..` and links resolved as far as it exists.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    let mut known = path.to_owned();
    let mut rest = Vec::new();
    loop {
        if let Ok(real) = known.canonicalize() {
            return rest.into_iter().rev().fold(real, |path: PathBuf, part: Component| match part {
                Component::ParentDir => path.parent().map_or_else(|| path.clone(), Path::to_owned),
                Component::CurDir => path,
                other => path.join(other),
            });
        }
        let Some(last) = path.components().nth(path.components().count() - 1 - rest.len()) else { return known };
        rest.push(last);
        // `pop` and `parent` go by the text; the part is put back, resolved, above.
        if !known.pop() {
            return known;
        }
    }
}
