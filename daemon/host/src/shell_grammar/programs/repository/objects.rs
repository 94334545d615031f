//! The names of a repository's objects, and where its packs have them.

use std::cmp::Ordering;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::files::open_entry;

/// Packs that are looked into; a repository with more has no object here.
const MAX_PACKS: usize = 200;

/// The name of an object: SHA-1. Repositories with longer names are not read.
pub(super) type ObjectId = [u8; 20];

/// Whether a text may be the name of an object, or its beginning: nothing but hexadecimal digits.
pub(in crate::shell_grammar::programs) fn is_object_name(text: &str) -> bool {
    (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn hex(id: &ObjectId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn parse_hex(text: &str) -> Option<ObjectId> {
    let bytes = text.as_bytes();
    if bytes.len() != 40 {
        return None;
    }
    let mut id = [0; 20];
    for (byte, pair) in id.iter_mut().zip(bytes.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(id)
}

/// The indexes of the packs; `None` if there are too many, or if other objects are elsewhere.
pub(super) fn indexes(objects: &Path) -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(objects.join("pack")).into_iter().flatten().flatten();
    let is_index = |path: &PathBuf| path.extension().is_some_and(|of| of == "idx");
    let found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_index).take(MAX_PACKS + 1).collect();
    let is_whole = found.len() <= MAX_PACKS && objects.join("info/alternates").symlink_metadata().is_err();
    is_whole.then_some(found)
}

/// An index of version 2 with names of 20 bytes (git-scm.com/docs/pack-format).
pub(super) struct PackIndex {
    file: File,
    objects: u64,
}

impl PackIndex {
    const HEAD: u64 = 8;
    const FANOUT: u64 = 256 * 4;
    const NAME: u64 = 20;
    /// So many names are read with one call of the system.
    const READ_AT_ONCE: u64 = 256;

    pub(super) fn open(path: &Path) -> Option<Self> {
        let file = open_entry(path).ok()?;
        let index = Self { file, objects: 0 };
        let is_known = index.bytes::<8>(0)? == *b"\xfftOc\0\0\0\x02";
        let objects = index.number(Self::HEAD + Self::FANOUT - 4)?;
        is_known.then_some(Self { objects, ..index })
    }

    fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    fn number(&self, at: u64) -> Option<u64> {
        Some(u64::from(u32::from_be_bytes(self.bytes(at)?)))
    }

    fn name(&self, at: u64) -> Option<String> {
        Some(hex(&self.bytes(Self::HEAD + Self::FANOUT + at * Self::NAME)?))
    }

    /// The positions of the objects whose names begin so.
    fn positions(&self, start: &str) -> Option<Vec<u64>> {
        let (mut low, mut high) = (0, self.objects);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle)?.as_str() < start {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let mut found = Vec::new();
        while low < self.objects && self.name(low)?.starts_with(start) {
            found.push(low);
            low += 1;
        }
        Some(found)
    }

    /// The place in the pack of the object at a position.
    fn offset_at(&self, position: u64) -> Option<u64> {
        // Behind the names and the checksums.
        let offsets = Self::HEAD + Self::FANOUT + self.objects * (Self::NAME + 4);
        let offset = self.number(offsets + position * 4)?;
        match offset & 0x8000_0000 {
            0 => Some(offset),
            _ => Some(u64::from_be_bytes(self.bytes(offsets + self.objects * 4 + (offset & 0x7fff_ffff) * 8)?)),
        }
    }

    /// The places in the pack of the objects whose names begin so.
    pub(super) fn offsets(&self, start: &str) -> Option<Vec<u64>> {
        self.positions(start)?.into_iter().map(|position| self.offset_at(position)).collect()
    }

    /// The names that begin so.
    pub(super) fn names(&self, start: &str) -> Option<Vec<String>> {
        self.positions(start)?.into_iter().map(|position| self.name(position)).collect()
    }

    /// The place of an object in the pack, if it is there; `None` if the index cannot be read.
    pub(super) fn offset_of(&self, id: &ObjectId) -> Option<Option<u64>> {
        let first = u64::from(id[0]);
        let mut low = if first == 0 { 0 } else { self.number(Self::HEAD + (first - 1) * 4)? };
        let mut high = self.number(Self::HEAD + first * 4)?.min(self.objects);
        let place = |at: u64| Self::HEAD + Self::FANOUT + at * Self::NAME;
        while high.saturating_sub(low) > Self::READ_AT_ONCE {
            let middle = low + (high - low) / 2;
            let name: ObjectId = self.bytes(place(middle))?;
            match name.cmp(id) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal | Ordering::Greater => high = middle + 1,
            }
        }
        let mut names = vec![0; usize::try_from(high.saturating_sub(low) * Self::NAME).ok()?];
        self.file.read_exact_at(&mut names, place(low)).ok()?;
        let found = names.chunks_exact(id.len()).zip(low..).find(|(name, _)| **name == id[..]);
        found.map_or(Some(None), |(_, at)| self.offset_at(at).map(Some))
    }
}
