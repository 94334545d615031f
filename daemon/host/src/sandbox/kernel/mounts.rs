//! Gives the program its own namespaces: for mounts, and for System V IPC and POSIX message queues.
//!
//! Read-only means a read-only mount: nothing in it can change, including modes, owners, times and attributes.

use std::fmt::Display;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, access, statfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};
use rustix::thread::UnshareFlags;

use super::super::Confinement;
use super::attributes::{READ_ONLY, WITHOUT_PRIVILEGES, set};

/// Gets a private file system in memory: no one else sees it, and it disappears with the program.
const TEMP: &str = "/dev/shm";
/// The file system that shows message queues; a program could drain those of others there.
const MESSAGE_QUEUES: &str = "/dev/mqueue";
/// `MQUEUE_MAGIC`.
const MESSAGE_QUEUE_FILES: u64 = 0x1980_0202;

/// Returns the folder for temporary files; `None` if the program has no private one.
pub(super) fn arrange(confinement: &Confinement) -> Result<Option<PathBuf>, String> {
    // Before the namespace is created: a working folder stays on the mount through which it was entered.
    let cwd = std::env::current_dir().ok();
    own_namespaces()?;
    // No program gains privileges here, and programs that could, such as `ping`, would not even start.
    set_everywhere(WITHOUT_PRIVILEGES).map_err(|error| format!("can't change what is mounted: {error}"))?;
    own_message_queues()?;
    if !confinement.guard {
        only_writable(&outermost(&confinement.writable))?;
    }
    let protected = outermost(&confinement.protected);
    for path in above(&confinement.protected, confinement).iter() {
        change(path, "hold", |path| attach(&copy(path)?, path))?;
    }
    for path in protected {
        change(path, "protect", protect)?;
    }
    for path in &confinement.masked {
        change(path, "hide", mask)?;
    }
    let temp = own_temp(confinement, cwd.as_deref())?;
    if let Some(cwd) = cwd {
        std::env::set_current_dir(&cwd).map_err(|error| format!("can't enter {}: {error}", cwd.display()))?;
    }
    Ok(temp)
}

/// Creates the namespaces, inside a user namespace if that is needed for the right to create them.
#[expect(deprecated, reason = "its replacement is unsafe for the sake of shared file descriptors, which stay shared")]
fn own_namespaces() -> Result<(), String> {
    use rustix::thread::unshare;
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    if unshare(own).is_err() {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let words = |error: &dyn Display| format!("the system does not allow user namespaces: {error}");
        unshare(UnshareFlags::NEWUSER | own).map_err(|error| words(&error))?;
        let map = [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ];
        for (file, text) in map {
            std::fs::write(format!("/proc/self/{file}"), text).map_err(|error| words(&error))?;
        }
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| format!("the system does not allow private mounts: {error}"))
}

/// Mounts the namespace's own file systems over those of the outside.
fn own_message_queues() -> Result<(), String> {
    match statfs(MESSAGE_QUEUES) {
        Ok(found) if found.f_type as u64 == MESSAGE_QUEUE_FILES => {}
        _ => return Ok(()),
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("mqueue", MESSAGE_QUEUES, "mqueue", flags, c"")
        .map_err(|error| format!("can't make message queues of its own: {error}"))
}

/// Makes everything read-only except these.
fn only_writable(writable: &[&PathBuf]) -> Result<(), String> {
    let words = |path: &Path, error: Errno| format!("can't make {} writable: {error}", path.display());
    let mut kept = Vec::new();
    for path in writable {
        match copy(path) {
            Ok(tree) => kept.push((path, tree)),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(words(path, error)),
        }
    }
    // A copy of the root cannot replace it. Then the root stays as it is, and Landlock enforces the rest.
    if writable.iter().any(|path| path.parent().is_none()) {
        return Ok(());
    }
    set_everywhere(READ_ONLY).map_err(|error| format!("can't make what is mounted read-only: {error}"))?;
    for (path, tree) in kept {
        attach(&tree, path).map_err(|error| words(path, error))?;
    }
    Ok(())
}

fn set_everywhere(attribute: u64) -> rustix::io::Result<()> {
    set(open_tree(CWD, "/", OpenTreeFlags::OPEN_TREE_CLOEXEC)?.as_fd(), attribute)
}

fn change(path: &Path, verb: &str, act: impl FnOnce(&Path) -> rustix::io::Result<()>) -> Result<(), String> {
    match act(path) {
        // It was removed after the check.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(format!("can't {verb} {}: {error}", path.display())),
    }
}

fn protect(path: &Path) -> rustix::io::Result<()> {
    let tree = copy(path)?;
    set(tree.as_fd(), READ_ONLY)?;
    attach(&tree, path)
}

fn mask(path: &Path) -> rustix::io::Result<()> {
    if path.is_dir() {
        return mount("tmpfs", path, "tmpfs", MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV, c"size=4k");
    }
    let nothing = copy(Path::new("/dev/null"))?;
    set(nothing.as_fd(), READ_ONLY)?;
    attach(&nothing, path)
}

/// A copy of the mounts at and below a path, not yet attached.
fn copy(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags)
}

fn attach(tree: &OwnedFd, path: &Path) -> rustix::io::Result<()> {
    move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS)
}

/// Without paths inside another one. Each comes after all that could contain it.
fn outermost(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let inner = |path: &PathBuf| paths.iter().any(|other| other != path && path.starts_with(other));
    let mut outer: Vec<&PathBuf> = paths.iter().filter(|path| !inner(path)).collect();
    outer.sort();
    outer.dedup();
    outer
}

/// The folders above protected ones, outermost first, that the program could rename: a folder put in the place of one
/// would take effect outside. A mount point cannot be renamed, so each becomes one.
fn above(protected: &[PathBuf], confinement: &Confinement) -> Vec<PathBuf> {
    let writable = |folder: &Path| {
        let listed = confinement.writable.iter().any(|place| folder.starts_with(place));
        (confinement.guard || listed) && access(folder, Access::WRITE_OK).is_ok()
    };
    let mut above: Vec<PathBuf> = protected
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|folder| folder.parent().is_some_and(writable))
        .map(Path::to_owned)
        .collect();
    above.sort();
    above.dedup();
    above
}

/// `None` if the program's working folder would be hidden.
fn own_temp(confinement: &Confinement, cwd: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let in_use = confinement.writable.iter().map(PathBuf::as_path).chain(cwd).any(|path| path.starts_with(TEMP));
    if confinement.guard || in_use || !Path::new(TEMP).is_dir() {
        return Ok(None);
    }
    mount("tmpfs", TEMP, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"size=512m,mode=1777")
        .map_err(|error| format!("can't make a folder for temporary files: {error}"))?;
    Ok(Some(TEMP.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_paths_are_left_out() {
        let paths: Vec<PathBuf> = ["/b/c", "/a", "/b", "/b", "/bc"].map(PathBuf::from).into();
        assert_eq!(outermost(&paths), [Path::new("/a"), Path::new("/b"), Path::new("/bc")]);
    }

    #[test]
    fn only_renameable_folders_are_held() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b/c")).unwrap();
        let protected = [top.join("a/b/c")];
        let listed = Confinement { writable: vec![top.clone()], ..Confinement::default() };
        assert_eq!(above(&protected, &listed), [top.join("a"), top.join("a/b")]);
        assert_eq!(above(&protected, &Confinement::default()), [] as [PathBuf; 0]);
        let all = above(&protected, &Confinement { guard: true, ..Confinement::default() });
        assert!(all.ends_with(&[top.clone(), top.join("a"), top.join("a/b")]), "{all:?}");
    }
}
