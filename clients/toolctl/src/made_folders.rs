//! Folders that toolctl made for files of other programs, which go with the last file in them. Their paths are in
//! `made-folders.json` in the state folder.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toold_client::place::state_folder;

use crate::config_file;

/// Makes the folder of a file, and those above it.
///
/// # Errors
/// It cannot be made.
pub(crate) fn create_for(file: &Path) -> anyhow::Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    let missing: Vec<PathBuf> = folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    if missing.is_empty() {
        return Ok(());
    }
    // Before they are made: a path too many does no harm.
    let mut made = all();
    made.extend(missing);
    write(&made)?;
    std::fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))
}

/// Removes those folders above a file that toolctl made and that are empty.
///
/// # Errors
/// The list cannot be written.
pub(crate) fn remove_above(file: &Path) -> anyhow::Result<()> {
    let mut made = all();
    let known = made.len();
    for folder in file.ancestors().skip(1) {
        match made.contains(folder).then(|| std::fs::remove_dir(folder)) {
            None => break,
            // It has files, of others or of another installation.
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => break,
            Some(_) => _ = made.remove(folder),
        }
    }
    if made.len() == known { Ok(()) } else { write(&made) }
}

/// The folders that toolctl made; none where that is not known.
pub(crate) fn all() -> BTreeSet<PathBuf> {
    let text = list().and_then(|list| config_file::read(&list).ok().flatten());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn write(made: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let Some(list) = list() else { return Ok(()) };
    if made.is_empty() {
        return match std::fs::remove_file(&list) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("can't remove {}", list.display()))
            }
            _ => Ok(()),
        };
    }
    if let Some(state) = list.parent() {
        std::fs::create_dir_all(state).with_context(|| format!("can't create {}", state.display()))?;
    }
    config_file::replace_own(&list, &format!("{}\n", serde_json::to_string_pretty(made)?))
}

fn list() -> Option<PathBuf> {
    Some(state_folder()?.join("made-folders.json"))
}
