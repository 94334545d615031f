//! Lines of an MCP client: the messages of each line, or the answer to one that cannot be read. Does no I/O.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;

use memchr::memchr;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{INVALID_REQUEST, PARSE_ERROR};
use crate::weight::Weigher;

/// The longest id of a message that is found although the message cannot be read, in bytes.
const MAX_ID: usize = 256;

/// Puts lines together from the bytes that come.
#[derive(Debug)]
pub struct LineCollector {
    max: usize,
    line: Vec<u8>,
    /// Of a line that is longer than `max`, whose bytes are not kept.
    too_long: Option<IdFinder>,
}

/// A message of a line, or why there is none.
pub type LinePart = Result<Box<RawValue>, UnreadableMessage>;

/// A message that cannot be read, with the error that answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableMessage {
    /// Null where it cannot be found.
    pub id: Value,
    pub code: i32,
    pub reason: String,
}

impl UnreadableMessage {
    pub fn new(id: Value, code: i32, reason: impl Display) -> Self {
        Self { id, code, reason: reason.to_string() }
    }

    /// A request whose id is that of one that has no answer yet.
    pub fn sent_twice(id: Value) -> Self {
        let reason = format!("a request with the id {id} waits for its answer: give each request an id of its own");
        Self::new(id, INVALID_REQUEST, reason)
    }

    /// The JSON of the answer to it.
    pub fn answer(&self) -> String {
        let error = json!({"code": self.code, "message": self.reason});
        json!({"jsonrpc": "2.0", "id": self.id, "error": error}).to_string()
    }
}

impl LineCollector {
    /// `max`: bytes of one line that are kept.
    pub fn new(max: usize) -> Self {
        Self { max, line: Vec::new(), too_long: None }
    }

    /// Takes bytes up to the end of a line. Returns how many these are, and whether the line is complete.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        let end = memchr(b'\n', bytes);
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        match &mut self.too_long {
            Some(finder) => finder.add(piece),
            None if self.line.len() + piece.len() > self.max => {
                let mut finder = IdFinder::default();
                finder.add(&std::mem::take(&mut self.line));
                finder.add(piece);
                self.too_long = Some(finder);
            }
            None => self.line.extend_from_slice(piece),
        }
        (end.map_or(bytes.len(), |end| end + 1), end.is_some())
    }

    /// What the complete line has, in its order: one part for each message, and none for a blank line. The next line begins.
    /// `max_weight`: bytes of memory that the line may take once it is parsed, by the estimate of [`Weigher`].
    pub fn end_line(&mut self, max_weight: u64) -> Vec<LinePart> {
        let line = std::mem::take(&mut self.line);
        match self.too_long.take() {
            Some(finder) => {
                let reason = format!("the message is longer than {} bytes", self.max);
                vec![Err(UnreadableMessage::new(finder.id(), INVALID_REQUEST, reason))]
            }
            None => parts_of(&line, max_weight),
        }
    }
}

/// The messages of a text: one, or those of a batch.
pub fn parts_of(text: &[u8], max_weight: u64) -> Vec<LinePart> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii();
    if text.is_empty() {
        return Vec::new();
    }
    let unreadable = |code, reason: &dyn Display| vec![Err(UnreadableMessage::new(found_id(text), code, reason))];
    if Weigher::default().add(text) > max_weight {
        let most = max_weight >> 20;
        let reason = format!(
            "the message has so many values that it would take more than {most} MiB of memory: send fewer values, or send them \
             as one string"
        );
        return unreadable(INVALID_REQUEST, &reason);
    }
    let not_json = |error: &dyn Display| unreadable(PARSE_ERROR, &format!("the message is not JSON: {error}"));
    let whole = match std::str::from_utf8(text) {
        Ok(whole) => whole,
        Err(error) => return not_json(&error),
    };
    if !whole.starts_with('[') {
        return match RawValue::from_string(whole.to_owned()) {
            Ok(message) => vec![checked(message)],
            Err(error) => not_json(&error),
        };
    }
    match serde_json::from_str::<Vec<Box<RawValue>>>(whole) {
        Ok(batch) if batch.is_empty() => unreadable(INVALID_REQUEST, &"expected a message, got an empty batch"),
        Ok(batch) => batch.into_iter().map(checked).collect(),
        Err(error) => not_json(&error),
    }
}

/// The members of an object, of which the last of two with one name counts, as in most readers.
pub type Members<'a> = HashMap<Cow<'a, str>, &'a RawValue>;

/// A JSON value, if it is a message of JSON-RPC. The version is not looked at.
fn checked(message: Box<RawValue>) -> LinePart {
    let invalid = |id: Value, reason: &str| Err(UnreadableMessage::new(id, INVALID_REQUEST, reason));
    let Ok(members) = serde_json::from_str::<Members<'_>>(message.get()) else {
        return invalid(found_id(message.get().as_bytes()), "expected a message of JSON-RPC 2.0, which is an object");
    };
    let id = members.get("id").map(|id| id_of(id.get()));
    let is_answer = members.contains_key("result") || members.contains_key("error");
    match (members.get("method").map(|method| method.get().starts_with('"')), id) {
        (None, _) if is_answer => Ok(message),
        (_, Some(None)) => invalid(Value::Null, "expected an id that is a text or a whole number"),
        (Some(true), _) => Ok(message),
        (Some(false) | None, id) => {
            invalid(id.flatten().unwrap_or_default(), "expected the member \"method\" with a text")
        }
    }
}

