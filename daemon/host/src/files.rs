//! Files: the path that is judged is the path that is opened.
//!
//! [`resolve`] says where a path leads; the policy judges that; [`open`] opens exactly that, and fails
//! when somebody put a link in the way meanwhile. What may not even be asked for is [`crate::exclude`].

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use toold_engine::need::Need;
use toold_proto::tool::Category;

use crate::exclude::Exclusions;

/// As the kernel does, before it gives up on a ring of links.
const MAX_LINKS: usize = 40;

/// Where `path` leads from the absolute, resolved folder `cwd`: links followed, `.` and `..` gone.
///
/// What does not exist yet is taken as it is written, below the nearest folder that exists. So is what
/// lies in a folder that cannot be looked into; opening it will fail.
///
/// # Errors
/// A ring of links; a NUL in the path.
pub fn resolve(path: &Path, cwd: &Path) -> io::Result<PathBuf> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a path cannot hold a NUL character"));
    }
    let mut done = PathBuf::from("/");
    // Read from its end.
    let mut left: Vec<PathBuf> = parts(&cwd.join(path));
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part.as_os_str() == ".." {
            done.pop();
            continue;
        }
        done.push(&part);
        // Fails when there is nothing, or nothing to be seen: then it is no link that could lead elsewhere.
        let Ok(target) = std::fs::read_link(&done) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        done.pop();
        if target.is_absolute() {
            done = PathBuf::from("/");
        }
        left.extend(parts(&target));
    }
    Ok(done)
}

/// The names in a path, the last first; `..` stays.
fn parts(path: &Path) -> Vec<PathBuf> {
    let names = path.components().rev().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Leave to read what `resolved` names.
pub fn read_need(resolved: &Path, exclusions: &mut Exclusions) -> Need {
    need(Category::FileRead, resolved, resolved.is_dir(), exclusions)
}

/// As [`read_need`], for a path that a walk has just seen.
pub fn seen_need(resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Need {
    need(Category::FileRead, resolved, is_folder, exclusions)
}

/// Leave to write what `resolved` names.
pub fn write_need(resolved: &Path, exclusions: &mut Exclusions) -> Need {
    need(Category::FileWrite, resolved, resolved.is_dir(), exclusions)
}

fn need(category: Category, resolved: &Path, is_folder: bool, exclusions: &mut Exclusions) -> Need {
    let mut need = Need::new(category, resolved.to_string_lossy());
    need.forbidden = exclusions.reason(resolved, is_folder);
    // Another file's name would be judged in its place.
    if need.forbidden.is_none() && resolved.to_str().is_none() {
        need.forbidden = Some("names that are no UTF-8 cannot be judged".to_owned());
    }
    need
}

/// Why a file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no file {}", .0.display())]
    NotFound(PathBuf),
    #[error("{} is a folder", .0.display())]
    Folder(PathBuf),
    /// Pipes, sockets and devices: reading them may wait for ever, or do things.
    #[error("{} is {kind}, not a file", .path.display())]
    Special { path: PathBuf, kind: &'static str },
    #[error("{} changed into a link while it was opened", .0.display())]
    Swapped(PathBuf),
    #[error("can't open {}: {source}", .path.display())]
    System { path: PathBuf, source: io::Error },
}

/// Opens a regular file for reading. Never follows a link, never blocks, never touches a device.
///
/// # Errors
/// See [`OpenError`]; `resolved` must come from [`resolve`], or every link on the way is `Swapped`.
pub fn open(resolved: &Path) -> Result<File, OpenError> {
    // Opening some devices has effects, so they are not opened to be looked at.
    if let Ok(metadata) = std::fs::symlink_metadata(resolved) {
        check_kind(FileType::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&metadata)), resolved)?;
    }
    open_seen(resolved)
}

/// As [`open`], for a path that a walk has just seen to be a regular file.
pub fn open_seen(resolved: &Path) -> Result<File, OpenError> {
    let fd = open_as(resolved, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let stat = rustix::fs::fstat(&fd).map_err(|error| system(resolved, error))?;
    check_kind(FileType::from_raw_mode(stat.st_mode), resolved)?;
    Ok(File::from(fd))
}

/// Opens a folder, to make, rename and remove files in it whatever becomes of its path.
///
/// # Errors
/// As [`open`]; `NotFound` too when it is no folder.
pub fn open_folder(resolved: &Path) -> Result<OwnedFd, OpenError> {
    match open_as(resolved, OFlags::RDONLY | OFlags::DIRECTORY) {
        Err(OpenError::System { source, .. }) if source.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) => {
            Err(OpenError::NotFound(resolved.to_owned()))
        }
        other => other,
    }
}

fn check_kind(kind: FileType, path: &Path) -> Result<(), OpenError> {
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

fn open_as(resolved: &Path, flags: OFlags) -> Result<OwnedFd, OpenError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        match openat2(CWD, resolved, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS) {
            Ok(fd) => return Ok(fd),
            // Old kernels, and sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            Err(error) => return Err(system(resolved, error)),
        }
    }
    open_by_steps(resolved, flags).map_err(|error| system(resolved, error))
}

/// Where the kernel cannot refuse links by itself: one folder after another.
fn open_by_steps(resolved: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open("/", step, Mode::empty())?;
    let mut names = resolved.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let Some(mut name) = names.next() else { return Ok(folder) };
    for next in names {
        folder = rustix::fs::openat(&folder, name, step, Mode::empty())?;
        name = next;
    }
    rustix::fs::openat(&folder, name, flags, Mode::empty())
}

fn system(path: &Path, error: Errno) -> OpenError {
    let path = path.to_owned();
    match error {
        Errno::NOENT => OpenError::NotFound(path),
        Errno::LOOP => OpenError::Swapped(path),
        Errno::ISDIR => OpenError::Folder(path),
        // A pipe without a reader, a socket.
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
        // `..` of a link is the folder above its target, as for the kernel.
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
    fn a_link_put_in_the_way_is_not_followed() {
        let (_keep, root) = folder();
        std::fs::create_dir_all(root.join("inside")).unwrap();
        std::fs::create_dir_all(root.join("outside")).unwrap();
        std::fs::write(root.join("outside/file"), "secret").unwrap();
        let judged = resolve(Path::new("inside/file"), &root).unwrap();
        std::fs::remove_dir(root.join("inside")).unwrap();
        symlink("outside", root.join("inside")).unwrap();
        assert!(matches!(open(&judged), Err(OpenError::Swapped(_))));
        assert!(matches!(open_folder(&root.join("inside")), Err(OpenError::Swapped(_) | OpenError::NotFound(_))));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        assert!(open_by_steps(&judged, flags).is_err());
        assert!(open_by_steps(&root.join("outside/file"), flags).is_ok());
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let (_keep, root) = folder();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        for special in [root.join("pipe"), root.join("socket"), PathBuf::from("/dev/zero")] {
            assert!(matches!(open(&special), Err(OpenError::Special { .. })), "{}", special.display());
            assert!(open_seen(&special).is_err());
        }
        assert!(matches!(open(&root), Err(OpenError::Folder(_))));
        assert!(matches!(open(&root.join("none")), Err(OpenError::NotFound(_))));
    }
}
