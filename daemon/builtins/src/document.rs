//! A text file as a change sees it: the characters, and the properties of its bytes that a change must preserve.

use std::borrow::Cow;

use anyhow::{bail, ensure};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use similar::DiffOp;

use crate::bad_bytes;
use crate::comparison::{lines, steps};
use crate::text::{Charset, charset};

/// The size limit of files that tools change, before and after the change.
pub(crate) const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// A decoded text. If all lines of the file end with `\r\n`, or all with `\r`, they end with `\n` in `text`. Bytes that are
/// not valid UTF-8 are characters of [`bad_bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) charset: Charset,
    /// The line end of the file for which `\n` stands.
    pub(crate) line_end: &'static str,
}

impl Document {
    /// # Errors
    /// Binary files, and bytes that encoding again would not restore.
    pub(crate) fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        let Some(charset) = charset(bytes, true) else { bail!("it is a binary file") };
        Self::decode_as(bytes, charset)
    }

    /// The encoding, byte order mark and line ends of a file, as far as they can be told, with no text; `None` for a binary
    /// file.
    pub(crate) fn form_of(bytes: &[u8]) -> Option<Self> {
        let charset = charset(bytes, true)?;
        let line_end = line_end_of(&charset.encoding.decode_with_bom_removal(bytes).0);
        Some(Self { text: String::new(), charset, line_end })
    }

    /// A later version of this file: the guess of an encoding does not change.
    ///
    /// # Errors
    /// As [`Document::decode`].
    pub(crate) fn decode_later(&self, bytes: &[u8]) -> anyhow::Result<Self> {
        match charset(bytes, true) {
            Some(guess) if guess.is_legacy() && self.charset.is_legacy() => Self::decode_as(bytes, self.charset),
            _ => Self::decode(bytes),
        }
    }

    fn decode_as(bytes: &[u8], charset: Charset) -> anyhow::Result<Self> {
        let text = match charset.encoding == UTF_8 {
            true => {
                let bare = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
                let Some(text) = bad_bytes::decode(bare) else { bail!("it has characters of the end of Unicode") };
                Cow::Owned(text)
            }
            false => charset.encoding.decode_with_bom_removal(bytes).0,
        };
        let line_end = line_end_of(&text);
        let text = if line_end == "\n" { text.into_owned() } else { text.replace(line_end, "\n") };
        let document = Self { text, charset, line_end };
        ensure!(
            document.encode_in(charset, &document.text)? == bytes,
            "it contains bytes that are not valid {}; an edit would damage them",
            charset.name()
        );
        Ok(document)
    }

    /// Encodes `text` like this file: with its encoding, byte order mark and line ends. In UTF-8 if those bytes would be read as
    /// another text, since no file names its encoding; [`TextForm::differences`] says so.
    ///
    /// # Errors
    /// Characters that the encoding does not have.
    pub(crate) fn encode(&self, text: &str) -> anyhow::Result<Vec<u8>> {
        let bytes = self.encode_in(self.charset, text)?;
        let is_certain = self.charset.bom || self.charset.encoding == UTF_8;
        Ok(if is_certain || is_read_as(&bytes, &self.with_line_ends(text)) { bytes } else { self.encode_utf8(text) })
    }

    /// As [`Document::encode`], in UTF-8.
    pub(crate) fn encode_utf8(&self, text: &str) -> Vec<u8> {
        self.with_line_ends(text).into_owned().into_bytes()
    }

    fn encode_in(&self, charset: Charset, text: &str) -> anyhow::Result<Vec<u8>> {
        let text = self.with_line_ends(text);
        let marked = if charset.bom { Cow::Owned(format!("\u{feff}{text}")) } else { text };
        encode(&marked, charset.encoding)
    }

    fn with_line_ends<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.line_end == "\n" { Cow::Borrowed(text) } else { Cow::Owned(text.replace('\n', self.line_end)) }
    }

    /// The text of an argument, with the line ends of `self.text`.
    pub(crate) fn adopt(&self, text: &str) -> String {
        let text = text.strip_prefix('\u{feff}').filter(|_| self.charset.bom).unwrap_or(text);
        match self.line_end {
            "\n" => text.to_owned(),
            "\r" => text.replace("\r\n", "\n").replace('\r', "\n"),
            _ => text.replace("\r\n", "\n"),
        }
    }

    /// The same for a part of the text, whose line ends are those of the file if all of them are LF.
    pub(crate) fn adopt_part(&self, text: &str) -> String {
        let is_lf = self.text.contains('\n') && !self.text.contains('\r');
        if is_lf { self.adopt(text).replace("\r\n", "\n") } else { self.adopt(text) }
    }

    /// The whole new text of this file, given as a caller sees it. Lines that stay keep their bytes; where the file's
    /// lines end differently, a new line ends as the one above it.
    pub(crate) fn rewritten(&self, text: &str) -> String {
        let text = self.adopt(text);
        let has_own_ends = self.text.contains('\r') && !text.contains('\r');
        if !has_own_ends && !bad_bytes::has_any(&self.text) {
            return text;
        }
        let (old, new) = (lines(&self.text), lines(&text));
        let plain = |line: &str| match has_own_ends {
            true => bad_bytes::shown(line).replace("\r\n", "\n"),
            false => bad_bytes::shown(line).into_owned(),
        };
        let seen: Vec<String> = old.iter().map(|line| plain(line)).collect();
        let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
        let mut result = String::with_capacity(text.len());
        for step in steps(&seen, &new) {
            match step {
                DiffOp::Equal { old_index, len, .. } => result.extend(old[old_index..old_index + len].iter().copied()),
                DiffOp::Delete { .. } => {}
                DiffOp::Insert { old_index, new_index, new_len }
                | DiffOp::Replace { old_index, new_index, new_len, .. } => {
                    let near = old_index.checked_sub(1).or(Some(0)).and_then(|at| old.get(at));
                    let is_crlf = has_own_ends && near.is_some_and(|line| line.ends_with("\r\n"));
                    for line in &new[new_index..new_index + new_len] {
                        match line.strip_suffix('\n').filter(|_| is_crlf) {
                            Some(bare) => result.extend([bare, "\r\n"]),
                            None => result.push_str(line),
                        }
                    }
                }
            }
        }
        result
    }
}

