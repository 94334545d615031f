//! Git's index: the files that a repository tracks (gitformat-index(5)).

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::files;

/// A larger index is not read: about half a million files.
const MAX_BYTES: u64 = 64 << 20;

/// Bytes of the name of an object: SHA-1.
pub(crate) const OBJECT: usize = 20;

/// An index, or the part of one that a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitIndex {
    /// In the order of their names.
    pub(crate) entries: Vec<IndexEntry>,
    /// The name of the file beside it that has the other entries of a split index.
    pub(crate) shared: Option<String>,
}

/// A file in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// From the top folder on.
    pub(crate) name: Vec<u8>,
    pub(crate) kind: IndexEntryKind,
    pub(crate) object: [u8; OBJECT],
    /// One of several versions of a file whose merge is not resolved.
    pub(crate) is_unmerged: bool,
    facts: IndexFacts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexEntryKind {
    File,
    Submodule,
    /// A folder that a sparse index holds as one entry. Its files are tracked, and not in the working tree.
    SparseFolder,
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

impl GitIndex {
    /// The entry of a file; one of them if its merge is not resolved.
    pub(crate) fn entry(&self, name: &[u8]) -> Option<&IndexEntry> {
        let at = self.entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        self.entries.get(at)
    }
}

impl IndexEntry {
    /// The name, if it is text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.name).unwrap_or_default()
    }

    /// Whether a command that compares the index with the working tree below `top` may show the file: unless it is as it was
    /// when the index noted it, and was not changed in the moment in which the index was written (git-scm.com/docs/racy-git).
    pub(crate) fn may_differ(&self, top: &Path, index: &Metadata) -> bool {
        let is_same = |found: Metadata| {
            found.is_file()
                && IndexFacts::of(&found) == self.facts
                && self.facts.content_changed < IndexFacts::of(index).content_changed
        };
        let is_whole = self.kind == IndexEntryKind::File && !self.is_unmerged;
        !is_whole || !top.join(self.text()).symlink_metadata().is_ok_and(is_same)
    }
}

/// Reads an index of version 2, 3 or 4 with SHA-1; `None` for any other, and for one that is damaged or too large.
pub(crate) fn read(path: &Path) -> Option<GitIndex> {
    parse(&files::read_named(path, MAX_BYTES).ok()?)
}

/// The folders with a name that begins with a dot, in which the index at `path` has files, with their paths from the top folder on.
/// `None` as for [`read`].
pub(crate) fn hidden_folders(path: &Path) -> Option<HashSet<Vec<u8>>> {
    let mut found = HashSet::new();
    let shared = scan(&files::read_named(path, MAX_BYTES).ok()?, |_, name| add_hidden(name, &mut found))?;
    if let Some(shared) = shared {
        let bytes = files::read_named(&path.with_file_name(shared), MAX_BYTES).ok()?;
        scan(&bytes, |_, name| add_hidden(name, &mut found))?;
    }
    Some(found)
}

fn add_hidden(name: &[u8], found: &mut HashSet<Vec<u8>>) -> Option<()> {
    for slash in memchr::memchr_iter(b'/', name) {
        let folder = name.get(..slash)?;
        let start = memchr::memrchr(b'/', folder).map_or(0, |before| before + 1);
        if folder.get(start) == Some(&b'.') && !found.contains(folder) {
            found.insert(folder.to_vec());
        }
    }
    Some(())
}

fn parse(bytes: &[u8]) -> Option<GitIndex> {
    let mut entries = Vec::new();
    let shared = scan(bytes, |fixed, name| {
        let number = |at: usize| fixed.get(at..)?.first_chunk().map(|number| u32::from_be_bytes(*number));
        let kind = match number(24)? & 0o170_000 {
            0o160_000 => IndexEntryKind::Submodule,
            0o040_000 => IndexEntryKind::SparseFolder,
            _ => IndexEntryKind::File,
        };
        let flags = u16::from_be_bytes(*fixed.get(60..)?.first_chunk()?);
        let facts = IndexFacts {
            inode_changed: (number(0)?, number(4)?),
            content_changed: (number(8)?, number(12)?),
            inode: number(20)?,
            size: number(36)?,
        };
        let object = *fixed.get(40..)?.first_chunk()?;
        entries.push(IndexEntry { name: name.to_vec(), kind, object, is_unmerged: flags & 0x3000 != 0, facts });
        Some(())
    })?;
    Some(GitIndex { entries, shared })
}

/// Goes through the entries, each with the bytes before its name, and its name. The result is the name of the file that has the
/// others.
fn scan(bytes: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> Option<()>) -> Option<Option<String>> {
    let number = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let version = number(4)?;
    if !bytes.starts_with(b"DIRC") || !matches!(version, 2..=4) {
        return None;
    }
    let mut before: Vec<u8> = Vec::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        let flags = u16::from_be_bytes(*bytes.get(at + 60..)?.first_chunk()?);
        let mut start = at + if flags & 0x4000 == 0 { 62 } else { 64 };
        if version == 4 {
            // The name begins like the one before, except for its last bytes.
            let (removed, behind) = offset(bytes, start)?;
            start = behind;
            before.truncate(before.len().checked_sub(removed)?);
        }
        let length = memchr::memchr(0, bytes.get(start..)?)?;
        let fixed = bytes.get(at..start)?;
        let own = bytes.get(start..start + length)?;
        if version == 4 {
            before.extend(own);
            each(fixed, &before)?;
        } else {
            each(fixed, own)?;
        }
        at = match version {
            4 => start + length + 1,
            // Padded with NULs to a multiple of eight, with at least one.
            _ => at + ((start - at + length) / 8 + 1) * 8,
        };
    }
    // Extensions, then the checksum. Names of other lengths would make the entries end elsewhere.
    let mut shared = None;
    while at + OBJECT < bytes.len() {
        let length = number(at + 4)? as usize;
        if bytes.get(at..at + 4)? == b"link" {
            let object: [u8; OBJECT] = *bytes.get(at + 8..)?.first_chunk()?;
            let hex: String = object.iter().map(|byte| format!("{byte:02x}")).collect();
            shared = Some(format!("sharedindex.{hex}"));
        }
        at = at.checked_add(8 + length)?;
    }
    (at + OBJECT == bytes.len()).then_some(shared)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_no_index() {
        for bytes in [&b""[..], b"DIRC\0\0\0\x09\0\0\0\0", b"DIRC\0\0\0\x02\0\0\0\x01short", b"DIRC\0\0\0\x02\0\0\0\0"]
        {
            assert_eq!(parse(bytes), None);
        }
        let empty = [&b"DIRC\0\0\0\x02\0\0\0\0"[..], &[0; OBJECT]].concat();
        assert_eq!(parse(&empty), Some(GitIndex { entries: Vec::new(), shared: None }));
        assert_eq!(offset(&[0x80; 40], 0), None);
    }
}
