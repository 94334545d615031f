//! Entries of folders: inspected, created, changed and removed through their open folder, so that a link that was put
//! on the path after it was judged is refused. [`crate::replace`] builds on this to write files atomically.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{OpenError, check_kind, open_as, open_folder, open_step, system};

/// For a folder in which a name is looked up; that does not require read permission.
#[cfg(target_os = "linux")]
const PASS_FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const PASS_FOLDER: OFlags = super::READ_FOLDER;

/// A name in an open folder: whatever happens to the folder's path, this is the folder that was judged.
pub(crate) struct FolderEntry<'a> {
    pub(crate) folder: OwnedFd,
    pub(crate) name: &'a OsStr,
    pub(crate) path: &'a Path,
}

impl<'a> FolderEntry<'a> {
    /// # Errors
    /// `NoFolder` if the folder is missing, `Swapped` if a link leads to it.
    pub(crate) fn of(resolved: &'a Path) -> Result<Self, OpenError> {
        let (folder, name) = split(resolved);
        Ok(Self { folder: open_to_pass(folder)?, name, path: resolved })
    }

    /// The entry itself; `None` if there is none.
    ///
    /// # Errors
    /// `Swapped` if it is a link.
    pub(crate) fn stat(&self) -> Result<Option<Stat>, OpenError> {
        match rustix::fs::statat(&self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_symlink() => {
                Err(OpenError::Swapped(self.path.to_owned()))
            }
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(system(self.path, error)),
        }
    }

    /// Opens the file for writing, and creates it if it is missing.
    fn open_to_write(&self, flags: OFlags) -> Result<File, OpenError> {
        // Opening some devices has effects, so they are not opened just to inspect them.
        if let Some(stat) = self.stat()? {
            check_kind(FileType::from_raw_mode(stat.st_mode), self.path)?;
        }
        let fixed = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let never_wait = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mode = Mode::from_raw_mode(0o666);
        let opened = rustix::fs::openat(&self.folder, self.name, flags | fixed | never_wait, mode);
        let file = File::from(opened.map_err(|error| system(self.path, error))?);
        let stat = rustix::fs::fstat(&file).map_err(|error| system(self.path, error))?;
        check_kind(FileType::from_raw_mode(stat.st_mode), self.path)?;
        Ok(file)
    }
}

/// The folder of a path and its name there. The root has itself as its name.
fn split(resolved: &Path) -> (&Path, &OsStr) {
    match (resolved.parent(), resolved.file_name()) {
        (Some(folder), Some(name)) => (folder, name),
        _ => (Path::new("/"), OsStr::new(".")),
    }
}

/// Opens a folder to look names up in it.
///
/// # Errors
/// As [`FolderEntry::of`].
pub(crate) fn open_to_pass(folder: &Path) -> Result<OwnedFd, OpenError> {
    open_as(folder, PASS_FOLDER).map_err(|error| no_folder(folder, error))
}

pub(super) fn no_folder(path: &Path, error: Errno) -> OpenError {
    match error {
        Errno::NOENT | Errno::NOTDIR => OpenError::NoFolder(path.to_owned()),
        error => system(path, error),
    }
}

/// Writes `content` to the file in place. Creates the file if it is missing, but no folder.
///
/// Unlike with [`crate::replace::replace`], a failure may leave a part of the content.
///
/// # Errors
/// See [`OpenError`]. Links that were put on the path are refused, and so is anything but a regular file.
pub fn write(resolved: &Path, content: &[u8]) -> Result<(), OpenError> {
    let file = FolderEntry::of(resolved)?.open_to_write(OFlags::empty())?;
    // Opening does not truncate: only a known regular file is truncated.
    file.set_len(0).and_then(|()| (&file).write_all(content)).map_err(|source| failed(resolved, source))
}

/// Appends `content` to the file. Creates the file if it is missing, but no folder.
///
/// # Errors
/// As [`write()`].
pub fn append(resolved: &Path, content: &[u8]) -> Result<(), OpenError> {
    let mut file = FolderEntry::of(resolved)?.open_to_write(OFlags::APPEND)?;
    file.write_all(content).map_err(|source| failed(resolved, source))
}

