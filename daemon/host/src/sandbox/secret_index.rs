//! The secret files of the session's folders: those that are named like one and hold no public certificate, those that an
//! ignore file of tools excludes or a rule keeps from being read, and none that Git tracks with its content.
//!
//! Each folder is watched, and read again only when something in it has changed, so that a command in a large project waits
//! for what has changed since the last one. Where a folder cannot be watched, its time tells whether it has changed.
//!
//! The same walk finds the files that run code later or that a rule keeps as they are, and the repositories of Git.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use toold_engine::guarded_files::{GuardedFiles, PatternText};
use toold_engine::policy::is_secret;

use super::tracked::{GitIndexes, TrackingRepository};
use crate::exclude::Exclusions;
use crate::file_needs::is_certificate;
use crate::file_systems::answering;
use crate::folder_events::{WatchBudget, WatchedFolders};

/// Folders that are looked at.
const MAX_FOLDERS: usize = 50_000;
/// The same where nothing is remembered.
const MAX_LOOKED: usize = 1_000_000;
/// Secrets in one place.
const MAX_SECRETS: usize = 512;
/// Places that are remembered.
const MAX_PLACES: usize = 16;
/// Folders of others' code, which is no secret, and too much of it to look at: repositories alone are looked for, in them and in
/// the folders in them.
const OF_OTHERS: &[&str] =
    &["node_modules", "target", ".venv", "venv", "site-packages", "dist-packages", "__pycache__"];
/// What a bare repository has in it, and whether that is a folder.
const BARE: [(&str, bool); 3] = [("HEAD", false), ("objects", true), ("refs", true)];
/// Files that say which other files tools leave alone.
pub(super) const RULES: [&str; 2] = [".aiexclude", ".toolignore"];
/// How long it is taken for granted that there are too many folders.
const AGAIN: Duration = Duration::from_secs(60);
/// Two changes within this may leave the same time.
const SAME_TIME: Duration = Duration::from_millis(20);

/// One per daemon. Its places are read while it is locked.
#[derive(Debug, Default)]
pub(super) struct SecretIndex {
    places: Mutex<BTreeMap<PathBuf, IndexedPlace>>,
    budget: OnceLock<WatchBudget>,
}

/// A place has more folders or secrets than are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// What runs code later in a place, where it lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundControl {
    /// Files and folders.
    pub(super) files: BTreeSet<PathBuf>,
    /// `.git` of folders, be it a folder or a file, and bare repositories.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// Folders that are secret as a whole, and were not looked into: commands do not see those that are there when they begin.
    pub(super) secret: BTreeSet<PathBuf>,
}

/// How many secrets lie in places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SecretCounts {
    pub(super) secrets: usize,
    /// The entries of the folders above them, in the places.
    pub(super) beside: usize,
}

#[derive(Debug)]
struct IndexedPlace {
    folders: HashMap<PathBuf, ReadFolder>,
    watched: WatchedFolders,
    /// The ignore files that count, also those above the place.
    rules: BTreeMap<PathBuf, Option<Stamp>>,
    /// Where the place was when all folders were last looked at; `None` if they were not.
    looked: Option<WalkedPlace>,
    /// The folders with secrets that were found then.
    with_secrets: Vec<PathBuf>,
    /// Those with anything that runs code later.
    with_control: Vec<PathBuf>,
    /// [`GuardedFiles::texts`], by which the folders were read.
    patterns: Vec<PatternText<String>>,
    /// When there were too many folders.
    too_many: Option<Instant>,
    used: SystemTime,
}

/// What no event tells about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WalkedPlace {
    device: u64,
    inode: u64,
    /// How often the mounts of the system had changed.
    mounts: u64,
}

#[derive(Debug)]
struct ReadFolder {
    stamp: Stamp,
    /// It may have changed again without another time.
    is_recent: bool,
    /// Watched, and nothing has happened in it since it was read.
    is_current: bool,
    /// How many entries it has.
    entries: usize,
    folders: Vec<PathBuf>,
    excluded: Vec<PathBuf>,
    named: Vec<NamedSecret>,
    control: FoundControl,
}

