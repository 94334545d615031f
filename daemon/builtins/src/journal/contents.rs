//! Contents of files, each kept once under its hash: what undoing brings back.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use toold_host::file_systems::{free_bytes, share_blocks};

use crate::stamps::FileDigest;

/// A content that no change needs is kept for this long: an index of a folder may need it, also that of the next daemon.
const SPARE: Duration = Duration::from_secs(24 * 3600);
/// The most bytes of contents.
const MAX_KEPT: u64 = 1 << 30;
/// Contents of at least so many bytes share the blocks of the file, where the file system can do that.
const MIN_SHARED: usize = 128 << 10;

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

    /// How many bytes all contents may take, those that are kept included: never more than half of the free disk. Blocks.
    pub(crate) fn most(&self) -> u64 {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let kept: u64 = entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
        free_bytes(&self.folder).map_or(MAX_KEPT, |free| MAX_KEPT.min(free.saturating_add(kept) / 2))
    }

    /// Keeps a content. Blocks.
    ///
    /// # Errors
    /// It cannot be written, or would take more than half of the free disk.
    pub(crate) fn keep(&self, content: &[u8]) -> io::Result<FileDigest> {
        self.keep_from(content, None)
    }

    /// Keeps the content that was read from a file. Blocks.
    ///
    /// # Errors
    /// As [`KeptContents::keep`].
    pub(crate) fn keep_of(&self, content: &[u8], file: &File) -> io::Result<FileDigest> {
        self.keep_from(content, Some(file))
    }

    fn keep_from(&self, content: &[u8], file: Option<&File>) -> io::Result<FileDigest> {
        let digest = blake3::hash(content);
        let place = self.place(digest);
        // A crash may have left a part of it.
        if let Ok(facts) = fs::symlink_metadata(&place)
            && facts.len() == content.len() as u64
        {
            self.renew(&place, facts.modified().ok());
            return Ok(digest);
        }
        if free_bytes(&self.folder).is_some_and(|free| free / 2 < content.len() as u64) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "it would take more than half of the free disk"));
        }
        let own = self.folder.join(format!("{}-{}.tmp", std::process::id(), self.next.fetch_add(1, Ordering::Relaxed)));
        let open = || OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&own);
        let mut kept = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                open()?
            }
            opened => opened?,
        };
        let shares = file.filter(|_| content.len() >= MIN_SHARED).is_some_and(|file| shares(file, &mut kept, content));
        let written = if shares { Ok(()) } else { kept.write_all(content) };
        let written = written.and_then(|()| fs::rename(&own, &place));
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

/// Lets the new file share the blocks of the other one. False if it is still empty: the file system cannot do that, or the
/// other file has another content by now.
fn shares(file: &File, kept: &mut File, content: &[u8]) -> bool {
    let has_content = |kept: &File| {
        let (mut rest, mut piece) = (content, [0; 16 << 10]);
        let mut reader = BufReader::with_capacity(64 << 10, kept);
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return rest.is_empty(),
                Ok(read) if rest.starts_with(&piece[..read]) => rest = &rest[read..],
                _ => return false,
            }
        }
    };
    if share_blocks(file, kept).is_err() {
        return false;
    }
    // If it cannot be emptied, the hash is wrong when the content is read.
    has_content(kept) || kept.set_len(0).and_then(|()| kept.rewind()).is_err()
}
