//! Small JSON files of the daemon, readable only by its user. Each write replaces the file as a whole or not at all.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toold_files::FileReplacement;

use crate::files;

/// Reads a file of at most `max` bytes; `None` if there is no readable one. Blocks.
pub fn load<T: DeserializeOwned>(path: &Path, max: u64) -> Option<T> {
    let text = files::read_named(path, max).ok()?;
    serde_json::from_slice(&text).inspect_err(|error| tracing::warn!(path = %path.display(), %error, "not used")).ok()
}

/// Replaces or creates the file, with its folder. Blocks.
///
/// The content is not forced to disk: after a power failure the file may be empty, which [`load`] treats as missing.
/// Use [`save_durably`] for data that must survive that.
///
/// # Errors
/// Errors of the file system; the file is unchanged then.
pub fn save(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write(path, value, FileReplacement::Private)
}

/// As [`save`]; when it returns, the file survives a power failure. Waits for the disk.
///
/// # Errors
/// As [`save`].
pub fn save_durably(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write(path, value, FileReplacement::PrivateAndDurable)
}

fn write(path: &Path, value: &impl Serialize, replacement: FileReplacement) -> io::Result<()> {
    toold_files::replace(path, &path.with_extension("new"), &serde_json::to_vec(value)?, replacement)
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
    fn too_long_or_invalid_json_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.json");
        save(&path, &vec!["a"; 100]).unwrap();
        assert_eq!(load::<Vec<String>>(&path, 100), None);
        std::fs::write(&path, "[\"a").unwrap();
        assert_eq!(load::<Vec<String>>(&path, 100), None);
    }
}