/// A file that is named like a secret.
#[derive(Debug)]
struct NamedSecret {
    path: PathBuf,
    /// The stamps of the file and of its repository's index when the rest was determined.
    stamps: Option<(Stamp, Option<Stamp>)>,
    /// It is a public certificate, or Git has its content.
    is_public: bool,
    /// Nothing has happened in its folder, which is watched, since that was determined.
    is_current: bool,
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
    pub(super) fn secrets(&self, place: &Path, files: &GuardedFiles) -> Result<(Vec<PathBuf>, SecretCounts), TooMany> {
        self.with_place(place, |known| {
            known.look(place, files)?;
            known.found(place)
        })
    }

    /// What runs code later in a place. Blocks as [`Self::secrets`].
    ///
    /// # Errors
    /// There are too many folders.
    pub(super) fn control(&self, place: &Path, files: &GuardedFiles) -> Result<FoundControl, TooMany> {
        self.with_place(place, |known| {
            known.look(place, files)?;
            Ok(known.control())
        })
    }

    /// The same below a folder, which may be a secret one or larger than those that are remembered: all of it is looked at again.
    ///
    /// # Errors
    /// It has more than a million folders.
    pub(super) fn control_below(place: &Path, files: &GuardedFiles) -> Result<FoundControl, TooMany> {
        let (mut left, mut looked) = (vec![place.to_owned()], 0);
        let (mut exclusions, mut found) = (Exclusions::of_walk(), FoundControl::default());
        while let Some(path) = left.pop() {
            looked += 1;
            if looked > MAX_LOOKED {
                return Err(TooMany);
            }
            let Some(stamp) = Stamp::of(&path) else { continue };
            let depth = depth_in_others(place, &path);
            let mut folder = ReadFolder::read(&path, (stamp, depth), &mut exclusions, files);
            left.append(&mut folder.folders);
            left.extend(std::mem::take(&mut folder.control.secret));
            found.add(folder.control);
        }
        Ok(found.outer())
    }

    fn with_place<T>(&self, place: &Path, use_it: impl FnOnce(&mut IndexedPlace) -> T) -> T {
        let mut places = self.places.lock();
        if places.len() >= MAX_PLACES && !places.contains_key(place) {
            let oldest = places.iter().min_by_key(|(_, known)| known.used).map(|(path, _)| path.clone());
            oldest.and_then(|oldest| places.remove(&oldest));
        }
        let budget = self.budget.get_or_init(WatchBudget::new);
        let known = places.entry(place.to_owned()).or_insert_with(|| IndexedPlace::new(place, budget.clone()));
        known.used = SystemTime::now();
        use_it(known)
    }
}

impl FoundControl {
    pub(super) fn add(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.repositories.append(&mut other.repositories);
        self.secret.append(&mut other.secret);
    }

    /// Files in a folder that runs code later itself belong to it.
    fn outer(mut self) -> Self {
        let is_inner = |path: &PathBuf| path.ancestors().skip(1).any(|above| self.files.contains(above));
        let inner: Vec<PathBuf> = self.files.iter().filter(|path| is_inner(path)).cloned().collect();
        inner.iter().for_each(|path| _ = self.files.remove(path));
        self
    }
}

impl IndexedPlace {
    fn new(place: &Path, budget: WatchBudget) -> Self {
        Self {
            folders: HashMap::new(),
            watched: WatchedFolders::new(place, budget),
            rules: BTreeMap::new(),
            looked: None,
            with_secrets: Vec::new(),
            with_control: Vec::new(),
            patterns: Vec::new(),
            too_many: None,
            used: SystemTime::now(),
        }
    }

    /// Brings what is known up to date.
    fn look(&mut self, place: &Path, files: &GuardedFiles) -> Result<(), TooMany> {
        if self.too_many.is_some_and(|at| at.elapsed() < AGAIN) {
            return Err(TooMany);
        }
        if !files.texts().eq(self.patterns.iter().map(|(category, verdict, text)| (*category, *verdict, text.as_str())))
        {
            self.forget();
            self.patterns =
                files.texts().map(|(category, verdict, text)| (category, verdict, text.to_owned())).collect();
        }
        if self.rules.iter().any(|(path, stamp)| Stamp::of(path) != *stamp) {
            self.forget();
        }
        if self.rules.is_empty() {
            let above = place.ancestors().flat_map(|folder| RULES.map(|name| folder.join(name)));
            self.rules = above.map(|path| (path.clone(), Stamp::of(&path))).collect();
        }
        // Before the folders are looked at, so that nothing is missed in between.
        let mounts = answering::mount_changes();
        let now = Stamp::of(place).map(|Stamp { device, inode, .. }| WalkedPlace { device, inode, mounts });
        let is_same = now.is_some() && now == self.looked;
        let is_current = self.settle(is_same) && is_same;
        if !is_current && !self.walk(place, now, files)? {
            // Another ignore file appeared: it counts for folders that were not read again.
            self.folders.clear();
            self.walk(place, now, files)?;
        }
        Ok(())
    }

