//! Many small contents in one file: to make a file for each would take most of the time in which a folder is read for the
//! first time.
//!
//! A pack is a list of contents, each behind its hash and its length. A crash leaves one that ends early.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::stamps::FileDigest;

/// The extension of packs.
pub(super) const EXTENSION: &str = "pack";
/// Two changes of a folder further apart than this get different times.
const SETTLED: Duration = Duration::from_secs(2);
const DIGEST: usize = blake3::OUT_LEN;
/// Bytes before a content: its hash and its length.
const HEAD: usize = DIGEST + size_of::<u64>();

/// Where a content is.
#[derive(Clone, Debug)]
pub(super) struct PackedContent {
    pub(super) pack: Arc<Path>,
    at: u64,
    pub(super) length: u64,
}

/// The packs of a folder, as far as they were read or written here.
#[derive(Default)]
pub(super) struct ContentPacks(Mutex<KnownPacks>);

#[derive(Default)]
struct KnownPacks {
    names: HashSet<OsString>,
    is_read: bool,
    /// The time of the folder when it was read, if it had not changed for a while: until it has another, nothing is new.
    read_at: Option<SystemTime>,
    contents: HashMap<FileDigest, PackedContent>,
}

/// The bytes that go before a content.
pub(super) fn head(digest: FileDigest, length: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..DIGEST].copy_from_slice(digest.as_bytes());
    head[DIGEST..].copy_from_slice(&(length as u64).to_le_bytes());
    head
}

impl ContentPacks {
    /// The place of a content. Reads the packs of the folder at first. Blocks.
    pub(super) fn find(&self, folder: &Path, digest: FileDigest) -> Option<PackedContent> {
        let mut known = self.0.lock();
        if !known.is_read {
            known.read(folder);
        }
        known.contents.get(&digest).cloned()
    }

    /// As [`Self::find`], also in packs that another daemon has written since.
    pub(super) fn find_again(&self, folder: &Path, digest: FileDigest) -> Option<PackedContent> {
        let mut known = self.0.lock();
        known.read(folder);
        known.contents.get(&digest).cloned()
    }

    /// Takes note of contents that were written into a pack: their places behind `start`.
    pub(super) fn add(&self, pack: &Path, start: u64, contents: impl Iterator<Item = (FileDigest, usize, usize)>) {
        let (mut known, pack): (_, Arc<Path>) = (self.0.lock(), pack.into());
        known.names.extend(pack.file_name().map(OsString::from));
        known.contents.extend(contents.map(|(digest, at, length)| {
            (digest, PackedContent { pack: pack.clone(), at: start + at as u64, length: length as u64 })
        }));
    }

    /// Forgets a pack that was removed.
    pub(super) fn forget(&self, pack: &Path) {
        let mut known = self.0.lock();
        pack.file_name().map(|name| known.names.remove(name));
        known.contents.retain(|_, content| *content.pack != *pack);
    }
}

impl KnownPacks {
    fn read(&mut self, folder: &Path) {
        self.is_read = true;
        let modified = fs::metadata(folder).and_then(|metadata| metadata.modified()).ok();
        if modified.is_some() && modified == self.read_at {
            return;
        }
        self.read_at = modified.filter(|at| at.elapsed().is_ok_and(|age| age > SETTLED));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_pack(&path) && self.names.insert(entry.file_name()) {
                // One that cannot be read has nothing.
                self.contents.extend(contents_of(&path).unwrap_or_default());
            }
        }
    }
}

pub(super) fn is_pack(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION)
}

/// The contents of a pack, as far as they are whole.
///
/// # Errors
/// It cannot be read.
pub(super) fn contents_of(pack: &Path) -> io::Result<Vec<(FileDigest, PackedContent)>> {
    let file = File::open(pack)?;
    let size = file.metadata()?.len();
    let pack: Arc<Path> = pack.into();
    let (mut contents, mut at, mut head) = (Vec::new(), 0, [0; HEAD]);
    while size.saturating_sub(at) >= HEAD as u64 {
        file.read_exact_at(&mut head, at)?;
        let (digest, length) = head.split_first_chunk::<DIGEST>().expect("the head begins with a hash");
        let length = u64::from_le_bytes(length.try_into().expect("the head ends with a length"));
        at += HEAD as u64;
        if length > size - at {
            break;
        }
        contents.push((FileDigest::from_bytes(*digest), PackedContent { pack: pack.clone(), at, length }));
        at += length;
    }
    Ok(contents)
}

impl PackedContent {
    /// Its bytes, whatever they are by now.
    ///
    /// # Errors
    /// The pack is gone, or cannot be read.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut content = vec![0; usize::try_from(self.length).map_err(io::Error::other)?];
        File::open(&self.pack)?.read_exact_at(&mut content, self.at)?;
        Ok(content)
    }
}

/// A new pack, at its end.
pub(super) struct OpenPack {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) length: u64,
}
