//! The process beside a confined program that covers files again. Where somebody outside renames a file or removes it, the
//! kernel takes away what is mounted there in all other namespaces: the new file would be readable and could be changed.
//!
//! The kernel tells about it afterwards, so that there is a moment in which the program sees the new file.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use super::mounts::{self, covers};
use super::network;
use super::system::{self, ChangedName, WatchedEntries};

/// How often all of it is looked at: not all file systems tell about changes.
const EACH: Duration = Duration::from_secs(1);
/// The same where the kernel tells about none, since the user has no more watches.
const OFTEN: Duration = Duration::from_millis(50);

/// Size limit of the list of covers, in bytes.
const MAX_LIST: u64 = 16 << 20;

/// How a path is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoverKind {
    /// A folder that cannot be renamed.
    Held,
    ReadOnly,
    Empty,
    /// It cannot be opened.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathCover {
    pub(super) kind: CoverKind,
    pub(super) path: PathBuf,
}

const LETTERS: [(CoverKind, u8); 4] =
    [(CoverKind::Held, b'h'), (CoverKind::ReadOnly, b'p'), (CoverKind::Empty, b'e'), (CoverKind::Refused, b'r')];

/// The covers as the process reads them.
pub(super) fn list(covers: &[PathCover]) -> Vec<u8> {
    let mut list = Vec::new();
    for cover in covers {
        let letter = LETTERS.iter().find(|(kind, _)| *kind == cover.kind).map(|(_, letter)| *letter);
        list.extend(letter);
        // The program may change a link to a file that it cannot change. Other covers have no links on their ways, or only those of
        // a person.
        let real =
            Some(&cover.path).filter(|_| cover.kind == CoverKind::ReadOnly).and_then(|path| path.canonicalize().ok());
        list.extend_from_slice(real.as_ref().unwrap_or(&cover.path).as_os_str().as_bytes());
        list.push(0);
    }
    list
}

fn read(list: &[u8]) -> Vec<PathCover> {
    let cover = |entry: &[u8]| {
        let (first, path) = entry.split_first()?;
        let (kind, _) = LETTERS.iter().find(|(_, letter)| letter == first)?;
        let mut path = PathBuf::from(OsString::from_vec(path.to_vec()));
        // The cover lies where links lead. A path that is gone by now has none.
        if system::open_without_links(&path).is_err() {
            path = path.canonicalize().unwrap_or(path);
        }
        Some(PathCover { kind: *kind, path })
    };
    list.split(|byte| *byte == 0).filter_map(cover).collect()
}

/// Renews the covers of the list at the standard input, in the namespaces of `--join`, until the program and all that it has
/// started have ended: then nothing is at the other end of the descriptor at the standard output.
pub(super) fn serve(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let mut join = Vec::new();
    while let Some(argument) = arguments.next() {
        let namespace = arguments.next().filter(|_| argument == "--join");
        join.push(namespace.ok_or("expected --join and a namespace")?.into());
    }
    let mut entries = Vec::new();
    io::stdin().take(MAX_LIST).read_to_end(&mut entries).map_err(|error| format!("can't read the covers: {error}"))?;
    network::enter(&join)?;
    let (covers, changes) = (read(&entries), WatchedEntries::new().ok());
    loop {
        // Before it is looked at the files, so that nothing is missed in between.
        let watched = changes.as_ref().map(|changes| watch(&covers, changes)).unwrap_or_default();
        covers.iter().for_each(renew);
        if !wait(&covers, changes.as_ref(), &watched) {
            return Ok(());
        }
    }
}

/// Watches the folders above the covered files, up to where the program's own mounts begin. Returns them by the numbers of
/// their watches.
fn watch(covers: &[PathCover], changes: &WatchedEntries) -> HashMap<i32, PathBuf> {
    let (mut watched, mut seen) = (HashMap::new(), HashSet::new());
    for cover in covers {
        for folder in cover.path.ancestors().skip(1) {
            if !seen.insert(folder) {
                break;
            }
            watched.extend(changes.watch(folder).ok().map(|watch| (watch, folder.to_owned())));
            let is_cover = || covers.iter().any(|cover| cover.path == folder);
            let is_mounted = system::open_without_links(folder).and_then(|folder| system::is_mounted(&folder));
            if is_mounted.unwrap_or(false) && !is_cover() {
                break;
            }
        }
    }
    watched
}

/// Renews covers as their files are replaced, until all of them must be looked at. False when the program has ended.
fn wait(covers: &[PathCover], changes: Option<&WatchedEntries>, watched: &HashMap<i32, PathBuf>) -> bool {
    let time = if changes.is_some() { EACH } else { OFTEN };
    loop {
        let found = match system::wait_for_change(changes, io::stdout().as_raw_fd(), time) {
            Ok(Some(found)) => found,
            Ok(None) => return false,
            Err(_) => return true,
        };
        let mut must_look = found.is_empty();
        for ChangedName { watch, name } in found {
            let folder = watched.get(&watch).filter(|_| !name.is_empty());
            let Some(path) = folder.map(|folder| folder.join(OsStr::from_bytes(&name))) else {
                must_look = true;
                continue;
            };
            for cover in covers.iter().filter(|cover| cover.path.starts_with(&path)) {
                renew(cover);
                must_look |= cover.path != path;
            }
        }
        if must_look {
            return true;
        }
    }
}

fn renew(cover: &PathCover) {
    // The program could have put a link in the place of a folder that is gone.
    let Ok(place) = system::open_without_links(&cover.path) else { return };
    if system::is_mounted(&place).unwrap_or(true) {
        return;
    }
    let path = mounts::by_descriptor(&place);
    // Fails if it is gone again. The next look covers what is there then.
    let _ = match cover.kind {
        CoverKind::Held => mounts::hold(&path),
        CoverKind::ReadOnly => mounts::protect(&path),
        CoverKind::Empty => mounts::mask(&path),
        CoverKind::Refused => covers::refuse(&path),
    };
}
