//! Requests whose params do not fit their method. The SDK cannot read some of them at all and then answers without their
//! id, and takes others for methods that it does not know: here each gets its id, "invalid params" and the reason.
#![expect(deprecated, reason = "the older revisions have features that the newest deprecates")]

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memchr;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, CompleteRequestParams, GetPromptRequestParams,
    InitializeRequestParams, PaginatedRequestParams, ReadResourceRequestParams, SetLevelRequestParams,
    SubscribeRequestParams, UnsubscribeRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The method of requests that stand for one that the SDK could not read.
pub(super) const MISFIT: &str = "toold/misfit";

/// The methods of the older revisions that the stateless ones do not have (SEP-2575).
const REMOVED: [&str; 5] = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// A request in place of one that the SDK cannot read: the same where only half characters keep it from that, or else one
/// with its id and the reason. `None` for all that it can read, and for what is no request with an id of its own.
pub(super) fn readable(message: &[u8]) -> Option<Vec<u8>> {
    let reads = |message: &[u8]| serde_json::from_slice::<ClientJsonRpcMessage>(message).is_ok();
    if reads(message) {
        return None;
    }
    let whole = whole_characters(message);
    if matches!(&whole, Cow::Owned(whole) if reads(whole)) {
        return Some(whole.into_owned());
    }
    // The last of two members with one name counts, as in most readers.
    let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(&whole).ok()?;
    let id = members.get("id")?.get();
    let is_id = id.starts_with('"') || id.parse::<i64>().is_ok();
    let is_answer = members.contains_key("result") || members.contains_key("error");
    if !is_id || is_answer {
        return None;
    }
    let id: Value = serde_json::from_str(id).ok()?;
    let params = json!({"reason": unreadable(&members)});
    let stand_in = json!({"jsonrpc": "2.0", "id": id, "method": MISFIT, "params": params});
    Some(stand_in.to_string().into_bytes())
}

/// Why the SDK cannot read a request with these members.
fn unreadable(members: &HashMap<Cow<'_, str>, &RawValue>) -> String {
    let member = |name: &str| members.get(name).map(|raw| serde_json::from_str::<Value>(raw.get()));
    match member("jsonrpc") {
        Some(Ok(Value::String(version))) if version == "2.0" => {}
        _ => return "expected the member \"jsonrpc\": \"2.0\"".to_owned(),
    }
    let Some(Ok(Value::String(method))) = member("method") else {
        return "expected the member \"method\" with a text".to_owned();
    };
    let params = match member("params") {
        None => None,
        Some(Ok(params)) => Some(params),
        Some(Err(error)) => return format!("the params of {method} cannot be read: {error}"),
    };
    misfit(&method, params.as_ref()).unwrap_or_else(|| format!("the params do not fit {method}"))
}

/// The message with U+FFFD for each half of a surrogate pair that stands alone, as JavaScript writes a text that was cut
/// within an emoji (RFC 8259, section 8.2).
fn whole_characters(message: &[u8]) -> Cow<'_, [u8]> {
    let unit = |at: usize| {
        let digits = message.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut whole = Cow::Borrowed(message);
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &message[at..]) {
        at += found;
        at += match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                whole.to_mut()[at..at + 6].copy_from_slice(b"\\ufffd");
                6
            }
            Some(_) => 6,
            None => 2.min(message.len() - at),
        };
    }
    whole
}

/// Code and words of the answer to what is neither a message nor a request with an id; for transports on which each text
/// has an answer.
pub(super) fn fault(text: &[u8]) -> (i32, &'static str) {
    match serde_json::from_slice::<Value>(text) {
        Err(_) => (-32700, "the body is not JSON"),
        Ok(Value::Array(_)) => (-32600, "a batch is not supported: send one message in each request"),
        Ok(_) => (-32600, "the body is no message of JSON-RPC 2.0, or its id is neither a text nor a whole number"),
    }
}

/// The answer to a request of a method that the SDK does not know, or whose params it could not read. `is_stateless`: it is
/// of a stateless revision.
pub(super) fn refusal(method: &str, params: Option<&Value>, is_stateless: bool) -> ErrorData {
    if method == MISFIT {
        let reason = params.and_then(|params| params["reason"].as_str()).unwrap_or("the params do not fit").to_owned();
        return ErrorData::invalid_params(reason, None);
    }
    let is_known = !(is_stateless && REMOVED.contains(&method));
    match misfit(method, params).filter(|_| is_known) {
        Some(reason) => ErrorData::invalid_params(reason, None),
        None => ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None),
    }
}

/// Why the params do not fit a method of the protocol; `None` if they do, or the method is unknown.
fn misfit(method: &str, params: Option<&Value>) -> Option<String> {
    let why = match method {
        "initialize" => mismatch::<InitializeRequestParams>(params, Needed::Yes),
        "tools/call" => mismatch::<CallToolRequestParams>(params, Needed::Yes),
        "resources/read" => mismatch::<ReadResourceRequestParams>(params, Needed::Yes),
        "resources/subscribe" => mismatch::<SubscribeRequestParams>(params, Needed::Yes),
        "resources/unsubscribe" => mismatch::<UnsubscribeRequestParams>(params, Needed::Yes),
        "prompts/get" => mismatch::<GetPromptRequestParams>(params, Needed::Yes),
        "completion/complete" => mismatch::<CompleteRequestParams>(params, Needed::Yes),
        "logging/setLevel" => mismatch::<SetLevelRequestParams>(params, Needed::Yes),
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            mismatch::<PaginatedRequestParams>(params, Needed::No)
        }
        "ping" | "server/discover" => mismatch::<serde_json::Map<String, Value>>(params, Needed::No),
        _ => None,
    };
    let why = why.or_else(|| meta_mismatch(params))?;
    Some(format!("the params do not fit {method}: {why}"))
}

