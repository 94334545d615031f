//! Writes files so that either the old or the new file is there, complete, whatever happens.

pub mod record;

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use crate::descendants::new_mark;
use crate::files::entry::FolderEntry;
use crate::files::{self, OpenError, check_kind, make_folders, open_folder};

use record::TemporaryName;

/// Size limit of a file that is overwritten in place; its old content is kept in memory meanwhile.
const MAX_KEPT: u64 = 64 << 20;

/// The state that the path must have when it is written.
#[derive(Clone, Copy, Debug)]
pub enum Expected<'a> {
    /// Nothing.
    Absent,
    /// A file that is still the one that was opened here.
    Same(&'a File),
}

/// Why nothing was written. The old file, if there was one, is intact.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    #[error("{} changed while it was written", .0.display())]
    Changed(PathBuf),
    #[error("{} is read-only", .0.display())]
    ReadOnly(PathBuf),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("can't write {}: {source}", .path.display())]
    System { path: PathBuf, source: io::Error },
    /// The only case in which the old content is lost: see [`replace`].
    #[error("can't write {}: {source}; its old content could not be brought back: {restore}", .path.display())]
    Broken { path: PathBuf, source: io::Error, restore: io::Error },
}

/// Writes `content` to the file at the resolved path; creates missing folders.
///
/// The content is written to a new file beside the old one, synced to disk and renamed over it. Mode, owner and
/// extended attributes are kept. A new file gets the mode of the umask. Where renaming would break something, the
/// content is written into the old file instead, which a crash can interrupt: if the file has several names (hard
/// links), if no files can be created in the folder, or if the owner cannot be kept. If such a write fails, the old
/// content is written back.
///
/// The folder is not synced: that would take as long again, and editors do not do it either. So a power cut in the next
/// seconds may bring the old file back, complete, and leave out a new one.
///
/// # Errors
/// See [`ReplaceError`]. Links that were put on the path meanwhile are refused.
pub fn replace(resolved: &Path, content: &[u8], expected: Expected<'_>) -> Result<(), ReplaceError> {
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Err(OpenError::Folder(resolved.to_owned()).into());
    };
    let target = ReplaceTarget(FolderEntry { folder: make_folders(parent)?, name, path: resolved });
    let old = target.stat()?;
    match (expected, &old) {
        (Expected::Absent, None) => target.create(content),
        (Expected::Absent, Some(_)) => Err(ReplaceError::Exists(resolved.to_owned())),
        (Expected::Same(file), Some(old)) if target.is_same(file, old)? => {
            if rustix::fs::accessat(&target.0.folder, name, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS).is_err() {
                return Err(ReplaceError::ReadOnly(resolved.to_owned()));
            }
            if old.st_nlink > 1 { target.write_into(content, file) } else { target.swap(content, file, old) }
        }
        (Expected::Same(_), _) => Err(ReplaceError::Changed(resolved.to_owned())),
    }
}

/// Creates a file in a folder that exists, complete and with its permission bits at once; by default those of the umask. It is
/// not synced to disk: for many files, that would take very long.
///
/// # Errors
/// As [`replace`].
pub fn make_file(resolved: &Path, content: &[u8], mode: Option<u32>) -> Result<(), ReplaceError> {
    let target = ReplaceTarget(FolderEntry::of(resolved)?);
    let temporary = Temporary::make(&target, Mode::from_raw_mode(0o666))?;
    (&temporary.file).write_all(content).map_err(|source| target.system(source))?;
    if let Some(mode) = mode {
        rustix::fs::fchmod(&temporary.file, Mode::from_raw_mode(mode as _)).map_err(|error| target.failed(error))?;
    }
    temporary.link(target.0.name).map_err(|error| match error {
        Errno::EXIST => ReplaceError::Exists(resolved.to_owned()),
        error => target.failed(error),
    })
}

/// As [`replace`] where `old` is at the path, but for this name alone: if the file has other names, they keep it as it is.
/// The new file gets the permission bits `mode`, whether or not the old one may be written. Not synced, as in [`make_file`].
///
/// # Errors
/// As [`replace`].
pub fn replace_name(resolved: &Path, content: &[u8], old: &File, mode: u32) -> Result<(), ReplaceError> {
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Err(OpenError::Folder(resolved.to_owned()).into());
    };
    let target = ReplaceTarget(FolderEntry { folder: open_folder(parent)?, name, path: resolved });
    let stat = target.stat_same(old)?;
    let temporary = Temporary::make(&target, Mode::from_raw_mode(0o600))?;
    // Where the owner cannot be kept, the file becomes the daemon's.
    temporary.take_after(old, &stat);
    (&temporary.file).write_all(content).map_err(|source| target.system(source))?;
    rustix::fs::fchmod(&temporary.file, Mode::from_raw_mode(mode as _)).map_err(|error| target.failed(error))?;
    if !target.stat()?.is_some_and(|now| is_unchanged(&stat, &now)) {
        return Err(ReplaceError::Changed(resolved.to_owned()));
    }
    temporary.rename(name).map_err(|error| target.failed(error))
}

