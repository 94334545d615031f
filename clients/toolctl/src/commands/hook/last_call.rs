//! How the last hook call of each agent ended: a small file for each, which `toolctl agents` shows.

use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toold_client::place;
use toold_files::FileReplacement;

use crate::commands::hook::HookAgent;
use crate::commands::hook::answers::JudgedDecision;
use crate::output::shorten;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastHook {
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) event: String,
    /// The decision; `None` when there was none.
    pub(crate) decision: Option<String>,
    /// Why there was none.
    pub(crate) problem: Option<String>,
}

/// The longest problem that is kept, in characters.
const MAX_PROBLEM: usize = 400;

impl LastHook {
    pub(crate) fn answered(event: &str, decision: JudgedDecision) -> Self {
        Self { at: now(), event: event.to_owned(), decision: Some(decision.as_str().to_owned()), problem: None }
    }

    pub(crate) fn problem(event: &str, problem: &str) -> Self {
        Self { at: now(), event: event.to_owned(), decision: None, problem: Some(shorten(problem, MAX_PROBLEM)) }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

fn file(agent: HookAgent) -> Option<PathBuf> {
    Some(place::state_folder()?.join("hooks").join(agent.name()).with_extension("json"))
}

/// Replaces the file. The answer to the agent does not depend on it, so a failure is not reported.
pub(crate) fn write(agent: HookAgent, call: &LastHook) {
    let write = || -> Option<()> {
        let file = file(agent)?;
        let text = serde_json::to_vec(call).ok()?;
        let beside = file.with_extension(format!("new-{}", std::process::id()));
        toold_files::replace(&file, &beside, &text, FileReplacement::Private).ok()
    };
    let _ = write();
}

/// `None` when the agent has not called.
pub(crate) fn read(agent: HookAgent) -> Option<LastHook> {
    serde_json::from_slice(&std::fs::read(file(agent)?).ok()?).ok()
}
