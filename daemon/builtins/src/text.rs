//! Detects the encoding of a file, and whether it is text at all.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// The encoding of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charset {
    pub(crate) encoding: &'static Encoding,
    /// Starts with a byte order mark.
    pub(crate) bom: bool,
}

impl Charset {
    pub(crate) const UTF8: Self = Self { encoding: UTF_8, bom: false };

    /// Neither UTF-8 nor UTF-16.
    pub(crate) fn is_legacy(self) -> bool {
        ![UTF_8, UTF_16LE, UTF_16BE].contains(&self.encoding)
    }

    /// The name for people: `UTF-8`, `UTF-16LE`, `windows-1252`.
    pub(crate) fn name(self) -> String {
        match self.bom && self.encoding == UTF_8 {
            true => "UTF-8 with BOM".to_owned(),
            false => self.encoding.name().to_owned(),
        }
    }
}

/// Detects the encoding from the beginning of a file; `None` for a binary file. `whole` means that nothing follows.
pub(crate) fn charset(head: &[u8], whole: bool) -> Option<Charset> {
    // In UTF-32, which is not read, this is a byte order mark, too: that of UTF-16 and a NUL.
    if head.starts_with(b"\xff\xfe\0\0") {
        return None;
    }
    // UTF-16 is full of NULs, so byte order marks are checked first.
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return Some(Charset { encoding, bom: true });
    }
    if let Some(encoding) = utf16_without_mark(head) {
        return Some(Charset { encoding, bom: false });
    }
    // The same test as in Git and ripgrep.
    if head[..head.len().min(8192)].contains(&0) {
        return None;
    }
    match std::str::from_utf8(head) {
        Ok(_) => return Some(Charset::UTF8),
        Err(error) if error.error_len().is_none() && !whole => return Some(Charset::UTF8),
        Err(_) if is_mostly_utf8(head) => return Some(Charset::UTF8),
        Err(_) => {}
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(head, whole);
    Some(Charset { encoding: detector.guess(None, Utf8Detection::Deny), bom: false })
}

/// Whether the lines of a whole text end with `\r` alone, as on old Macs.
pub(crate) fn ends_lines_with_cr(bytes: &[u8], charset: Charset) -> bool {
    memchr::memchr(b'\r', bytes).is_some()
        && match charset.encoding.is_ascii_compatible() {
            true => !bytes.contains(&b'\n'),
            false => {
                let (text, _) = charset.encoding.decode_with_bom_removal(bytes);
                text.contains('\r') && !text.contains('\n')
            }
        }
}

/// `1 file`, `2 files`.
pub(crate) fn counted(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// Whether at least as many characters outside ASCII are valid UTF-8 as are not: in other encodings hardly any are.
fn is_mostly_utf8(head: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for chunk in head.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid >= invalid
}

/// Mostly Latin text in UTF-16: one byte of each pair is almost always zero, the other one never.
fn utf16_without_mark(head: &[u8]) -> Option<&'static Encoding> {
    let head = &head[..head.len().min(4096) & !1];
    if head.len() < 8 {
        return None;
    }
    let pairs = head.len() / 2;
    let zeros = |offset: usize| head.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    match (zeros(0), zeros(1)) {
        (0, odd) if odd * 10 >= pairs * 9 => Some(UTF_16LE),
        (even, 0) if even * 10 >= pairs * 9 => Some(UTF_16BE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], name: Option<&str>) {
        assert_eq!(charset(bytes, true).map(Charset::name).as_deref(), name);
    }

    #[test]
    fn encodings_are_distinguished() {
        check(b"", Some("UTF-8"));
        check("grün".as_bytes(), Some("UTF-8"));
        check(b"\xef\xbb\xbftext", Some("UTF-8 with BOM"));
        check(b"\xff\xfet\0e\0", Some("UTF-16LE"));
        check(b"\xfe\xff\0t\0e", Some("UTF-16BE"));
        check(b"t\0e\0x\0t\0 \0", Some("UTF-16LE"));
        check(b"Gr\xfcn und gelb, wie die B\xe4ume im Fr\xfchling", Some("windows-1252"));
        // One bad byte does not make another encoding of the text.
        check(b"gr\xc3\xbcn und bl\xc3\xa4ulich, \xff", Some("UTF-8"));
        check(b"\x7fELF\x02\x01\0\0", None);
        check(b"\xff\xfe\0\0t\0\0\0", None);
        check(b"\0\0\xfe\xff\0\0\0t", None);
        check(&[0; 100], None);
    }

    #[test]
    fn a_character_cut_at_the_end_of_the_head_is_no_error() {
        assert_eq!(charset(&"grün".as_bytes()[..3], false), Some(Charset::UTF8));
        assert_ne!(charset(&"grün".as_bytes()[..3], true), Some(Charset::UTF8));
    }
}
