//! Decodes the bytes of a response to text. The encodings that servers declare are often wrong.

use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};

use crate::text::charset;

/// How far into a page its `meta` elements may declare its encoding.
const PRESCAN: usize = 2048;

/// A decoded text and the name of its encoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    pub(crate) charset: &'static str,
}

/// The text of a body; `None` if it is not text. `declared` is the encoding in the header. `whole` means that the body
/// is not truncated. `is_html` means that the body may declare an encoding itself.
pub(crate) fn decode(bytes: &[u8], declared: Option<&str>, whole: bool, is_html: bool) -> Option<Decoded> {
    let declared = declared.and_then(label);
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        // UTF-16 contains many zeros, which would look like a binary file.
        None if declared.is_some_and(is_utf16) && looks_like_utf16(bytes) => declared?,
        None => {
            let guess = charset(bytes, whole)?.encoding;
            let said = declared.or_else(|| is_html.then(|| meta(bytes)).flatten()).filter(|said| !is_utf16(said));
            said.map_or(guess, |said| believed(said, guess, bytes))
        }
    };
    let (text, _) = encoding.decode_with_bom_removal(bytes);
    let mut text = text.into_owned();
    if !whole && encoding == UTF_8 && text.ends_with('\u{fffd}') {
        // A character that was truncated.
        text.pop();
    }
    Some(Decoded { text, charset: encoding.name() })
}

fn label(text: &str) -> Option<&'static Encoding> {
    Encoding::for_label(text.trim_matches([' ', '"', '\'']).as_bytes()).filter(|encoding| *encoding != REPLACEMENT)
}

fn is_utf16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

fn looks_like_utf16(bytes: &[u8]) -> bool {
    bytes.len() >= 2 && bytes.len().is_multiple_of(2) && bytes[..bytes.len().min(512)].contains(&0)
}

/// The declared encoding, unless the bytes contradict it. Text in another encoding is hardly ever valid UTF-8 by
/// chance, and valid UTF-8 is hardly ever meant as something else.
fn believed(said: &'static Encoding, guess: &'static Encoding, bytes: &[u8]) -> &'static Encoding {
    if said == UTF_8 && guess != UTF_8 {
        let (text, _) = UTF_8.decode_without_bom_handling(bytes);
        let bad = text.matches('\u{fffd}').count();
        let good = text.chars().filter(|c| !c.is_ascii()).count() - bad;
        // A page may contain a few bytes in another encoding.
        return if bad > good { guess } else { UTF_8 };
    }
    match said != UTF_8 && guess == UTF_8 && !bytes.is_ascii() {
        true => UTF_8,
        false => said,
    }
}

/// The encoding that a `meta` element near the beginning of the page declares.
fn meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(PRESCAN)].to_ascii_lowercase();
    let mut rest = head.as_slice();
    while let Some(at) = memchr::memmem::find(rest, b"<meta") {
        rest = &rest[at + 5..];
        let end = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        let (element, after) = rest.split_at(end);
        rest = after;
        let Some(at) = memchr::memmem::find(element, b"charset") else { continue };
        let value = element[at + 7..].trim_ascii_start();
        let Some(value) = value.strip_prefix(b"=") else { continue };
        let value: Vec<u8> = value
            .trim_ascii_start()
            .iter()
            .copied()
            .skip_while(|byte| matches!(byte, b'"' | b'\''))
            .take_while(|byte| !matches!(byte, b'"' | b'\'' | b';' | b' ' | b'/'))
            .collect();
        // A page whose `meta` element could be read as ASCII is not UTF-16.
        return std::str::from_utf8(&value).ok().and_then(label).map(|e| if is_utf16(e) { UTF_8 } else { e });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], declared: Option<&str>, expected: Option<(&str, &str)>) {
        let decoded = decode(bytes, declared, true, true);
        let got = decoded.as_ref().map(|decoded| (decoded.text.as_str(), decoded.charset));
        assert_eq!(got, expected, "{declared:?}");
    }

    #[test]
    fn header_mark_and_page_name_the_encoding() {
        check("grün".as_bytes(), None, Some(("grün", "UTF-8")));
        check(b"gr\xfcn", Some("iso-8859-1"), Some(("grün", "windows-1252")));
        check(b"gr\xfcn", Some("\"ISO-8859-15\""), Some(("grün", "ISO-8859-15")));
        check(b"\xef\xbb\xbfx", Some("iso-8859-1"), Some(("x", "UTF-8")));
        check(b"\xff\xfea\0b\0", Some("utf-8"), Some(("ab", "UTF-16LE")));
        check(b"\0a\0b", Some("utf-16be"), Some(("ab", "UTF-16BE")));
        check("漢字".as_bytes(), Some("utf-8"), Some(("漢字", "UTF-8")));
        check(b"\x8a\xbf\x8e\x9a", Some("shift_jis"), Some(("漢字", "Shift_JIS")));
        let page = b"<html><META http-equiv=x content='text/html; charset=koi8-r'>\xf0\xf2\xe9\xf7\xe5\xf4";
        let text = "<html><META http-equiv=x content='text/html; charset=koi8-r'>ПРИВЕТ";
        check(page, None, Some((text, "KOI8-R")));
        check(b"<meta charset=\"utf-16\">ok", None, Some(("<meta charset=\"utf-16\">ok", "UTF-8")));
    }

    #[test]
    fn the_bytes_are_believed_before_the_header() {
        check("größer".as_bytes(), Some("iso-8859-1"), Some(("größer", "UTF-8")));
        check("größer".as_bytes(), Some("shift_jis"), Some(("größer", "UTF-8")));
        check(b"gr\xf6\xdfer als B\xe4ume", Some("utf-8"), Some(("größer als Bäume", "windows-1252")));
        check(b"gr\xc3\xb6\xc3\x9fer \xff", Some("utf-8"), Some(("größer \u{fffd}", "UTF-8")));
        check(b"plain", Some("utf-16le"), Some(("plain", "UTF-8")));
        check(b"plain", Some("no-such-charset"), Some(("plain", "UTF-8")));
        check(b"plain", Some("iso-2022-kr"), Some(("plain", "UTF-8")));
    }

    #[test]
    fn binary_body_is_none() {
        check(b"\x7fELF\x02\x01\0\0", None, None);
        check(b"\x7fELF\x02\x01\0\0", Some("utf-8"), None);
        check(b"PK\x03\x04\0\0\0", Some("iso-8859-1"), None);
    }

    #[test]
    fn a_character_cut_at_the_end_is_left_out() {
        let decoded = decode(&"grün".as_bytes()[..3], None, false, false).unwrap();
        assert_eq!(decoded.text, "gr");
    }
}
