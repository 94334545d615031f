//! Reads lines of a text of any size and encoding, in bounded memory.

use std::io::{self, Read};

use encoding_rs::Decoder;

use crate::text::Charset;

/// Until a read gives as much: most files have less, and larger buffers take the system longer to provide.
const FIRST_CHUNK: usize = 4 * 1024;
const CHUNK: usize = 64 * 1024;
/// Longer lines, in characters, are not read to their end.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// A line without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextLine {
    /// At most the given number of characters.
    pub(crate) text: String,
    /// The number of characters that were left out.
    pub(crate) cut: usize,
    pub(crate) crlf: bool,
    /// Reading stopped before the line's end: no further line can be read.
    pub(crate) endless: bool,
}

/// Reads a text line by line. Lines end with `\n` or `\r\n`, or all with `\r`; the last one may have no line end.
pub(crate) struct LineReader<R> {
    reader: R,
    pub(crate) charset: Charset,
    /// The last byte of a line end.
    line_end: u8,
    decoder: Decoder,
    bytes: Vec<u8>,
    /// How many bytes the next read may give.
    chunk: usize,
    text: String,
    /// How much of `text` is consumed.
    used: usize,
    done: bool,
    max_chars: usize,
    /// The text contains bytes that are invalid in its encoding.
    pub(crate) had_errors: bool,
    /// The last line that was read had a line end.
    pub(crate) ended: bool,
}

impl<R: Read> LineReader<R> {
    pub(crate) fn new(reader: R, charset: Charset, max_chars: usize) -> Self {
        Self {
            reader,
            charset,
            line_end: b'\n',
            decoder: charset.encoding.new_decoder_with_bom_removal(),
            bytes: Vec::new(),
            chunk: FIRST_CHUNK,
            text: String::new(),
            used: 0,
            done: false,
            max_chars,
            had_errors: false,
            ended: true,
        }
    }

    /// For a text without `\n`.
    pub(crate) fn with_cr(self, ends_with_cr: bool) -> Self {
        Self { line_end: if ends_with_cr { b'\r' } else { b'\n' }, ..self }
    }

    pub(crate) fn has_cr(&self) -> bool {
        self.line_end == b'\r'
    }

    /// The next line; `None` at the end.
    pub(crate) fn read(&mut self) -> io::Result<Option<TextLine>> {
        let mut line = TextLine { text: String::new(), cut: 0, crlf: false, endless: false };
        let mut chars = 0;
        let mut any = false;
        // A `\r` at the end of a chunk belongs to the line end only if `\n` follows.
        let mut held = false;
        loop {
            if self.used == self.text.len() && !self.fill()? {
                if held {
                    self.add(&mut line, &mut chars, "\r");
                }
                self.ended = false;
                return Ok(any.then_some(line));
            }
            any = true;
            let rest = &self.text[self.used..];
            let end = memchr::memchr(self.line_end, rest.as_bytes());
            let piece = &rest[..end.unwrap_or(rest.len())];
            let (from, until) = (self.used, self.used + piece.len());
            self.used = until + usize::from(end.is_some());
            if held && !(piece.is_empty() && end.is_some()) {
                self.add(&mut line, &mut chars, "\r");
            }
            let bare = self.text[from..until].strip_suffix('\r').map(str::len);
            let crlf = bare.is_some() || (held && from == until);
            held = bare.is_some();
            let piece = self.text[from..from + bare.unwrap_or(until - from)].to_owned();
            self.add(&mut line, &mut chars, &piece);
            if line.cut > MAX_LINE {
                line.endless = true;
                return Ok(Some(line));
            }
            if end.is_some() {
                line.crlf = crlf;
                self.ended = true;
                return Ok(Some(line));
            }
        }
    }

    /// Whether anything follows. Reads at most one more chunk.
    pub(crate) fn more(&mut self) -> io::Result<bool> {
        Ok(self.used < self.text.len() || self.fill()?)
    }

