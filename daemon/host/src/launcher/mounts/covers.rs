//! Covers of files and folders that a program on a floor may not read: opening one is refused, so that nobody takes a
//! hidden file for an empty one.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::super::system::{
    NO_DEVICES, NO_SUID, READ_ONLY, TREE_READ_ONLY, attach, bind, mount, open_place, set_attribute, unmount,
    user_and_group,
};
use super::{change, read_only_copy};

/// Folders that every system has, where the covers are made before the program starts.
pub(super) const STAGES: [&str; 2] = ["/dev/shm", "/tmp"];
/// Files of the kernel that nobody reads, not even root, who reads every other file.
const UNREADABLE: [&str; 2] = ["/proc/sys/vm/drop_caches", "/proc/sys/vm/compact_memory"];

/// Returns whether folders are among what is covered. Those that are gone by now need no cover.
pub(super) fn cover(paths: &[&PathBuf]) -> Result<bool, String> {
    if paths.is_empty() {
        return Ok(false);
    }
    let words = |error: io::Error| format!("can't make what covers secrets: {error}");
    let of_kernel = match user_and_group().0 {
        0 => Some(unreadable_file()?),
        _ => unreadable_file().ok(),
    };
    let mut left = paths.to_vec();
    if let Some(file) = of_kernel {
        bind(file, file).and_then(|()| make_read_only(file)).map_err(words)?;
        left = bind_all(&left, file)?;
    }
    if left.is_empty() {
        return Ok(false);
    }
    on_stage(|stage| {
        let (file, folder) = (stage.join("file"), stage.join("folder"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o0).open(&file).map(drop);
        let made = made.and_then(|()| DirBuilder::new().mode(0o0).create(&folder));
        made.and_then(|()| make_read_only(stage)).map_err(words)?;
        bind_all(&bind_all(&left, &file)?, &folder).map(|_| true)
    })
}

/// Covers one that has appeared while the program runs.
pub(in super::super) fn refuse(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return mount(c"tmpfs", path, READ_ONLY | NO_SUID | NO_DEVICES, c"size=4k,mode=0");
    }
    let file = unreadable_file().map_err(io::Error::other)?;
    attach(&read_only_copy(file)?, path)
}

/// Shows other texts in the place of these files.
pub(super) fn replace(files: &[(PathBuf, String)]) -> Result<(), String> {
    on_stage(|stage| {
        let file = stage.join("file");
        for (path, text) in files {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&file);
            let made = made.and_then(|mut made| io::Write::write_all(&mut made, text.as_bytes()));
            made.map_err(|error| format!("can't make what stands in for {}: {error}", path.display()))?;
            change(path, "replace", |path| attach(&read_only_copy(&file)?, path))?;
            // It stays where it is mounted.
            std::fs::remove_file(&file).map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}

/// Makes covers in a file system in memory, which is gone afterwards but for what was mounted elsewhere.
fn on_stage<T>(make: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
    let words = |error: io::Error| format!("can't make what covers secrets: {error}");
    let stage = STAGES.iter().map(Path::new).find(|stage| stage.is_dir()).ok_or("there is no /dev/shm and no /tmp")?;
    mount(c"tmpfs", stage, NO_SUID | NO_DEVICES, c"size=2m,mode=0700").map_err(words)?;
    let made = make(stage);
    unmount(stage).map_err(words)?;
    made
}

fn unreadable_file() -> Result<&'static Path, String> {
    let refuses = |path: &&Path| path.is_file() && std::fs::File::open(path).is_err();
    let found = UNREADABLE.iter().map(Path::new).find(refuses);
    found.ok_or_else(|| "root reads every file of this system, so that none can be refused".to_owned())
}

/// Covers these by another file or folder. Returns those that are not of the same kind.
fn bind_all<'a>(paths: &[&'a PathBuf], cover: &Path) -> Result<Vec<&'a PathBuf>, String> {
    let mut others = Vec::new();
    for path in paths {
        change(path, "hide", |place| match bind(cover, place) {
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                others.push(*path);
                Ok(())
            }
            bound => bound,
        })?;
    }
    Ok(others)
}

fn make_read_only(path: &Path) -> io::Result<()> {
    set_attribute(&open_place(path)?, TREE_READ_ONLY)
}
