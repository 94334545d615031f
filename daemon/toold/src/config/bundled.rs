//! The bundled plugins: embedded in the program, unpacked into the state folder, off unless
//! enabled.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::paths::{DaemonPaths, private_dir};
use crate::config::random::random_hex;

macro_rules! carried {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../plugins/", $name)))),+]
    };
}

/// Their files, by name below the folder.
const FILES: &[(&str, &str)] = carried![
    "git_summary/parse.lua",
    "git_summary/plugin.lua",
    "git_summary/plugin.toml",
    "json_query.lua",
    "ports/plugin.lua",
    "ports/plugin.toml",
    "release_notes/plugin.lua",
    "release_notes/plugin.toml",
    "secrets_guard/kinds.lua",
    "secrets_guard/plugin.lua",
    "secrets_guard/plugin.toml",
    "sqlite_query/plugin.lua",
    "sqlite_query/plugin.toml",
    "task_board/plugin.lua",
    "task_board/plugin.toml",
    "test_runner/parse.lua",
    "test_runner/plugin.lua",
    "test_runner/plugin.toml",
    "test_runner/runners.lua",
    "todo_finder.lua",
    "who_knows/owners.lua",
    "who_knows/plugin.lua",
    "who_knows/plugin.toml",
];

/// The folder that they are unpacked into. Daemons with different bundles use different folders, so
/// that two of one user do not interfere.
pub fn folder(places: &DaemonPaths) -> PathBuf {
    let mut hasher = blake3::Hasher::new();
    for (name, text) in FILES {
        for part in [name, text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    let digest = hasher.finalize().to_hex();
    places.state.join("bundled").join(format!("{}-{}", env!("CARGO_PKG_VERSION"), &digest[..12]))
}

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(name, _)| name.split(['/', '.']).next())
}

/// The texts of their files.
pub(super) fn sources() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(_, text)| *text)
}

/// Unpacks them, whole or not at all. If they are unpacked already, this only reads some small
/// files. Blocks.
///
/// # Errors
/// The state folder cannot be written to.
pub fn lay_out(places: &DaemonPaths) -> io::Result<()> {
    let folder = folder(places);
    if is_whole(&folder) {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(&places.state);
    private_dir(above)?;
    let beside = above.join(format!(".{}", random_hex(8)));
    let (new, old) = (beside.with_extension("new"), beside.with_extension("old"));
    let laid = write(&new).and_then(|()| {
        // Fails when there is nothing to move aside.
        let _ = std::fs::rename(&folder, &old);
        std::fs::rename(&new, &folder)
    });
    for left in [new, old] {
        // Fails when it does not exist.
        let _ = std::fs::remove_dir_all(left);
    }
    // Another daemon that starts at the same time does the same.
    laid.or_else(|error| if is_whole(&folder) { Ok(()) } else { Err(error) })
}

fn is_whole(folder: &Path) -> bool {
    FILES.iter().all(|(name, text)| std::fs::read(folder.join(name)).is_ok_and(|lies| lies == text.as_bytes()))
}

fn write(folder: &Path) -> io::Result<()> {
    for (name, text) in FILES {
        let file = folder.join(name);
        private_dir(file.parent().unwrap_or(folder))?;
        std::fs::write(file, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn altered_bundle_is_restored_without_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let places = DaemonPaths { config: dir.path().join("config"), state: dir.path().join("state"), home: None };
        let folder = folder(&places);
        lay_out(&places).unwrap();
        assert!(is_whole(&folder));
        std::fs::write(folder.join("json_query.lua"), "error()").unwrap();
        std::fs::remove_file(folder.join("git_summary/plugin.toml")).unwrap();
        lay_out(&places).unwrap();
        assert!(is_whole(&folder));
        assert_eq!(std::fs::read_dir(folder.parent().unwrap()).unwrap().count(), 1);
    }
}
