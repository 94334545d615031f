//! The arguments of a call on one line, for people who watch calls.

use std::io::{self, Write};
use std::sync::Arc;

use serde_json::Value;

use crate::redact::one_line;

/// Bytes of the line.
const MAX_LINE: usize = 256;
/// Bytes of one argument among several.
const MAX_AMONG_SEVERAL: usize = 100;
/// Bytes of a value, and of all. A longer value is left out as a whole, because a part of a secret cannot be recognised.
const MAX_VALUE: usize = 2 * 1024;
const MAX_ALL: usize = 4 * 1024;

/// Arguments that become a line when somebody reads them. There are far more calls than readers, and looking for
/// secrets takes longer than a short call.
#[derive(Debug)]
pub struct ArgumentLine {
    /// Each argument as `name=value` on a line of its own, with its secrets.
    raw: Box<str>,
}

impl ArgumentLine {
    /// `None` without arguments.
    pub(crate) fn of(arguments: &Value) -> Option<Arc<Self>> {
        let mut raw = String::new();
        for (name, value) in arguments.as_object()? {
            if raw.len() > MAX_ALL {
                raw.push_str("…\n");
                break;
            }
            push_word(&mut raw, name);
            raw.push('=');
            push_value(&mut raw, value);
            raw.push('\n');
        }
        (!raw.is_empty()).then(|| Arc::new(Self { raw: raw.into() }))
    }

    /// At most [`MAX_LINE`] bytes, without secrets and control characters.
    pub fn shown(&self) -> String {
        let longest = if self.raw.lines().nth(1).is_some() { MAX_AMONG_SEVERAL } else { MAX_LINE };
        let shown: Vec<String> = self.raw.lines().map(|argument| one_line(argument, longest)).collect();
        one_line(&shown.join(" "), MAX_LINE)
    }
}

fn push_value(raw: &mut String, value: &Value) {
    match value {
        Value::String(text) if text.len() > MAX_VALUE => raw.push_str(&format!("({} bytes)", text.len())),
        Value::String(text) => push_word(raw, text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            let mut json = BoundedBuffer(Vec::new());
            match serde_json::to_writer(&mut json, value) {
                Ok(()) => raw.push_str(&String::from_utf8_lossy(&json.0)),
                Err(_) => raw.push_str(&format!("(more than {MAX_VALUE} bytes)")),
            }
        }
    }
}

/// A text as it is, or in quotes where its end would not be seen.
fn push_word(raw: &mut String, text: &str) {
    let is_bare = |c: char| !c.is_whitespace() && !c.is_control() && c != '"' && c != '\'';
    match !text.is_empty() && text.chars().all(is_bare) {
        true => raw.push_str(text),
        false => raw.push_str(&Value::from(text).to_string()),
    }
}

/// Fails when it is full.
struct BoundedBuffer(Vec<u8>);

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_VALUE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(arguments: Value) -> String {
        ArgumentLine::of(&arguments).map(|arguments| arguments.shown()).unwrap_or_default()
    }

    #[test]
    fn arguments_are_words_and_quoted_where_they_have_spaces() {
        assert_eq!(line(json!({"path": "src/a.rs", "limit": 20})), "path=src/a.rs limit=20");
        assert_eq!(line(json!({"command": "ls -l\n\"x\""})), r#"command="ls -l\n\"x\"""#);
        assert_eq!(line(json!({"a": [1, null], "b": "", "c d": true})), r#"a=[1,null] b="" "c d"=true"#);
        assert_eq!([line(json!({})), line(Value::Null)], ["", ""]);
        assert_eq!(line(json!({"a": "x\u{202e}\u{9b}31my\u{2028}"})), "a=\"x  31my \"");
    }

    #[test]
    fn long_values_leave_room_for_others() {
        let shown = line(json!({"content": "x".repeat(1000), "path": "a.rs"}));
        assert_eq!(shown, format!("content={}… path=a.rs", "x".repeat(MAX_AMONG_SEVERAL - 11)));
        assert_eq!(line(json!({"content": "x".repeat(5000), "path": "a.rs"})), "content=(5000 bytes) path=a.rs");
        assert_eq!(line(json!({"edits": vec![1; 5000], "path": "a.rs"})), "edits=(more than 2048 bytes) path=a.rs");
        for (name, count) in [("ü".repeat(300), 1), ("n".to_owned(), 500)] {
            let many =
                (0..count).map(|n| (format!("{name}{n}"), json!("ü".repeat(50)))).collect::<serde_json::Map<_, _>>();
            let shown = line(many.into());
            assert!(shown.len() <= MAX_LINE && shown.ends_with('…'), "{shown}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let header = json!({"command": "curl -H 'Authorization: Bearer abcdefghijkl' https://a", "token": "a b"});
        let shown = line(header);
        assert_eq!(shown, "command=\"curl -H 'Authorization: [redacted]' https://a\" token=[redacted]");
        // The end of a key is beyond the end of the line.
        let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}", "MIIE".repeat(300));
        assert!(!line(json!({"command": format!("echo {key}")})).contains("MIIE"));
        crate::redact::hide([&*"s3cretvalue".repeat(40)]);
        assert_eq!(line(json!({"a": "s3cretvalue".repeat(40)})), "a=[redacted]");
    }
}
