//! The kinds of a repository's objects, and the contents of its commits and trees, loose or in packs (git-scm.com/docs/pack-format).

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::ZlibDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::objects::{ObjectId, PackIndex, hex, indexes, parse_hex};
use super::{Repository, common_of};
use crate::files::open_entry;
use crate::shell_grammar::clock::JudgingClock;

/// A larger commit or tree is not read.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of objects that are kept because others may be deltas against them.
const MAX_KEPT: usize = 32 * 1024 * 1024;

/// Deltas that lead to an object. Git makes chains of 250 at most (git-repack(1), "--depth").
const MAX_DELTAS: usize = 300;
/// The folders of loose objects are read up to this number of entries.
const MAX_LOOSE: usize = 10_000;

/// The kinds of objects in packs.
const OFFSET_DELTA: u8 = 6;
const NAMED_DELTA: u8 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

#[derive(Debug)]
pub(super) struct Object {
    pub(super) kind: ObjectKind,
    /// Empty for a blob, which is not read.
    pub(super) bytes: Vec<u8>,
}

/// Why an object is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectError {
    /// The repository has none of this name.
    Missing,
    /// It cannot be read, or the time is over.
    Unknown,
}

/// The objects of a repository, which are read for some time. Linear in the sizes of those and of their deltas.
pub(super) struct ObjectStore {
    objects: PathBuf,
    packs: Vec<(PackIndex, File)>,
    clock: JudgingClock,
    inflater: Inflater,
    kept: HashMap<ObjectId, Rc<Object>>,
    /// The same by their places in packs, for the deltas against them.
    kept_bases: HashMap<(usize, u64), Rc<Object>>,
    kept_bytes: usize,
}

impl ObjectStore {
    /// `None` if some objects are elsewhere, or there are too many packs.
    pub(super) fn open(objects: &Path, clock: JudgingClock) -> Option<Self> {
        let open = |path: PathBuf| Some((PackIndex::open(&path)?, open_entry(&path.with_extension("pack")).ok()?));
        let packs = indexes(objects)?.into_iter().map(open).collect::<Option<_>>()?;
        Some(Self {
            objects: objects.to_owned(),
            packs,
            clock,
            inflater: Inflater::default(),
            kept: HashMap::new(),
            kept_bases: HashMap::new(),
            kept_bytes: 0,
        })
    }

    pub(super) fn read(&mut self, id: &ObjectId) -> Result<Rc<Object>, ObjectError> {
        if let Some(known) = self.kept.get(id) {
            return Ok(known.clone());
        }
        let object = self.found(id)?;
        self.kept.insert(*id, object.clone());
        Ok(object)
    }

    fn found(&mut self, id: &ObjectId) -> Result<Rc<Object>, ObjectError> {
        if self.clock.is_over() {
            return Err(ObjectError::Unknown);
        }
        for pack in 0..self.packs.len() {
            if let Some(offset) = self.packs[pack].0.offset_of(id).ok_or(ObjectError::Unknown)? {
                return self.packed(pack, offset);
            }
        }
        let object = self.loose(id).map(Rc::new)?;
        self.make_room(&object);
        Ok(object)
    }

    /// Forgets all others before an object is kept for which there is no room.
    fn make_room(&mut self, object: &Object) {
        self.kept_bytes += object.bytes.len();
        if self.kept_bytes > MAX_KEPT {
            self.kept.clear();
            self.kept_bases.clear();
            self.kept_bytes = object.bytes.len();
        }
    }

    fn loose(&self, id: &ObjectId) -> Result<Object, ObjectError> {
        let name = hex(id);
        let (folder, rest) = name.split_at(2);
        let path = self.objects.join(folder).join(rest);
        if path.symlink_metadata().is_err() {
            return Err(ObjectError::Missing);
        }
        let read = || {
            let mut decoder = BufReader::new(ZlibDecoder::new(open_entry(&path).ok()?));
            let mut head = Vec::new();
            while head.last() != Some(&0) && head.len() < 32 {
                let mut byte = [0];
                decoder.read_exact(&mut byte).ok()?;
                head.push(byte[0]);
            }
            let (kind, size) = std::str::from_utf8(&head).ok()?.trim_end_matches('\0').split_once(' ')?;
            let kind = match kind {
                "commit" => ObjectKind::Commit,
                "tree" => ObjectKind::Tree,
                "blob" => ObjectKind::Blob,
                "tag" => ObjectKind::Tag,
                _ => return None,
            };
            Some(Object { kind, bytes: body(kind, decoder, size.parse().ok()?)? })
        };
        read().ok_or(ObjectError::Unknown)
    }

