//! Files: the path that is judged is the path that is opened.
//!
//! [`resolve`] determines where a path leads; the policy judges that; [`open`], [`write()`] and the other functions
//! here access exactly that path, and fail if a link was put on it meanwhile. [`crate::exclude`] handles files for
//! which no permission may be asked.

mod attributes;
pub(crate) mod entry;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::file_systems::answering;

pub use rustix::fs::FileType;

pub use attributes::UserAttributes;
pub use entry::{
    EntryStat, PathFacts, append, facts, is_folder, link_target, list, make_folders, make_link, make_pipe, remove,
    remove_link, rename, set_mode, stat_entry, write,
};

/// The kernel's limit before it reports a loop of links.
const MAX_LINKS: usize = 40;

/// The kernel's limit for the path of a system call, in bytes: `PATH_MAX` of linux/limits.h without its NUL.
const MAX_PATH: usize = 4095;

/// Where `path` leads from the absolute, resolved folder `cwd`, with links followed and `.` and `..` removed.
///
/// Components that do not exist yet are kept as written, below the nearest existing folder. So are those inside a
/// folder that cannot be searched; opening the path will then fail.
///
/// # Errors
/// A loop of links; a NUL in the path; a path of more than 4,095 bytes, which no program could open; a path whose place depends
/// on who opens it, such as `/proc/self/cwd/file`.
pub fn resolve(path: &Path, cwd: &Path) -> io::Result<PathBuf> {
    let named = named(path, cwd)?;
    match without_links(&named) {
        Some((plain, _)) => Ok(plain),
        None => follow(&named, &mut |_| true).0,
    }
}

/// A path that a caller named, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    pub path: PathBuf,
    /// The place that needs permission first, because the path leads through a folder that may not be read.
    pub judged_as: Option<PathBuf>,
    /// The type of the entry at the path, if resolving the path has shown it.
    pub kind: Option<FileType>,
}

/// As [`resolve`], for a caller that must not learn about links in folders that it may not read.
///
/// `may_read` judges the place of a link. If it refuses one, the result has a path in `judged_as`: the path as it was
/// named, up to the first `..` after that place. It is the same whether there is a link, wherever it leads, and whether there
/// is anything at all, so it is judged and shown in place of `path` until someone has allowed it. It is `None` if the
/// caller may read the target of the path, unless the path climbs out of such a place again by `..`.
///
/// # Errors
/// As [`resolve`], for links that the caller may read.
pub fn resolve_for(path: &Path, cwd: &Path, may_read: &mut dyn FnMut(&Path) -> bool) -> io::Result<ResolvedPath> {
    let named = named(path, cwd)?;
    if let Some((path, kind)) = without_links(&named) {
        return Ok(ResolvedPath { path, judged_as: None, kind });
    }
    let (path, judged_as) = match follow(&named, may_read) {
        (resolved, None) => (resolved?, None),
        (Ok(path), Some(hidden)) if !hidden.climbs && may_read(&path) => (path, None),
        (Ok(path), Some(hidden)) => (path, Some(hidden.named)),
        // The daemon cannot say which file that is, so no rule would hold for it.
        (Err(error), Some(_)) if is_opener_path(&error) => return Err(error),
        // Opening it will fail once someone has allowed it.
        (Err(_), Some(hidden)) => (hidden.named.clone(), Some(hidden.named)),
    };
    Ok(ResolvedPath { path, judged_as, kind: None })
}

/// The whole path, with `.` and `..` as they were given.
fn named(path: &Path, cwd: &Path) -> io::Result<PathBuf> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.len() > MAX_PATH {
        let problem = format!("it has {} bytes, and a path has at most {MAX_PATH}", bytes.len());
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, problem));
    }
    if bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a path cannot hold a NUL character"));
    }
    Ok(cwd.join(path))
}

/// The first place on the path that may not be read and affects where the path leads.
struct HiddenLink {
    named: PathBuf,
    /// A `..` follows, which leads elsewhere if there is a link.
    climbs: bool,
}