/// Gives `file` a further name: `resolved`, where nothing is, or the file `old`, which loses this name.
///
/// # Errors
/// As [`replace`]; `System` if the two lie on different file systems.
pub fn add_name(file: &Path, resolved: &Path, old: Option<&File>) -> Result<(), ReplaceError> {
    let entry = FolderEntry::of(file)?;
    let link =
        |folder: &OwnedFd, name: &OsStr| rustix::fs::linkat(&entry.folder, entry.name, folder, name, AtFlags::empty());
    add_name_by(link, resolved, old)
}

/// The same for an open file that has at least one name.
///
/// # Errors
/// As [`add_name`].
pub fn add_name_of(file: &File, resolved: &Path, old: Option<&File>) -> Result<(), ReplaceError> {
    let named = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |folder: &OwnedFd, name: &OsStr| {
        rustix::fs::linkat(rustix::fs::CWD, &named, folder, name, AtFlags::SYMLINK_FOLLOW)
    };
    add_name_by(link, resolved, old)
}

fn add_name_by(
    link: impl Fn(&OwnedFd, &OsStr) -> Result<(), Errno>,
    resolved: &Path,
    old: Option<&File>,
) -> Result<(), ReplaceError> {
    let target = ReplaceTarget(FolderEntry::of(resolved)?);
    let link = |name: &OsStr| link(&target.0.folder, name);
    let Some(old) = old else { return link(target.0.name).map_err(|error| target.failed(error)) };
    target.stat_same(old)?;
    let own = new_name();
    let _recorded = TemporaryName::new(&resolved.with_file_name(&own));
    link(&own).map_err(|error| target.failed(error))?;
    rustix::fs::renameat(&target.0.folder, &own, &target.0.folder, target.0.name).map_err(|error| {
        // The error that matters is that of the renaming.
        let _ = rustix::fs::unlinkat(&target.0.folder, &own, AtFlags::empty());
        target.failed(error)
    })
}

/// Removes a file if it is still the one that was opened here.
///
/// # Errors
/// As [`replace`].
pub fn remove(resolved: &Path, file: &File) -> Result<(), ReplaceError> {
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Err(OpenError::Folder(resolved.to_owned()).into());
    };
    let target = ReplaceTarget(FolderEntry { folder: open_folder(parent)?, name, path: resolved });
    target.stat_same(file)?;
    rustix::fs::unlinkat(&target.0.folder, name, AtFlags::empty()).map_err(|error| target.failed(error))
}

/// The folder and name of a file that is written or removed.
struct ReplaceTarget<'a>(FolderEntry<'a>);

impl ReplaceTarget<'_> {
    /// The existing file; an error if it is not a regular file.
    fn stat(&self) -> Result<Option<Stat>, ReplaceError> {
        let stat = self.0.stat()?;
        if let Some(stat) = &stat {
            check_kind(FileType::from_raw_mode(stat.st_mode), self.0.path)?;
        }
        Ok(stat)
    }

    /// The existing file, if it is the one that was opened here.
    fn stat_same(&self, file: &File) -> Result<Stat, ReplaceError> {
        match self.stat()? {
            Some(stat) if self.is_same(file, &stat)? => Ok(stat),
            _ => Err(ReplaceError::Changed(self.0.path.to_owned())),
        }
    }

    fn is_same(&self, file: &File, stat: &Stat) -> Result<bool, ReplaceError> {
        let opened = rustix::fs::fstat(file).map_err(|error| self.failed(error))?;
        Ok((opened.st_dev, opened.st_ino) == (stat.st_dev, stat.st_ino))
    }

    fn create(&self, content: &[u8]) -> Result<(), ReplaceError> {
        let temporary = Temporary::make(self, Mode::from_raw_mode(0o666))?;
        temporary.fill(content).map_err(|source| self.system(source))?;
        temporary.link(self.0.name).map_err(|error| match error {
            Errno::EXIST => ReplaceError::Exists(self.0.path.to_owned()),
            error => self.failed(error),
        })
    }

    fn swap(&self, content: &[u8], file: &File, old: &Stat) -> Result<(), ReplaceError> {
        let temporary = match Temporary::make(self, Mode::from_raw_mode(0o600)) {
            Ok(temporary) => temporary,
            Err(ReplaceError::System { source, .. })
                if matches!(Errno::from_io_error(&source), Some(Errno::ACCESS | Errno::PERM)) =>
            {
                return self.write_into(content, file);
            }
            Err(error) => return Err(error),
        };
        if !temporary.take_after(file, old) {
            drop(temporary);
            return self.write_into(content, file);
        }
        temporary.fill(content).map_err(|source| self.system(source))?;
        let still = self.stat()?;
        if !still.is_some_and(|now| is_unchanged(old, &now)) {
            return Err(ReplaceError::Changed(self.0.path.to_owned()));
        }
        temporary.rename(self.0.name).map_err(|error| self.failed(error))
    }

    /// Writes into the file itself. If that fails half way, the old content is written back.
    fn write_into(&self, content: &[u8], old: &File) -> Result<(), ReplaceError> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(&self.0.folder, self.0.name, flags, Mode::empty())
            .map_err(|error| self.failed(error))?;
        let file = File::from(fd);
        let stat = rustix::fs::fstat(&file).map_err(|error| self.failed(error))?;
        if !self.is_same(old, &stat)? {
            return Err(ReplaceError::Changed(self.0.path.to_owned()));
        }
        let mut reader = old;
        io::Seek::rewind(&mut reader).map_err(|source| self.system(source))?;
        let before =
            files::read_opened(&mut reader, self.0.path, MAX_KEPT).map_err(|error| self.system(error.into()))?;
        match overwrite(&file, content) {
            Ok(()) => Ok(()),
            Err(source) => match overwrite(&file, &before) {
                Ok(()) => Err(self.system(source)),
                Err(restore) => Err(ReplaceError::Broken { path: self.0.path.to_owned(), source, restore }),
            },
        }
    }

    fn failed(&self, error: Errno) -> ReplaceError {
        self.system(error.into())
    }

    fn system(&self, source: io::Error) -> ReplaceError {
        ReplaceError::System { path: self.0.path.to_owned(), source }
    }
}

