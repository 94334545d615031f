//! Contents of files, each kept once under its hash: what undoing brings back.
//!
//! A content is a file of its own, or one of many in a [pack](packs).

mod packs;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toold_host::file_systems::{free_bytes, share_blocks};

use crate::stamps::FileDigest;
use packs::{ContentPacks, EXTENSION, OpenPack};

/// A content that no change needs is kept for this long: an index of a folder may need it, also that of the next daemon.
const SPARE: Duration = Duration::from_secs(24 * 3600);
/// The most bytes of contents.
const MAX_KEPT: u64 = 1 << 30;
/// Contents of at least so many bytes share the blocks of the file, where the file system can do that.
const MIN_SHARED: usize = 128 << 10;
/// So many contents that are kept together are a pack, and so many bytes of them are written at once.
const MIN_PACKED: usize = 32;
const MAX_BUFFER: usize = 1 << 20;

/// The store of contents, a folder of the daemon's own that no tool may read.
pub(crate) struct KeptContents {
    folder: PathBuf,
    packs: ContentPacks,
    /// The names of its new files begin with it: two daemons may write into the folder, and one may have crashed.
    prefix: String,
    next: AtomicU64,
}

impl KeptContents {
    pub(crate) fn new(folder: PathBuf) -> Self {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos();
        let prefix = format!("{nanos}-{}", std::process::id());
        Self { folder, packs: ContentPacks::default(), prefix, next: AtomicU64::new(1) }
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

    /// Contents that are kept together.
    pub(crate) fn batch(&self) -> ContentBatch<'_> {
        ContentBatch { contents: self, pack: None, buffer: Vec::new(), pending: HashMap::new() }
    }

    fn keep_from(&self, content: &[u8], file: Option<&File>) -> io::Result<FileDigest> {
        let digest = blake3::hash(content);
        if !self.has(digest, content.len()) {
            self.write(digest, content, file)?;
        }
        Ok(digest)
    }

    /// Whether a content is kept; then it is not removed soon.
    fn has(&self, digest: FileDigest, length: usize) -> bool {
        let place = self.place(digest);
        // A crash may have left a part of it.
        if let Ok(facts) = fs::symlink_metadata(&place)
            && facts.len() == length as u64
        {
            self.renew(&place, facts.modified().ok());
            return true;
        }
        let packed = self.packs.find(&self.folder, digest);
        // The pack may be gone.
        packed.is_some_and(|packed| match fs::symlink_metadata(&packed.pack) {
            Ok(facts) => {
                self.renew(&packed.pack, facts.modified().ok());
                true
            }
            Err(_) => {
                self.packs.forget(&packed.pack);
                false
            }
        })
    }