fn follow(named: &Path, may_read: &mut dyn FnMut(&Path) -> bool) -> (io::Result<PathBuf>, Option<HiddenLink>) {
    let mut done = PathBuf::from("/");
    // A stack, read from its end.
    let mut left: Vec<PathBuf> = parts(named);
    let mut links = 0;
    let mut hidden = None;
    while let Some(part) = left.pop() {
        if part.as_os_str() == ".." {
            if hidden.is_none() && !may_read(&done) {
                hidden = Some(HiddenLink { named: done.clone(), climbs: true });
            }
            done.pop();
            continue;
        }
        done.push(&part);
        let target = match answering::at(&done, || std::fs::read_link(&done)) {
            Ok(Ok(target)) => target,
            // Nothing exists or nothing is visible there, so no link can lead elsewhere.
            Ok(Err(_)) => continue,
            Err(error) => return (Err(error.into()), hidden),
        };
        if hidden.is_none() && !may_read(&done) {
            let names = left.iter().rev().take_while(|part| part.as_os_str() != "..");
            let named = names.fold(done.clone(), |named, part| named.join(part));
            hidden = Some(HiddenLink { named, climbs: left.iter().any(|part| part.as_os_str() == "..") });
        }
        links += 1;
        if links > MAX_LINKS {
            return (Err(Errno::LOOP.into()), hidden);
        }
        if let Some(goes_on) = goes_through_opener(&done, &left) {
            return (Err(OpenerPath { path: named.to_owned(), goes_on }.into()), hidden);
        }
        done.pop();
        if target.is_absolute() {
            done = PathBuf::from("/");
        }
        left.extend(parts(&target));
    }
    (Ok(done), hidden)
}

/// A path through `/proc/self` whose place depends on the process that opens it: that is not always the daemon, and the
/// daemon's own folder and descriptors are not those of a command (proc(5)).
#[derive(Debug, thiserror::Error)]
#[error("{} leads to another place in each program that opens it; name the file itself", .path.display())]
struct OpenerPath {
    path: PathBuf,
    goes_on: bool,
}

impl From<OpenerPath> for io::Error {
    fn from(path: OpenerPath) -> Self {
        Self::new(io::ErrorKind::InvalidFilename, path)
    }
}

/// Whether a link leads to the process that opens it, and the names behind the link lead to something that only that process
/// knows; if so, whether they go on from there, as in `cwd/file`. `left` is in reverse.
fn goes_through_opener(link: &Path, left: &[PathBuf]) -> Option<bool> {
    if link != Path::new("/proc/self") && link != Path::new("/proc/thread-self") {
        return None;
    }
    // Whatever else is there is about the process, and leads nowhere: `/proc/mounts` is the link `self/mounts`.
    let own = |part: &PathBuf| {
        ["cwd", "root", "exe", "fd", "map_files", "task", ".."].iter().any(|name| part.as_os_str() == *name)
    };
    let at = left.iter().rposition(own)?;
    // In these, the next name is that of a link.
    let is_folder = ["fd", "map_files", "task"].iter().any(|name| left[at].as_os_str() == *name);
    Some(at > usize::from(is_folder))
}

/// Whether [`resolve`] failed because the path's place depends on who opens it.
pub(crate) fn is_opener_path(error: &io::Error) -> bool {
    opener_path(error).is_some()
}

/// Whether it failed so for a file behind the process's folder, root or descriptors, which may be any file.
pub(crate) fn is_file_of_opener(error: &io::Error) -> bool {
    opener_path(error).is_some_and(|path| path.goes_on)
}

fn opener_path(error: &io::Error) -> Option<&OpenerPath> {
    error.get_ref()?.downcast_ref()
}