    /// The object at this place of a pack: deltas are applied to the object that they lead to.
    fn packed(&mut self, pack: usize, offset: u64) -> Result<Rc<Object>, ObjectError> {
        let mut deltas: Vec<Vec<u8>> = Vec::new();
        let mut at = offset;
        let mut base = loop {
            if let Some(known) = self.kept_bases.get(&(pack, at)) {
                break known.clone();
            }
            let bytes: usize = deltas.iter().map(Vec::len).sum();
            if deltas.len() > MAX_DELTAS || bytes > MAX_KEPT || self.clock.is_over() {
                return Err(ObjectError::Unknown);
            }
            let entry = PackEntry::read(&self.packs[pack].1, at).ok_or(ObjectError::Unknown)?;
            let next = match entry.base {
                PackBase::None(kind) => {
                    let bytes = self.body(pack, &entry, kind).ok_or(ObjectError::Unknown)?;
                    break Rc::new(Object { kind, bytes });
                }
                PackBase::Before(distance) => at.checked_sub(distance).ok_or(ObjectError::Unknown)?,
                // Packs on disk have their bases in themselves.
                PackBase::Named(id) => self.packs[pack].0.offset_of(&id).flatten().ok_or(ObjectError::Unknown)?,
            };
            deltas.push(self.body(pack, &entry, ObjectKind::Tree).ok_or(ObjectError::Unknown)?);
            at = next;
        };
        if base.kind != ObjectKind::Blob {
            for delta in deltas.iter().rev() {
                let bytes = applied(&base.bytes, delta).ok_or(ObjectError::Unknown)?;
                base = Rc::new(Object { kind: base.kind, bytes });
            }
            self.make_room(&base);
            self.kept_bases.insert((pack, offset), base.clone());
        }
        Ok(base)
    }

    /// The bytes of an entry of a pack; none of a blob.
    fn body(&mut self, pack: usize, entry: &PackEntry, kind: ObjectKind) -> Option<Vec<u8>> {
        if kind == ObjectKind::Blob {
            return Some(Vec::new());
        }
        let size = usize::try_from(entry.size.min(MAX_BYTES)).ok()?;
        let bytes = self.inflater.read(&self.packs[pack].1, entry.body, size)?;
        (bytes.len() as u64 == entry.size).then_some(bytes)
    }

    /// The only object whose name begins so.
    pub(super) fn find(&self, start: &str) -> Result<ObjectId, ObjectError> {
        let start = start.to_ascii_lowercase();
        let mut found = Vec::new();
        for (index, _) in &self.packs {
            found.extend(index.names(&start).ok_or(ObjectError::Unknown)?);
        }
        if let Some((folder, rest)) = start.split_at_checked(2) {
            for entry in std::fs::read_dir(self.objects.join(folder)).into_iter().flatten().flatten() {
                let name = entry.file_name();
                found.extend(name.to_str().filter(|name| name.starts_with(rest)).map(|name| format!("{folder}{name}")));
            }
        }
        found.sort();
        found.dedup();
        match found.as_slice() {
            [] => Err(ObjectError::Missing),
            [only] => parse_hex(only).ok_or(ObjectError::Unknown),
            _ => Err(ObjectError::Unknown),
        }
    }
}

/// The base that the bytes of an entry of a pack are applied to.
enum PackBase {
    /// Nothing: they are the object.
    None(ObjectKind),
    /// The entry so many bytes in front of it.
    Before(u64),
    Named(ObjectId),
}

struct PackEntry {
    base: PackBase,
    size: u64,
    /// The offset of its compressed bytes.
    body: u64,
}

