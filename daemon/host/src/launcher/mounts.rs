//! Gives the program its own namespaces: for mounts, and for System V IPC and POSIX message queues.
//!
//! Read-only means a read-only mount: nothing in it can change, including modes, owners, times and attributes.

pub(crate) mod covers;
mod layers;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::network::loopback;
use super::order::Confinement;
use super::renew::{CoverKind, PathCover};
use super::system::{
    NEW_IPC, NEW_MOUNTS, NEW_NETWORK, NEW_USER, NO_DEVICES, NO_PROGRAMS, NO_SUID, PRIVATE, READ_ONLY, TREE_READ_ONLY,
    TREE_WITHOUT_PRIVILEGES, attach, bind, copy_tree, may_write, mount, open_place, open_without_links, set_attribute,
    unshare, user_and_group,
};

/// Gets a private file system in memory: no one else sees it, and it disappears with the program.
const TEMP: &str = "/dev/shm";
/// Pseudo-terminals, and the device that makes one.
pub(super) const TERMINALS: &str = "/dev/pts";
pub(super) const TERMINAL_MAKER: &str = "/dev/ptmx";
/// The file system that shows message queues; a program could drain those of others there.
const MESSAGE_QUEUES: &str = "/dev/mqueue";

/// The file systems that are private to a program.
#[derive(Debug, Default)]
pub(super) struct OwnMounts {
    /// The folder for temporary files.
    pub(super) temp: Option<PathBuf>,
    /// Pseudo-terminals, in place of those of others.
    pub(super) terminals: bool,
    /// The folders of [`Confinement::layered`] that it may write.
    pub(super) layered: Vec<PathBuf>,
    /// The covers of files of others, each after all that could contain it.
    pub(super) covers: Vec<PathCover>,
    /// Whether the program may read none of the folders that refuse it.
    pub(super) covers_folders: bool,
}

pub(super) fn arrange(confinement: &Confinement) -> Result<OwnMounts, String> {
    // Before the namespace is created: a working folder stays on the mount through which it was entered.
    let cwd = std::env::current_dir().ok();
    own_namespaces(confinement)?;
    // No program gains privileges here, and programs that could, such as `ping`, would not even start.
    set_everywhere(TREE_WITHOUT_PRIVILEGES).map_err(|error| format!("can't change what is mounted: {error}"))?;
    own_message_queues()?;
    if !confinement.guard {
        only_writable(&outermost(&confinement.writable))?;
    }
    let layered = layers::lay(confinement);
    let protected = outermost(&confinement.protected);
    let held = above(&[&confinement.protected[..], &confinement.held].concat(), confinement);
    for path in &held {
        change(path, "hold", hold)?;
    }
    for path in &protected {
        change(path, "protect", protect)?;
    }
    let masked: Vec<&PathBuf> = confinement.masked.iter().collect();
    let covers_folders = confinement.floor && covers::cover(&masked)?;
    for path in masked.iter().filter(|_| !confinement.floor) {
        change(path, "hide", mask)?;
    }
    let hidden = if confinement.floor { CoverKind::Refused } else { CoverKind::Empty };
    let kinds = [(CoverKind::Held, held.iter().collect()), (CoverKind::ReadOnly, protected), (hidden, masked)];
    let covers = kinds.into_iter().flat_map(|(kind, paths): (_, Vec<&PathBuf>)| {
        paths.into_iter().map(move |path| PathCover { kind, path: path.clone() })
    });
    let covers = covers.collect();
    if !confinement.replaced.is_empty() {
        covers::replace(&confinement.replaced)?;
    }
    let temp = own_temp(confinement, cwd.as_deref())?;
    let terminals = confinement.floor && own_terminals().is_ok();
    if let Some(cwd) = cwd {
        std::env::set_current_dir(&cwd).map_err(|error| format!("can't enter {}: {error}", cwd.display()))?;
    }
    Ok(OwnMounts { temp, terminals, layered, covers, covers_folders })
}

/// The pseudo-terminal that the program is started in.
pub(super) fn terminal() -> Option<PathBuf> {
    std::fs::read_link("/proc/self/fd/0").ok().filter(|path| path.starts_with(TERMINALS))
}

/// Tests of programs with a terminal make one. A program that was started in one keeps that, and has no others.
fn own_terminals() -> io::Result<()> {
    if terminal().is_some() {
        return Err(ErrorKind::ResourceBusy.into());
    }
    mount(c"devpts", Path::new(TERMINALS), NO_SUID | NO_PROGRAMS, c"newinstance,ptmxmode=0666,mode=0600")?;
    attach(&copy_tree(&Path::new(TERMINALS).join("ptmx"))?, Path::new(TERMINAL_MAKER))
}

fn own_namespaces(confinement: &Confinement) -> Result<(), String> {
    // Abstract sockets belong to a network, and those of the session are its own.
    let has_own_network = confinement.own_sockets && !confinement.by_host;
    create(NEW_MOUNTS | NEW_IPC | if has_own_network { NEW_NETWORK } else { 0 })?;
    if has_own_network {
        loopback().map_err(|error| format!("can't start the loopback device: {error}"))?;
    }
    mount(c"none", Path::new("/"), PRIVATE, c"")
        .map_err(|error| format!("the system does not allow private mounts: {error}"))
}

