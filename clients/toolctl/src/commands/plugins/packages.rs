//! `toolctl plugins install|update|remove`: third-party plugins, as Git clones in the user's plugin folder.
//!
//! `plugins.lock` in that folder says where each came from, and which revision it is. Git runs only in clones that were
//! made a moment ago: the configuration of an installed clone can name programs, and a plugin may be able to write it.

pub(super) mod changed;
mod fresh_clone;
mod git;
pub(super) mod install;
mod lock;
mod outcome;
pub(super) mod remove;
pub(super) mod source;
pub(super) mod update;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::method::{DaemonGetStatus, PluginsList, PluginsReload};
use toold_proto::plugin::{ListPlugins, ReloadPlugins};

use crate::exit::INTERRUPTED;

/// The user's plugin folder, which the daemon reads first.
async fn plugin_folder(client: &Client) -> anyhow::Result<PathBuf> {
    let status = client.call::<DaemonGetStatus>(NoParams {}).await?;
    status.plugin_dirs.first().map(PathBuf::from).context("the daemon has no plugin folder")
}

/// Waits until the daemon serves what now lies in a place of the plugin folder, or has found that it cannot. Without a daemon
/// that lets this client reload plugins, the daemon takes the change up by itself.
async fn taken_up(client: &Client, path: &Path) {
    const PATIENCE: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(50);
    let known = async || {
        let list = client.call::<PluginsList>(ListPlugins { all: true }).await.ok()?;
        list.plugins.into_iter().find(|plugin| Path::new(&plugin.path) == path)
    };
    let wait = async {
        loop {
            match (known().await, path.symlink_metadata().is_ok()) {
                (Some(plugin), there) => {
                    // Waits for the load of the plugin, or for its end. It fails where it is gone already.
                    let reloaded = client.call::<PluginsReload>(ReloadPlugins { name: Some(plugin.name) }).await;
                    if there || reloaded.is_err() {
                        return;
                    }
                }
                (None, false) => return,
                (None, true) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    // A slow plugin is shown by `toolctl plugins list`.
    let _ = tokio::time::timeout(PATIENCE, wait).await;
}

/// Runs until Ctrl-C; what was begun is removed then.
pub(super) async fn until_interrupted(work: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    tokio::select! {
        done = work => done,
        caught = tokio::signal::ctrl_c() => {
            caught.context("can't catch Ctrl-C")?;
            Ok(INTERRUPTED)
        }
    }
}