/// The path itself if no link is on it, as far as it exists, and what is there: one look instead of one for each component.
/// `None` if there may be a link, or a `..`.
#[cfg(target_os = "linux")]
fn without_links(named: &Path) -> Option<(PathBuf, Option<FileType>)> {
    use rustix::fs::{CWD, ResolveFlags, openat2};
    if named.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let plain: PathBuf = named.components().collect();
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let look = || openat2(CWD, &plain, flags, Mode::empty(), links).and_then(rustix::fs::fstat);
    match answering::at(&plain, look) {
        Ok(Ok(stat)) => Some((plain, Some(FileType::from_raw_mode(stat.st_mode)))),
        // Where a component is missing, is no folder, or cannot be searched, those before it are no links, and behind it
        // nothing is visible that could lead elsewhere.
        Ok(Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) => Some((plain, None)),
        Ok(Err(_)) | Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn without_links(_: &Path) -> Option<(PathBuf, Option<FileType>)> {
    None
}

/// The components of a path, last first; `..` is kept.
fn parts(path: &Path) -> Vec<PathBuf> {
    let names = path.components().rev().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Why a file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no file {}", .0.display())]
    NotFound(PathBuf),
    /// It does not exist, or is not a folder.
    #[error("there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    #[error("{} is a folder", .0.display())]
    Folder(PathBuf),
    /// Pipes, sockets and devices: reading them may block forever or have effects.
    #[error("{} is {kind}, not a file", .path.display())]
    Special { path: PathBuf, kind: &'static str },
    #[error("{} changed into a link while it was opened", .0.display())]
    Swapped(PathBuf),
    #[error("{} has more than {limit} bytes, which is the limit for such files", .path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("can't open {}: {source}", .path.display())]
    System { path: PathBuf, source: io::Error },
}

/// Opens a regular file for reading. Never follows a link, never blocks, never touches a device.
///
/// # Errors
/// See [`OpenError`]. `resolved` must come from [`resolve`]; otherwise every link on the way is `Swapped`.
pub fn open(resolved: &Path) -> Result<File, OpenError> {
    // Opening some devices has effects, so they are not opened just to inspect them.
    let looked = answering::at(resolved, || std::fs::symlink_metadata(resolved));
    if let Ok(metadata) = looked.map_err(|_| system(resolved, NO_ANSWER))? {
        check_kind(FileType::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&metadata)), resolved)?;
    }
    open_entry(resolved)
}

/// The content of a regular file of at most `limit` bytes. A larger file uses no more memory than that.
///
/// This is the way to read a file that the daemon did not write: a repository or a user may put a pipe, a device or an
/// endless file anywhere.
///
/// # Errors
/// As [`open`]; `TooLarge`; `System` when reading fails.
pub fn read_whole(resolved: &Path, limit: u64) -> Result<Vec<u8>, OpenError> {
    let mut file = open(resolved)?;
    read_opened(&mut file, resolved, limit)
}

/// As [`read_whole`], for a path that a person named: it may lead through links, and is relative to the process's
/// folder if it is relative.
///
/// # Errors
/// As [`read_whole`]; `NotFound` of [`io::ErrorKind`] if the file does not exist.
pub fn read_named(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    Ok(read_whole(&resolve(&std::path::absolute(path)?, Path::new("/"))?, limit)?)
}

/// As [`read_named`], for UTF-8 text.
///
/// # Errors
/// Also `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_named(path, limit)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// As [`read_whole`], for an open file.
///
/// # Errors
/// `TooLarge`; `System` when reading fails.
pub fn read_opened(file: &mut impl io::Read, resolved: &Path, limit: u64) -> Result<Vec<u8>, OpenError> {
    read_up_to(file, resolved, limit, 0)
}

/// A file that a walk has just seen as a regular one, and its whole content. Blocks.
///
/// # Errors
/// As [`read_whole`].
pub fn open_whole(resolved: &Path, limit: u64) -> Result<(File, Vec<u8>), OpenError> {
    let (mut file, stat) = open_and_stat(resolved)?;
    let bytes = read_up_to(&mut file, resolved, limit, u64::try_from(stat.st_size).unwrap_or(0).min(limit))?;
    Ok((file, bytes))
}

/// `expected` is the length that the content probably has, for which memory is taken at once.
fn read_up_to(file: &mut impl io::Read, resolved: &Path, limit: u64, expected: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    io::Read::read_to_end(&mut io::Read::take(file, limit.saturating_add(1)), &mut bytes)
        .map_err(|source| OpenError::System { path: resolved.to_owned(), source })?;
    match bytes.len() as u64 > limit {
        true => Err(OpenError::TooLarge { path: resolved.to_owned(), limit }),
        false => Ok(bytes),
    }
}

/// As [`open`], for a path that a walk has just seen as a regular file.
pub fn open_entry(resolved: &Path) -> Result<File, OpenError> {
    Ok(open_and_stat(resolved)?.0)
}

fn open_and_stat(resolved: &Path) -> Result<(File, Stat), OpenError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open_as(resolved, flags).map_err(|error| system(resolved, error))?;
    let stat = rustix::fs::fstat(&fd).map_err(|error| system(resolved, error))?;
    check_kind(FileType::from_raw_mode(stat.st_mode), resolved)?;
    Ok((File::from(fd), stat))
}

