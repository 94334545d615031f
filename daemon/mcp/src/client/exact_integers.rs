//! Integers in structured results that no number of 64 bits holds: reading them as numbers would round them. They are passed
//! on as texts, since the daemon does not look inside.

use memchr::memmem;
use serde_json::{Number, Value};
use toold_engine::schema::Schema;

/// The digits of the shortest integer that 64 bits do not hold.
const LONG: usize = 19;

/// A message whose structured result has such integers, with texts in their place; `None` for all others. Looks at one
/// byte in [`LONG`] of most messages.
pub(super) fn as_texts(message: &[u8]) -> Option<Vec<u8>> {
    if !has_long_run(message) {
        return None;
    }
    let start = memmem::find(message, b"\"structuredContent\"")?;
    let (mut changed, mut copied) = (Vec::new(), 0);
    let (mut at, mut in_text) = (start, false);
    while at < message.len() {
        match message[at] {
            b'\\' if in_text => at += 2,
            b'"' => {
                in_text = !in_text;
                at += 1;
            }
            b'-' | b'0'..=b'9' if !in_text => {
                let end = message[at..].iter().position(|byte| !is_of_number(*byte)).map_or(message.len(), |n| at + n);
                if is_long_integer(&message[at..end]) {
                    changed.extend_from_slice(&message[copied..at]);
                    changed.push(b'"');
                    changed.extend_from_slice(&message[at..end]);
                    changed.push(b'"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return None;
    }
    changed.extend_from_slice(&message[copied..]);
    Some(changed)
}

/// Makes texts of such integers the nearest numbers where the schema of the result takes no text. Other texts of digits are the
/// server's own, and stay.
pub(super) fn fit(result: &mut Value, schema: &Value) {
    if !holds_long_integer(result) {
        return;
    }
    for place in Schema::compiled_before(schema.clone()).misplaced_texts(result) {
        if let Some(value) = result.pointer_mut(&place)
            && let Some(text) = value.as_str().filter(|text| is_long_integer(text.as_bytes()))
            && let Some(number) = text.parse().ok().and_then(Number::from_f64)
        {
            *value = Value::Number(number);
        }
    }
}

fn holds_long_integer(value: &Value) -> bool {
    match value {
        Value::String(text) => is_long_integer(text.as_bytes()),
        Value::Array(values) => values.iter().any(holds_long_integer),
        Value::Object(members) => members.values().any(holds_long_integer),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether so many digits stand side by side somewhere: in each piece of as many bytes, one is at its end.
fn has_long_run(message: &[u8]) -> bool {
    let mut at = LONG - 1;
    while at < message.len() {
        if message[at].is_ascii_digit() {
            let before = message[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            let after = message[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if before + after >= LONG {
                return true;
            }
            at += after;
        }
        at += LONG;
    }
    false
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

fn is_long_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_integer = digits.len() >= LONG && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).unwrap_or_default();
    is_integer && text.parse::<i64>().is_err() && text.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(structured: &str, expected: &str) {
        let message = format!("{{\"result\":{{\"content\":[],\"structuredContent\":{structured}}}}}");
        let changed = as_texts(message.as_bytes()).unwrap_or_else(|| message.clone().into_bytes());
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(changed, message.replace(structured, expected));
    }

    #[test]
    fn only_integers_beyond_64_bits_become_texts() {
        check("[18446744073709551615,-9223372036854775808]", "[18446744073709551615,-9223372036854775808]");
        check("[18446744073709551616,1]", "[\"18446744073709551616\",1]");
        check("{\"a\":-9223372036854775809}", "{\"a\":\"-9223372036854775809\"}");
        check(
            "\"18446744073709551616 \\\" 18446744073709551616\"",
            "\"18446744073709551616 \\\" 18446744073709551616\"",
        );
        check("[1.8446744073709551616e30,0.12345678901234567890]", "[1.8446744073709551616e30,0.12345678901234567890]");
        let schema = br#"{"result":{"tools":[{"inputSchema":{"maximum":18446744073709551616}}]}}"#;
        assert_eq!(as_texts(schema), None);
    }

    #[test]
    fn every_place_of_a_long_integer_is_found() {
        for before in 0..2 * LONG {
            check(
                &format!("\"{}\",18446744073709551616", "x".repeat(before)),
                &format!("\"{}\",\"18446744073709551616\"", "x".repeat(before)),
            );
        }
    }

    #[test]
    fn only_places_of_numbers_get_numbers() {
        let (text, number) = (json!("18446744073709551616"), json!(18446744073709551616.0));
        let number_or_null = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        let union = json!({"oneOf": [{"properties": {"n": {"type": "number"}}}, {"required": ["other"]}]});
        for (schema, expected) in [
            (json!({}), json!({"id": text, "n": text, "list": [text, "x", "12"]})),
            (
                json!({"properties": {"n": {"type": "number"}}}),
                json!({"id": text, "n": number, "list": [text, "x", "12"]}),
            ),
            (json!({"properties": {"n": number_or_null}}), json!({"id": text, "n": number, "list": [text, "x", "12"]})),
            (union, json!({"id": text, "n": number, "list": [text, "x", "12"]})),
            (
                json!({"properties": {"id": {"type": "string"}, "list": {"items": {"type": "number"}}}}),
                json!({"id": text, "n": text, "list": [number, "x", "12"]}),
            ),
        ] {
            let mut value = json!({"id": text, "n": text, "list": [text, "x", "12"]});
            fit(&mut value, &schema);
            assert_eq!(value, expected, "{schema}");
        }
    }
}