impl PackEntry {
    fn read(pack: &File, offset: u64) -> Option<Self> {
        let mut head = [0; 64];
        let read = pack.read_at(&mut head, offset).ok()?;
        let mut bytes = head[..read].iter().copied().enumerate();
        let (_, first) = bytes.next()?;
        let (mut size, mut shift, mut byte) = (u64::from(first & 0x0f), 4, first);
        let mut end = 1;
        while byte & 0x80 != 0 {
            let (at, next) = bytes.next()?;
            byte = next;
            size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            end = at + 1;
        }
        let base = match (first >> 4) & 7 {
            1 => PackBase::None(ObjectKind::Commit),
            2 => PackBase::None(ObjectKind::Tree),
            3 => PackBase::None(ObjectKind::Blob),
            4 => PackBase::None(ObjectKind::Tag),
            OFFSET_DELTA => {
                let (mut at, mut byte) = bytes.next()?;
                let mut distance = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    (at, byte) = bytes.next()?;
                    distance = distance.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
                }
                end = at + 1;
                PackBase::Before(distance)
            }
            NAMED_DELTA => {
                let id = head.get(end..end + 20)?.try_into().ok()?;
                end += 20;
                PackBase::Named(id)
            }
            _ => return None,
        };
        Some(Self { base, size, body: offset + end as u64 })
    }
}

/// Decompresses one entry of a pack after the other, with the same memory.
struct Inflater {
    state: Decompress,
    input: Box<[u8]>,
}

impl Default for Inflater {
    fn default() -> Self {
        Self { state: Decompress::new(true), input: vec![0; 4096].into() }
    }
}

impl Inflater {
    /// The bytes that are compressed at a place of a file; `None` if there are more.
    fn read(&mut self, file: &File, mut at: u64, most: usize) -> Option<Vec<u8>> {
        self.state.reset(true);
        let mut bytes = Vec::with_capacity(most + 1);
        loop {
            let read = file.read_at(&mut self.input, at).ok().filter(|read| *read > 0)?;
            let (before, made) = (self.state.total_in(), bytes.len());
            let status = self.state.decompress_vec(&self.input[..read], &mut bytes, FlushDecompress::None).ok()?;
            let used = self.state.total_in() - before;
            at += used;
            if bytes.len() > most || used == 0 && bytes.len() == made && status != Status::StreamEnd {
                return None;
            }
            if status == Status::StreamEnd {
                return Some(bytes);
            }
        }
    }
}

/// So many bytes of an object; none of a blob.
fn body(kind: ObjectKind, reader: impl Read, size: u64) -> Option<Vec<u8>> {
    if kind == ObjectKind::Blob {
        return Some(Vec::new());
    }
    let mut bytes = Vec::new();
    reader.take(size.min(MAX_BYTES) + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == size).then_some(bytes)
}

/// Applies a delta to its base.
fn applied(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = delta.iter().copied();
    let number = |bytes: &mut dyn Iterator<Item = u8>| {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    };
    let (of_base, size) = (number(&mut bytes)?, number(&mut bytes)?);
    if of_base != base.len() as u64 || size > MAX_BYTES {
        return None;
    }
    let mut made = Vec::with_capacity(usize::try_from(size).ok()?);
    while let Some(command) = bytes.next() {
        if command & 0x80 != 0 {
            let mut part = |bits: std::ops::Range<u32>| {
                let mut value = 0_usize;
                for (shift, bit) in bits.enumerate() {
                    if command & (1 << bit) != 0 {
                        value |= usize::from(bytes.next()?) << (8 * shift);
                    }
                }
                Some(value)
            };
            let (at, length) = (part(0..4)?, part(4..7)?);
            let length = if length == 0 { 0x10000 } else { length };
            made.extend_from_slice(base.get(at..at.checked_add(length)?)?);
        } else if command != 0 {
            for _ in 0..command {
                made.push(bytes.next()?);
            }
        } else {
            return None;
        }
        if made.len() as u64 > size {
            return None;
        }
    }
    (made.len() as u64 == size).then_some(made)
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

/// Whether the object at this place of a pack is a commit; `None` if that is not known.
fn is_commit(pack: &File, mut offset: u64) -> Option<bool> {
    for _ in 0..MAX_DELTAS {
        match PackEntry::read(pack, offset)?.base {
            PackBase::None(kind) => return Some(kind == ObjectKind::Commit),
            PackBase::Named(_) => return Some(false),
            PackBase::Before(distance) => offset = offset.checked_sub(distance)?,
        }
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
