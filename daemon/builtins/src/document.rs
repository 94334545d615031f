//! A text file as a change sees it: the characters, and the properties of its bytes that a change must preserve.

use anyhow::{bail, ensure};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::text::{Charset, charset};

/// The size limit of files that tools change, before and after the change.
pub(crate) const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// A decoded text. If all lines of the file end with `\r\n`, they end with `\n` in `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) charset: Charset,
    pub(crate) crlf: bool,
}

impl Document {
    /// # Errors
    /// Binary files, and bytes that encoding again would not restore.
    pub(crate) fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        let Some(charset) = charset(bytes, true) else { bail!("it is a binary file") };
        let (text, _) = charset.encoding.decode_with_bom_removal(bytes);
        let breaks = text.matches('\n').count();
        let crlf = breaks > 0 && text.matches("\r\n").count() == breaks && text.matches('\r').count() == breaks;
        let text = if crlf { text.replace("\r\n", "\n") } else { text.into_owned() };
        let document = Self { text, charset, crlf };
        ensure!(
            document.encode(&document.text)? == bytes,
            "it contains bytes that are not valid {}; an edit would damage them",
            charset.name()
        );
        Ok(document)
    }

    /// Encodes `text` like this file: with its encoding, byte order mark and line ends.
    ///
    /// # Errors
    /// Characters that the encoding does not have.
    pub(crate) fn encode(&self, text: &str) -> anyhow::Result<Vec<u8>> {
        let text = if self.crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let marked = if self.charset.bom { format!("\u{feff}{text}") } else { text };
        encode(&marked, self.charset.encoding)
    }

    /// The text of an argument, with the line ends of `self.text`.
    pub(crate) fn adopt(&self, text: &str) -> String {
        if self.crlf { text.replace("\r\n", "\n") } else { text.to_owned() }
    }
}

fn encode(text: &str, encoding: &'static Encoding) -> anyhow::Result<Vec<u8>> {
    if encoding == UTF_8 {
        return Ok(text.as_bytes().to_vec());
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
        let cases: [&[u8]; 6] =
            [b"a\nb", b"a\r\nb\r\n", b"a\r\nb\n", b"\xef\xbb\xbfa\r\n", &utf16, b"Gr\xfcn ist die Wiese\r\n"];
        for bytes in cases {
            let document = Document::decode(bytes).unwrap();
            assert_eq!(document.encode(&document.text).unwrap(), bytes);
        }
        assert_eq!(Document::decode(&utf16).unwrap().text, "ä\nb\n");
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
    }
}
