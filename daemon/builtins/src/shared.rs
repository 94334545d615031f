//! What the built-in tools have in common. One for each daemon.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use toold_engine::cx::Cx;
use toold_host::environment::Environment;

use crate::buffers::Buffers;
use crate::journal::Journal;
use crate::shells::Shells;
use crate::stamps::Stamps;

/// The places and variables that the daemon gives its built-in tools.
pub struct Shared {
    /// What programs get, before the session adds its own.
    pub environment: Environment,
    /// Holds a folder for each session, with its long outputs; `None` when there is no such place.
    spool: Option<PathBuf>,
    next_file: AtomicU64,
    pub(crate) stamps: Stamps,
    pub(crate) journal: Journal,
    /// What editors have open and not saved.
    pub buffers: Buffers,
    /// The commands in the background.
    pub shells: Shells,
}

impl Shared {
    /// `spool` is where the daemon keeps long results: `SPOOL/SESSION/...`. A session may read what lies
    /// in its own folder there without asking; whoever closes the session removes it. `undo` is where it keeps what
    /// was in files before they were changed: `UNDO/SESSION/...`, no tool's to read.
    pub fn new(environment: Environment, spool: Option<PathBuf>, undo: Option<PathBuf>) -> Self {
        let spool = spool.map(|spool| toold_host::files::resolve(&spool, Path::new("/")).unwrap_or(spool));
        Self {
            environment,
            spool,
            next_file: AtomicU64::new(1),
            stamps: Stamps::default(),
            journal: Journal::new(undo),
            buffers: Buffers::default(),
            shells: Shells::default(),
        }
    }

    /// The folder of the call's session in the spool.
    pub(crate) fn session_spool(&self, cx: &Cx) -> Option<PathBuf> {
        self.spool.as_ref().map(|spool| spool.join(cx.session.id.as_str()))
    }

    /// A path for a long output of this call. Nothing is made there.
    pub(crate) fn spool_file(&self, cx: &Cx) -> Option<PathBuf> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        let call: String = cx.call_id.as_str().chars().take(64).map(plain).collect();
        // A daemon that was here before may have left a file of the same number.
        let process = std::process::id();
        self.session_spool(cx).map(|folder| folder.join(format!("{call}.{process}.{number}.out")))
    }
}