fn failed(path: &Path, source: std::io::Error) -> OpenError {
    OpenError::System { path: path.to_owned(), source }
}

/// Opens the folder to make and change entries in it, and creates it and its missing parents.
///
/// # Errors
/// See [`OpenError`]. Links that were put on the path are refused.
pub fn make_folders(resolved: &Path) -> Result<OwnedFd, OpenError> {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut there = resolved;
    let mut folder = loop {
        match open_as(there, PASS_FOLDER) {
            Ok(folder) => break folder,
            Err(Errno::NOENT) => {
                let (Some(above), Some(Component::Normal(name))) = (there.parent(), there.components().next_back())
                else {
                    return Err(OpenError::NoFolder(resolved.to_owned()));
                };
                missing.push(name);
                there = above;
            }
            Err(error) => return Err(system(there, error)),
        }
    };
    for name in missing.into_iter().rev() {
        match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(system(resolved, error)),
        }
        folder = open_step(&folder, name, PASS_FOLDER).map_err(|error| system(resolved, error))?;
    }
    Ok(folder)
}

/// Removes a file of any kind, or an empty folder.
///
/// # Errors
/// See [`OpenError`]; neither a link nor its target is removed.
pub fn remove(resolved: &Path) -> Result<(), OpenError> {
    let entry = FolderEntry::of(resolved)?;
    let stat = entry.stat()?.ok_or_else(|| OpenError::NotFound(resolved.to_owned()))?;
    let flags = match FileType::from_raw_mode(stat.st_mode).is_dir() {
        true => AtFlags::REMOVEDIR,
        false => AtFlags::empty(),
    };
    rustix::fs::unlinkat(&entry.folder, entry.name, flags).map_err(|error| system(resolved, error))
}

/// Renames a file or a folder, replacing a file with the new name.
///
/// # Errors
/// See [`OpenError`]. Links at either path, or on the way there, are refused.
pub fn rename(from: &Path, to: &Path) -> Result<(), OpenError> {
    let (old, new) = (FolderEntry::of(from)?, FolderEntry::of(to)?);
    old.stat()?.ok_or_else(|| OpenError::NotFound(from.to_owned()))?;
    new.stat()?;
    rustix::fs::renameat(&old.folder, old.name, &new.folder, new.name).map_err(|error| system(from, error))
}

/// The metadata of a path, read without opening it.
#[derive(Clone, Copy, Debug)]
pub struct PathFacts {
    pub kind: FileType,
    pub size: u64,
    /// The modification time, since 1970.
    pub modified: Duration,
}

/// The metadata of the path; `None` if nothing is there.
///
/// # Errors
/// `Swapped` for links, at the path and on the way; errors of the system.
pub fn facts(resolved: &Path) -> Result<Option<PathFacts>, OpenError> {
    let entry = match FolderEntry::of(resolved) {
        Ok(entry) => entry,
        Err(OpenError::NoFolder(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(stat) = entry.stat()? else { return Ok(None) };
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Ok(Some(PathFacts {
        kind: FileType::from_raw_mode(stat.st_mode),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified: Duration::new(seconds, nanos),
    }))
}

/// The target of a link, as it is written in the link.
///
/// # Errors
/// See [`OpenError`]; links on the way are refused.
pub fn link_target(link: &Path) -> Result<PathBuf, OpenError> {
    let entry = FolderEntry::of(link)?;
    let target = rustix::fs::readlinkat(&entry.folder, entry.name, Vec::new()).map_err(|error| system(link, error))?;
    Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
}

/// What is at a path, a link included, as the system describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryStat {
    pub kind: FileType,
    /// The permission bits, with those for set-user-ID and the like.
    pub mode: u32,
    pub size: u64,
    /// Device and inode number.
    pub identity: (u64, u64),
    /// How many names the file has.
    pub names: u64,
    /// The times of the last change of the content and of the inode, in nanoseconds since 1970.
    pub changed: (i128, i128),
}

impl EntryStat {
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "the types differ between systems")]
    fn of(stat: &Stat) -> Self {
        let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: u32::from(stat.st_mode) & 0o7777,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            names: stat.st_nlink as u64,
            changed: (
                nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
                nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            ),
        }
    }
}