/// The id that a JSON text is.
fn id_of(text: &str) -> Option<Value> {
    let id: Value = serde_json::from_str(text).ok()?;
    (id.is_string() || id.is_i64()).then_some(id)
}

/// The id in a text that may be no JSON; null if there is none.
fn found_id(text: &[u8]) -> Value {
    let mut finder = IdFinder::default();
    finder.add(text);
    finder.id()
}

/// Finds the id of a request that is too long or no JSON, before its params or after them. Linear.
#[derive(Debug, Default)]
struct IdFinder {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The text or number that is read of the message's own members, cut to [`MAX_ID`].
    token: Vec<u8>,
    /// The value of the member `id` is read.
    is_id: bool,
    ids: Vec<Value>,
    /// It is an answer: its id is that of a request to the client.
    is_answer: bool,
}

impl IdFinder {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.is_in_string {
                self.keep(byte);
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => {
                    self.is_in_string = true;
                    self.keep(byte);
                }
                b'{' | b'[' => {
                    // A value that is an object or a list is no id.
                    self.keep(byte);
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.end_member();
                    self.depth = self.depth.saturating_sub(1);
                }
                b':' if self.depth == 1 => {
                    let name = std::mem::take(&mut self.token);
                    self.is_id = name == b"\"id\"";
                    self.is_answer |= name == b"\"result\"" || name == b"\"error\"";
                }
                b',' => self.end_member(),
                _ if byte.is_ascii_whitespace() => {}
                _ => self.keep(byte),
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= MAX_ID {
            self.token.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        let token = std::mem::take(&mut self.token);
        if std::mem::take(&mut self.is_id)
            && let Some(id) = std::str::from_utf8(&token).ok().and_then(id_of)
            && self.ids.len() < 2
        {
            self.ids.push(id);
        }
    }

    /// Null where there is none, or several: a wrong one would end another request.
    fn id(self) -> Value {
        match <[Value; 1]>::try_from(self.ids) {
            Ok([id]) if !self.is_answer => id,
            Ok(_) | Err(_) => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 200;

    /// What is found in a stream, however it is cut: the messages, and `code id` of the others.
    #[track_caller]
    fn check(stream: &[u8], expected: &[&str]) {
        for size in 1..=stream.len() {
            let mut collector = LineCollector::new(MAX);
            let mut found = Vec::new();
            for mut piece in stream.chunks(size) {
                while !piece.is_empty() {
                    let (taken, is_complete) = collector.take(piece);
                    piece = &piece[taken..];
                    if is_complete {
                        found.extend(collector.end_line(10_000));
                    }
                }
            }
            let shown = found.into_iter().map(|part| match part {
                Ok(message) => message.get().to_owned(),
                Err(unreadable) => format!("{} {}", unreadable.code, unreadable.id),
            });
            assert_eq!(shown.collect::<Vec<_>>(), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_has_a_message_or_those_of_a_batch() {
        check(b"\xef\xbb\xbf{\"id\":1,\"method\":\"a\"}\r\n\n \n", &["{\"id\":1,\"method\":\"a\"}"]);
        check(
            b"[{\"id\":1,\"method\":\"a\"}, {\"method\":\"b\"},{\"id\":\"x\",\"result\":1}, 5, {\"id\":7}]\n[]\n",
            &[
                "{\"id\":1,\"method\":\"a\"}",
                "{\"method\":\"b\"}",
                "{\"id\":\"x\",\"result\":1}",
                "-32600 null",
                "-32600 7",
                "-32600 null",
            ],
        );
    }

    #[test]
    fn a_line_that_cannot_be_read_is_answered_under_its_id() {
        check(b"{\"id\":95,\"method\":\"a\",\"params\":{\"id\":3,\"x\":\"caf\xe9\"}}\n", &["-32700 95"]);
        check(b"{ \"jsonrpc\": \"2.0\", \"id\" : \"a\\\"b\" ,\"method\":\n", &["-32700 \"a\\\"b\""]);
        check(b"{oops\nnull\n{\"id\":[],\"method\":\"a\"}\n", &["-32700 null", "-32600 null", "-32600 null"]);
        check(b"{\"id\":null,\"method\":\"a\"}\n{\"id\":1.5,\"method\":\"a\"}\n", &["-32600 null", "-32600 null"]);
        check(b"{\"id\":1,\"method\":5}\n{}\n", &["-32600 1", "-32600 null"]);
        // One of an answer, one that is cut, and two that differ.
        check(b"{\"id\":1,\"result\":}\n{\"id\":12\n{\"id\":1}{\"id\":2}\n", &["-32700 null"; 3]);
    }

    #[test]
    fn a_line_that_is_too_long_or_too_heavy_is_answered_under_its_id() {
        let long = "x".repeat(MAX);
        let first = format!("{{\"id\":1,\"method\":\"a\",\"params\":{{\"id\":2,\"x\":\"}},\\\"{long}\"}}}}\n");
        let last =
            format!("{{\"method\":\"a\",\"params\":[{{\"id\":2}},\"{long}\"],\"jsonrpc\":\"2.0\",\"id\":\"z\"}}\n");
        let without = format!("{long}x\n");
        let heavy = format!("{{\"id\":3,\"method\":\"a\",\"params\":[{}1]}}\n", "1,".repeat(80));
        let fine = "{\"id\":4,\"method\":\"a\"}";
        check(
            [&first, &last, &without, &heavy, fine, "\n"].concat().as_bytes(),
            &["-32600 1", "-32600 \"z\"", "-32600 null", "-32600 3", fine],
        );
    }
}
