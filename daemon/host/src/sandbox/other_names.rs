//! Other names of files that are kept from a command: hard links, under which a secret could be read, and a file that runs code
//! later changed.
//!
//! Hardly any of these has one. Where one has, the places that a command may read are looked through once, until the secret
//! changes or gets another link.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::Metadata;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::secret_index::TooMany;

/// Entries of folders of secrets that are looked at.
const MAX_INSIDE: usize = 1024;
/// Folders that are looked through for other names.
const MAX_FOLDERS: usize = 100_000;

/// Files that are remembered.
const MAX_KNOWN: usize = 1024;

/// A device and a number of a file on it.
type LinkedNumber = (u64, u64);

/// One per daemon.
#[derive(Debug, Default)]
pub(super) struct OtherNames(Mutex<HashMap<(LinkedNumber, Vec<PathBuf>), FoundNames>>);

/// The names of one file in some places.
#[derive(Debug)]
struct FoundNames {
    /// When the file last changed, as it does with each new link.
    changed: (i64, i64),
    names: BTreeSet<PathBuf>,
}

/// A secret that has names that are not known to be secrets.
#[derive(Debug)]
struct LinkedSecret {
    changed: (i64, i64),
    /// How many names it has, and those that are known.
    links: u64,
    known: BTreeSet<PathBuf>,
}

impl OtherNames {
    /// The names of these secrets, which are files or folders, in these places and the folders below them, without the secrets
    /// themselves. Blocks: where a secret has other names, the first time for a walk.
    ///
    /// # Errors
    /// The places have too many folders to be looked through.
    pub(super) fn of(
        &self,
        secrets: &[PathBuf],
        places: impl FnOnce() -> Vec<PathBuf>,
    ) -> Result<Vec<PathBuf>, TooMany> {
        let mut linked = linked(secrets);
        if linked.is_empty() {
            return Ok(Vec::new());
        }
        let (places, mut found) = (places(), BTreeSet::new());
        let mut all = self.0.lock();
        linked.retain(|number, secret| {
            let known = all.get(&(*number, places.clone())).filter(|known| {
                let is_there = |path: &PathBuf| number_of(path) == Some(*number);
                known.changed == secret.changed && known.names.iter().all(is_there)
            });
            found.extend(known.into_iter().flat_map(|known| known.names.difference(&secret.known).cloned()));
            known.is_none()
        });
        if !linked.is_empty() {
            let names = look_through(&places, &linked)?;
            if all.len() > MAX_KNOWN {
                all.clear();
            }
            for (number, secret) in linked {
                let names = names.get(&number).cloned().unwrap_or_default();
                found.extend(names.difference(&secret.known).cloned());
                all.insert((number, places.clone()), FoundNames { changed: secret.changed, names });
            }
        }
        Ok(found.into_iter().collect())
    }
}

/// The files among these, and in these folders, that have other names as well.
pub(super) fn files_with_other_names(secrets: &[PathBuf]) -> Vec<PathBuf> {
    linked(secrets).into_values().flat_map(|secret| secret.known).collect()
}

/// The secrets among these files, and in these folders, that have more names than those.
fn linked(secrets: &[PathBuf]) -> BTreeMap<LinkedNumber, LinkedSecret> {
    let mut linked = BTreeMap::new();
    let mut add = |path: PathBuf, facts: &Metadata| {
        if facts.is_file() && facts.nlink() > 1 {
            let changed = (facts.ctime(), facts.ctime_nsec());
            let new = LinkedSecret { changed, links: facts.nlink(), known: BTreeSet::new() };
            linked.entry((facts.dev(), facts.ino())).or_insert(new).known.insert(path);
        }
    };
    let mut inside = 0;
    let mut left: Vec<PathBuf> = secrets.to_vec();
    while let Some(path) = left.pop() {
        let Ok(facts) = path.symlink_metadata() else { continue };
        if facts.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let entries: Vec<PathBuf> = entries.map(|entry| entry.path()).take(MAX_INSIDE - inside).collect();
            inside += entries.len();
            left.extend(entries);
        } else {
            add(path, &facts);
        }
    }
    linked.retain(|_, secret| (secret.known.len() as u64) < secret.links);
    linked
}