/// Creates namespaces, inside a user namespace if that is needed for the right to create them; returns whether it was.
pub(super) fn create(own: c_int) -> Result<bool, String> {
    if unshare(own).is_ok() {
        return Ok(false);
    }
    let (user, group) = user_and_group();
    let words = |error: &dyn Display| format!("the system does not allow user namespaces: {error}");
    unshare(NEW_USER | own).map_err(|error| words(&error))?;
    let map = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in map {
        std::fs::write(format!("/proc/self/{file}"), text).map_err(|error| words(&error))?;
    }
    Ok(true)
}

/// Mounts the namespace's own file system over that of the outside, if there is one.
fn own_message_queues() -> Result<(), String> {
    let device = |path| std::fs::metadata(path).map(|found| found.dev()).ok();
    match device(MESSAGE_QUEUES) {
        Some(mounted) if Some(mounted) != device("/dev") => {}
        _ => return Ok(()),
    }
    mount(c"mqueue", Path::new(MESSAGE_QUEUES), NO_SUID | NO_DEVICES | NO_PROGRAMS, c"")
        .map_err(|error| format!("can't make message queues of its own: {error}"))
}

/// Makes everything read-only except these. None may be a link: another program may have put it there.
fn only_writable(writable: &[&PathBuf]) -> Result<(), String> {
    let words = |path: &Path, error: io::Error| format!("can't make {} writable: {error}", path.display());
    let mut kept = Vec::new();
    for path in writable {
        match open_without_links(path).and_then(|place| Ok((copy_tree(&by_descriptor(&place))?, place))) {
            Ok((tree, place)) => kept.push((path, place, tree)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(words(path, error)),
        }
    }
    // A copy of the root cannot replace it. Then the root stays as it is, and Landlock enforces the rest.
    if writable.iter().any(|path| path.parent().is_none()) {
        return Ok(());
    }
    set_everywhere(TREE_READ_ONLY).map_err(|error| format!("can't make what is mounted read-only: {error}"))?;
    for (path, place, tree) in kept {
        attach(&tree, &by_descriptor(&place)).map_err(|error| words(path, error))?;
    }
    Ok(())
}

/// A path to a place that is open.
pub(super) fn by_descriptor(place: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", place.as_raw_fd()).into()
}

fn set_everywhere(attribute: u64) -> io::Result<()> {
    set_attribute(&open_place(Path::new("/"))?, attribute)
}

fn change(path: &Path, verb: &str, act: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), String> {
    match act(path) {
        // It was removed after the check.
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("can't {verb} {}: {error}", path.display())),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn hold(path: &Path) -> io::Result<()> {
    bind(path, path)
}

pub(super) fn protect(path: &Path) -> io::Result<()> {
    attach(&read_only_copy(path)?, path)
}

pub(super) fn mask(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return mount(c"tmpfs", path, READ_ONLY | NO_SUID | NO_DEVICES, c"size=4k");
    }
    attach(&read_only_copy(Path::new("/dev/null"))?, path)
}

fn read_only_copy(path: &Path) -> io::Result<OwnedFd> {
    let tree = copy_tree(path)?;
    set_attribute(&tree, TREE_READ_ONLY)?;
    Ok(tree)
}

/// Without paths inside another one. Each comes after all that could contain it.
fn outermost(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let inner = |path: &PathBuf| paths.iter().any(|other| other != path && path.starts_with(other));
    let mut outer: Vec<&PathBuf> = paths.iter().filter(|path| !inner(path)).collect();
    outer.sort();
    outer.dedup();
    outer
}

/// The folders above these places, outermost first, that the program could rename: a folder put in the place of one would take
/// effect outside. A mount point cannot be renamed, so each becomes one.
fn above(places: &[PathBuf], confinement: &Confinement) -> Vec<PathBuf> {
    let writable = |folder: &Path| {
        let listed = confinement.writable.iter().any(|place| folder.starts_with(place));
        (confinement.guard || listed) && may_write(folder)
    };
    let (mut above, mut known) = (BTreeSet::new(), BTreeMap::new());
    for place in places {
        for folder in place.ancestors().skip(1) {
            let Some(parent) = folder.parent().filter(|_| !above.contains(folder)) else { break };
            if *known.entry(parent).or_insert_with(|| writable(parent)) {
                above.insert(folder);
            }
        }
    }
    above.into_iter().map(Path::to_owned).collect()
}

/// `None` if the program's working folder would be hidden.
fn own_temp(confinement: &Confinement, cwd: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let in_use = confinement.writable.iter().map(PathBuf::as_path).chain(cwd).any(|path| path.starts_with(TEMP));
    if confinement.guard || in_use || !Path::new(TEMP).is_dir() {
        return Ok(None);
    }
    mount(c"tmpfs", Path::new(TEMP), NO_SUID | NO_DEVICES, c"size=512m,mode=1777")
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
