//! Contents of files, each kept once under its hash: what undoing brings back.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::stamps::FileDigest;

/// A content that no change needs is kept for this long: an index of a folder may need it, also that of the next daemon.
const SPARE: Duration = Duration::from_secs(24 * 3600);

/// The store of contents, a folder of the daemon's own that no tool may read.
pub(crate) struct KeptContents {
    folder: PathBuf,
    next: AtomicU64,
}

impl KeptContents {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, next: AtomicU64::new(1) }
    }

    fn place(&self, digest: FileDigest) -> PathBuf {
        self.folder.join(digest.to_hex().as_str())
    }

    /// Keeps a content. Blocks.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep(&self, content: &[u8]) -> io::Result<FileDigest> {
        let digest = blake3::hash(content);
        let place = self.place(digest);
        // A crash may have left a part of it.
        if let Ok(facts) = fs::symlink_metadata(&place)
            && facts.len() == content.len() as u64
        {
            self.renew(&place, facts.modified().ok());
            return Ok(digest);
        }
        let own = self.folder.join(format!("{}-{}.tmp", std::process::id(), self.next.fetch_add(1, Ordering::Relaxed)));
        let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own);
        let mut file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                open()?
            }
            opened => opened?,
        };
        let written = file.write_all(content).and_then(|()| fs::rename(&own, &place));
        if written.is_err() {
            // The error of the write is the one that matters.
            let _ = fs::remove_file(&own);
        }
        written.map(|()| digest)
    }

    /// A content that is used again is not removed as a spare one soon.
    fn renew(&self, place: &Path, modified: Option<SystemTime>) {
        let is_old = modified.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > SPARE / 24);
        if is_old && let Ok(file) = File::open(place) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// A kept content. Blocks.
    ///
    /// # Errors
    /// It was never kept, is kept no longer, or is damaged.
    pub(crate) fn get(&self, digest: FileDigest) -> io::Result<Vec<u8>> {
        let content = fs::read(self.place(digest))?;
        match blake3::hash(&content) == digest {
            true => Ok(content),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "the kept content is damaged")),
        }
    }

    /// The number of bytes that the content takes; 0 if it is not there.
    pub(crate) fn size(&self, digest: FileDigest) -> u64 {
        fs::symlink_metadata(self.place(digest)).map_or(0, |facts| facts.len())
    }

    /// Removes what is not in `needed`, and was not written or used lately unless `all`. Blocks.
    pub(crate) fn clean(&self, needed: &HashSet<String>, all: bool) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_needed = entry.file_name().to_str().is_some_and(|name| needed.contains(name));
            let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
            if !is_needed && (all || age().is_some_and(|age| age > SPARE)) {
                // If this fails, it is tried again at the next cleaning.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}
