//! Messages in a stream of bytes, in either of two framings.
//!
//! The first byte of a connection that is no blank tells them apart: `{` or `[` begins one JSON text
//! per line, anything else must be the headers of the Language Server Protocol (base protocol, header
//! part).

use std::io::Write;

use memchr::memchr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Lines,
    Headers,
}

/// What was found at the start of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum FoundMessage<'a> {
    /// A message, and how many bytes it took with its frame.
    Message(&'a [u8], usize),
    /// Blanks between messages.
    Skip(usize),
    /// A message over the limit begins here. Its bytes are thrown away as they come.
    TooLarge,
    /// Not yet.
    More,
    /// The stream cannot be understood from here on.
    Broken(&'static str),
}

/// Splits one direction of a connection. Keeps no bytes: the caller does.
#[derive(Debug)]
pub struct Splitter {
    pub framing: Option<Framing>,
    max: usize,
    /// What is left to throw away of a message that is too large; `None` in lines: until the end of one.
    discard: Option<Discard>,
    ended: bool,
}

#[derive(Debug, Clone, Copy)]
enum Discard {
    Line,
    Bytes(usize),
}

/// Some programs begin what they write with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Headers longer than this are none.
const MAX_HEADERS: usize = 8 * 1024;
const NO_HEADERS: &str = "expected a JSON text or the header Content-Length: N";

impl Splitter {
    pub fn new(max: usize) -> Self {
        Self { framing: None, max, discard: None, ended: false }
    }

    /// The stream has ended: what is left of it is a message, if it is in lines and none too large.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Looks for one message at the start of `bytes`. `searched` is how many of them an earlier call saw
    /// without finding an end, so that a long line is not searched from its start each time.
    pub fn next<'a>(&mut self, bytes: &'a [u8], searched: usize) -> FoundMessage<'a> {
        if let Some(discard) = self.discard {
            return self.discard(bytes, discard);
        }
        let blanks = bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
        if blanks > 0 {
            return FoundMessage::Skip(blanks);
        }
        if self.framing.is_none() && !bytes.is_empty() && BYTE_ORDER_MARK.starts_with(&bytes[..bytes.len().min(3)]) {
            return if bytes.len() < 3 { FoundMessage::More } else { FoundMessage::Skip(3) };
        }
        let Some(first) = bytes.first() else { return FoundMessage::More };
        let framing = *self.framing.get_or_insert(match first {
            b'{' | b'[' => Framing::Lines,
            _ => Framing::Headers,
        });
        match framing {
            Framing::Lines => self.line(bytes, searched),
            Framing::Headers => self.headers(bytes),
        }
    }

    fn line<'a>(&mut self, bytes: &'a [u8], searched: usize) -> FoundMessage<'a> {
        let searched = searched.min(bytes.len());
        match memchr(b'\n', &bytes[searched..]) {
            Some(end) if searched + end <= self.max => {
                let line = &bytes[..searched + end];
                FoundMessage::Message(line.strip_suffix(b"\r").unwrap_or(line), searched + end + 1)
            }
            None if bytes.len() <= self.max && self.ended => FoundMessage::Message(bytes, bytes.len()),
            None if bytes.len() <= self.max => FoundMessage::More,
            Some(_) | None => {
                self.discard = Some(Discard::Line);
                FoundMessage::TooLarge
            }
        }
    }

    fn headers<'a>(&mut self, bytes: &'a [u8]) -> FoundMessage<'a> {
        let Some(end) = memchr::memmem::find(&bytes[..bytes.len().min(MAX_HEADERS)], b"\r\n\r\n") else {
            return match bytes.len() {
                // It would be waited for the end of the headers, and all that comes meanwhile be taken for such.
                _ if has_other_lines(bytes) => FoundMessage::Broken(NO_HEADERS),
                MAX_HEADERS.. => FoundMessage::Broken("the headers do not end"),
                _ => FoundMessage::More,
            };
        };
        let Some(length) = content_length(&bytes[..end]) else {
            return FoundMessage::Broken(NO_HEADERS);
        };
        let start = end + 4;
        if length > self.max {
            self.discard = Some(Discard::Bytes(start.saturating_add(length)));
            return FoundMessage::TooLarge;
        }
        match bytes.get(start..start + length) {
            Some(message) => FoundMessage::Message(message, start + length),
            None => FoundMessage::More,
        }
    }

    /// Throws the message away that begins `bytes` and is not whole.
    pub fn give_up(&mut self, bytes: &[u8]) {
        let headers = || {
            let end = memchr::memmem::find(&bytes[..bytes.len().min(MAX_HEADERS)], b"\r\n\r\n")?;
            Some(Discard::Bytes((end + 4).saturating_add(content_length(&bytes[..end])?)))
        };
        self.discard = match self.framing {
            Some(Framing::Lines) => Some(Discard::Line),
            Some(Framing::Headers) | None => headers(),
        };
    }

    fn discard<'a>(&mut self, bytes: &'a [u8], discard: Discard) -> FoundMessage<'a> {
        if bytes.is_empty() {
            return FoundMessage::More;
        }
        match discard {
            Discard::Line => match memchr(b'\n', bytes) {
                Some(end) => {
                    self.discard = None;
                    FoundMessage::Skip(end + 1)
                }
                None => FoundMessage::Skip(bytes.len()),
            },
            Discard::Bytes(left) => {
                let now = left.min(bytes.len());
                self.discard = (now < left).then_some(Discard::Bytes(left - now));
                FoundMessage::Skip(now)
            }
        }
    }
}

