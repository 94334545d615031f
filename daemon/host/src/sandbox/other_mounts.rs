//! Other paths of files that are kept from a command: a file system may be mounted more than once, as a whole or in part (`mount
//! --bind`, subvolumes, the folder with the whole system in WSL).

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::file_systems::answering::{self, MountedPlace};

/// The mounts as they were last read. One per daemon.
#[derive(Debug, Default)]
pub(super) struct OtherMounts(Mutex<Option<(u64, Vec<MountedPlace>)>>);

impl OtherMounts {
    /// The other paths of these files and folders. Reads the mounts if they have changed, and looks at a few files.
    pub(super) fn of<'a>(&self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
        // Before they are read, so that no change is missed.
        let changes = answering::mount_changes();
        let mut known = self.0.lock();
        if known.as_ref().is_none_or(|(then, _)| *then != changes) {
            *known = Some((changes, several_times(answering::mounted_places())));
        }
        let Some((_, mounts)) = known.as_ref().filter(|(_, mounts)| !mounts.is_empty()) else { return Vec::new() };
        paths
            .into_iter()
            .flat_map(|path| elsewhere(path, mounts))
            .filter(|path| path.symlink_metadata().is_ok())
            .collect()
    }
}

/// All mounts if the same part of a file system is in several of them, else none.
fn several_times(mounts: Vec<MountedPlace>) -> Vec<MountedPlace> {
    let overlap = |one: &MountedPlace, other: &MountedPlace| {
        one.device == other.device && one.place != other.place && one.root.starts_with(&other.root)
    };
    let is_several = mounts.iter().any(|one| mounts.iter().any(|other| overlap(one, other)));
    if is_several { mounts } else { Vec::new() }
}

/// The paths of a file in the other mounts of its file system.
fn elsewhere(path: &Path, mounts: &[MountedPlace]) -> Vec<PathBuf> {
    let is_above = |mount: &&MountedPlace| path.starts_with(&mount.place);
    // The last one of those at the same place covers the others.
    let Some(own) = mounts.iter().filter(is_above).max_by_key(|mount| mount.place.as_os_str().len()) else {
        return Vec::new();
    };
    let Ok(inner) = path.strip_prefix(&own.place) else { return Vec::new() };
    let inner = own.root.join(inner);
    let others = mounts.iter().filter(|mount| mount.device == own.device && mount.place != own.place);
    others.filter_map(|mount| Some(mount.place.join(inner.strip_prefix(&mount.root).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_path_in_each_mount_that_shows_it() {
        let mount = |device: &str, root: &str, place: &str| MountedPlace {
            device: device.into(),
            root: root.into(),
            place: place.into(),
        };
        let plain = vec![mount("8:1", "/", "/"), mount("8:2", "/", "/home"), mount("0:5", "/", "/proc")];
        assert_eq!(several_times(plain), []);
        let mounts = several_times(vec![
            mount("8:1", "/", "/"),
            mount("8:2", "/@home", "/home"),
            mount("8:2", "/", "/mnt/all"),
            mount("8:2", "/@home/me/work", "/work"),
            mount("8:2", "/@home/other", "/other"),
        ]);
        let found = |path: &str| elsewhere(Path::new(path), &mounts);
        assert_eq!(found("/home/me/work/.env"), [Path::new("/mnt/all/@home/me/work/.env"), Path::new("/work/.env")]);
        assert_eq!(found("/work/.env"), [Path::new("/home/me/work/.env"), Path::new("/mnt/all/@home/me/work/.env")]);
        assert_eq!(found("/etc/shadow"), [] as [&Path; 0]);
    }
}
