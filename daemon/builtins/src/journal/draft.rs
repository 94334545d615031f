//! Files that an agent is about to change with a tool of its own, as they are before it does.

use std::io;
use std::path::{Path, PathBuf};

use super::{InodeId, Journal, PathChange, PathState};
use crate::stamps::FileDigest;

/// A file before a change that somebody else makes. Its content is kept.
pub(crate) struct Draft {
    /// Absolute and resolved.
    pub(crate) path: PathBuf,
    before: Option<PathState>,
    /// The file itself.
    was: Option<InodeId>,
}

impl Journal {
    /// Keeps the content and the permission bits of a file; `None` if there is no file. Blocks.
    ///
    /// # Errors
    /// The content cannot be kept, and so the change cannot be undone later.
    pub(crate) fn draft(&self, path: &Path, before: Option<(&[u8], u32, InodeId)>) -> io::Result<Draft> {
        let was = before.map(|(_, _, file)| file);
        let before = before.map(|(content, mode, _)| self.keep(content, mode)).transpose()?;
        Ok(Draft { path: path.to_owned(), before, was })
    }

    /// Keeps the content of a file before a change.
    ///
    /// # Errors
    /// It cannot be kept.
    pub(crate) fn keep(&self, content: &[u8], mode: u32) -> io::Result<PathState> {
        let digest = self.contents()?.keep(content)?;
        Ok(PathState::File { content: Some(digest), mode: Some(mode), size: content.len() as u64, attributes: None })
    }
}

impl Draft {
    /// The change to `after`, the content and its size; `None` is a removed file. There may be no change.
    pub(crate) fn change_to(&self, after: Option<(FileDigest, u64)>) -> Option<PathChange> {
        let is_same = self.before.as_ref().and_then(PathState::content) == after.map(|(digest, _)| digest);
        let after =
            after.map(|(content, size)| PathState::File { content: Some(content), mode: None, size, attributes: None });
        (!is_same).then(|| PathChange::new(&self.path, self.before.clone(), after).of_file(self.was))
    }
}
