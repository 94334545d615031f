//! The entries of `plugins.lock` for the plugins that the daemon lists.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

use serde::Serialize;
use toold_client::Client;
use toold_proto::plugin::Plugin;

use super::lock::PluginLock;
use super::plugin_folder;
use crate::program;

/// Where an installed plugin came from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InstalledPlugin {
    pub(crate) source: String,
    pub(crate) revision: String,
    /// Whether its files are other ones than those that were installed.
    pub(crate) changed: bool,
}

/// The plugins that were installed with `toolctl plugins install`, by their path.
pub(crate) async fn installed(client: &Client, plugins: &[Plugin]) -> anyhow::Result<HashMap<String, InstalledPlugin>> {
    let Ok(folder) = plugin_folder(client).await.and_then(|folder| Ok(folder.canonicalize()?)) else {
        return Ok(HashMap::new());
    };
    let mut lock = PluginLock::read(&folder)?.plugins;
    let locked = plugins.iter().filter_map(|plugin| {
        let path = Path::new(&plugin.path);
        let name = path.file_name()?.to_str().filter(|_| path.exists())?;
        path.parent()?.canonicalize().ok().filter(|parent| *parent == folder)?;
        Some((plugin.path.clone(), lock.remove(name)?))
    });
    let locked: Vec<_> = locked.collect();
    if locked.is_empty() {
        return Ok(HashMap::new());
    }
    let words = ["plugin", "digest"].into_iter().map(OsStr::new);
    let words: Vec<&OsStr> = words.chain(locked.iter().map(|(path, _)| OsStr::new(path))).collect();
    let digests = program::text(&words).await?;
    let marked = locked.into_iter().zip(digests.lines()).map(|((path, locked), digest)| {
        let changed = digest != locked.digest;
        (path, InstalledPlugin { source: locked.source, revision: locked.revision, changed })
    });
    Ok(marked.collect())
}
