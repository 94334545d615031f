//! Folders that appear with a layer above, in memory: the program changes them, and nobody else sees that. Caches of what
//! tools have downloaded are such folders: what a program leaves there, others would run.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::super::order::Confinement;
use super::super::system::{NO_DEVICES, NO_SUID, mount, unmount};
use super::covers::STAGES;

/// Lays the layers, and returns the places in them that may be written, which are made where they are missing. Where the
/// system has no overlays, the folders stay as they are.
pub(super) fn lay(confinement: &Confinement) -> Vec<PathBuf> {
    let laid = if confinement.layers.is_empty() { Ok(Vec::new()) } else { lay_all(&confinement.layers) };
    let laid = laid.unwrap_or_default();
    let is_laid = |place: &&PathBuf| laid.iter().any(|folder| place.starts_with(folder));
    let mut writable = Vec::new();
    for place in confinement.layered.iter().filter(is_laid) {
        // Fails where it exists.
        let _ = std::fs::create_dir(place);
        writable.push(place.clone());
    }
    writable
}

/// The folders that have one.
fn lay_all(folders: &[PathBuf]) -> io::Result<Vec<&PathBuf>> {
    let stage = STAGES.iter().map(Path::new).find(|stage| stage.is_dir()).ok_or(io::ErrorKind::NotFound)?;
    mount(c"tmpfs", stage, NO_SUID | NO_DEVICES, c"size=2g,mode=0700")?;
    let numbered = folders.iter().enumerate();
    let laid = numbered.filter(|(number, folder)| mount_overlay(folder, stage, *number).is_ok());
    let laid = laid.map(|(_, folder)| folder).collect();
    // It stays where the overlays use it.
    unmount(stage)?;
    Ok(laid)
}

fn mount_overlay(folder: &Path, stage: &Path, number: usize) -> io::Result<()> {
    let (upper, work) = (stage.join(format!("upper-{number}")), stage.join(format!("work-{number}")));
    DirBuilder::new().mode(0o755).create(&upper)?;
    std::fs::create_dir(&work)?;
    let option = |name: &[u8], path: &Path| [name, b"=", &escaped(path)].concat();
    let folders = [option(b"lowerdir", folder), option(b"upperdir", &upper), option(b"workdir", &work)].join(&b","[..]);
    // Without privileges, its own marks are attributes of users, which a file system in memory has since Linux 6.6.
    let marked = [&b"userxattr,"[..], &folders].concat();
    [marked, folders]
        .iter()
        .map(|options| overlay(folder, options))
        .find(Result::is_ok)
        .ok_or(io::ErrorKind::Unsupported)?
}

fn overlay(folder: &Path, options: &[u8]) -> io::Result<()> {
    mount(c"overlay", folder, NO_SUID | NO_DEVICES, &std::ffi::CString::new(options)?)
}

/// As options of an overlay name a path.
fn escaped(path: &Path) -> Vec<u8> {
    let escape = |byte: &u8| if b",:\\".contains(byte) { vec![b'\\', *byte] } else { vec![*byte] };
    path.as_os_str().as_bytes().iter().flat_map(escape).collect()
}
