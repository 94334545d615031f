//! The answer of hooks when there is no daemon, as a person chose it for each agent. The agent's configuration says the same, but
//! others may change it there.

use std::path::PathBuf;

use anyhow::Context;
use toold_client::place;
use toold_files::FileReplacement;

use crate::commands::hook::{FailArg, HookAgent};

fn file(agent: HookAgent) -> Option<PathBuf> {
    Some(place::state_folder()?.join("hooks").join(agent.name()).with_extension("fail"))
}

/// Keeps the choice of an installation.
///
/// # Errors
/// It cannot be written.
pub(super) fn keep(agent: HookAgent, fail: FailArg) -> anyhow::Result<()> {
    let file = file(agent).context("HOME is not set")?;
    let beside = file.with_extension(format!("fail-{}", std::process::id()));
    let text = fail.as_str().as_bytes();
    toold_files::replace(&file, &beside, text, FileReplacement::Private)
        .with_context(|| format!("can't write {}", file.display()))
}

/// After the hooks were removed. A choice that stays has no effect without hooks.
pub(crate) fn forget(agent: HookAgent) {
    if let Some(file) = file(agent) {
        let _ = std::fs::remove_file(file);
    }
}

/// The choice of the last installation; `None` for one of an earlier version.
pub(super) fn kept(agent: HookAgent) -> Option<FailArg> {
    let kept = std::fs::read_to_string(file(agent)?).ok()?;
    [FailArg::Open, FailArg::Closed].into_iter().find(|fail| fail.as_str() == kept)
}
