//! What was found out about a command line before it was decided, for its run a moment later.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_host::sandbox::FoundSecrets;

/// A call that waits for a person or for its turn takes longer, and judges its line again.
const FRESH: Duration = Duration::from_millis(50);

/// A command line and what it needs.
#[derive(Clone)]
pub(crate) struct JudgedLine {
    at: Instant,
    line: String,
    cwd: PathBuf,
    pub(crate) needs: Vec<Need>,
    /// The secrets in the session's folders, if they were looked for.
    pub(crate) secrets: Option<FoundSecrets>,
}

/// The line that a call has judged last.
#[derive(Default)]
struct LastJudged(Mutex<Option<JudgedLine>>);

impl JudgedLine {
    /// Judges the line: `needs` gives what it needs.
    pub(crate) fn new(line: &str, cwd: &Path, needs: impl FnOnce() -> Vec<Need>) -> Self {
        let at = Instant::now();
        Self { at, line: line.to_owned(), cwd: cwd.to_owned(), needs: needs(), secrets: None }
    }

    pub(crate) fn keep_for_run(self, cx: &Cx) {
        *cx.slot::<LastJudged>().0.lock() = Some(self);
    }

    /// What the call has kept about this line, if that was a moment ago.
    pub(crate) fn kept(line: &str, cwd: &Path, cx: &Cx) -> Option<Self> {
        let kept = cx.slot::<LastJudged>().0.lock().take()?;
        (kept.line == line && kept.cwd == cwd && kept.at.elapsed() < FRESH).then_some(kept)
    }
}