    /// A new file with this extension, and room for so many bytes.
    fn create(&self, extension: &str, room: usize) -> io::Result<(PathBuf, File)> {
        self.check_room(room)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let own = self.folder.join(format!("{}-{number}.{extension}", self.prefix));
        let open = || OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&own);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                open()?
            }
            opened => opened?,
        };
        Ok((own, file))
    }

    fn check_room(&self, room: usize) -> io::Result<()> {
        match free_bytes(&self.folder).is_some_and(|free| free / 2 < room as u64) {
            true => Err(io::Error::new(io::ErrorKind::StorageFull, "it would take more than half of the free disk")),
            false => Ok(()),
        }
    }

    /// Writes a content into a file of its own.
    fn write(&self, digest: FileDigest, content: &[u8], file: Option<&File>) -> io::Result<()> {
        let (own, mut kept) = self.create("tmp", content.len())?;
        let shares = file.filter(|_| content.len() >= MIN_SHARED).is_some_and(|file| shares(file, &mut kept, content));
        let written = if shares { Ok(()) } else { kept.write_all(content) };
        let written = written.and_then(|()| fs::rename(&own, self.place(digest)));
        if written.is_err() {
            // The error of the write is the one that matters.
            let _ = fs::remove_file(&own);
        }
        written
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
        let packed = || self.packs.find_again(&self.folder, digest)?.read().ok();
        // First where it is taken away from: a pack that is removed is copied before.
        let content = match self.packs.find(&self.folder, digest).and_then(|packed| packed.read().ok()) {
            Some(content) => content,
            None => fs::read(self.place(digest)).or_else(|error| packed().ok_or(error))?,
        };
        match blake3::hash(&content) == digest {
            true => Ok(content),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "the kept content is damaged")),
        }
    }

    /// The number of bytes that the content takes; 0 if it is not there.
    pub(crate) fn size(&self, digest: FileDigest) -> u64 {
        match fs::symlink_metadata(self.place(digest)) {
            Ok(facts) => facts.len(),
            Err(_) => self.packs.find(&self.folder, digest).map_or(0, |packed| packed.length),
        }
    }

    /// Removes what is not in `needed`, and was not written or used lately unless `all`. Blocks.
    pub(crate) fn clean(&self, needed: &HashSet<FileDigest>, all: bool) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let digest = entry.file_name().to_str().and_then(|name| FileDigest::from_hex(name).ok());
            let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
            let is_needed = digest.is_some_and(|digest| needed.contains(&digest));
            if is_needed || !(all || age().is_some_and(|age| age > SPARE)) {
                continue;
            }
            // If this fails, it is tried again at the next cleaning.
            let _ = match packs::is_pack(&path) {
                true => self.dissolve(&path, needed, all),
                false => fs::remove_file(&path),
            };
        }
    }

    /// Removes a pack, after giving the needed ones of its contents files of their own. One that is mostly needed stays,
    /// unless `all` that is not needed has to go.
    fn dissolve(&self, pack: &Path, needed: &HashSet<FileDigest>, all: bool) -> io::Result<()> {
        let contents = packs::contents_of(pack)?;
        let count = contents.iter().filter(|(digest, _)| needed.contains(digest)).count();
        if count * 2 > contents.len() && (!all || count == contents.len()) {
            return Ok(());
        }
        for (digest, packed) in contents {
            let is_alone = || fs::symlink_metadata(self.place(digest)).is_ok_and(|facts| facts.len() == packed.length);
            if needed.contains(&digest) && !is_alone() {
                self.write(digest, &packed.read()?, None)?;
            }
        }
        fs::remove_file(pack)?;
        self.packs.forget(pack);
        Ok(())
    }
}

/// Contents that are kept together: in a pack if they are many. Those that are added are kept when the batch is finished.
pub(crate) struct ContentBatch<'c> {
    contents: &'c KeptContents,
    pack: Option<OpenPack>,
    /// Bytes that have to be written to the pack.
    buffer: Vec<u8>,
    /// The places and lengths of the contents in the buffer.
    pending: HashMap<FileDigest, (usize, usize)>,
}

impl ContentBatch<'_> {
    /// Adds the content that was read from a file. Blocks.
    ///
    /// # Errors
    /// As [`KeptContents::keep`].
    pub(crate) fn keep_of(&mut self, content: &[u8], file: &File) -> io::Result<FileDigest> {
        if content.len() >= MIN_SHARED {
            return self.contents.keep_of(content, file);
        }
        let digest = blake3::hash(content);
        if self.pending.contains_key(&digest) || self.contents.has(digest, content.len()) {
            return Ok(digest);
        }
        self.buffer.extend_from_slice(&packs::head(digest, content.len()));
        self.pending.insert(digest, (self.buffer.len(), content.len()));
        self.buffer.extend_from_slice(content);
        if self.buffer.len() >= MAX_BUFFER {
            self.write_pack()?;
        }
        Ok(digest)
    }

    /// Keeps what was added. Blocks.
    ///
    /// # Errors
    /// As [`KeptContents::keep`].
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.pack.is_some() || self.pending.len() >= MIN_PACKED {
            return self.write_pack();
        }
        for (digest, (at, length)) in &self.pending {
            self.contents.write(*digest, &self.buffer[*at..at + length], None)?;
        }
        Ok(())
    }

    fn write_pack(&mut self) -> io::Result<()> {
        let pack = match &mut self.pack {
            Some(pack) => {
                self.contents.check_room(self.buffer.len())?;
                pack
            }
            none => {
                let (path, file) = self.contents.create(EXTENSION, self.buffer.len())?;
                none.insert(OpenPack { path, file, length: 0 })
            }
        };
        pack.file.write_all(&self.buffer)?;
        let pending = self.pending.drain().map(|(digest, (at, length))| (digest, at, length));
        self.contents.packs.add(&pack.path, pack.length, pending);
        pack.length += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
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
