//! The secret files of the session's folders: those that are named like one and hold no public certificate, those that an
//! ignore file of tools excludes, and none that Git tracks with its content.
//!
//! Each folder is read again only when its time has changed, so that a command in a large project waits for one look at
//! the time of each folder.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use toold_engine::policy::is_secret;

use super::tracked::{GitIndexes, TrackingRepository};
use crate::exclude::Exclusions;
use crate::file_needs::is_certificate;
use crate::file_systems::answering;

/// Folders that are looked at.
const MAX_FOLDERS: usize = 50_000;
/// Secrets in one place.
const MAX_SECRETS: usize = 512;
/// Places that are remembered.
const MAX_PLACES: usize = 16;
/// Folders of others' code, which is no secret, and too much of it to look at.
const NOT_LOOKED_AT: &[&str] =
    &[".git", "node_modules", "target", ".venv", "venv", "site-packages", "dist-packages", "__pycache__"];
const RULES: [&str; 2] = [".aiexclude", ".toolignore"];
/// Two changes within this may leave the same time.
const SAME_TIME: Duration = Duration::from_millis(20);

/// One per daemon. Its places are read while it is locked.
#[derive(Debug, Default)]
pub(super) struct SecretIndex(Mutex<BTreeMap<PathBuf, IndexedPlace>>);

/// A place has more folders or secrets than are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

#[derive(Debug, Default)]
struct IndexedPlace {
    folders: HashMap<PathBuf, ReadFolder>,
    /// The ignore files that count, also those above the place.
    rules: BTreeMap<PathBuf, Option<Stamp>>,
    used: Option<SystemTime>,
    has_too_many: bool,
}

#[derive(Debug)]
struct ReadFolder {
    stamp: Stamp,
    /// It may have changed again without another time.
    is_recent: bool,
    folders: Vec<PathBuf>,
    excluded: Vec<PathBuf>,
    named: Vec<NamedSecret>,
}

/// A file that is named like a secret.
#[derive(Debug)]
struct NamedSecret {
    path: PathBuf,
    /// Of the file and of its repository's index, when the rest was determined.
    stamps: Option<(Stamp, Option<Stamp>)>,
    /// It is a public certificate, or Git has its content.
    is_public: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl SecretIndex {
    /// The secrets in a place. Blocks: the first time for a walk.
    ///
    /// # Errors
    /// There are too many folders or secrets.
    pub(super) fn secrets(&self, place: &Path) -> Result<Vec<PathBuf>, TooMany> {
        let mut places = self.0.lock();
        if places.len() >= MAX_PLACES && !places.contains_key(place) {
            let oldest = places.iter().min_by_key(|(_, known)| known.used).map(|(path, _)| path.clone());
            oldest.and_then(|oldest| places.remove(&oldest));
        }
        let known = places.entry(place.to_owned()).or_default();
        known.used = Some(SystemTime::now());
        let found = known.secrets(place);
        known.has_too_many = found.is_err();
        found
    }

    /// Whether a place had too many the last time. Blocks as [`SecretIndex::secrets`] for a place that is new.
    pub(super) fn has_too_many(&self, place: &Path) -> bool {
        let known = self.0.lock().get(place).map(|known| known.has_too_many);
        known.unwrap_or_else(|| self.secrets(place).is_err())
    }
}

impl IndexedPlace {
    fn secrets(&mut self, place: &Path) -> Result<Vec<PathBuf>, TooMany> {
        if self.rules.iter().any(|(path, stamp)| Stamp::of(path) != *stamp) {
            self.folders.clear();
            self.rules.clear();
        }
        if self.rules.is_empty() {
            let above = place.ancestors().flat_map(|folder| RULES.map(|name| folder.join(name)));
            self.rules = above.map(|path| (path.clone(), Stamp::of(&path))).collect();
        }
        match self.walk(place)? {
            Some(found) => Ok(found),
            // Another ignore file appeared: it counts for folders that were not read again.
            None => {
                self.folders.clear();
                self.walk(place).map(Option::unwrap_or_default)
            }
        }
    }

