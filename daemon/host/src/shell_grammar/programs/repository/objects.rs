//! The kinds of a repository's objects, by their names.

use std::cmp::Ordering;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;

use super::{Repository, common_of};
use crate::files::open_entry;

/// Packs that are looked into; a repository with more has no object here.
const MAX_PACKS: usize = 200;
/// Deltas that lead to an object's kind. Git makes chains of 250 at most (git-repack(1), "--depth").
pub(super) const MAX_DELTAS: usize = 300;
/// The folders of loose objects are read up to this number of entries.
const MAX_LOOSE: usize = 10_000;

/// The kind of a commit in a pack (git-scm.com/docs/pack-format).
const COMMIT: u8 = 1;
/// That of a delta against an object in front of it.
const OFFSET_DELTA: u8 = 6;

/// The name of an object: SHA-1. Repositories with longer names are not read.
pub(super) type ObjectId = [u8; 20];

/// Whether a text may be the name of an object, or its beginning: nothing but hexadecimal digits.
pub(in crate::shell_grammar::programs) fn is_object_name(text: &str) -> bool {
    (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Repository {
    /// Whether all objects whose names begin so are commits, and there is one.
    pub(in crate::shell_grammar::programs) fn has_commit(&self, name: &str) -> bool {
        let objects = common_of(&self.own).join("objects");
        let name = name.to_ascii_lowercase();
        let kinds = loose(&objects, &name).and_then(|mut found| {
            found.extend(packed(&objects, &name)?);
            Some(found)
        });
        kinds.is_some_and(|kinds| !kinds.is_empty() && kinds.iter().all(|is_commit| *is_commit))
    }
}

/// Whether each loose object with such a name is a commit.
fn loose(objects: &Path, name: &str) -> Option<Vec<bool>> {
    let (folder, rest) = name.split_at_checked(2)?;
    let mut found = Vec::new();
    for (at, entry) in std::fs::read_dir(objects.join(folder)).into_iter().flatten().flatten().enumerate() {
        if at > MAX_LOOSE {
            return None;
        }
        if entry.file_name().to_str()?.starts_with(rest) {
            let mut start = [0; 7];
            ZlibDecoder::new(open_entry(&entry.path()).ok()?).read_exact(&mut start).ok()?;
            found.push(&start == b"commit ");
        }
    }
    Some(found)
}

/// The same of each object in a pack.
fn packed(objects: &Path, name: &str) -> Option<Vec<bool>> {
    let mut found = Vec::new();
    for index in indexes(objects)? {
        let pack = open_entry(&index.with_extension("pack")).ok()?;
        for offset in PackIndex::open(&index)?.offsets(name)? {
            found.push(is_commit(&pack, offset)?);
        }
    }
    Some(found)
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
        let name = self.bytes::<20>(Self::HEAD + Self::FANOUT + at * Self::NAME)?;
        Some(name.iter().map(|byte| format!("{byte:02x}")).collect())
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
    fn offsets(&self, start: &str) -> Option<Vec<u64>> {
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
        let mut high = self.number(Self::HEAD + first * 4)?;
        while low < high {
            let middle = low + (high - low) / 2;
            let name: ObjectId = self.bytes(Self::HEAD + Self::FANOUT + middle * Self::NAME)?;
            match name.cmp(id) {
                Ordering::Equal => return self.offset_at(middle).map(Some),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Some(None)
    }
}

/// Whether the object at this place of a pack is a commit; `None` if that is not known.
fn is_commit(pack: &File, mut offset: u64) -> Option<bool> {
    for _ in 0..MAX_DELTAS {
        let mut head = [0; 32];
        let read = pack.read_at(&mut head, offset).ok()?;
        let mut bytes = head[..read].iter().copied();
        let first = bytes.next()?;
        match (first >> 4) & 7 {
            OFFSET_DELTA => {}
            kind => return Some(kind == COMMIT),
        }
        // The size of the object, then how far the other one is in front of it.
        let mut byte = first;
        while byte & 0x80 != 0 {
            byte = bytes.next()?;
        }
        let mut byte = bytes.next()?;
        let mut distance = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = bytes.next()?;
            distance = distance.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
        }
        offset = offset.checked_sub(distance)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(top: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(top).args(["-c", "user.name=n", "-c", "user.email=e@example.org"]).args(arguments);
        let output = command.env("HOME", top).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn a_commit_is_told_from_other_objects_loose_and_packed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        git(top, &["init", "-q"]);
        for round in 0..20 {
            let text: String = (0..200).map(|line| format!("line {line} of {}\n", line.max(round))).collect();
            std::fs::write(top.join("a.txt"), text).unwrap();
            git(top, &["add", "a.txt"]);
            git(top, &["commit", "-q", "-m", &format!("{round} {}", "the same words again ".repeat(20))]);
        }
        let objects = top.join(".git/objects");
        let is_commit = |name: &str| {
            let mut kinds = loose(&objects, name).unwrap();
            kinds.extend(packed(&objects, name).unwrap());
            kinds.dedup();
            kinds
        };
        let commits: Vec<String> = git(top, &["log", "--format=%H"]).lines().map(str::to_owned).collect();
        let blobs: Vec<String> =
            commits.iter().map(|commit| git(top, &["rev-parse", &format!("{commit}:a.txt")])).collect();
        let check = || {
            for (commit, blob) in commits.iter().zip(&blobs) {
                assert_eq!((is_commit(commit), is_commit(blob)), (vec![true], vec![false]));
                assert_eq!(is_commit(&git(top, &["rev-parse", &format!("{commit}^{{tree}}")])), [false]);
            }
            assert_eq!(is_commit(&"0".repeat(40)), Vec::<bool>::new());
        };
        check();
        git(top, &["repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=50"]);
        git(top, &["prune-packed"]);
        assert_eq!(loose(&objects, &commits[0]), Some(Vec::new()));
        check();
    }
}