fn overwrite(file: &File, content: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    // A lack of space fails here, before anything is lost.
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, content.len().max(1) as u64) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    file.write_all_at(content, 0)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

fn is_unchanged(old: &Stat, now: &Stat) -> bool {
    let stamp = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    stamp(old) == stamp(now)
}

/// A new file beside the target. Where the system supports it, the file has no name while it is written, so that a
/// crash leaves nothing behind. A name that it does have is removed if the value is dropped before the file is kept.
struct Temporary<'a> {
    folder: BorrowedFd<'a>,
    /// Descriptor of the folder.
    path: &'a Path,
    file: File,
    name: RefCell<Option<OsString>>,
}

impl<'a> Temporary<'a> {
    fn make(target: &'a ReplaceTarget<'_>, mode: Mode) -> Result<Self, ReplaceError> {
        let folder = target.0.folder.as_fd();
        let path = target.0.path.parent().unwrap_or(Path::new("/"));
        #[cfg(target_os = "linux")]
        if Path::new("/proc/self/fd").exists() {
            let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
            match rustix::fs::openat(folder, ".", flags, mode) {
                Ok(fd) => return Ok(Self { folder, path, file: File::from(fd), name: RefCell::default() }),
                // Not every file system supports unnamed files.
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
                Err(error) => return Err(target.failed(error)),
            }
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = new_name();
        let fd = rustix::fs::openat(folder, &name, flags, mode).map_err(|error| target.failed(error))?;
        Ok(Self { folder, path, file: File::from(fd), name: RefCell::new(Some(name)) })
    }

    /// Links the file to this name; `EXIST` if the name is taken.
    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        match &*self.name.borrow() {
            Some(own) => rustix::fs::linkat(self.folder, own, self.folder, name, AtFlags::empty()),
            None => {
                let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.file));
                rustix::fs::linkat(rustix::fs::CWD, path, self.folder, name, AtFlags::SYMLINK_FOLLOW)
            }
        }
    }

    /// Renames the file over the existing one with this name.
    fn rename(&self, name: &OsStr) -> Result<(), Errno> {
        let own = new_name();
        let _recorded = self.name.borrow().is_none().then(|| TemporaryName::new(&self.path.join(&own)));
        if self.name.borrow().is_none() {
            self.link(&own)?;
            self.name.replace(Some(own));
        }
        let own = self.name.borrow().clone().expect("it has just got a name");
        rustix::fs::renameat(self.folder, &own, self.folder, name)?;
        self.name.replace(None);
        Ok(())
    }

    /// Copies mode, owner and attributes of the old file; false if the owner cannot be kept.
    fn take_after(&self, file: &File, old: &Stat) -> bool {
        let Ok(own) = rustix::fs::fstat(&self.file) else { return false };
        if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid) {
            let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            if rustix::fs::fchown(&self.file, Some(uid), Some(gid)).is_err() {
                return false;
            }
        }
        copy_attributes(file, &self.file);
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(old.st_mode & 0o7777)).is_ok()
    }

    fn fill(&self, content: &[u8]) -> io::Result<()> {
        (&self.file).write_all(content)?;
        self.file.sync_all()
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = rustix::fs::unlinkat(self.folder, &name, AtFlags::empty());
        }
    }
}

