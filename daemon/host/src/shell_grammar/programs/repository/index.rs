//! The index of a repository: the files that it tracks.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An entry of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) name: String,
    pub(super) kind: IndexEntryKind,
    facts: IndexFacts,
}

/// By which Git sees that a file of the working tree is still the one of the index: the last change of its inode and of its
/// content in seconds and nanoseconds, its inode and its size, each cut to 32 bits as in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IndexFacts {
    inode_changed: (u32, u32),
    content_changed: (u32, u32),
    inode: u32,
    size: u32,
}

impl IndexFacts {
    fn of(found: &Metadata) -> Self {
        let low = |number: i64| number as u32;
        Self {
            inode_changed: (low(found.ctime()), low(found.ctime_nsec())),
            content_changed: (low(found.mtime()), low(found.mtime_nsec())),
            inode: found.ino() as u32,
            size: found.len() as u32,
        }
    }
}

impl IndexEntry {
    /// Whether a command that compares the index with the working tree below `top` may show the file: unless it is as it was
    /// when the index noted it, and was not changed in the moment in which the index was written (git-scm.com/docs/racy-git).
    pub(super) fn may_differ(&self, top: &Path, index: &Metadata) -> bool {
        let is_same = |found: Metadata| {
            found.is_file()
                && IndexFacts::of(&found) == self.facts
                && self.facts.content_changed < IndexFacts::of(index).content_changed
        };
        self.kind != IndexEntryKind::File || !top.join(&self.name).symlink_metadata().is_ok_and(is_same)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexEntryKind {
    File,
    Submodule,
    /// A folder that a sparse index holds as one entry. Its files are tracked, and not in the working tree.
    SparseFolder,
}

/// The entries of an index of version 2, 3 or 4 with SHA-1 (git-scm.com/docs/index-format). `None` for any other, for one
/// that is damaged, and for a split index, whose entries lie in two files.
pub(super) fn entries(bytes: &[u8]) -> Option<Vec<IndexEntry>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if bytes.get(..4)? != b"DIRC" || !matches!(version, 2..=4) {
        return None;
    }
    let mut entries = Vec::new();
    let mut name: Vec<u8> = Vec::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        let kind = match number(at + 24)? & 0o170_000 {
            0o160_000 => IndexEntryKind::Submodule,
            0o040_000 => IndexEntryKind::SparseFolder,
            _ => IndexEntryKind::File,
        };
        let flags = u16::from_be_bytes(bytes.get(at + 60..at + 62)?.try_into().ok()?);
        let mut start = at + if flags & 0x4000 == 0 { 62 } else { 64 };
        match version {
            // The name begins like the one before, except for its last bytes.
            4 => {
                let (removed, behind) = offset(bytes, start)?;
                start = behind;
                name.truncate(name.len().checked_sub(removed)?);
            }
            _ => name.clear(),
        }
        let length = bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        name.extend(bytes.get(start..start + length)?);
        let facts = IndexFacts {
            inode_changed: (number(at)?, number(at + 4)?),
            content_changed: (number(at + 8)?, number(at + 12)?),
            inode: number(at + 20)?,
            size: number(at + 36)?,
        };
        entries.push(IndexEntry { name: String::from_utf8(name.clone()).ok()?, kind, facts });
        at = match version {
            4 => start + length + 1,
            // Padded with NULs to a multiple of eight, with at least one.
            _ => at + ((start - at + length) / 8 + 1) * 8,
        };
    }
    // Extensions, then the checksum.
    while at + 20 < bytes.len() {
        if bytes.get(at..at + 4)? == b"link" {
            return None;
        }
        at += 8 + number(at + 4)? as usize;
    }
    Some(entries)
}

/// A number of variable length, as in the offsets of a pack (git-scm.com/docs/pack-format), and the place behind it.
fn offset(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for round in 0.. {
        let byte = *bytes.get(at)?;
        at += 1;
        let low = usize::from(byte & 0x7f);
        value = if round == 0 { low } else { value.checked_add(1)?.checked_mul(128)?.checked_add(low)? };
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((value, at))
}