    /// `None` if a new ignore file was found while older folders were kept.
    fn walk(&mut self, place: &Path) -> Result<Option<Vec<PathBuf>>, TooMany> {
        let before = std::mem::take(&mut self.folders);
        let (mut left, mut exclusions, mut found) = (vec![place.to_owned()], Exclusions::of_walk(), Vec::new());
        let (mut before, mut has_new_rules) = (before, false);
        let had_folders = !before.is_empty();
        let mut indexes = GitIndexes::default();
        while let Some(path) = left.pop() {
            // What does not answer now shows nothing to a command either. The next command looks again.
            if answering::ask(&path).is_err() {
                continue;
            }
            let Some(stamp) = Stamp::of(&path) else { continue };
            let known = before.remove(&path).filter(|known| known.stamp == stamp && !known.is_recent);
            let mut folder = match known {
                Some(known) => known,
                None => {
                    for rules in RULES.map(|name| path.join(name)) {
                        let stamp = Stamp::of(&rules);
                        has_new_rules |= self.rules.get(&rules).is_none_or(|known| *known != stamp) && stamp.is_some();
                        if stamp.is_some() {
                            self.rules.insert(rules, stamp);
                        }
                    }
                    ReadFolder::read(&path, stamp, &mut exclusions)
                }
            };
            left.extend(folder.folders.iter().cloned());
            found.extend(folder.excluded.iter().cloned());
            found.extend(folder.named.iter_mut().filter_map(|file| file.secret(&mut indexes)));
            self.folders.insert(path, folder);
            if self.folders.len() > MAX_FOLDERS || found.len() > MAX_SECRETS {
                self.folders.clear();
                return Err(TooMany);
            }
        }
        Ok((!(has_new_rules && had_folders)).then_some(found))
    }
}

impl ReadFolder {
    fn read(folder: &Path, stamp: Stamp, exclusions: &mut Exclusions) -> Self {
        let is_recent = stamp.is_recent();
        let (mut folders, mut excluded, mut named) = (Vec::new(), Vec::new(), Vec::new());
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            // What a link leads to is a secret itself, or not.
            if kind.is_symlink() || RULES.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if exclusions.reason(&path, kind.is_dir()).is_some() {
                excluded.push(path);
            } else if is_secret(&path) && !(kind.is_dir() && is_plain_folder(&path)) {
                named.push(NamedSecret { path, stamps: None, is_public: false });
            } else if kind.is_dir() && !NOT_LOOKED_AT.iter().any(|name| entry.file_name() == *name) {
                folders.push(path);
            }
        }
        Self { stamp, is_recent, folders, excluded, named }
    }
}

/// Whether only the files of this name are secrets: `.env` is also the folder of a Python environment.
fn is_plain_folder(path: &Path) -> bool {
    path.join("bin").is_dir() || !is_secret(&path.join("x"))
}

impl NamedSecret {
    /// Its path, unless what it holds is public.
    fn secret(&mut self, indexes: &mut GitIndexes) -> Option<PathBuf> {
        let repository = TrackingRepository::of(&self.path);
        let index = repository.as_ref().and_then(|repository| Stamp::of(&repository.index));
        let stamps = (Stamp::of(&self.path)?, index);
        let is_recent = stamps.0.is_recent() || index.is_some_and(|index| index.is_recent());
        if self.stamps != Some(stamps) || is_recent {
            self.stamps = Some(stamps);
            self.is_public = is_certificate(&self.path)
                || repository.is_some_and(|repository| indexes.tracks(&repository, &self.path));
        }
        (!self.is_public).then(|| self.path.clone())
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let facts = path.symlink_metadata().ok()?;
        Some(Self {
            device: facts.dev(),
            inode: facts.ino(),
            size: facts.size(),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }

    fn is_recent(&self) -> bool {
        let (seconds, nanos) = self.changed;
        let since = Duration::new(seconds.try_into().unwrap_or(0), nanos.try_into().unwrap_or(0));
        let changed = SystemTime::UNIX_EPOCH + since;
        SystemTime::now().duration_since(changed).is_ok_and(|age| age < SAME_TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_and_changes_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let path = top.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let index = SecretIndex::default();
        let found = || {
            let mut found = index.secrets(&top).unwrap();
            found.sort();
            let below = found.iter().map(|path| path.strip_prefix(&top).unwrap().display().to_string());
            below.collect::<Vec<_>>()
        };
        write("src/main.rs", "x");
        write("node_modules/a/.env", "x");
        write("certs/ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
        write(".env/lib/x.py", "x");
        assert_eq!(found(), [] as [&str; 0]);
        write("deep/er/.env", "KEY=1");
        write(".aws/credentials", "x");
        assert_eq!(found(), [".aws", "deep/er/.env"]);
        // A key in the place of a certificate, in a folder whose own time stays.
        write("certs/ca.pem", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n");
        assert_eq!(found(), [".aws", "certs/ca.pem", "deep/er/.env"]);
        // An ignore file, and a change of it.
        write(".toolignore", "src/\n");
        assert_eq!(found(), [".aws", "certs/ca.pem", "deep/er/.env", "src"]);
        write(".toolignore", "main.rs\n!deep\n");
        assert_eq!(found(), [".aws", "certs/ca.pem", "deep/er/.env", "src/main.rs"]);
        std::fs::remove_file(top.join("deep/er/.env")).unwrap();
        std::fs::remove_file(top.join(".toolignore")).unwrap();
        assert_eq!(found(), [".aws", "certs/ca.pem"]);
    }

    #[test]
    fn more_secrets_than_are_hidden_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MAX_SECRETS {
            std::fs::write(folder.path().join(format!("{number}.env")), "x").unwrap();
        }
        let index = SecretIndex::default();
        assert!(index.has_too_many(folder.path()));
        assert_eq!(index.secrets(folder.path()), Err(TooMany));
    }
}