/// All names of the secrets in these places. Stops when all are found.
fn look_through(
    places: &[PathBuf],
    secrets: &BTreeMap<LinkedNumber, LinkedSecret>,
) -> Result<BTreeMap<LinkedNumber, BTreeSet<PathBuf>>, TooMany> {
    let numbers: BTreeSet<u64> = secrets.keys().map(|(_, number)| *number).collect();
    let devices: BTreeSet<u64> = secrets.keys().map(|(device, _)| *device).collect();
    let mut left: BTreeMap<LinkedNumber, u64> =
        secrets.iter().map(|(number, secret)| (*number, secret.links - secret.known.len() as u64)).collect();
    let mut found: BTreeMap<LinkedNumber, BTreeSet<PathBuf>> = BTreeMap::new();
    let (mut folders, mut looked) = (places.to_vec(), BTreeSet::new());
    while let Some(folder) = folders.pop().filter(|_| !left.is_empty()) {
        // A link never leads to another device.
        let Some(number) = folder_number(&folder).filter(|(device, _)| devices.contains(device)) else { continue };
        if !looked.insert(number) {
            continue;
        }
        if looked.len() > MAX_FOLDERS {
            return Err(TooMany);
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let number = numbers.contains(&entry.ino()).then(|| number_of(&entry.path())).flatten();
            let Some((number, secret)) = number.and_then(|number| Some((number, secrets.get(&number)?))) else {
                continue;
            };
            let path = entry.path();
            if let Some(count) = left.get_mut(&number).filter(|_| !secret.known.contains(&path)) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    left.remove(&number);
                }
            }
            found.entry(number).or_default().insert(path);
        }
    }
    Ok(found)
}

fn number_of(path: &Path) -> Option<LinkedNumber> {
    path.symlink_metadata().ok().map(|facts| (facts.dev(), facts.ino()))
}

/// That of a folder, also if the path is a link to it.
fn folder_number(path: &Path) -> Option<LinkedNumber> {
    path.metadata().ok().filter(Metadata::is_dir).map(|facts| (facts.dev(), facts.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_of_secrets_are_found_wherever_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for name in ["work/src", "work/node_modules/p", "home/.ssh", "home/.local/bin", "elsewhere"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        for name in ["work/.env", "home/.ssh/id", "work/plain"] {
            std::fs::write(top.join(name), "x").unwrap();
        }
        let link = |from: &str, to: &str| std::fs::hard_link(top.join(from), top.join(to)).unwrap();
        let (secrets, places) =
            ([top.join("work/.env"), top.join("home/.ssh")], [top.join("work"), top.join("home/.local")]);
        let names = OtherNames::default();
        let found = || {
            let found = names.of(&secrets, || places.to_vec()).unwrap();
            found.iter().map(|path| path.strip_prefix(&top).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found(), [] as [&str; 0]);
        link("work/plain", "work/other");
        link("work/.env", "elsewhere/a");
        assert_eq!(found(), [] as [&str; 0]);
        link("work/.env", "work/node_modules/p/notes.txt");
        link("home/.ssh/id", "home/.local/bin/tool");
        let both = ["home/.local/bin/tool", "work/node_modules/p/notes.txt"];
        assert_eq!((found(), found()), (both.map(str::to_owned).into(), both.map(str::to_owned).into()));
        // Folders that are renamed leave no time at the file.
        std::fs::rename(top.join("work/node_modules"), top.join("work/n")).unwrap();
        assert_eq!(found(), ["home/.local/bin/tool", "work/n/p/notes.txt"]);
        std::fs::remove_file(top.join("work/n/p/notes.txt")).unwrap();
        assert_eq!(found(), ["home/.local/bin/tool"]);
    }
}
