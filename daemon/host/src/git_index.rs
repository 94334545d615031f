//! Git's index: the files that a repository tracks (gitformat-index(5)).

use std::collections::BTreeMap;

/// Times, device, inode, mode, owners and size, before the name of an object.
const FACTS: usize = 40;
pub(crate) const OBJECT: usize = 20;

/// The objects of an index, by the names of their files.
pub(crate) type IndexEntries = BTreeMap<Vec<u8>, [u8; OBJECT]>;

/// The entries of an index in the versions 2 to 4, by name; `None` for another file.
pub(crate) fn entries(index: &[u8]) -> Option<IndexEntries> {
    let rest = index.strip_prefix(b"DIRC")?;
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(*bytes.first_chunk::<4>()?));
    let (version, count) = (number(rest)?, number(rest.get(4..)?)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut found, mut last) = (12, BTreeMap::new(), Vec::new());
    for _ in 0..count {
        let entry = index.get(at..)?;
        let object = *entry.get(FACTS..)?.first_chunk::<OBJECT>()?;
        let flags = u16::from_be_bytes(*entry.get(FACTS + OBJECT..)?.first_chunk::<2>()?);
        let mut start = FACTS + OBJECT + 2;
        if flags & 0x4000 != 0 {
            start += 2;
        }
        if version == 4 {
            let (dropped, length) = offset(entry.get(start..)?)?;
            start += length;
            last.truncate(last.len().checked_sub(dropped)?);
        } else {
            last.clear();
        }
        let name = entry.get(start..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        last.extend_from_slice(&name[..end]);
        let length = start + end;
        // The older versions pad entries to eight bytes, with at least one zero.
        at += if version == 4 { length + 1 } else { (length / 8 + 1) * 8 };
        found.insert(last.clone(), object);
    }
    Some(found)
}

/// A number in Git's form of offsets, and its length.
fn offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0usize;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

/// The name of the file with the other entries of a split index, beside it.
pub(crate) fn shared_part(index: &[u8]) -> Option<String> {
    let link = memchr::memmem::rfind(index, b"link")?;
    let object = index.get(link + 8..)?.first_chunk::<OBJECT>()?;
    let hex: String = object.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("sharedindex.{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_have_no_entries() {
        assert_eq!(entries(b""), None);
        assert_eq!(entries(b"DIRC\0\0\0\x09\0\0\0\0"), None);
        assert_eq!(entries(b"DIRC\0\0\0\x02\0\0\0\x01short"), None);
        assert_eq!(offset(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), None);
    }
}
