//! JSON of agents that are written in JavaScript. Their texts are cut within characters (an emoji is two of their units), and the
//! half that is left, `\ud83d`, is no character. JavaScript writes U+FFFD in its place into files, names and command lines, and so
//! it is read here.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

/// `\uXXXX`
const ESCAPE: usize = 6;
const REPLACED: &[u8] = b"\\ufffd";

/// The same JSON with `\ufffd` for each escaped half of a character whose other half is missing.
pub(super) struct WholeCharacters<R> {
    input: R,
    /// The beginning of an escape, or of two.
    held: Vec<u8>,
    /// Ready to be read.
    ready: VecDeque<u8>,
}

/// A complete escape.
enum Half {
    /// A character of its own.
    None,
    First,
    Second,
}

impl<R: BufRead> WholeCharacters<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, held: Vec::new(), ready: VecDeque::new() }
    }

    /// Adds a byte of an escape, and moves what is certain then to `ready`.
    fn take(&mut self, byte: u8) {
        self.held.push(byte);
        loop {
            // Another kind of escape, a broken one, or none.
            if !begins_unicode(&self.held) {
                return self.release();
            }
            let Some((escape, behind)) = self.held.split_at_checked(ESCAPE) else { return };
            match (half(escape), behind) {
                (Half::None, _) => return self.release(),
                (Half::Second, _) => self.replace(),
                (Half::First, behind) if !begins_unicode(behind) => self.replace(),
                (Half::First, behind) if behind.len() < ESCAPE => return,
                (Half::First, behind) => match half(behind) {
                    Half::Second => return self.release(),
                    Half::None | Half::First => self.replace(),
                },
            }
        }
    }

    fn release(&mut self) {
        self.ready.extend(self.held.drain(..));
    }

    fn replace(&mut self) {
        self.ready.extend(REPLACED);
        self.held.drain(..ESCAPE);
    }
}

/// Whether an escape in hexadecimal digits may begin with these bytes, as far as they are there.
fn begins_unicode(bytes: &[u8]) -> bool {
    let is_right = |(at, byte): (usize, &u8)| match at {
        0 => *byte == b'\\',
        1 => *byte == b'u',
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.iter().take(ESCAPE).enumerate().all(is_right)
}

fn half(escape: &[u8]) -> Half {
    let digits = escape.get(2..ESCAPE).and_then(|digits| std::str::from_utf8(digits).ok());
    match digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
        Some(0xd800..0xdc00) => Half::First,
        Some(0xdc00..0xe000) => Half::Second,
        _ => Half::None,
    }
}

impl<R: BufRead> Read for WholeCharacters<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Nothing is waited for while something is ready: the agent may keep the pipe open behind its JSON.
        while self.ready.is_empty() {
            let available = self.input.fill_buf()?;
            let Some(first) = available.first().copied() else {
                self.release();
                break;
            };
            if self.held.is_empty() && first != b'\\' {
                let plain = available.iter().take(buffer.len()).take_while(|byte| **byte != b'\\').count();
                buffer[..plain].copy_from_slice(&available[..plain]);
                self.input.consume(plain);
                return Ok(plain);
            }
            self.input.consume(1);
            self.take(first);
        }
        self.ready.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, read whole and in pieces of each size.
    #[track_caller]
    fn check(input: &str, expected: &str) {
        for size in 1..=input.len() + 1 {
            let pieces = io::BufReader::with_capacity(size, input.as_bytes());
            let mut read = String::new();
            WholeCharacters::new(pieces).read_to_string(&mut read).unwrap();
            assert_eq!(read, expected, "{input} in pieces of {size}");
        }
    }

    #[test]
    fn halves_of_characters_are_replaced_and_all_else_stays() {
        for same in [
            r#"{"a": "x\n\\u\"\u00e9\ud83d\ude00\uD83D\uDE00é😀"}"#,
            r#""\\ud83d""#,
            r#""\\\\ud83d""#,
            r#""\uzzzz\u12"#,
            r#"\u"#,
            r#"\"#,
            "",
        ] {
            check(same, same);
        }
        for (input, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\ud83dx""#, r#""\ufffdx""#),
            (r#""\ude00\ud83d\n""#, r#""\ufffd\ufffd\n""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\u0041\ude00""#, r#""\ufffd\u0041\ufffd""#),
            (r#""\\\ud83d\\""#, r#""\\\ufffd\\""#),
        ] {
            check(input, expected);
        }
    }
}
