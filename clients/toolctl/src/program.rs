//! Runs the `toold` beside `toolctl`, for commands that need no daemon.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::Command;
use tokio::time::timeout;
use toold_client::start::find_program;

use crate::exit::{OK, TOOL_ERROR};
use crate::output;

/// How long it may take to read and check files.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs it, and shows its output. Its texts may quote a file that others wrote.
///
/// # Errors
/// There is no `toold`, or it did not exit within 30 s and was killed, or its output cannot be written.
pub(crate) async fn run(arguments: &[&OsStr]) -> anyhow::Result<u8> {
    let program = find_program()?;
    show(&ended(&program, command(&program, arguments).stdin(Stdio::inherit()).output()).await?)
}

/// As [`run`], with its output on stderr. Whether it succeeded.
pub(crate) async fn run_on_stderr(arguments: &[&OsStr]) -> anyhow::Result<bool> {
    let program = find_program()?;
    let Output { status, stdout, stderr } = ended(&program, command(&program, arguments).output()).await?;
    write_lines(&mut output::unfolded_stderr(), &stdout)?;
    write_lines(&mut output::unfolded_stderr(), &stderr)?;
    Ok(status.success())
}

/// The output of a run that fails, stdout before stderr; `None` when it succeeds.
///
/// # Errors
/// As for [`run`].
pub(crate) async fn errors(arguments: &[&OsStr]) -> anyhow::Result<Option<String>> {
    let program = find_program()?;
    let Output { status, stdout, stderr } = ended(&program, command(&program, arguments).output()).await?;
    let said = || [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Ok((!status.success()).then(said))
}

/// As [`run`], without a time limit.
pub(crate) async fn run_to_the_end(arguments: &[&OsStr]) -> anyhow::Result<u8> {
    let program = find_program()?;
    let output = command(&program, arguments).output().await;
    show(&output.with_context(|| format!("can't run {}", program.display()))?)
}

fn show(output: &Output) -> anyhow::Result<u8> {
    write_lines(&mut output::unfolded_stdout(), &output.stdout)?;
    write_lines(&mut output::unfolded_stderr(), &output.stderr)?;
    Ok(if output.status.success() { OK } else { TOOL_ERROR })
}

fn write_lines(out: &mut impl Write, bytes: &[u8]) -> anyhow::Result<()> {
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Returns its output.
///
/// # Errors
/// As for [`run`], and its stderr when it fails.
pub(crate) async fn text(arguments: &[&OsStr]) -> anyhow::Result<String> {
    let program = find_program()?;
    let Output { status, stdout, stderr } = ended(&program, command(&program, arguments).output()).await?;
    if !status.success() {
        bail!("{}", String::from_utf8_lossy(&stderr).trim());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Returns its output, whatever its status.
///
/// # Errors
/// As for [`run`], and its stderr when there is no output.
pub(crate) async fn report(arguments: &[&OsStr]) -> anyhow::Result<Vec<u8>> {
    let program = find_program()?;
    let output = ended(&program, command(&program, arguments).output()).await?;
    if output.stdout.is_empty() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

fn command(program: &Path, arguments: &[&OsStr]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    command
}

async fn ended<T>(program: &Path, running: impl Future<Output = std::io::Result<T>>) -> anyhow::Result<T> {
    match timeout(PATIENCE, running).await {
        Ok(ended) => ended.with_context(|| format!("can't run {}", program.display())),
        Err(_) => bail!(
            "{} did not exit within {} s and was killed; check that it is the toold of this toolctl",
            program.display(),
            PATIENCE.as_secs()
        ),
    }
}
