//! The dependencies of a result: the files that were read for it, the needs that were permitted, and its session.

use std::path::PathBuf;

use toold_proto::tool::{Category, SessionId, ToolName};

use crate::need::Need;
use crate::tool::Origin;

/// The state of a file when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Absolute, as requested: links are followed again at each check.
    pub path: PathBuf,
    /// `None`: the file did not exist.
    pub facts: Option<FileFacts>,
    /// The metadata alone decides. It does not if the file had changed less than two seconds
    /// before: another change could leave it identical.
    pub settled: bool,
    /// Digest of the whole content, as it was read. Decides where the metadata does not.
    pub digest: Option<[u8; 32]>,
}

/// The metadata of a file. Any change of its content changes them, if it comes late enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    pub device: u64,
    pub inode: u64,
    pub mode: u32,
    pub size: u64,
    /// Seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// Seconds and nanoseconds.
    pub ctime: (i64, i64),
}

/// Checks files for the cache. Called on a thread that may block.
pub trait FileChecks: Send + Sync + 'static {
    /// Whether reading the file would return the same content as before. False in doubt.
    fn is_current(&self, stamp: &FileStamp) -> bool;

    /// Whether a need that was determined a while ago would be the same now: its path leads to the
    /// same place, and nothing has forbidden it since. False in doubt.
    fn stands(&self, need: &Need) -> bool;
}

/// A result with more dependencies is not cached: checking so many files again gains nothing.
const MAX_PARTS: usize = 1_000;

/// The dependencies of a result. Recorded while a call runs.
#[derive(Clone, Default)]
pub struct Dependencies {
    pub(crate) stamps: Vec<FileStamp>,
    pub(crate) needs: Vec<DecidedNeed>,
    pub(crate) only_for: Option<SessionId>,
    /// A need was denied, or the result depends on something that cannot be checked.
    pub(crate) private: bool,
}

/// A need that was decided for a tool, and the plugins that asked, the outermost first.
#[derive(Clone, PartialEq)]
pub(crate) struct DecidedNeed {
    pub(crate) need: Need,
    pub(crate) chain: Vec<String>,
    pub(crate) tool: ToolName,
    pub(crate) origin: Origin,
}

impl Dependencies {
    /// Dependencies of a result that is never shared: nothing is recorded.
    pub(crate) fn private() -> Self {
        Self { private: true, ..Self::default() }
    }

    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    pub(crate) fn stamp(&mut self, stamp: FileStamp) {
        if !self.private && self.stamps.last() != Some(&stamp) {
            self.stamps.push(stamp);
            self.hold_bound();
        }
    }

    /// A need that was decided while the tool ran.
    pub(crate) fn need(&mut self, tool: &ToolName, origin: Origin, need: &Need, chain: &[String], allowed: bool) {
        // Serving a stored result does not repeat a change that came with it, and the files that a
        // program has read are unknown.
        if !allowed || matches!(need.category(), Category::FileWrite | Category::Shell) {
            self.keep_private();
        }
        if self.private {
            return;
        }
        let asked = DecidedNeed { need: need.clone(), chain: chain.to_vec(), tool: tool.clone(), origin };
        if self.needs.last() != Some(&asked) {
            self.needs.push(asked);
            self.hold_bound();
        }
    }

    /// Whether the call was allowed exactly this, on behalf of the same plugins. No in doubt.
    pub(crate) fn has_allowed(&self, need: &Need, chain: &[String]) -> bool {
        self.needs.iter().any(|decided| decided.need == *need && decided.chain == chain)
    }

    pub(crate) fn session(&mut self, session: &SessionId) {
        self.only_for = Some(session.clone());
    }

    pub(crate) fn keep_private(&mut self) {
        *self = Self::private();
    }

    /// The result of another call became part of this call's result.
    pub(crate) fn join(&mut self, other: Self) {
        if self.private || other.private {
            return self.keep_private();
        }
        self.stamps.extend(other.stamps);
        self.needs.extend(other.needs);
        self.only_for = other.only_for.or(self.only_for.take());
        self.hold_bound();
    }

    fn hold_bound(&mut self) {
        if self.stamps.len() + self.needs.len() > MAX_PARTS {
            self.keep_private();
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let stamps = self.stamps.iter().map(|stamp| stamp.path.as_os_str().len() + size_of::<FileStamp>());
        let needs = self.needs.iter().map(|asked| asked.need.target.len() + size_of::<DecidedNeed>());
        stamps.chain(needs).sum()
    }
}
