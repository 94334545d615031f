//! Texts of a server that are not the messages that they should be: answers that do not say whose they are, and what
//! cannot be read at all.

use rmcp::model::RequestId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use toold_engine::redact::without_hidden;
use toold_proto::cut::cut_chars;

/// Characters of a discarded text that are shown.
const SHOWN: usize = 200;

/// A text that came in place of the answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owned {
    /// The answer; with its text where that had to be changed.
    Answer(Option<String>),
    /// A request or a notification.
    Other,
    Unreadable,
}

#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<String>,
    id: Option<Value>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<Value>,
}

/// Reads a text that can only be the answer to this request, or a message before it.
pub(super) fn owned_by(text: &[u8], id: &RequestId) -> Owned {
    let Ok(envelope) = serde_json::from_slice::<Envelope>(text) else { return Owned::Unreadable };
    if envelope.method.is_some() {
        return Owned::Other;
    }
    if envelope.result.is_none() && envelope.error.is_none() {
        return Owned::Unreadable;
    }
    let wanted = json!(id);
    let is_good = envelope.jsonrpc.as_deref() == Some("2.0")
        && envelope.id.as_ref() == Some(&wanted)
        && envelope.error.as_ref().is_none_or(is_error);
    if is_good {
        return Owned::Answer(None);
    }
    let Ok(Value::Object(mut message)) = serde_json::from_slice(text) else { return Owned::Unreadable };
    message.insert("jsonrpc".to_owned(), json!("2.0"));
    message.insert("id".to_owned(), wanted);
    if let Some(error) = envelope.error.filter(|error| !is_error(error)) {
        message.insert("error".to_owned(), json!({"code": -32603, "message": shown(error.to_string().as_bytes())}));
    }
    Owned::Answer(Some(Value::Object(message).to_string()))
}

fn is_error(error: &Value) -> bool {
    error["code"].as_i64().is_some_and(|code| i32::try_from(code).is_ok()) && error["message"].is_string()
}

/// Writes a text that is discarded to the log, and returns its first characters.
pub(super) fn report(text: &[u8]) -> String {
    let shown = shown(text);
    tracing::warn!(text = shown, bytes = text.len(), "an MCP server sent a text that is no message: it is discarded");
    shown
}

/// The first characters of a text, without control characters.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN)]);
    // A server may repeat the secrets that it was given.
    let text = without_hidden(&text);
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cut_chars(clean.trim(), SHOWN, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Owned) {
        assert_eq!(owned_by(text.as_bytes(), &RequestId::Number(7)), expected, "{text}");
    }

    fn changed(text: &str) -> Owned {
        Owned::Answer(Some(serde_json::from_str::<Value>(text).unwrap().to_string()))
    }

    #[test]
    fn an_answer_is_that_of_its_request_whatever_its_id() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Owned::Answer(None));
        for id in ["null", "\"server-error\"", "8", "\"7\""] {
            check(
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#),
                changed(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#),
            );
        }
        check(r#"{"result":{"a":1}}"#, changed(r#"{"result":{"a":1},"jsonrpc":"2.0","id":7}"#));
        check(
            r#"{"error":"down"}"#,
            changed(r#"{"error":{"code":-32603,"message":"\"down\""},"jsonrpc":"2.0","id":7}"#),
        );
    }

    #[test]
    fn other_messages_stay_and_the_rest_is_unreadable() {
        check(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#, Owned::Other);
        for text in ["ready", "", "7", "{}", "[]", "{\"jsonrpc\":"] {
            check(text, Owned::Unreadable);
        }
        assert_eq!(shown(b" a\nb\xff "), "a b\u{fffd}");
    }
}
