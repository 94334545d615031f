//! Requests whose params do not fit their method. The SDK cannot read some of them at all and then answers without their
//! id, and takes others for methods that it does not know: here each gets its id, "invalid params" and the reason.
#![expect(deprecated, reason = "the older revisions have features that the newest deprecates")]

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, CompleteRequestParams, GetPromptRequestParams,
    InitializeRequestParams, PaginatedRequestParams, ReadResourceRequestParams, SetLevelRequestParams,
    SubscribeRequestParams, UnsubscribeRequestParams,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The method of requests that stand for one that the SDK could not read.
pub(super) const MISFIT: &str = "toold/misfit";

/// The methods of the older revisions that the stateless ones do not have (SEP-2575).
const REMOVED: [&str; 5] = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The members of a message that tell whose answer it wants.
#[derive(Deserialize)]
struct RequestHead<'m> {
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'m, str>>,
    params: Option<Value>,
}

/// A request in place of one that the SDK cannot read, with its id and the reason. `None` for all that it can read, and for
/// what is no request with an id of its own.
pub(super) fn readable(message: &[u8]) -> Option<Vec<u8>> {
    if serde_json::from_slice::<ClientJsonRpcMessage>(message).is_ok() {
        return None;
    }
    let head: RequestHead<'_> = serde_json::from_slice(message).ok()?;
    let (id, method) = (head.id?.get(), head.method?);
    let is_id = id.starts_with('"') || id.parse::<i64>().is_ok();
    if !is_id {
        return None;
    }
    let reason = misfit(&method, head.params.as_ref()).unwrap_or_else(|| format!("the params do not fit {method}"));
    let id: Value = serde_json::from_str(id).ok()?;
    let stand_in = json!({"jsonrpc": "2.0", "id": id, "method": MISFIT, "params": {"reason": reason}});
    Some(stand_in.to_string().into_bytes())
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
    fn what_is_no_request_is_left_to_the_sdk() {
        for text in ["{", "[]", "{}", r#"{"id":[],"method":"ping"}"#, r#"{"id":null,"method":"tools/call","params":5}"#]
        {
            assert_eq!(readable(text.as_bytes()), None, "{text}");
        }
    }
}
