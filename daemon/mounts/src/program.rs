//! A program that is connected by its stdin and stdout, with its stderr logged.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toold_host::descendants::{OWNER, owner};
use toold_host::process::ProcessCommand;
use toold_host::process::piped_child::{PipedChild, start_piped};
use toold_host::stderr_log::StderrLog;

/// How long the last output of an ended program may take to arrive.
pub const LAST_OUTPUT: Duration = Duration::from_millis(250);
/// Between closed stdin, TERM and KILL.
const GRACE: Duration = Duration::from_secs(1);

/// A running program. Dropping it kills it, with all its descendants.
pub struct SourceProgram {
    child: PipedChild,
    /// Reads its stderr to the end.
    stderr: JoinHandle<()>,
}

impl SourceProgram {
    /// Starts it with its stderr going to the log.
    ///
    /// # Errors
    /// Why it cannot be started, as a sentence for the user.
    pub fn start(mut command: ProcessCommand, log: &Arc<StderrLog>) -> Result<(Self, ChildStdout, ChildStdin), String> {
        command.environment = command.environment.with([(OWNER, owner())]);
        command.grace = GRACE;
        let (child, pipes) = start_piped(command).map_err(|error| error.to_string())?;
        let log = log.clone();
        let stderr = tokio::spawn(async move { log.read(pipes.stderr).await });
        Ok((Self { child, stderr }, pipes.stdout, pipes.stdin))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Ends it and its descendants, first by closing its stdin, which its caller has done. Returns
    /// how it ended.
    pub(crate) async fn end(mut self) -> Option<ExitStatus> {
        let status = self.child.end().await;
        if timeout(LAST_OUTPUT, &mut self.stderr).await.is_err() {
            self.stderr.abort();
        }
        status
    }
}

/// Waits until the program has ended: for ever, if there is none. Cancel-safe; may be called again.
pub(crate) async fn ended(program: &mut Option<SourceProgram>) {
    match program {
        Some(program) => program.child.ended().await,
        None => std::future::pending().await,
    }
}
