//! Programs of the system that read a file for a tool. They get its content as their input, may take neither long nor much
//! memory, and can change nothing, reach no network and read no known secrets.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_engine::tool::ToolError;
use toold_host::process::{self, OutputTap, ProcessCommand, ProcessEnding};
use toold_proto::call::Stream;

use crate::blocking::with_heartbeat;
use crate::toolkit::Toolkit;

const TIMEOUT: Duration = Duration::from_secs(20);
/// The longest output that is kept, in bytes.
const MAX_OUTPUT: usize = 16 * 1024 * 1024;
/// The longest complaint that is shown, in bytes.
const MAX_COMPLAINT: usize = 4096;
/// Runs the first program of the names before `--` that there is. 2 GB of addresses, and as many seconds of a core as the time
/// limit.
const START: &str = "ulimit -v 2000000; ulimit -t 20\n\
                     while [ \"$1\" != -- ]; do\n\
                     if command -v \"$1\" >/dev/null; then found=${found:-$1}; fi; shift\n\
                     done\n\
                     shift; [ -n \"$found\" ] || exit 127; exec \"$found\" \"$@\"";

/// A program that reads its input and writes its output.
pub(crate) struct ReaderProgram {
    /// Its names, the first one that exists is used.
    pub(crate) names: &'static [&'static str],
    /// The name under which people find it.
    pub(crate) package: &'static str,
    pub(crate) arguments: Vec<String>,
}

/// What a program wrote.
pub(crate) struct ReadOutput {
    pub(crate) bytes: Vec<u8>,
    /// It was longer.
    pub(crate) cut: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReaderError {
    /// What to install.
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Call(#[from] ToolError),
}

impl ReaderProgram {
    /// Runs it with this input to its end.
    ///
    /// # Errors
    /// It is not installed, cannot be confined, failed, or took too long.
    pub(crate) async fn read(&self, input: Vec<u8>, toolkit: &Toolkit, cx: &Cx) -> Result<ReadOutput, ReaderError> {
        // Which of several names it has here is known to the shell only.
        let name = match self.names {
            [name] => name,
            _ => self.package.split(" (").next().unwrap_or_default(),
        };
        let failed = |words: String| ReaderError::Failed(format!("{name} can't read it: {words}"));
        let confinement = toolkit.sandbox.confine_reader(&cx.session, &cx.engine.policy.load());
        let confinement = confinement.map_err(|error| failed(error.to_string()))?;
        let mut command =
            ProcessCommand::new("/bin/sh", "/", toolkit.environment.clone().with([("OMP_NUM_THREADS", "1")]))
                .args(["-c", START, "sh"])
                .args(self.names.iter().copied())
                .args(["--"])
                .args(&self.arguments);
        command.confinement = Some(confinement);
        command.stdin = Some(input);
        command.timeout = Some(TIMEOUT);
        command.keep = MAX_COMPLAINT;
        let kept = Arc::new(Mutex::new(ReadOutput { bytes: Vec::new(), cut: false }));
        let hears = kept.clone();
        command.tap = Some(OutputTap::new(move |stream, bytes| {
            if stream == Stream::Stdout {
                let mut kept = hears.lock();
                let room = MAX_OUTPUT.saturating_sub(kept.bytes.len());
                kept.cut |= bytes.len() > room;
                kept.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }));
        let work = process::run(command, &cx.cancel, |_, _| {});
        let finished = with_heartbeat(cx, work).await.map_err(|error| failed(error.to_string()))?;
        match (finished.ending, finished.code) {
            (ProcessEnding::Cancelled, _) => Err(ToolError::Cancelled.into()),
            (ProcessEnding::TimedOut, _) => Err(failed(format!("it took more than {} s", TIMEOUT.as_secs()))),
            (ProcessEnding::Exited, Some(0)) => {
                Ok(std::mem::replace(&mut *kept.lock(), ReadOutput { bytes: Vec::new(), cut: false }))
            }
            (ProcessEnding::Exited, Some(127)) => {
                let package = self.package;
                Err(ReaderError::Missing(format!("install {package} on this machine, and read it again")))
            }
            (ProcessEnding::Exited, code) => {
                let complaint = finished.stderr.to_text();
                let words = complaint.trim().lines().next_back().unwrap_or_default();
                let code = code.map_or("it was ended by a signal".to_owned(), |code| format!("exit code {code}"));
                Err(failed(if words.is_empty() { code } else { format!("{words} ({code})") }))
            }
        }
    }
}