/// Whether a method needs params.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Yes,
    No,
}

fn mismatch<T: DeserializeOwned>(params: Option<&Value>, needed: Needed) -> Option<String> {
    match params {
        None | Some(Value::Null) if needed == Needed::No => None,
        None | Some(Value::Null) => Some("expected an object, got none".to_owned()),
        Some(given @ Value::Object(_)) => T::deserialize(given).err().map(|error| error.to_string()),
        Some(other) => Some(format!("expected an object, got {}", kind_of(other))),
    }
}

fn meta_mismatch(params: Option<&Value>) -> Option<String> {
    let meta = params?.as_object()?.get("_meta").filter(|meta| !meta.is_object() && !meta.is_null())?;
    Some(format!("_meta: expected an object, got {}", kind_of(meta)))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ClientRequest;

    use super::*;

    const METHODS: &[&str] = &[
        "initialize",
        "tools/call",
        "tools/list",
        "resources/read",
        "resources/subscribe",
        "resources/list",
        "prompts/get",
        "prompts/list",
        "completion/complete",
        "logging/setLevel",
        "ping",
        "server/discover",
        "tasks/get",
        "nope",
    ];

    /// With any params, the SDK reads the request or its stand-in, and its id stays.
    #[test]
    fn every_request_keeps_its_id() {
        let odd = [
            json!(null),
            json!(5),
            json!("x"),
            json!([]),
            json!({"_meta": 5}),
            json!({"_meta": {"progressToken": []}}),
            json!({"name": 5}),
            json!({"name": "a", "arguments": []}),
            json!({"uri": {}}),
            json!({"cursor": 1}),
            json!({"level": "loud"}),
            json!({"taskId": []}),
        ];
        for (method, params) in METHODS.iter().flat_map(|method| odd.iter().map(move |params| (method, params))) {
            for id in [json!(7), json!("seven")] {
                let sent = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
                let read = readable(sent.as_bytes());
                let seen = read.as_deref().unwrap_or(sent.as_bytes());
                let message: ClientJsonRpcMessage = serde_json::from_slice(seen).unwrap();
                let ClientJsonRpcMessage::Request(request) = message else { panic!("{sent}") };
                assert_eq!(request.id.into_json_value(), id, "{sent}");
            }
        }
    }

    #[test]
    fn the_reason_names_what_was_expected() {
        let words = |method: &str, params: Value| refusal(method, Some(&params), false).message.into_owned();
        assert_eq!(words("tools/call", json!([])), "the params do not fit tools/call: expected an object, got a list");
        assert_eq!(words("tools/call", json!({})), "the params do not fit tools/call: missing field `name`");
        assert_eq!(
            words("nope", json!({"_meta": 5})),
            "the params do not fit nope: _meta: expected an object, got a number"
        );
        assert_eq!(words("nope", json!({})), "nope");
    }

    #[test]
    fn half_characters_are_replaced_and_other_faults_keep_the_id() {
        let written = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","arguments":{"x":"\\\ud83d \ud83d\ude00 \ude00","\ud800":"\\ud83d"}}}"#;
        let message: ClientJsonRpcMessage = serde_json::from_slice(&readable(written.as_bytes()).unwrap()).unwrap();
        let ClientJsonRpcMessage::Request(request) = message else { panic!("{message:?}") };
        let ClientRequest::CallToolRequest(call) = request.request else { panic!("no call") };
        let expected = json!({"x": "\\\u{fffd} \u{1f600} \u{fffd}", "\u{fffd}": "\\ud83d"});
        assert_eq!(call.params.arguments.map(Value::Object), Some(expected));

        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"ping","params":{{"x":{}{}}}}}"#,
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        for (written, why) in [
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":{"x":1e999}}"#, "number out of range"),
            (deep.as_str(), "recursion limit"),
            (r#"{"jsonrpc":"2.0","id":1,"id":3,"method":"tools/call"}"#, "expected an object, got none"),
            (r#"{"jsonrpc":"2.0","id":3,"method":true}"#, "\"method\" with a text"),
            (r#"{"jsonrpc":"2.0","id":3}"#, "\"method\" with a text"),
            (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, "\"jsonrpc\": \"2.0\""),
            (r#"{"jsonrpc":2,"id":3,"method":"ping"}"#, "\"jsonrpc\": \"2.0\""),
        ] {
            let read: Value = serde_json::from_slice(&readable(written.as_bytes()).expect(why)).unwrap();
            assert_eq!(read["id"], 3);
            let reason = read["params"]["reason"].as_str().unwrap();
            assert!(reason.contains(why), "{reason}");
        }
    }

    #[test]
    fn what_is_no_request_is_left_to_the_sdk() {
        for text in [
            "{",
            "[]",
            "{}",
            r#"{"id":[],"method":"ping"}"#,
            r#"{"id":null,"method":"tools/call","params":5}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":5}"#,
        ] {
            assert_eq!(readable(text.as_bytes()), None, "{text}");
        }
    }
}
