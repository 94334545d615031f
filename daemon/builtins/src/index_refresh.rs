//! Keeps Git's index current where commands only read: Git notes in it which files are as they were, and without that it reads
//! all of them again, each time. On its floor a command may not write the index, so the daemon does it after one, now and then.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_host::process::{self, ProcessCommand};

use crate::toolkit::Toolkit;

/// With a smaller index, Git reads all of its files in little time.
const MIN_INDEX: u64 = 128 << 10;
/// How long an index is left alone.
const AGAIN: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Attributes of no file, so that no filter runs: the name of the empty tree in each repository.
const NO_ATTRIBUTES: &str = "--attr-source=4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// Nothing of the repository runs.
const NO_PROGRAMS: [&str; 4] = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
/// Parts of a repository that decide what runs in it.
const KEPT: [&str; 6] = ["config", "config.worktree", "commondir", "hooks", "info", "modules"];

/// The indexes that were refreshed for a session, with their times afterwards.
#[derive(Default)]
struct RefreshedIndexes(Mutex<Vec<(PathBuf, Instant, Option<SystemTime>)>>);

/// Refreshes the index of the repository around a folder, if a command of Git has only read it. Errors leave it as it is.
pub(crate) async fn after(needs: &[Need], cwd: &Path, toolkit: &Toolkit, cx: &Cx) {
    let is_git =
        |need: &Need| need.words().is_some_and(|words| words.first().is_some_and(|program| program.text == "git"));
    if !needs.iter().any(is_git) {
        return;
    }
    let Some(git) = cwd.ancestors().map(|folder| folder.join(".git")).find(|git| git.symlink_metadata().is_ok()) else {
        return;
    };
    let index = git.join("index");
    let facts = || index.symlink_metadata().ok().filter(|facts| facts.is_file() && facts.len() >= MIN_INDEX);
    let is_own = git.is_dir() && !git.is_symlink() && cx.session.contains(&git);
    let Some(before) = facts().filter(|_| is_own).map(|facts| facts.modified().ok()) else { return };
    let refreshed = cx.session.slot::<RefreshedIndexes>();
    {
        let mut all = refreshed.0.lock();
        all.retain(|(_, at, _)| at.elapsed() < AGAIN);
        if all.iter().any(|(path, _, time)| *path == index && *time == before) {
            return;
        }
    }
    let Ok(mut confinement) = toolkit.sandbox.confine_reader(&cx.session, &cx.engine.policy.load()) else { return };
    confinement.protected = KEPT.map(|name| git.join(name)).into_iter().filter(|path| path.exists()).collect();
    confinement.writable = vec![git];
    let top = index.ancestors().nth(2).unwrap_or(cwd);
    let variables = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_TERMINAL_PROMPT", "0")];
    let mut command = ProcessCommand::new("git", top, toolkit.environment.clone().with(variables))
        .args([NO_ATTRIBUTES])
        .args(NO_PROGRAMS)
        .args(["update-index", "-q", "--refresh"]);
    command.confinement = Some(confinement);
    command.timeout = Some(TIMEOUT);
    command.keep = 0;
    // Waited for: until it has ended, no command of Git may write the index.
    if process::run(command, &cx.cancel, |_, _| {}).await.is_ok() {
        let time = facts().and_then(|facts| facts.modified().ok());
        refreshed.0.lock().push((index, Instant::now(), time));
    }
}