/// Whether one of the complete lines is no header.
fn has_other_lines(bytes: &[u8]) -> bool {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.take(MAX_HEADERS).any(|line| !line.ends_with(b"\r\n") || !line.contains(&b':'))
}

fn content_length(headers: &[u8]) -> Option<usize> {
    let headers = std::str::from_utf8(headers).ok()?;
    let mut length = None;
    for line in headers.split("\r\n") {
        // A line feed alone ends a line as well, so that it is the same in whatever pieces the headers come.
        let (name, value) = line.split_once(':').filter(|_| !line.contains('\n'))?;
        if name.trim().eq_ignore_ascii_case("content-length") {
            // A second one could make two readers see two messages.
            if length.is_some() {
                return None;
            }
            let value = value.trim();
            length = Some(value.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse().ok())??);
        }
    }
    length
}

/// Appends a message in its frame.
pub fn write(framing: Framing, message: &[u8], out: &mut Vec<u8>) {
    // The frame's bytes too, or they would have what was taken for the message moved.
    out.reserve(message.len() + 32);
    match framing {
        Framing::Lines => {
            out.extend_from_slice(message);
            out.push(b'\n');
        }
        Framing::Headers => {
            write!(out, "Content-Length: {}\r\n\r\n", message.len()).expect("writing to memory does not fail");
            out.extend_from_slice(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_needs_no_end_and_the_first_may_begin_with_a_byte_order_mark() {
        let mut splitter = Splitter::new(100);
        assert_eq!(splitter.next(b"\xef\xbb", 0), FoundMessage::More);
        assert_eq!(splitter.next(b"\xef\xbb\xbf{}", 0), FoundMessage::Skip(3));
        assert_eq!(splitter.next(b"{}", 0), FoundMessage::More);
        splitter.end();
        assert_eq!(splitter.next(b"{}", 2), FoundMessage::Message(b"{}", 2));
        // A part of a message with headers is none.
        let mut splitter = Splitter::new(100);
        splitter.end();
        assert_eq!(splitter.next(b"Content-Length: 9\r\n\r\n{}", 0), FoundMessage::More);
    }

    /// Feeds the bytes in pieces of each size and gives what was found.
    #[track_caller]
    fn check(max: usize, stream: &[u8], expected: &[&str]) {
        for size in 1..=stream.len() {
            let mut splitter = Splitter::new(max);
            let (mut buffer, mut searched, mut found) = (Vec::new(), 0, Vec::new());
            for piece in stream.chunks(size) {
                buffer.extend_from_slice(piece);
                loop {
                    let used = match splitter.next(&buffer, searched) {
                        FoundMessage::Message(message, used) => {
                            found.push(String::from_utf8_lossy(message).into_owned());
                            used
                        }
                        FoundMessage::Skip(used) => used,
                        FoundMessage::TooLarge => {
                            found.push("TOO LARGE".into());
                            0
                        }
                        FoundMessage::More => {
                            searched = buffer.len();
                            break;
                        }
                        FoundMessage::Broken(_) => {
                            found.push("BROKEN".into());
                            buffer.clear();
                            break;
                        }
                    };
                    buffer.drain(..used);
                    searched = 0;
                }
            }
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn lines_are_split() {
        check(100, b"  \n{\"a\":1}\r\n\n[1]\n{\n", &["{\"a\":1}", "[1]", "{"]);
    }

    #[test]
    fn headers_are_split() {
        let stream = b"Content-Length: 2\r\n\r\n{}content-type: x\r\nCONTENT-LENGTH:3\r\n\r\n[1]";
        check(100, stream, &["{}", "[1]"]);
    }

    #[test]
    fn too_large_messages_are_thrown_away_and_the_next_is_read() {
        check(8, b"{\"aaaaaaaaaaaaaaa\":1}\n{}\n", &["TOO LARGE", "{}"]);
        check(8, b"Content-Length: 20\r\n\r\n01234567890123456789Content-Length: 2\r\n\r\n{}", &["TOO LARGE", "{}"]);
    }

    #[test]
    fn broken_headers_end_the_stream() {
        check(100, b"GET / HTTP/1.1\r\n\r\n", &["BROKEN"]);
        for first in ["null\n", "5\n", "Welcome to the machine\n", "Content-Length: 2\n", "note: x\n", "no header\r\n"]
        {
            check(100, first.as_bytes(), &["BROKEN"]);
        }
        check(100, b"Content-Length: -1\r\n\r\n", &["BROKEN"]);
        check(100, b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", &["BROKEN"]);
        let mut splitter = Splitter::new(100);
        let at_once = splitter.next(b"a: b\nc: d\r\nContent-Length: 9\r\n\r\n", 0);
        assert!(matches!(at_once, FoundMessage::Broken(_)), "{at_once:?}");
    }
}