/// The encoding, byte order mark and line ends of a text. A change may alter them although no character changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextForm {
    charset: Charset,
    /// `None` for a text without line ends.
    pub(crate) line_ends: Option<&'static str>,
    /// Only ASCII, which is the same in almost all encodings.
    is_plain: bool,
}

impl TextForm {
    /// `None` for a binary file.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let charset = charset(bytes, true)?;
        let (text, _) = charset.encoding.decode_with_bom_removal(bytes);
        let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
        let line_ends = match (all, crlf) {
            (0, _) => text.contains('\r').then_some("CR"),
            (_, 0) => Some("LF"),
            (all, crlf) if all == crlf => Some("CRLF"),
            _ => Some("mixed"),
        };
        Some(Self { charset, line_ends, is_plain: bytes.is_ascii() && !bytes.contains(&0) })
    }

    /// The encoding and the byte order mark.
    pub(crate) fn encoding(self) -> String {
        let is_marked = self.charset.bom && self.charset.encoding != UTF_8;
        self.charset.name() + if is_marked { " with BOM" } else { "" }
    }

    /// How the new form differs, a line for each respect, such as `line ends: CRLF -> LF`.
    pub(crate) fn differences(old: &[u8], new: &[u8]) -> Vec<String> {
        let (Some(before), Some(after)) = (Self::of(old), Self::of(new)) else { return Vec::new() };
        let mut words = Vec::new();
        if !before.may_be_as(after) && !after.may_be_as(before) && !old.is_empty() && !new.is_empty() {
            words.push(format!("encoding: {} -> {}", before.encoding(), after.encoding()));
        }
        if let (Some(before), Some(after)) = (before.line_ends, after.line_ends)
            && before != after
        {
            words.push(format!("line ends: {before} -> {after}"));
        }
        words
    }

    /// Words for what a later version of the file has kept of this form, if that is not usual.
    pub(crate) fn kept_in(self, new: &[u8]) -> Vec<String> {
        let Some(after) = Self::of(new) else { return Vec::new() };
        let ends = self.line_ends.filter(|ends| *ends != "LF" && after.line_ends == Some(ends));
        // The name is that of the encoding that was used: in the new text, another one may look as likely.
        let encoding = (after.charset != Charset::UTF8 && self.charset != Charset::UTF8).then(|| self.encoding());
        let words = [ends.map(|ends| format!("line ends ({ends})")), encoding.map(|name| format!("encoding ({name})"))];
        words.into_iter().flatten().collect()
    }

    /// Whether this text may have the encoding of the other one. Encodings without a mark are guesses.
    fn may_be_as(self, other: Self) -> bool {
        let is_extended_ascii = !other.charset.bom && other.charset.encoding.is_ascii_compatible();
        let are_guesses = [self, other].iter().all(|form| form.charset.is_legacy());
        self.charset == other.charset || are_guesses || (self.is_plain && is_extended_ascii)
    }
}

