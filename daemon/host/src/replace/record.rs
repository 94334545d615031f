//! Records the temporary names of files before they replace others. A process that is killed in between would otherwise
//! leave them forever; the next process removes them.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::is_temporary;
use crate::files;

/// The folder of this process: it owns the names, whichever of its daemons created them.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Starts the record in a folder of the daemon, and removes the files of processes that have ended. Blocks.
///
/// # Errors
/// The folder cannot be created or read.
pub fn keep_in(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for entry in fs::read_dir(folder)?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| pid != std::process::id() && !Path::new(&format!("/proc/{pid}")).exists()) {
            clear(&entry.path());
        }
    }
    // Set once: two daemons in one process share a record.
    let _ = FOLDER.set(folder.to_owned());
    Ok(())
}

fn clear(entry: &Path) {
    let Ok(left) = fs::read_link(entry) else { return };
    if left.file_name().is_some_and(is_temporary) {
        match files::remove(&left) {
            Ok(()) => tracing::info!(file = %left.display(), "removed what a daemon that was killed left behind"),
            Err(error) => tracing::debug!(%error, "nothing is left of a change that was interrupted"),
        }
    }
    if let Err(error) = fs::remove_file(entry) {
        tracing::warn!(%error, entry = %entry.display(), "can't be removed");
    }
}

/// A temporary name of a file; dropping it removes the entry.
pub(super) struct TemporaryName(Option<PathBuf>);

impl TemporaryName {
    /// If nothing can be recorded, the change is made anyway.
    pub(super) fn new(temporary: &Path) -> Self {
        let entry = FOLDER.get().map(|folder| folder.join(format!("{}-{}", std::process::id(), super::new_mark())));
        Self(entry.filter(|entry| symlink(temporary, entry).is_ok()))
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if let Some(entry) = &self.0 {
            // The next process finds that the name no longer exists.
            let _ = fs::remove_file(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_ended_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let record = root.join("record");
        fs::create_dir(&record).unwrap();
        let own = super::super::new_name();
        for name in [own.to_str().unwrap(), "kept", ".toold-living.tmp"] {
            fs::write(root.join(name), "").unwrap();
        }
        symlink(root.join(&own), record.join(format!("{}-a", ended.id()))).unwrap();
        symlink(root.join("kept"), record.join(format!("{}-b", ended.id()))).unwrap();
        symlink(root.join("gone"), record.join(format!("{}-c", ended.id()))).unwrap();
        symlink(root.join(".toold-living.tmp"), record.join("1-d")).unwrap();
        keep_in(&record).unwrap();
        assert!(!root.join(&own).exists());
        assert!(root.join("kept").exists() && root.join(".toold-living.tmp").exists());
        assert_eq!(fs::read_dir(&record).unwrap().count(), 1);
    }
}
