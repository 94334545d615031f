//! The codes and kinds of errors on the wire.
//!
//! A tool that ran and failed answers with an ordinary result whose `is_error` is true; the errors
//! here are for requests that could not be carried out at all.

use serde::{Deserialize, Serialize};

/// JSON-RPC 2.0, section 5.1: the text is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// JSON-RPC 2.0, section 5.1: the JSON is not a request.
pub const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC 2.0, section 5.1: no such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// JSON-RPC 2.0, section 5.1; `kind` is `invalid_args` for a tool's arguments, else `invalid_params`.
pub const INVALID_PARAMS: i32 = -32602;
/// JSON-RPC 2.0, section 5.1; also an answer over the size limit (`too_large`).
pub const INTERNAL_ERROR: i32 = -32603;
pub const UNKNOWN_TOOL: i32 = -32001;
/// The permission engine failed or is closing; never a person's "no".
pub const PERMISSION_DENIED: i32 = -32002;
pub const EXECUTION_FAILED: i32 = -32003;
/// An unknown session, plugin, request or subscription; `kind` says which.
pub const UNKNOWN: i32 = -32004;
pub const OVERLOADED: i32 = -32005;
/// The code of the Language Server Protocol, section "Base Protocol".
pub const CANCELLED: i32 = -32800;

/// `data` of an error object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorData {
    /// The kind of the error, for programs: `invalid_args`, `unknown_tool`, `overloaded`, ...
    pub kind: String,
    /// Every problem of the arguments, not just the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ArgumentError>,
    /// Similar names, the most similar first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// The protocol revisions that `session.open` takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supported: Vec<u32>,
}

impl ErrorData {
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), ..Self::default() }
    }
}

/// One problem of a call's arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArgumentError {
    /// A JSON Pointer (RFC 6901) into the arguments; the empty string is the whole.
    pub path: String,
    pub message: String,
}
