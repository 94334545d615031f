//! Files of the system that only root and a few others read, such as the keys of servers: the commands of a daemon of root would
//! read them as well.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::geteuid;

use super::other_names::files_with_other_names;
use super::surroundings::{ShownPlaces, without};

/// Looked through for files: a folder that is covered takes root's right to read those of other users.
const SETTINGS: &str = "/etc";
/// Looked through for folders and files, which are left out of what is shown.
const STATES: [&str; 4] = ["/var/lib", "/var/cache", "/opt", "/usr/local/etc"];
/// Folders in each of them that are looked at, the upper ones first.
const MAX_FOLDERS: usize = 2000;
/// How long they are taken to be the same.
const AGAIN: Duration = Duration::from_secs(60);

/// One per daemon.
#[derive(Debug, Default)]
pub(super) struct RootSecrets(Mutex<Option<(Instant, Arc<FoundRootSecrets>)>>);

#[derive(Debug, Default)]
pub(super) struct FoundRootSecrets {
    /// The files and folders that other users may not read.
    pub(super) paths: BTreeSet<PathBuf>,
    /// The files among them and in the folders that have other names. A database may have a thousand, which take as long to look at
    /// as a command takes.
    pub(super) linked: Vec<PathBuf>,
    /// The places that are shown of each folder with some of them, unless more is hidden in it.
    pub(super) shown: BTreeMap<PathBuf, ShownPlaces>,
}

impl FoundRootSecrets {
    /// The places that are shown of a folder if these are all that is hidden; `None` if it must be looked at.
    pub(super) fn shown_of(&self, folder: &Path, hidden: &[PathBuf]) -> Option<&ShownPlaces> {
        let shown = self.shown.get(folder)?;
        let is_hidden = |path: &&PathBuf| hidden.contains(path);
        let has_all = self.paths.iter().filter(|path| path.starts_with(folder)).all(|path| is_hidden(&path));
        let mut others = hidden.iter().filter(|path| path.starts_with(folder) && !self.paths.contains(*path));
        (has_all && others.next().is_none()).then_some(shown)
    }
}

impl RootSecrets {
    /// None if this process is not root's. Looked for once a minute, which takes some milliseconds.
    pub(super) fn found(&self) -> Arc<FoundRootSecrets> {
        if !geteuid().is_root() {
            return Arc::default();
        }
        let mut known = self.0.lock();
        match known.as_ref().filter(|(at, _)| at.elapsed() < AGAIN) {
            Some((_, found)) => found.clone(),
            None => {
                let mut paths = hidden_in(Path::new(SETTINGS), false);
                paths.extend(STATES.iter().flat_map(|state| hidden_in(Path::new(state), true)));
                let linked = files_with_other_names(&paths);
                let shown =
                    STATES.map(PathBuf::from).map(|state| (state.clone(), without(&[state], &paths, &[]))).into();
                let found = Arc::new(FoundRootSecrets { paths: paths.into_iter().collect(), linked, shown });
                *known = Some((Instant::now(), found.clone()));
                found
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

/// The files in a folder and below that others may not read: by their own mode, or since a folder above keeps others out. With
/// `folders`, such a folder stands for all that is in it. Empty files hold nothing.
fn hidden_in(top: &Path, folders: bool) -> Vec<PathBuf> {
    let (mut left, mut looked, mut found) = (VecDeque::from([(top.to_owned(), true)]), 0, Vec::new());
    while let Some((folder, is_open)) = left.pop_front().filter(|_| looked < MAX_FOLDERS) {
        looked += 1;
        for (path, facts) in entries(&folder) {
            let is_open = is_open && is_shown(&facts);
            match facts.is_dir() {
                true if is_open || !folders => left.push_back((path, is_open)),
                false if is_open || facts.is_symlink() || facts.len() == 0 => {}
                true | false => found.push(path),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_may_not_read_is_found() {
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
        fs::write(top.join("ssl/private/empty"), "").unwrap();
        let found = |folders| {
            let mut found = hidden_in(top, folders);
            found.sort();
            found
        };
        assert_eq!(found(false), [top.join("shadow-"), top.join("ssl/private/deep/key")]);
        assert_eq!(found(true), [top.join("shadow-"), top.join("ssl/private")]);
    }
}