    fn control(&self) -> FoundControl {
        let mut found = FoundControl::default();
        for folder in self.with_control.iter().filter_map(|path| self.folders.get(path)) {
            found.add(folder.control.clone());
        }
        found.outer()
    }

    fn forget(&mut self) {
        self.folders.clear();
        self.rules.clear();
        self.looked = None;
    }

    /// Takes what has happened in the folders. Returns whether all of them are as they were read.
    fn settle(&mut self, is_same_place: bool) -> bool {
        let (mut changed, mut others) = (HashSet::new(), HashSet::new());
        let is_complete = self.watched.take(|path, is_other_folder| {
            changed.extend(path.parent().map(Path::to_owned));
            if is_other_folder {
                others.insert(path.clone());
            }
            changed.insert(path);
        });
        if !others.is_empty() {
            self.folders.retain(|path, _| !path.ancestors().any(|above| others.contains(above)));
        }
        let mut is_current = others.is_empty();
        for (path, folder) in &mut self.folders {
            folder.is_current &= is_complete && is_same_place && !changed.contains(path);
            is_current &= folder.is_current;
        }
        is_current
    }

    /// Looks at all folders that may have changed. Returns whether what was kept of the others is right: no ignore file
    /// appeared.
    fn walk(&mut self, place: &Path, now: Option<WalkedPlace>, files: &GuardedFiles) -> Result<bool, TooMany> {
        let mut own = 0;
        self.looked = None;
        self.with_secrets.clear();
        self.with_control.clear();
        let mut before = std::mem::take(&mut self.folders);
        let (mut left, mut exclusions) = (vec![place.to_owned()], Exclusions::of_walk());
        let (had_folders, mut has_new_rules) = (!before.is_empty(), false);
        while let Some(path) = left.pop() {
            let depth = depth_in_others(place, &path);
            own += usize::from(depth.is_none());
            let known = before.remove(&path);
            let folder = match known {
                Some(known) if known.is_current => known,
                known => {
                    // What does not answer now shows nothing to a command either. The next command looks again.
                    if answering::ask(&path).is_err() {
                        continue;
                    }
                    let Some(Stamp { device, .. }) = Stamp::of(&path) else { continue };
                    // Watched before it is read, so that nothing is missed in between. Other file systems may report less.
                    if now.is_some_and(|now| now.device == device) {
                        self.watched.watch(&path);
                    }
                    let Some(stamp) = Stamp::of(&path) else { continue };
                    let mut known = known.filter(|known| known.stamp == stamp && !known.is_recent);
                    let named = known.iter_mut().flat_map(|known| &mut known.named);
                    named.for_each(|file| file.is_current = false);
                    let folder = known.unwrap_or_else(|| {
                        for rules in RULES.map(|name| path.join(name)).into_iter().filter(|_| depth.is_none()) {
                            let stamp = Stamp::of(&rules);
                            has_new_rules |=
                                self.rules.get(&rules).is_none_or(|known| *known != stamp) && stamp.is_some();
                            if stamp.is_some() {
                                self.rules.insert(rules, stamp);
                            }
                        }
                        ReadFolder::read(&path, (stamp, depth), &mut exclusions, files)
                    });
                    ReadFolder { is_current: self.watched.has(&path), ..folder }
                }
            };
            left.extend(folder.folders.iter().cloned());
            if !folder.excluded.is_empty() || !folder.named.is_empty() {
                self.with_secrets.push(path.clone());
            }
            if folder.control != FoundControl::default() {
                self.with_control.push(path.clone());
            }
            self.folders.insert(path, folder);
            if own > MAX_FOLDERS || self.folders.len() > MAX_FOLDERS * 2 {
                self.folders.clear();
                self.watched.stop();
                self.too_many = Some(Instant::now());
                return Err(TooMany);
            }
        }
        before.keys().for_each(|gone| self.watched.unwatch(gone));
        self.looked = now;
        Ok(!(has_new_rules && had_folders))
    }

