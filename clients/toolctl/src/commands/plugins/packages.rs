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

use std::path::PathBuf;

use anyhow::Context;
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::method::DaemonGetStatus;

use crate::exit::INTERRUPTED;

/// The user's plugin folder, which the daemon reads first.
async fn plugin_folder(client: &Client) -> anyhow::Result<PathBuf> {
    let status = client.call::<DaemonGetStatus>(NoParams {}).await?;
    status.plugin_dirs.first().map(PathBuf::from).context("the daemon has no plugin folder")
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
