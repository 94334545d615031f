//! Requests whose params do not fit their method. The SDK cannot read some of them at all, and takes others for methods that
//! it does not know: here each gets its id, "invalid params" and the reason.
#![expect(deprecated, reason = "the older revisions have features that the newest deprecates")]

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, CompleteRequestParams, GetPromptRequestParams,
    InitializeRequestParams, PaginatedRequestParams, ReadResourceRequestParams, SetLevelRequestParams,
    SubscribeRequestParams, UnsubscribeRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use toold_proto::error::{INVALID_PARAMS, INVALID_REQUEST};
use toold_proto::mcp_line::{Members, UnreadableMessage};

use crate::server::protocol_detection::is_stateless;

/// The methods of the older revisions that the stateless ones do not have (SEP-2575).
const REMOVED: [&str; 5] = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The message that the SDK gets; `None` for a notification or an answer that it cannot read.
///
/// # Errors
/// The answer to a request that it cannot read, or to an `initialize` that it would take for another method.
pub(super) fn read(message: &RawValue) -> Result<Option<ClientJsonRpcMessage>, UnreadableMessage> {
    match serde_json::from_str::<ClientJsonRpcMessage>(message.get()) {
        Ok(ClientJsonRpcMessage::Request(request)) => match request.request {
            // The stateless revisions have no such method.
            ClientRequest::CustomRequest(custom)
                if custom.method == "initialize" && !is_stateless(message.get().as_bytes()) =>
            {
                let reason = misfit(&custom.method, custom.params.as_ref());
                let reason = reason.unwrap_or_else(|| "the params do not fit initialize".to_owned());
                Err(UnreadableMessage::new(request.id.into_json_value(), INVALID_PARAMS, reason))
            }
            _ => Ok(Some(ClientJsonRpcMessage::Request(request))),
        },
        // The SDK takes a request for an answer that also has the members of one.
        Ok(other) => match answering_request(message) {
            Some(unreadable) => Err(unreadable),
            None => Ok(Some(other)),
        },
        Err(error) => match unreadable(message) {
            Some(unreadable) => Err(unreadable),
            None => {
                tracing::debug!(%error, "a notification or an answer of an MCP client cannot be read: it is ignored");
                Ok(None)
            }
        },
    }
}

/// The answer to a request that has the members of an answer, too; `None` for any other message.
fn answering_request(message: &RawValue) -> Option<UnreadableMessage> {
    let members: Members<'_> = serde_json::from_str(message.get()).ok()?;
    let is_answer = members.contains_key("result") || members.contains_key("error");
    let id: Value = serde_json::from_str(members.get("id")?.get()).ok()?;
    let reason = "expected no member \"result\" or \"error\" in a request";
    (is_answer && members.contains_key("method")).then(|| UnreadableMessage::new(id, INVALID_REQUEST, reason))
}

/// The answer to a request that the SDK cannot read; `None` if it is none.
fn unreadable(message: &RawValue) -> Option<UnreadableMessage> {
    if let Some(answering) = answering_request(message) {
        return Some(answering);
    }
    let members: Members<'_> = serde_json::from_str(message.get()).ok()?;
    let id: Value = serde_json::from_str(members.get("id")?.get()).ok()?;
    let is_answer = members.contains_key("result") || members.contains_key("error");
    if is_answer {
        return None;
    }
    Some(match serde_json::from_str(members.get("jsonrpc").map_or("null", |version| version.get())) {
        Ok(Value::String(version)) if version == "2.0" => UnreadableMessage::new(id, INVALID_PARAMS, unfit(&members)),
        _ => UnreadableMessage::new(id, INVALID_REQUEST, "expected the member \"jsonrpc\": \"2.0\""),
    })
}

/// Why the SDK cannot read a request with these members.
fn unfit(members: &Members<'_>) -> String {
    let member = |name: &str| members.get(name).map(|raw| serde_json::from_str::<Value>(raw.get()));
    let Some(Ok(Value::String(method))) = member("method") else {
        return "expected the member \"method\" with a text".to_owned();
    };
    let params = match member("params") {
        None => None,
        Some(Ok(params)) => Some(params),
        // Half of a surrogate pair too: nobody would notice that another character is written in its place.
        Some(Err(error)) => return format!("the params of {method} cannot be read: {error}"),
    };
    misfit(&method, params.as_ref()).unwrap_or_else(|| format!("the params do not fit {method}"))
}

/// The answer to a request of a method that the SDK does not know, or takes for such. `is_stateless`: it is of a stateless
/// revision.
pub(super) fn refusal(method: &str, params: Option<&Value>, is_stateless: bool) -> ErrorData {
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
    use serde_json::json;

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

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    /// With any params, the SDK reads the request, or its answer has its id.
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
                let seen = match read(&raw(&sent)) {
                    Ok(Some(ClientJsonRpcMessage::Request(request))) => request.id.into_json_value(),
                    Err(unreadable) => unreadable.id,
                    Ok(other) => panic!("{sent}: {other:?}"),
                };
                assert_eq!(seen, id, "{sent}");
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
    fn the_answer_to_what_cannot_be_read_says_why() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"ping","params":{{"x":{}{}}}}}"#,
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        let half = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","arguments":{"x":"\ud83d"}}}"#;
        let named = r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
        for (written, code, why) in [
            (half, -32602, "hex escape"),
            (named, -32602, "missing field `clientInfo`"),
            (
                r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":null}}"#,
                -32602,
                "invalid type: null",
            ),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":{"x":1e999}}"#, -32602, "number out of range"),
            (deep.as_str(), -32602, "recursion limit"),
            (r#"{"jsonrpc":"2.0","id":1,"id":3,"method":"tools/call"}"#, -32602, "expected an object, got none"),
            (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, -32600, "\"jsonrpc\": \"2.0\""),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping","result":{}}"#, -32600, "no member \"result\""),
            (r#"{"jsonrpc":"2.0","id":3,"method":"x","error":5}"#, -32600, "no member \"result\""),
            (r#"{"jsonrpc":2,"id":3,"method":"ping"}"#, -32600, "\"jsonrpc\": \"2.0\""),
        ] {
            let unreadable = read(&raw(written)).expect_err(why);
            assert_eq!((unreadable.id, unreadable.code), (json!(3), code), "{why}");
            assert!(unreadable.reason.contains(why), "{}", unreadable.reason);
        }
    }

    #[test]
    fn a_stateless_initialize_is_left_to_the_answer_about_methods() {
        let stateless = r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        assert!(matches!(read(&raw(stateless)), Ok(Some(_))));
    }

    #[test]
    fn what_is_no_request_gets_no_answer() {
        for text in [r#"{"jsonrpc":"2.0","method":5}"#, r#"{"jsonrpc":"2.0","id":3,"error":5}"#] {
            assert!(matches!(read(&raw(text)), Ok(None)), "{text}");
        }
    }
}