    /// The secrets in the folders as they are known. What a file holds is looked at again if the file has changed.
    fn found(&mut self, place: &Path) -> Result<(Vec<PathBuf>, SecretCounts), TooMany> {
        let (mut indexes, mut paths, mut above) = (GitIndexes::default(), Vec::new(), HashSet::new());
        let (mut repositories, around) = (HashMap::new(), OnceCell::new());
        let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let repository_around = || place.ancestors().skip(1).find(has_git).map(Path::to_owned);
        for path in &self.with_secrets {
            let has_git = |folder: &&Path| {
                let known = self.folders.get(*folder);
                known.is_some_and(|known| known.control.repositories.contains(&folder.join(".git")))
            };
            let own = path.ancestors().take_while(|above| above.starts_with(place)).find(has_git).map(Path::to_owned);
            let top = own.or_else(|| around.get_or_init(repository_around).clone());
            let repository = top.and_then(|top| {
                let known = repositories.entry(top);
                let known = known.or_insert_with_key(|top| {
                    let repository = TrackingRepository::of(top)?;
                    let index = Stamp::of(&repository.index);
                    Some((repository, index))
                });
                known.as_ref()
            });
            let Some(folder) = self.folders.get_mut(path) else { continue };
            let before = paths.len();
            paths.extend(folder.excluded.iter().cloned());
            let is_current = folder.is_current;
            paths.extend(folder.named.iter_mut().filter_map(|file| file.secret(is_current, repository, &mut indexes)));
            if paths.len() > before {
                above.extend(path.ancestors().take_while(|above| above.starts_with(place)));
            }
        }
        let entries = |folder: &&Path| self.folders.get(*folder).map_or(0, |folder| folder.entries);
        let counts = SecretCounts { secrets: paths.len(), beside: above.iter().map(entries).sum() };
        if counts.secrets > MAX_SECRETS { Err(TooMany) } else { Ok((paths, counts)) }
    }
}

impl ReadFolder {
    /// `depth` is that [in others' code](depth_in_others).
    fn read(
        folder: &Path,
        (stamp, depth): (Stamp, Option<usize>),
        exclusions: &mut Exclusions,
        files: &GuardedFiles,
    ) -> Self {
        let is_recent = stamp.is_recent();
        let (mut folders, mut excluded, mut named) = (Vec::new(), Vec::new(), Vec::new());
        let (mut entries, mut control, mut of_bare) = (0, FoundControl::default(), 0);
        let all = std::fs::read_dir(folder);
        if all.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
            // Git finds a repository in a folder that it can enter and not read.
            control.files.insert(folder.to_owned());
        }
        for entry in all.into_iter().flatten().flatten() {
            entries += 1;
            let Ok(kind) = entry.file_type() else { continue };
            let (path, name) = (entry.path(), entry.file_name());
            of_bare += usize::from(BARE.iter().any(|(own, is_folder)| name == *own && kind.is_dir() == *is_folder));
            let is_of_git = name == ".git";
            if is_of_git {
                control.repositories.insert(path.clone());
            }
            if let Some(depth) = depth {
                folders.extend(Some(path).filter(|_| kind.is_dir() && depth == 0 && !is_of_git));
                continue;
            }
            let is_kept =
                || files.is_kept(&path, kind.is_dir()) || kind.is_symlink() && files.link_may_hold_kept(&path);
            if !is_of_git && is_kept() {
                control.files.insert(path.clone());
            }
            // What a link leads to is a secret itself, or not.
            if kind.is_symlink() || RULES.iter().any(|rules| name == *rules) {
                continue;
            }
            let is_excluded =
                files.keeps_from_reading(&path, kind.is_dir()) || exclusions.reason(&path, kind.is_dir()).is_some();
            if is_excluded || is_secret(&path) && !(kind.is_dir() && is_plain_folder(&path)) {
                control.secret.extend(Some(path.clone()).filter(|_| kind.is_dir() && !is_of_git));
                match is_excluded {
                    true => excluded.push(path),
                    false => named.push(NamedSecret { path, stamps: None, is_public: false, is_current: false }),
                }
            } else if kind.is_dir() && !is_of_git {
                folders.push(path);
            }
        }
        if of_bare == BARE.len() {
            control.files.remove(&folder.join("HEAD"));
            control.repositories.insert(folder.to_owned());
        }
        Self { stamp, is_recent, is_current: false, entries, folders, excluded, named, control }
    }
}

