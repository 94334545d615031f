//! `toolctl plugins remove`

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::lock::PluginLock;
use super::{plugin_folder, taken_up};
use crate::confirm::confirm;
use crate::connection;
use crate::exit::{NOT_RUN, OK, not_found};
use crate::globals::Globals;
use crate::output::{self, print_json};

pub(crate) async fn remove(name: &str, yes: bool, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let folder = plugin_folder(&client).await?;
    let entry = entry(&folder, name)?;
    if !yes && !confirm(&format!("Remove {} and all its files?", entry.display())).await? {
        return Ok(NOT_RUN);
    }
    // The rename removes it at once for the daemon, however long deleting takes.
    let beside = folder.join(format!(".removing-{name}-{}", std::process::id()));
    std::fs::rename(&entry, &beside).with_context(|| format!("can't remove {}", entry.display()))?;
    PluginLock::change(&folder, |plugins| drop(plugins.remove(name)))?;
    taken_up(&client, &entry).await;
    // Only a symbolic link itself is removed.
    let removed = if beside.is_dir() && !beside.is_symlink() {
        std::fs::remove_dir_all(&beside)
    } else {
        std::fs::remove_file(&beside)
    };
    removed.with_context(|| format!("can't remove {}", beside.display()))?;
    if json {
        print_json(&serde_json::json!({"removed": entry}))?;
    } else {
        writeln!(output::stdout(), "{}", entry.display())?;
    }
    Ok(OK)
}

/// A plugin in that folder, by the name of its folder or file.
fn entry(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let found = [folder.join(name), folder.join(format!("{name}.lua"))].into_iter().find(|path| path.exists());
    match found.filter(|_| fits) {
        Some(path) => Ok(path),
        None => Err(not_found(format!("there is no plugin {name} in {}", folder.display()))),
    }
}
