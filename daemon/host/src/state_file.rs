//! Small files of the daemon's own, as JSON that only its user can read: each is there whole, or as it was.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files;

/// What a file of at most `max` bytes holds; `None` when there is none that can be read. Blocks.
pub fn load<T: DeserializeOwned>(path: &Path, max: u64) -> Option<T> {
    let text = files::read_named(path, max).ok()?;
    serde_json::from_slice(&text).inspect_err(|error| tracing::warn!(path = %path.display(), %error, "not used")).ok()
}

/// Replaces the file, or makes it, with its folder. Blocks.
///
/// It is not forced to the disk: after a power cut it may be empty, which [`load`] takes for none. For what must not be
/// lost then, see [`save_durably`].
///
/// # Errors
/// Those of the file system; the file is as it was.
pub fn save(path: &Path, value: &impl Serialize) -> io::Result<()> {
    replace(path, value, |_| Ok(()))
}

/// As [`save`]; when it returns, the file survives a power cut. Takes as long as the disk does.
///
/// # Errors
/// As [`save`].
pub fn save_durably(path: &Path, value: &impl Serialize) -> io::Result<()> {
    replace(path, value, File::sync_all)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn replace(path: &Path, value: &impl Serialize, sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let beside = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    sync(&file)?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written_and_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/list.json");
        assert_eq!(load::<Vec<String>>(&path, 100), None);
        for list in [vec!["a"], vec!["b", "c"]] {
            save(&path, &list).unwrap();
            assert_eq!(load::<Vec<String>>(&path, 100).unwrap(), list);
            save_durably(&path, &["d"]).unwrap();
            assert_eq!(load::<Vec<String>>(&path, 100).unwrap(), ["d"]);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_too_long_or_no_json_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.json");
        save(&path, &vec!["a"; 100]).unwrap();
        assert_eq!(load::<Vec<String>>(&path, 100), None);
        std::fs::write(&path, "[\"a").unwrap();
        assert_eq!(load::<Vec<String>>(&path, 100), None);
    }
}