    /// Skips up to `count` lines; returns how many were skipped.
    pub(crate) fn skip(&mut self, count: u64) -> io::Result<u64> {
        let mut skipped = 0;
        let mut open = false;
        while skipped < count {
            if self.used == self.text.len() && !self.fill()? {
                self.ended = !open && self.ended;
                return Ok(skipped + u64::from(open));
            }
            match memchr::memchr(self.line_end, &self.text.as_bytes()[self.used..]) {
                Some(end) => {
                    self.used += end + 1;
                    skipped += 1;
                    open = false;
                    self.ended = true;
                }
                None => {
                    self.used = self.text.len();
                    open = true;
                }
            }
        }
        Ok(skipped)
    }

    fn add(&self, line: &mut TextLine, chars: &mut usize, piece: &str) {
        let room = self.max_chars - *chars;
        match piece.char_indices().nth(room) {
            None => {
                line.text.push_str(piece);
                *chars += piece.chars().count();
            }
            Some((at, _)) => {
                line.text.push_str(&piece[..at]);
                *chars = self.max_chars;
                line.cut += piece[at..].chars().count();
            }
        }
    }

    /// Reads the next chunk; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.used = 0;
        while self.text.is_empty() {
            if self.done {
                return Ok(false);
            }
            self.bytes.resize(self.chunk, 0);
            let read = match self.reader.read(&mut self.bytes) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.done = read == 0;
            if read == self.chunk {
                self.chunk = CHUNK;
            }
            let most = self.decoder.max_utf8_buffer_length(read).expect("a chunk is short");
            self.text.reserve(most);
            let (_, _, errors) = self.decoder.decode_to_string(&self.bytes[..read], &mut self.text, self.done);
            self.had_errors |= errors;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its bytes one at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1);
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &[(&str, usize, bool)]) {
        fn collect(reader: impl Read) -> Vec<(String, usize, bool)> {
            let mut lines = LineReader::new(reader, Charset::UTF8, 5);
            let mut all = Vec::new();
            while let Some(line) = lines.read().unwrap() {
                all.push((line.text, line.cut, line.crlf));
            }
            all
        }
        let expected: Vec<_> = expected.iter().map(|(text, cut, crlf)| ((*text).to_owned(), *cut, *crlf)).collect();
        assert_eq!(collect(bytes), expected);
        assert_eq!(collect(Slow(bytes)), expected);
        let mut lines = LineReader::new(Slow(bytes), Charset::UTF8, 5);
        assert_eq!(lines.skip(u64::MAX).unwrap(), expected.len() as u64);
    }

    #[test]
    fn line_ends_of_all_kinds() {
        check(b"", &[]);
        check(b"a", &[("a", 0, false)]);
        check(b"a\nb\n", &[("a", 0, false), ("b", 0, false)]);
        check(b"a\r\n\r\nb\r", &[("a", 0, true), ("", 0, true), ("b\r", 0, false)]);
        check(b"a\rb\r\r\nc", &[("a\rb\r", 0, true), ("c", 0, false)]);
    }

    #[test]
    fn lines_may_end_with_a_carriage_return_alone() {
        let mut lines = LineReader::new(Slow(b"a\r\rb"), Charset::UTF8, 5).with_cr(true);
        let read: Vec<_> = std::iter::from_fn(|| lines.read().unwrap()).map(|line| (line.text, line.crlf)).collect();
        assert_eq!(read, [("a".to_owned(), false), (String::new(), false), ("b".to_owned(), false)]);
    }

    #[test]
    fn long_lines_are_cut_at_characters() {
        check("äöüßéabc\nx".as_bytes(), &[("äöüßé", 3, false), ("x", 0, false)]);
    }

    #[test]
    fn lines_reach_over_chunks() {
        let long = "ä".repeat(FIRST_CHUNK);
        let text = format!("a{long}\n{long}\nend");
        let mut lines = LineReader::new(text.as_bytes(), Charset::UTF8, CHUNK);
        let read: Vec<String> = std::iter::from_fn(|| lines.read().unwrap()).map(|line| line.text).collect();
        assert_eq!(read, [format!("a{long}"), long, "end".to_owned()]);
        assert!(!lines.had_errors);
    }

    #[test]
    fn invalid_bytes_are_reported() {
        let mut lines = LineReader::new(&b"a\xffb"[..], Charset::UTF8, 10);
        assert_eq!(lines.read().unwrap().unwrap().text, "a\u{fffd}b");
        assert!(lines.had_errors);
    }
}
