//! Contents of files that an agent is about to change with a tool of its own: kept until the agent is done.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use toold_engine::session::Session;
use toold_host::files;
use toold_proto::tool::{CallId, ToolName};

use super::Journal;
use crate::document::MAX_BYTES;
use crate::stamps::FileDigest;

/// The content of a file before a change that somebody else makes. Dropping it removes the kept content.
pub(crate) struct Draft {
    /// Absolute and resolved.
    pub(crate) path: PathBuf,
    before: Option<DraftContent>,
}

struct DraftContent {
    digest: FileDigest,
    mode: u32,
    /// In the daemon's own folder of changes, with an ending that is no change.
    kept: PathBuf,
}

impl Journal {
    /// Keeps the content and the permission bits of a file; `None` if there is no file. Blocks.
    ///
    /// # Errors
    /// The content cannot be kept, and so the change cannot be undone later.
    pub(crate) fn draft(
        &self,
        session: &Session,
        path: &Path,
        before: Option<(&[u8], FileDigest, u32)>,
    ) -> io::Result<Draft> {
        let folder = self.folder.as_ref().ok_or_else(Self::no_folder)?;
        let Some((content, digest, mode)) = before else { return Ok(Draft { path: path.to_owned(), before: None }) };
        let folder = folder.join(session.id.as_str());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let kept = folder.join(format!("{:08}-{number:08}.draft", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&kept)?;
        let before = DraftContent { digest, mode, kept };
        file.write_all(content)?;
        Ok(Draft { path: path.to_owned(), before: Some(before) })
    }

    /// Records the change from the kept content to `after`, if there is one; `None` for a removed file. Blocks.
    ///
    /// # Errors
    /// The change cannot be recorded.
    pub(crate) fn commit(
        &self,
        session: &Session,
        call: (&CallId, &ToolName),
        draft: &Draft,
        after: Option<FileDigest>,
    ) -> io::Result<()> {
        if draft.digest() == after {
            return Ok(());
        }
        let Some(before) = &draft.before else { return self.record(session, call, &draft.path, None, after) };
        let content = files::read_whole(&before.kept, MAX_BYTES).map_err(io::Error::other)?;
        self.record(session, call, &draft.path, Some((&content, before.mode)), after)
    }
}

impl Draft {
    /// Digest of the content before the change; `None` if there was no file.
    pub(crate) fn digest(&self) -> Option<FileDigest> {
        self.before.as_ref().map(|before| before.digest)
    }
}

impl Drop for DraftContent {
    fn drop(&mut self) {
        // If this fails, it stays until the folder is cleaned.
        let _ = fs::remove_file(&self.kept);
    }
}