/// What is at the path itself, be it a link; `None` if nothing is there.
///
/// # Errors
/// See [`OpenError`]; links on the way are refused.
pub fn stat_entry(resolved: &Path) -> Result<Option<EntryStat>, OpenError> {
    let entry = match FolderEntry::of(resolved) {
        Ok(entry) => entry,
        Err(OpenError::NoFolder(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    match rustix::fs::statat(&entry.folder, entry.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(EntryStat::of(&stat))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(system(resolved, error)),
    }
}

/// Makes a link with this target, whether or not the target exists.
///
/// # Errors
/// See [`OpenError`]; `System` if something is at the path.
pub fn make_link(resolved: &Path, target: &Path) -> Result<(), OpenError> {
    let entry = FolderEntry::of(resolved)?;
    rustix::fs::symlinkat(target, &entry.folder, entry.name).map_err(|error| system(resolved, error))
}

/// Makes a named pipe with these permission bits.
///
/// # Errors
/// See [`OpenError`]; `System` if something is at the path.
pub fn make_pipe(resolved: &Path, mode: u32) -> Result<(), OpenError> {
    let entry = FolderEntry::of(resolved)?;
    #[cfg(not(target_vendor = "apple"))]
    let made = rustix::fs::mkfifoat(&entry.folder, entry.name, Mode::RUSR | Mode::WUSR);
    // There it can only be made by its path, which may lead elsewhere by now.
    #[cfg(target_vendor = "apple")]
    let made: Result<(), Errno> = Err(Errno::NOTSUP);
    made.map_err(|error| system(resolved, error))?;
    set_mode(resolved, mode)
}

/// Removes a link, and nothing else.
///
/// # Errors
/// See [`OpenError`].
pub fn remove_link(resolved: &Path) -> Result<(), OpenError> {
    link_target(resolved)?;
    let entry = FolderEntry::of(resolved)?;
    rustix::fs::unlinkat(&entry.folder, entry.name, AtFlags::empty()).map_err(|error| system(resolved, error))
}

/// Sets the permission bits of a file or folder.
///
/// # Errors
/// See [`OpenError`]; links are refused.
pub fn set_mode(resolved: &Path, mode: u32) -> Result<(), OpenError> {
    let entry = FolderEntry::of(resolved)?;
    entry.stat()?.ok_or_else(|| OpenError::NotFound(resolved.to_owned()))?;
    let mode = Mode::from_raw_mode(mode as _);
    rustix::fs::chmodat(&entry.folder, entry.name, mode, AtFlags::empty()).map_err(|error| system(resolved, error))
}

/// Whether the path is a folder; false for a link to one.
pub fn is_folder(resolved: &Path) -> bool {
    facts(resolved).is_ok_and(|facts| facts.is_some_and(|facts| facts.kind.is_dir()))
}

/// The names in a folder and their kinds, at most `max` of them, in the system's order.
///
/// # Errors
/// See [`OpenError`]; `NoFolder` for anything but a folder.
pub fn list(resolved: &Path, max: usize) -> Result<Vec<(OsString, FileType)>, OpenError> {
    let mut entries = Dir::new(open_folder(resolved)?).map_err(|error| system(resolved, error))?;
    let mut found = Vec::new();
    while found.len() < max
        && let Some(entry) = entries.next()
    {
        let Ok(entry) = entry else { continue };
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        let kind = match entry.file_type() {
            // Not every file system returns the kind with the name.
            FileType::Unknown => entries
                .fd()
                .and_then(|folder| rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW))
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            kind => kind,
        };
        found.push((name, kind));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Layout {
        _keep: tempfile::TempDir,
        root: PathBuf,
    }

    /// `link` leads to the folder `outside`, and `outside/link` to the file beside it.
    fn layout() -> Layout {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("outside/empty")).unwrap();
        std::fs::write(root.join("outside/file"), "secret").unwrap();
        std::fs::write(root.join("own"), "own").unwrap();
        symlink("outside", root.join("link")).unwrap();
        symlink("file", root.join("outside/link")).unwrap();
        Layout { _keep: keep, root }
    }

    fn is_swapped<T>(result: Result<T, OpenError>) -> bool {
        matches!(result, Err(OpenError::Swapped(_)))
    }

    #[test]
    fn links_on_the_way_and_at_the_end_are_refused() {
        let layout = layout();
        let own = layout.root.join("own");
        for below in ["link/file", "link/new", "outside/link"] {
            let path = layout.root.join(below);
            assert!(is_swapped(write(&path, b"x")), "{below}");
            assert!(is_swapped(append(&path, b"x")), "{below}");
            assert!(is_swapped(facts(&path)), "{below}");
            assert!(is_swapped(remove(&path)), "{below}");
            assert!(is_swapped(rename(&path, &own)), "{below}");
            assert!(is_swapped(rename(&own, &path)), "{below}");
            assert!(is_swapped(make_folders(&path.join("deep"))), "{below}");
        }
        assert!(is_swapped(list(&layout.root.join("link"), 9)));
        assert!(is_swapped(make_folders(&layout.root.join("link"))));
        assert!(is_swapped(link_target(&layout.root.join("link/link"))));
        assert_eq!(link_target(&layout.root.join("outside/link")).unwrap(), Path::new("file"));
        assert!(!is_folder(&layout.root.join("link")));
        assert_eq!(std::fs::read_to_string(layout.root.join("outside/file")).unwrap(), "secret");
        assert_eq!(std::fs::read_dir(layout.root.join("outside")).unwrap().count(), 3);
        assert_eq!(std::fs::read_to_string(own).unwrap(), "own");
    }

    #[test]
    fn pipes_sockets_and_devices_are_not_written() {
        let layout = layout();
        let pipe = layout.root.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        // With a reader, opening the pipe would not wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let _reader = rustix::fs::open(&pipe, flags, Mode::empty()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(layout.root.join("socket")).unwrap();
        for path in [pipe.clone(), layout.root.join("socket"), PathBuf::from("/dev/null")] {
            assert!(matches!(write(&path, b"x"), Err(OpenError::Special { .. })), "{}", path.display());
            assert!(matches!(append(&path, b"x"), Err(OpenError::Special { .. })), "{}", path.display());
        }
        remove(&pipe).unwrap();
        assert!(matches!(write(&layout.root, b"x"), Err(OpenError::Folder(_))));
        assert!(write(Path::new("/"), b"x").is_err());
        assert!(remove(Path::new("/")).is_err());
        assert!(facts(Path::new("/")).unwrap().is_some_and(|facts| facts.kind.is_dir()));
    }

    #[test]
    fn missing_path_is_named_in_the_error() {
        let layout = layout();
        let (missing, below) = (layout.root.join("none"), layout.root.join("none/file"));
        assert_eq!(facts(&missing).unwrap().map(|facts| facts.size), None);
        assert_eq!(facts(&below).unwrap().map(|facts| facts.size), None);
        assert!(matches!(write(&below, b""), Err(OpenError::NoFolder(path)) if path == missing));
        assert!(matches!(remove(&missing), Err(OpenError::NotFound(_))));
        assert!(matches!(list(&layout.root.join("own"), 9), Err(OpenError::NoFolder(_))));
        assert!(make_folders(&layout.root.join("own/deep")).is_err());
    }

    #[test]
    fn a_list_has_names_and_kinds_up_to_its_limit() {
        let layout = layout();
        let mut found = list(&layout.root.join("outside"), 9).unwrap();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [("empty", FileType::Directory), ("file", FileType::RegularFile), ("link", FileType::Symlink)];
        assert_eq!(found, expected.map(|(name, kind)| (name.into(), kind)));
        assert_eq!(list(&layout.root.join("outside"), 2).unwrap().len(), 2);
    }
}