/// The line end that all lines have, if it is `\r\n` or `\r`; otherwise `\n`.
fn line_end_of(text: &str) -> &'static str {
    let [all, crlf, cr] = ["\n", "\r\n", "\r"].map(|end| text.matches(end).count());
    match (all, cr) {
        (0, 1..) => "\r",
        (1.., _) if crlf == all && cr == all => "\r\n",
        _ => "\n",
    }
}

/// Whether tools read this text from these bytes.
fn is_read_as(bytes: &[u8], text: &str) -> bool {
    charset(bytes, true).is_some_and(|charset| charset.encoding.decode_with_bom_removal(bytes).0 == text)
}

fn encode(text: &str, encoding: &'static Encoding) -> anyhow::Result<Vec<u8>> {
    if encoding == UTF_8 {
        return Ok(bad_bytes::encode(text));
    }
    if encoding == UTF_16LE {
        return Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
    }
    if encoding == UTF_16BE {
        return Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect());
    }
    let (bytes, _, unmappable) = encoding.encode(text);
    if unmappable {
        let odd = text.chars().find(|c| encoding.encode(c.encode_utf8(&mut [0; 4])).2).unwrap_or('\u{fffd}');
        bail!("the file is in {}, which has no {odd:?}", encoding.name());
    }
    Ok(bytes.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn line_ends_mark_and_encoding_come_back() {
        let utf16: Vec<u8> = "\u{feff}ä\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let cases: [&[u8]; 7] = [
            b"a\nb",
            b"a\r\nb\r\n",
            b"a\r\nb\n",
            b"a\rb\r",
            b"\xef\xbb\xbfa\r\n",
            &utf16,
            b"Gr\xfcn ist die Wiese\r\n",
        ];
        for bytes in cases {
            let document = Document::decode(bytes).unwrap();
            assert_eq!(document.encode(&document.text).unwrap(), bytes);
        }
        assert_eq!(Document::decode(&utf16).unwrap().text, "ä\nb\n");
        assert_eq!(Document::decode(b"a\rb\r").unwrap().text, "a\nb\n");
        // Mixed line ends are kept.
        assert_eq!(Document::decode(b"a\r\nb\n").unwrap().text, "a\r\nb\n");
    }

    #[test]
    fn character_missing_in_encoding_is_an_error() {
        let document = Document::decode(b"Gr\xfcn ist die Wiese\n").unwrap();
        assert!(document.encode("漢").unwrap_err().to_string().contains("has no '漢'"));
    }

    proptest! {
        #[test]
        fn any_bytes_come_back_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(document) = Document::decode(&bytes) {
                prop_assert_eq!(document.encode(&document.text).unwrap(), bytes);
            }
        }

        /// The encoding of a file is guessed from its bytes, so a short text may look as if it had another one.
        #[test]
        fn a_new_text_is_read_back_as_it_was_given(
            encoding in prop::sample::select(vec![
                "windows-1252", "windows-1251", "windows-1253", "ISO-8859-2", "KOI8-R", "GBK", "Shift_JIS", "EUC-JP", "EUC-KR",
                "Big5", "UTF-16LE", "UTF-16BE",
            ]),
            line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            text in "[ab \n\u{e4}\u{e9}\u{df}\u{2116}\u{3b1}-\u{3c9}\u{430}-\u{44f}\u{4f60}\u{597d}\u{65e5}\u{ac00}-\u{d7a3}]{1,12}",
        ) {
            let encoding = Encoding::for_label(encoding.as_bytes()).unwrap();
            let document = Document { text: String::new(), charset: Charset { encoding, bom: false }, line_end };
            if let Ok(bytes) = document.encode(&text) {
                let read = Document::decode(&bytes).unwrap();
                prop_assert_eq!(read.with_line_ends(&read.text), document.with_line_ends(&text));
            }
        }
    }
}
