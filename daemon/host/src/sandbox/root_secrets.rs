//! Files of the system that only root and a few others read, such as the keys of servers: the commands of a daemon of root would
//! read them as well.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::geteuid;

/// Looked through for files.
const SETTINGS: &str = "/etc";
/// Its folders are looked at.
const STATES: &str = "/var/lib";
/// Folders in [`SETTINGS`] that are looked at.
const MAX_FOLDERS: usize = 2000;
/// How long they are taken to be the same.
const AGAIN: Duration = Duration::from_secs(60);

/// One per daemon.
#[derive(Debug, Default)]
pub(super) struct RootSecrets(Mutex<Option<(Instant, Vec<PathBuf>)>>);

impl RootSecrets {
    /// Files and folders that other users may not read; none if this process is not root's. Looked for once a minute, which
    /// takes some milliseconds.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        if !geteuid().is_root() {
            return Vec::new();
        }
        let mut known = self.0.lock();
        match known.as_ref().filter(|(at, _)| at.elapsed() < AGAIN) {
            Some((_, paths)) => paths.clone(),
            None => {
                let paths = [files_in(Path::new(SETTINGS)), folders_in(Path::new(STATES))].concat();
                *known = Some((Instant::now(), paths.clone()));
                paths
            }
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

fn is_shown(found: &Metadata) -> bool {
    let bits = if found.is_dir() { 0o005 } else { 0o004 };
    found.is_symlink() || found.mode() & bits == bits
}

/// The files in a folder and below that others may not read: on its own account, or since a folder above keeps them out.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let (mut left, mut looked, mut found) = (vec![(folder.to_owned(), true)], 0, Vec::new());
    while let Some((folder, is_open)) = left.pop().filter(|_| looked < MAX_FOLDERS) {
        looked += 1;
        for (path, facts) in entries(&folder) {
            let is_open = is_open && is_shown(&facts);
            match facts.is_dir() {
                true => left.push((path, is_open)),
                false if is_open || facts.is_symlink() => {}
                false => found.push(path),
            }
        }
    }
    found
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let hidden = entries(folder).filter(|(_, facts)| facts.is_dir() && !is_shown(facts));
    hidden.map(|(path, _)| path).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_that_others_may_not_read_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        fs::create_dir_all(top.join("ssl/private/deep")).unwrap();
        for (name, mode) in
            [("passwd", 0o644), ("shadow-", 0o640), ("ssl/private/deep/key", 0o644), ("ssl/cert", 0o644)]
        {
            fs::write(top.join(name), "x").unwrap();
            fs::set_permissions(top.join(name), Permissions::from_mode(mode)).unwrap();
        }
        for (name, mode) in [("ssl", 0o755), ("ssl/private", 0o710), ("ssl/private/deep", 0o755)] {
            fs::set_permissions(top.join(name), Permissions::from_mode(mode)).unwrap();
        }
        let mut found = files_in(top);
        found.sort();
        assert_eq!(found, [top.join("shadow-"), top.join("ssl/private/deep/key")]);
        assert_eq!(folders_in(&top.join("ssl")), [top.join("ssl/private")]);
    }
}
