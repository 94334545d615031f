//! Git as another program: its output, its progress and its errors.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressFinish};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::live::spinner;
use crate::output::{one_line, shorten};

/// Git's stdout; its stderr as the error when it fails. Killed when this is dropped.
pub(super) async fn git(dir: Option<&Path>, args: &[&str]) -> anyhow::Result<String> {
    let output = command(dir, args).output().await.context("can't run git")?;
    if !output.status.success() {
        bail!("git {}: {}", args[0], String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether Git's answer to a question is yes.
pub(super) async fn git_says_yes(dir: &Path, args: &[&str]) -> anyhow::Result<bool> {
    Ok(command(Some(dir), args).output().await.context("can't run git")?.status.success())
}

/// The same for work that takes long: on a terminal its progress is shown beside `title`.
pub(super) async fn git_with_progress(title: &str, args: &[&str]) -> anyhow::Result<()> {
    if !io::stderr().is_terminal() {
        return git(None, args).await.map(drop);
    }
    let bar = ProgressBar::new_spinner().with_finish(ProgressFinish::AndClear).with_style(spinner());
    bar.set_prefix(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut running = command(None, args)
        .arg("--progress")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("can't run git")?;
    let mut stderr = running.stderr.take().context("git has no stderr")?;
    let (mut text, mut piece) = (Vec::new(), [0; 1024]);
    loop {
        let length = stderr.read(&mut piece).await.context("can't read git's progress")?;
        if length == 0 {
            break;
        }
        text.extend_from_slice(&piece[..length]);
        // Each state of the progress ends with a carriage return, and only the last one counts.
        if let Some(end) = text.iter().rposition(|byte| *byte == b'\r') {
            let state = text[..end].rsplit(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
            bar.set_message(shorten(&one_line(&String::from_utf8_lossy(state)), 100));
            let line = text[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            text.drain(line..=end);
        }
    }
    let status = running.wait().await.context("can't wait for git")?;
    if !status.success() {
        bail!("git {}: {}", args[0], String::from_utf8_lossy(&text).trim());
    }
    Ok(())
}

/// Git without prompts for passwords, without hooks of the user's templates, and with files as they are in the
/// repository, so that they are the same on every machine.
fn command(dir: Option<&Path>, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    if let Some(dir) = dir {
        command.arg("-C").arg(dir);
    }
    for setting in ["core.hooksPath=/dev/null", "core.autocrlf=false", "core.fsmonitor=false"] {
        command.args(["-c", setting]);
    }
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    command.args(args).env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null()).kill_on_drop(true);
    command
}
