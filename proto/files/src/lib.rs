//! Replaces files as a whole: whoever reads one finds the old content or the new one, never a part.
//!
//! For files whose paths toold chooses itself. Paths that come from models go through `toold_host::replace`.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

/// What holds for a file that is replaced, beyond that it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileReplacement {
    /// The file is for its owner alone, and so are folders that are missing and made. After a power failure it may be
    /// empty.
    Private,
    /// As [`Self::Private`]; when the call returns, the file survives a power failure. Waits for the disk.
    PrivateAndDurable,
    /// The file keeps its mode, and its owner and group if this process may give them; a new one gets this mode, less the umask. After a power failure it has the old content or
    /// the new one. Waits for the disk. The folder must exist.
    KeepsMode(u32),
}

/// Replaces or creates the file at `path`. The content is first written to `beside`, a path in the same folder that no
/// other writer uses at the same time; a file that an interrupted writer left there is removed. Blocks.
///
/// A symbolic link at `path` is replaced, and not followed.
///
/// # Errors
/// Errors of the file system; the file is unchanged then, and `beside` removed. Only if the folder of a
/// [`FileReplacement::PrivateAndDurable`] cannot be synced at the end, the file has its new content.
pub fn replace(path: &Path, beside: &Path, content: &[u8], replacement: FileReplacement) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let (mode, is_synced) = match replacement {
        FileReplacement::Private => (0o600, false),
        FileReplacement::PrivateAndDurable => (0o600, true),
        FileReplacement::KeepsMode(new) => (new, true),
    };
    let is_private = !matches!(replacement, FileReplacement::KeepsMode(_));
    if is_private {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // Fails where nothing was left, and otherwise the next line does.
    let _ = std::fs::remove_file(beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(beside)?;
    let mut written = || -> io::Result<()> {
        file.write_all(content)?;
        if !is_private && let Ok(metadata) = std::fs::metadata(path) {
            // Otherwise root would take the file from its owner. Others may not give theirs away.
            let _ = fchown(&file, Some(metadata.uid()), Some(metadata.gid()));
            file.set_permissions(metadata.permissions())?;
        }
        if is_synced {
            file.sync_all()?;
        }
        std::fs::rename(beside, path)
    };
    written().inspect_err(|_| {
        // A part would take up the space that is missing. The error that matters is returned.
        let _ = std::fs::remove_file(beside);
    })?;
    if replacement == FileReplacement::PrivateAndDurable {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn private_files_are_for_their_owner_alone_whatever_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/a.json");
        let beside = path.with_extension("new");
        for kind in [FileReplacement::Private, FileReplacement::PrivateAndDurable] {
            replace(&path, &beside, b"one", kind).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
            replace(&path, &beside, b"two", kind).unwrap();
            assert_eq!((std::fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o600));
            std::fs::remove_file(&path).unwrap();
        }
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn a_mode_is_kept_and_folders_are_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let (path, beside) = (folder.path().join("a"), folder.path().join("a.new"));
        replace(&path, &beside, b"one", FileReplacement::KeepsMode(0o600)).unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        replace(&path, &beside, b"two", FileReplacement::KeepsMode(0o600)).unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o640));
        let below = folder.path().join("missing/a");
        replace(&below, &below.with_extension("new"), b"", FileReplacement::KeepsMode(0o600)).unwrap_err();
    }

    #[test]
    fn a_file_of_another_user_stays_his_where_root_replaces_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, beside) = (folder.path().join("a"), folder.path().join("a.new"));
        std::fs::write(&path, "one").unwrap();
        // Only root may give it away; the owner and group are kept in either case.
        let _ = std::os::unix::fs::chown(&path, Some(1), Some(1));
        let owner = |path: &Path| std::fs::metadata(path).map(|found| (found.uid(), found.gid())).unwrap();
        let before = owner(&path);
        replace(&path, &beside, b"two", FileReplacement::KeepsMode(0o600)).unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), owner(&path)), (b"two".to_vec(), before));
    }

    #[test]
    fn an_interrupted_writer_leaves_nothing_and_a_failure_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, beside) = (folder.path().join("a"), folder.path().join("a.new"));
        std::fs::write(&beside, "a part of something").unwrap();
        replace(&path, &beside, b"one", FileReplacement::Private).unwrap();
        assert!(!beside.exists());
        std::fs::create_dir(&beside).unwrap();
        replace(&path, &beside, b"two", FileReplacement::Private).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        std::fs::remove_dir(&beside).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        replace(&path, &beside, b"two", FileReplacement::Private).unwrap_err();
        assert!(!beside.exists());
    }
}
