//! A file that is searched as it is read, and then as text if it is in an encoding other than UTF-8.

use std::io::{self, Read, Seek};

use encoding_rs::UTF_8;

use crate::text::charset;

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

#[derive(Clone, Copy, PartialEq, Eq)]
enum SniffState {
    Unread,
    /// UTF-8, or binary.
    Plain,
    /// The whole file decides.
    Doubtful,
}

impl<F: Read + Seek> SniffedFile<F> {
    /// `head` is memory of an earlier file, or nothing.
    pub(super) fn new(inner: F, mut head: Vec<u8>) -> Self {
        head.resize(HEAD, 0);
        Self { inner, state: SniffState::Unread, head, filled: 0, used: 0 }
    }

    /// The memory, for the next file.
    pub(super) fn into_head(self) -> Vec<u8> {
        self.head
    }

    /// Whether the file is binary for the tool `read`. Reads its beginning, which is passed on later.
    pub(super) fn is_binary(&mut self) -> io::Result<bool> {
        self.look()?;
        Ok(charset(&self.head[..self.filled], false).is_none())
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

    /// The text as `read` shows it, of a file of at most `limit` bytes that has been read and is in another encoding than
    /// UTF-8.
    pub(super) fn decoded(&mut self, limit: u64) -> io::Result<Option<String>> {
        if self.state != SniffState::Doubtful {
            return Ok(None);
        }
        self.inner.rewind()?;
        let mut bytes = Vec::new();
        (&mut self.inner).take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Ok(None);
        }
        let charset = charset(&bytes, true).filter(|charset| charset.encoding != UTF_8);
        Ok(charset.map(|charset| charset.encoding.decode_with_bom_removal(&bytes).0.into_owned()))
    }

    /// Reads the beginning, if that was not done.
    fn look(&mut self) -> io::Result<()> {
        if self.state == SniffState::Unread {
            self.filled = self.inner.read(&mut self.head)?;
            let head = &self.head[..self.filled];
            // One look at the beginning tells binary files.
            let is_decoded = is_other(head) && charset(head, false).is_some_and(|found| found.encoding != UTF_8);
            self.state = if is_decoded { SniffState::Doubtful } else { SniffState::Plain };
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
        // A character may begin in the chunk before.
        if self.state == SniffState::Plain
            && !chunk.contains(&0)
            && chunk.utf8_chunks().any(|part| part.invalid().len() == 1)
        {
            self.state = SniffState::Doubtful;
        }
        Ok(length)
    }
}

fn is_other(chunk: &[u8]) -> bool {
    chunk.contains(&0) || std::str::from_utf8(chunk).is_err()
}
