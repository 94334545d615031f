//! How messages are read and written, whatever they ask for.

use std::borrow::Cow;
use std::fmt::Display;

use jsonrpsee::core::server::MethodResponse;
use jsonrpsee::types::{ErrorObject, ErrorObjectOwned, Id};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toold_proto::error::{self, ErrorData};

/// A request or a notification, with a method that may exist.
pub(super) struct ParsedRequest<'a> {
    /// None for a notification.
    pub(super) id: Option<Id<'static>>,
    /// The id's JSON.
    pub(super) key: Option<&'a str>,
    pub(super) method: Cow<'a, str>,
    pub(super) params: Option<&'a RawValue>,
}

impl<'a> ParsedRequest<'a> {
    /// Gives what is answered when the message is none.
    pub(super) fn read(message: &'a str) -> Result<Self, Box<RawValue>> {
        let wrong = |id, words| failure(id, error::INVALID_REQUEST, words, "invalid_request");
        let request: RawRequest = serde_json::from_str(message).map_err(|error| match error.is_data() {
            true => wrong(
                Id::Null,
                "a request is an object with jsonrpc, method, and an id unless it is a notification".to_owned(),
            ),
            false => not_json(&error),
        })?;
        let id = request.id.map(read_id).transpose().map_err(|words| wrong(Id::Null, words))?;
        let method: Option<MessageString> = request.method.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let version = request.jsonrpc.map(RawValue::get);
        let (Some(MessageString(method)), Some("\"2.0\"")) = (method, version) else {
            let words = "expected jsonrpc: \"2.0\" and method: a string".to_owned();
            return Err(wrong(id.unwrap_or(Id::Null), words));
        };
        Ok(Self { id, key: request.id.map(|raw| raw.get().trim()), method, params: request.params })
    }
}

#[derive(Deserialize)]
pub(super) struct RawRequest<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl RawRequest<'_> {
    /// Whether this is a request of this method.
    pub(super) fn is_of(&self, method: &str) -> bool {
        self.method
            .is_some_and(|found| serde_json::from_str(found.get()).is_ok_and(|MessageString(found)| found == method))
    }
}

/// A string that is borrowed where it holds no escapes.
#[derive(Deserialize)]
struct MessageString<'a>(#[serde(borrow)] Cow<'a, str>);

/// An id of `null` is there, and wrong; for serde it would be none at all.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Strings, and integers from 0 to 2^53-1, which every JSON reader keeps exact.
pub(super) fn read_id(raw: &RawValue) -> Result<Id<'static>, String> {
    const MAX: u64 = (1 << 53) - 1;
    // Read by its first byte: `Id` of serde tries one form after the other, and words an error for each.
    let id = match raw.get().starts_with('"') {
        true => serde_json::from_str(raw.get()).ok().map(|text: String| Id::Str(text.into())),
        false => serde_json::from_str(raw.get()).ok().filter(|n| *n <= MAX).map(Id::Number),
    };
    id.ok_or_else(|| "an id is a string or an integer from 0 to 2^53-1".to_owned())
}

pub(super) fn by_position(params: Option<&str>) -> Option<String> {
    let by_name: toold_proto::event::Unsubscribe = serde_json::from_str(params?).ok()?;
    serde_json::to_string(&[by_name.subscription]).ok()
}

pub(super) fn not_json(error: &impl Display) -> Box<RawValue> {
    failure(Id::Null, error::PARSE_ERROR, format!("the message is not JSON: {error}"), "parse_error")
}

pub(crate) fn failure(id: Id<'_>, code: i32, words: String, kind: &str) -> Box<RawValue> {
    let object: ErrorObjectOwned = ErrorObject::owned(code, words, Some(ErrorData::new(kind)));
    MethodResponse::error(id, object).into_json()
}

/// The response of a request that has a result.
///
/// # Errors
/// The result is of a type that JSON has no form for.
pub(crate) fn success(id: &Id<'_>, result: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct SuccessResponse<'a, T> {
        jsonrpc: &'static str,
        id: &'a Id<'a>,
        result: &'a T,
    }
    serde_json::to_vec(&SuccessResponse { jsonrpc: "2.0", id, result })
}

pub(super) fn bytes(json: Box<RawValue>) -> Vec<u8> {
    Box::<str>::from(json).into_string().into_bytes()
}