/// An open file with its whole content.
pub struct CachedFile {
    pub file: File,
    pub bytes: Vec<u8>,
    /// The permission bits.
    pub mode: u32,
    /// Device and inode number.
    pub identity: (u64, u64),
}

/// As [`open_cached`], the content alone.
pub fn read_cached(resolved: &Path, limit: usize) -> Option<Vec<u8>> {
    open_cached(resolved, limit).map(|cached| cached.bytes)
}

/// A file that was just seen as a regular one, if it has at most `limit` bytes and the system has all of them in memory.
/// Never waits for a disk; `None` also for every error, which opening it otherwise will tell.
#[cfg(target_os = "linux")]
pub fn open_cached(resolved: &Path, limit: usize) -> Option<CachedFile> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let (file, stat) = open_and_stat(resolved).ok()?;
    let size = usize::try_from(stat.st_size).ok().filter(|size| *size <= limit)?;
    // One byte more: a file of the kernel's own says that it is empty.
    let mut bytes = vec![0; size + 1];
    let read = preadv2(&file, &mut [io::IoSliceMut::new(&mut bytes)], 0, ReadWriteFlags::NOWAIT).ok()?;
    bytes.truncate(size);
    let identity = (stat.st_dev, stat.st_ino);
    (read == size).then_some(CachedFile { file, bytes, mode: stat.st_mode & 0o777, identity })
}

#[cfg(not(target_os = "linux"))]
pub fn open_cached(_: &Path, _: usize) -> Option<CachedFile> {
    None
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::System { source, .. } => source,
            OpenError::NotFound(_) | OpenError::NoFolder(_) => Self::new(io::ErrorKind::NotFound, error.to_string()),
            OpenError::Folder(_) | OpenError::Special { .. } | OpenError::Swapped(_) | OpenError::TooLarge { .. } => {
                Self::other(error.to_string())
            }
        }
    }
}

const READ_FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Opens a folder, so that its entries can be read whatever happens to its path.
///
/// # Errors
/// As [`open`]; `NoFolder` for anything but a folder.
pub fn open_folder(resolved: &Path) -> Result<OwnedFd, OpenError> {
    open_as(resolved, READ_FOLDER).map_err(|error| entry::no_folder(resolved, error))
}

pub(crate) fn check_kind(kind: FileType, path: &Path) -> Result<(), OpenError> {
    let kind = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(OpenError::Folder(path.to_owned())),
        FileType::Symlink => return Err(OpenError::Swapped(path.to_owned())),
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    };
    Err(OpenError::Special { path: path.to_owned(), kind })
}

/// The error of [`open_as`] for a file system that does not answer; [`system`] adds details.
const NO_ANSWER: Errno = Errno::HOSTDOWN;

/// `LOOP` if a link is on the way.
fn open_as(resolved: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    answering::at(resolved, || open_local(resolved, flags)).unwrap_or(Err(NO_ANSWER))
}

fn open_local(resolved: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        // Not `NOFOLLOW`, which would open a link at the end of the path itself.
        let flags = flags | OFlags::CLOEXEC;
        match openat2(CWD, resolved, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS) {
            // Old kernels, and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened,
        }
    }
    open_by_steps(resolved, flags)
}