/// Not derived from the target's name, which may have the maximum length already.
fn new_name() -> OsString {
    format!(".toold-{}.tmp", new_mark()).into()
}

fn is_temporary(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(".toold-") && name.ends_with(".tmp"))
}

/// Access control lists, labels and user attributes. Those that may not be set are skipped.
fn copy_attributes(from: &File, to: &File) {
    let mut names = vec![0u8; 64 * 1024];
    let Ok(length) = rustix::fs::flistxattr(from, names.as_mut_slice()) else { return };
    let mut value = vec![0u8; 64 * 1024];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if let Ok(length) = rustix::fs::fgetxattr(from, name, value.as_mut_slice()) {
            let _ = rustix::fs::fsetxattr(to, name, &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_is_made_with_its_folders() {
        let (_keep, root) = folder();
        replace(&root.join("a/b/c"), b"text", Expected::Absent).unwrap();
        assert_eq!(std::fs::read(root.join("a/b/c")).unwrap(), b"text");
        assert_eq!(names(&root.join("a/b")), ["c"]);
        assert!(matches!(replace(&root.join("a/b/c"), b"", Expected::Absent), Err(ReplaceError::Exists(_))));
        assert!(matches!(
            replace(&root.join("a/b"), b"", Expected::Absent),
            Err(ReplaceError::Open(OpenError::Folder(_)))
        ));
        assert!(replace(&root.join("a/b/c/d"), b"", Expected::Absent).is_err());
    }

    #[test]
    fn mode_and_attributes_stay_and_nothing_is_left() {
        let (_keep, root) = folder();
        let path = root.join("file");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
        let old = File::open(&path).unwrap();
        let has_attributes = rustix::fs::fsetxattr(&old, "user.note", b"kept", rustix::fs::XattrFlags::empty()).is_ok();
        replace(&path, b"new", Expected::Same(&old)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
        let mut value = [0u8; 16];
        let length = rustix::fs::getxattr(&path, "user.note", &mut value[..]).unwrap_or(0);
        assert_eq!(&value[..length] == b"kept", has_attributes);
        assert_eq!(names(&root), ["file"]);
    }

    #[test]
    fn hard_links_stay_together() {
        let (_keep, root) = folder();
        std::fs::write(root.join("one"), "a long old text").unwrap();
        std::fs::hard_link(root.join("one"), root.join("two")).unwrap();
        let old = File::open(root.join("one")).unwrap();
        replace(&root.join("one"), b"new", Expected::Same(&old)).unwrap();
        assert_eq!(std::fs::read(root.join("two")).unwrap(), b"new");
    }

    #[test]
    fn one_name_of_a_file_is_replaced_and_given_back() {
        let (_keep, root) = folder();
        let (one, two) = (root.join("one"), root.join("two"));
        std::fs::write(&one, "shared").unwrap();
        std::fs::set_permissions(&one, std::fs::Permissions::from_mode(0o444)).unwrap();
        std::fs::hard_link(&one, &two).unwrap();
        replace_name(&one, b"own", &File::open(&one).unwrap(), 0o640).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&one), read(&two)), ("own".to_owned(), "shared".to_owned()));
        assert_eq!(std::fs::metadata(&one).unwrap().mode() & 0o7777, 0o640);
        add_name(&two, &one, Some(&File::open(&one).unwrap())).unwrap();
        add_name(&two, &root.join("three"), None).unwrap();
        assert!(add_name(&two, &one, None).is_err());
        let identity = |path: &Path| std::fs::metadata(path).unwrap().ino();
        assert_eq!((identity(&one), identity(&root.join("three"))), (identity(&two), identity(&two)));
        assert_eq!(names(&root), ["one", "three", "two"]);
    }

    #[test]
    fn another_file_at_the_path_is_not_overwritten() {
        let (_keep, root) = folder();
        let path = root.join("file");
        std::fs::write(&path, "old").unwrap();
        let old = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "other").unwrap();
        assert!(matches!(replace(&path, b"new", Expected::Same(&old)), Err(ReplaceError::Changed(_))));
        std::fs::remove_file(&path).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(replace(&path, b"new", Expected::Same(&old)).is_err());
        assert!(remove(&path, &old).is_err());
        assert!(!root.join("elsewhere").exists());
    }

    #[test]
    fn unwritable_file_stays_intact() {
        let (_keep, root) = folder();
        let path = root.join("file");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
        let old = File::open(&path).unwrap();
        let replaced = replace(&path, b"new", Expected::Same(&old));
        // The superuser may write everything.
        if !rustix::process::geteuid().is_root() {
            assert!(matches!(replaced, Err(ReplaceError::ReadOnly(_))));
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
        }
        assert_eq!(names(&root), ["file"]);
    }
}
