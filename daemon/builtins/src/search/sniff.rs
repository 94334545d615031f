//! A file that is searched as it is read, and then as the text that `read` shows where that is another one.

use std::io::{self, Read, Seek};

use encoding_rs::{Encoding, UTF_8};

use crate::text::{Charset, charset, ends_lines_with_cr};

/// As much as the searcher reads at once.
const HEAD: usize = 64 * 1024;
/// The byte order mark of UTF-8, which is no part of the text.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Passes the bytes on, and looks whether they are UTF-8.
pub(super) struct SniffedFile<F> {
    inner: F,
    state: SniffState,
    /// The beginning of the file, and how much of it is passed on: the searcher's own first read is of three bytes.
    head: Vec<u8>,
    filled: usize,
    used: usize,
}

/// A file as text.
pub(super) struct DecodedText {
    pub(super) text: String,
    /// The text is the bytes, with U+FFFD for those that are not valid: a pattern may also mean the bytes.
    pub(super) has_same_bytes: bool,
}

/// The result of [`SniffedFile::decoded`].
pub(super) enum DecodedFile {
    /// The text is what the bytes are.
    Same,
    Text(DecodedText),
    /// The file is too long to be decoded from this encoding.
    TooLong(&'static Encoding),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SniffState {
    Unread,
    /// UTF-8 with lines that end with `\n`.
    Plain,
    /// The whole file decides.
    Doubtful,
    /// No text for the tool `read`.
    Binary,
}

impl<F: Read + Seek> SniffedFile<F> {
    /// Reads a file of at most `length` bytes. `head` is memory of an earlier one, or nothing.
    pub(super) fn new(inner: F, length: usize, mut head: Vec<u8>) -> Self {
        head.resize(length.min(HEAD), 0);
        Self { inner, state: SniffState::Unread, head, filled: 0, used: 0 }
    }

    /// The memory, for the next file.
    pub(super) fn into_head(self) -> Vec<u8> {
        self.head
    }

    /// Whether the file is binary for the tool `read`. Reads its beginning, which is passed on later.
    pub(super) fn is_binary(&mut self) -> io::Result<bool> {
        self.look()?;
        Ok(self.state == SniffState::Binary)
    }

    /// The whole file, up to `limit` bytes.
    pub(super) fn read_whole(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.by_ref().take(limit as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            return Err(io::Error::other(format!(
                "it has more than {limit} bytes, too many to search over several lines"
            )));
        }
        Ok(bytes)
    }

    /// The text as `read` shows it, of a file of at most `limit` bytes that has been read, where that is not what its bytes are:
    /// in another encoding than UTF-8, with bytes that are not valid, or with lines that end with `\r` alone.
    pub(super) fn decoded(&mut self, limit: u64) -> io::Result<DecodedFile> {
        if self.state != SniffState::Doubtful {
            return Ok(DecodedFile::Same);
        }
        self.inner.rewind()?;
        let mut bytes = Vec::new();
        (&mut self.inner).take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            // The beginning that `read` goes by.
            let charset = charset(&bytes[..bytes.len().min(HEAD)], false).unwrap_or(Charset::UTF8);
            return Ok(if charset.encoding == UTF_8 {
                DecodedFile::Same
            } else {
                DecodedFile::TooLong(charset.encoding)
            });
        }
        let Some(charset) = charset(&bytes, true) else { return Ok(DecodedFile::Same) };
        let has_cr = ends_lines_with_cr(&bytes, charset);
        let is_utf8 = charset.encoding == UTF_8;
        if is_utf8 && !has_cr && std::str::from_utf8(&bytes).is_ok() {
            return Ok(DecodedFile::Same);
        }
        let text = charset.encoding.decode_with_bom_removal(&bytes).0;
        let text = if has_cr { text.replace('\r', "\n") } else { text.into_owned() };
        Ok(DecodedFile::Text(DecodedText { text, has_same_bytes: is_utf8 && !has_cr }))
    }

    /// Reads the beginning, if that was not done.
    fn look(&mut self) -> io::Result<()> {
        if self.state == SniffState::Unread {
            self.filled = self.inner.read(&mut self.head)?;
            let head = &self.head[..self.filled];
            // One look at the beginning tells binary files.
            self.state = match () {
                () if !is_other(head) => SniffState::Plain,
                () if charset(head, false).is_some() => SniffState::Doubtful,
                () => SniffState::Binary,
            };
            self.used = if head.starts_with(BOM) { BOM.len() } else { 0 };
        }
        Ok(())
    }
}

impl<F: Read + Seek> Read for SniffedFile<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.look()?;
        if self.used < self.filled {
            let rest = &self.head[self.used..self.filled];
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            self.used += length;
            return Ok(length);
        }
        let length = self.inner.read(buffer)?;
        let chunk = &buffer[..length];
        if self.state == SniffState::Plain && !chunk.contains(&0) && std::str::from_utf8(chunk).is_err() {
            self.state = SniffState::Doubtful;
        }
        Ok(length)
    }
}

fn is_other(head: &[u8]) -> bool {
    let has_cr = || memchr::memchr(b'\r', head).is_some() && !head.contains(&b'\n');
    head.contains(&0) || std::str::from_utf8(head).is_err() || has_cr()
}