/// For kernels that cannot refuse links themselves: opens one folder after another.
fn open_by_steps(resolved: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let folder = OFlags::CLOEXEC | OFlags::NOFOLLOW | READ_FOLDER;
    let mut opened = rustix::fs::open("/", folder, Mode::empty())?;
    let mut names = resolved.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let Some(mut name) = names.next() else { return Ok(opened) };
    for next in names {
        opened = open_step(&opened, name, READ_FOLDER)?;
        name = next;
    }
    open_step(&opened, name, flags)
}

/// Opens this name in the folder; `LOOP` if it is a link.
fn open_step(folder: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat(&folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    match opened {
        // The system's error for a link where a folder is expected.
        Err(Errno::NOTDIR) => match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_symlink() => Err(Errno::LOOP),
            _ => Err(Errno::NOTDIR),
        },
        opened => opened,
    }
}

fn system(path: &Path, error: Errno) -> OpenError {
    let path = path.to_owned();
    match error {
        NO_ANSWER if let Err(source) = answering::ask(&path) => OpenError::System { path, source: source.into() },
        Errno::NOENT => OpenError::NotFound(path),
        Errno::LOOP => OpenError::Swapped(path),
        Errno::ISDIR => OpenError::Folder(path),
        Errno::NOTDIR if let Some(file) = path.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok()) => {
            let words = format!("{} is no folder", file.display());
            OpenError::System { path, source: io::Error::new(io::ErrorKind::NotADirectory, words) }
        }
        // A pipe without a reader, or a socket.
        Errno::NXIO => OpenError::Special { path, kind: "a pipe or a socket" },
        error => OpenError::System { path, source: error.into() },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn links_are_followed_and_dots_are_gone() {
        let (_keep, root) = folder();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "").unwrap();
        symlink("a/b", root.join("short")).unwrap();
        symlink(root.join("short/file"), root.join("far")).unwrap();
        symlink("gone/file", root.join("dangling")).unwrap();
        let resolved = |path: &str| resolve(Path::new(path), &root).unwrap();
        assert_eq!(resolved("far"), root.join("a/b/file"));
        // As for the kernel, `..` of a link is the folder above its target.
        assert_eq!(resolved("short/../x"), root.join("a/x"));
        assert_eq!(resolved("./a//b/./file"), root.join("a/b/file"));
        assert_eq!(resolved("new/deep/../file"), root.join("new/file"));
        assert_eq!(resolved("dangling"), root.join("gone/file"));
        assert_eq!(resolved("/../.."), Path::new("/"));
    }

    #[test]
    fn a_ring_of_links_is_an_error() {
        let (_keep, root) = folder();
        symlink("two", root.join("one")).unwrap();
        symlink("one", root.join("two")).unwrap();
        assert!(resolve(Path::new("one/x"), &root).is_err());
        assert!(resolve(Path::new("a\0b"), &root).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_path_that_depends_on_who_opens_it_is_an_error() {
        let (_keep, root) = folder();
        for (link, target) in [("own", "/proc/self"), ("thread", "/proc/thread-self/cwd"), ("fd", "/dev/fd")] {
            symlink(target, root.join(link)).unwrap();
        }
        let inside = root.strip_prefix("/").unwrap().display().to_string();
        let forms =
            ["/proc/self/cwd/x", "/proc/./thread-self//cwd/x", "/proc/self/root/etc/passwd", "/proc/self/fd/../cwd/x"];
        let more = ["/proc/self/fd/3/x", "/dev/fd/../cwd/x", "/proc/mounts/../cwd/x", "/proc/tty/../self/exe"];
        let links = ["own/cwd/x", "own/task/1/cwd/x", "thread/x", "fd/3", "fd/../cwd", &format!("own/root/{inside}/x")];
        for path in forms.iter().chain(&more).chain(&links) {
            for may_read in [true, false] {
                let found = resolve_for(Path::new(path), &root, &mut |_| may_read);
                let error = found.expect_err(path);
                assert!(is_opener_path(&error), "{path}: {error}");
            }
        }
        for (path, goes_on) in
            [("/proc/self/cwd", false), ("/proc/self/fd/3", false), ("own/exe", false), ("own/cwd/x", true)]
        {
            assert_eq!(is_file_of_opener(&resolve(Path::new(path), &root).unwrap_err()), goes_on, "{path}");
        }
        // These are about the process, and lead nowhere.
        let own = format!("/proc/{}", std::process::id());
        assert_eq!(resolve(Path::new("own/status"), &root).unwrap(), Path::new(&own).join("status"));
        assert_eq!(resolve(Path::new("/proc/mounts"), &root).unwrap(), Path::new(&own).join("mounts"));
    }

    #[test]
    fn links_in_unreadable_folders_are_not_revealed() {
        let (_keep, root) = folder();
        std::fs::create_dir_all(root.join("work")).unwrap();
        std::fs::create_dir_all(root.join("far/deep")).unwrap();
        symlink("../far/deep", root.join("work/own")).unwrap();
        symlink("far/deep", root.join("there")).unwrap();
        symlink("work", root.join("back")).unwrap();
        symlink("ring", root.join("ring")).unwrap();
        let work = root.join("work");
        let resolved = |path: &str| {
            resolve_for(Path::new(path), &work, &mut |place| place.starts_with(&work) || work.starts_with(place))
                .unwrap()
        };
        let judged_as = |path: &str| resolved(path).judged_as.map(|path| path.strip_prefix(&root).unwrap().to_owned());
        // A link of the caller's own that leads to a file it may read.
        assert_eq!(resolved("own/x"), ResolvedPath { path: root.join("far/deep/x"), judged_as: None, kind: None });
        assert_eq!(resolved("../back/x"), ResolvedPath { path: work.join("x"), judged_as: None, kind: None });
        assert_eq!(resolved("../none/x"), ResolvedPath { path: root.join("none/x"), judged_as: None, kind: None });
        assert_eq!(judged_as("../there/x").as_deref(), Some(Path::new("there/x")));
        assert_eq!(judged_as("../ring/x").as_deref(), Some(Path::new("ring/x")));
        // Climbing gives the same result with and without a link.
        assert_eq!(judged_as("../there/x/../y").as_deref(), Some(Path::new("there/x")));
        assert_eq!(judged_as("../none/x/../y").as_deref(), Some(Path::new("none/x")));
        assert_eq!(judged_as("../back/../work/x").as_deref(), Some(Path::new("back")));
        assert_eq!(judged_as("../none/../work/x").as_deref(), Some(Path::new("none")));
        assert_eq!(judged_as("x/../../work/y"), None);
    }

    #[test]
    fn a_link_put_in_the_way_is_not_followed() {
        let (_keep, root) = folder();
        std::fs::create_dir_all(root.join("inside")).unwrap();
        std::fs::create_dir_all(root.join("outside")).unwrap();
        std::fs::write(root.join("outside/file"), "secret").unwrap();
        let judged = resolve(Path::new("inside/file"), &root).unwrap();
        std::fs::remove_dir(root.join("inside")).unwrap();
        symlink("outside", root.join("inside")).unwrap();
        assert!(matches!(open(&judged), Err(OpenError::Swapped(_))));
        assert!(matches!(open_folder(&root.join("inside")), Err(OpenError::Swapped(_))));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        assert_eq!(open_by_steps(&judged, flags).err(), Some(Errno::LOOP));
        assert_eq!(open_by_steps(&root.join("inside"), flags | READ_FOLDER).err(), Some(Errno::LOOP));
        assert!(open_by_steps(&root.join("outside/file"), flags).is_ok());
    }

    #[test]
    fn non_files_are_refused_at_once() {
        let (_keep, root) = folder();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        for special in [root.join("pipe"), root.join("socket"), PathBuf::from("/dev/zero")] {
            assert!(matches!(open(&special), Err(OpenError::Special { .. })), "{}", special.display());
            assert!(open_entry(&special).is_err());
        }
        assert!(matches!(open(&root), Err(OpenError::Folder(_))));
        assert!(matches!(open(&root.join("none")), Err(OpenError::NotFound(_))));
    }
}