/// How deep a folder lies in one of others' code; `None` if it is the session's own. Folders that only hold packages do not count.
fn depth_in_others(place: &Path, folder: &Path) -> Option<usize> {
    let is_of_others = |name: &OsStr| OF_OTHERS.iter().any(|other| name == *other);
    let holds_packages = |name: &OsStr| {
        let name = name.as_encoded_bytes();
        name == b"lib" || [b"@".as_slice(), b"python3"].iter().any(|start| name.starts_with(start))
    };
    let mut names = folder.strip_prefix(place).ok()?.iter().skip_while(|name| !is_of_others(name));
    names.next()?;
    Some(names.filter(|name| !is_of_others(name) && !holds_packages(name)).count())
}

/// Whether only the files of this name are secrets: `.env` is also the folder of a Python environment.
fn is_plain_folder(path: &Path) -> bool {
    path.join("bin").is_dir() || !is_secret(&path.join("x"))
}

impl NamedSecret {
    /// Its path, unless what it holds is public. `is_current` is that of its folder.
    fn secret(
        &mut self,
        is_current: bool,
        repository: Option<&(TrackingRepository, Option<Stamp>)>,
        indexes: &mut GitIndexes,
    ) -> Option<PathBuf> {
        let index = repository.and_then(|(_, index)| *index);
        let is_recent = index.is_some_and(|index| index.is_recent());
        let is_known = self.stamps.is_some_and(|(_, known)| known == index) && !is_recent;
        // A secret stays one. No event tells that a public file was changed through another name.
        if is_known && is_current && self.is_current && !self.is_public {
            return Some(self.path.clone());
        }
        let stamps = (Stamp::of(&self.path)?, index);
        if self.stamps != Some(stamps) || stamps.0.is_recent() || is_recent {
            self.stamps = Some(stamps);
            self.is_public = is_certificate(&self.path)
                || repository.is_some_and(|(repository, _)| indexes.tracks(repository, &self.path));
        }
        self.is_current = is_current;
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
            let mut found = index.secrets(&top, &GuardedFiles::default()).unwrap().0;
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
        // And the other way round, when the key was known to be one.
        assert_eq!(found(), [".aws", "certs/ca.pem", "deep/er/.env"]);
        write("certs/ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
        assert_eq!(found(), [".aws", "deep/er/.env"]);
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
    fn files_that_control_the_daemon_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("web/.toold/plugins")).unwrap();
        std::fs::write(top.join(".toolignore"), "x\n").unwrap();
        let found = SecretIndex::default().control(&top, &GuardedFiles::default()).unwrap();
        assert_eq!(found.files.into_iter().collect::<Vec<_>>(), [top.join(".toolignore"), top.join("web/.toold")]);
    }

    /// What a folder holds after it was moved, or after another one was moved to its place, has other paths.
    #[test]
    fn secrets_in_folders_that_move_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap().join("top");
        for (name, file) in [("a/x", ".env"), ("b/x", "code")] {
            std::fs::create_dir_all(top.join(name)).unwrap();
            std::fs::write(top.join(name).join(file), "KEY=1").unwrap();
        }
        let index = SecretIndex::default();
        let found = || index.secrets(&top, &GuardedFiles::default()).unwrap().0;
        let moved = |from: &str, to: &str| std::fs::rename(top.join(from), top.join(to)).unwrap();
        assert_eq!(found(), [top.join("a/x/.env")]);
        moved("a", "c");
        moved("b", "a");
        moved("c", "b");
        assert_eq!(found(), [top.join("b/x/.env")]);
        // Each is watched where it is now.
        std::fs::write(top.join("a/x/new.env"), "KEY=1").unwrap();
        assert_eq!(found().len(), 2);
        moved("b", "../outside-of-it");
        std::fs::create_dir_all(top.join("b/x")).unwrap();
        assert_eq!(found(), [top.join("a/x/new.env")]);
        std::fs::write(top.join("b/x/.env"), "KEY=1").unwrap();
        assert_eq!(found().len(), 2);
    }

    #[test]
    fn more_secrets_than_are_hidden_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MAX_SECRETS {
            std::fs::write(folder.path().join(format!("{number}.env")), "x").unwrap();
        }
        assert_eq!(SecretIndex::default().secrets(folder.path(), &GuardedFiles::default()), Err(TooMany));
    }
}
