//! Distinguishes the Model Context Protocol from the native dialect by the first message of a
//! connection.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The member of `_meta` that every request of the stateless revisions has.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

#[derive(Deserialize)]
struct OpeningProbe<'a> {
    #[serde(borrow)]
    method: std::borrow::Cow<'a, str>,
    #[serde(default)]
    params: Option<OpeningParams>,
}

#[derive(Default, Deserialize)]
struct OpeningParams {
    #[serde(rename = "protocolVersion")]
    protocol_version: Option<IgnoredAny>,
    #[serde(rename = "_meta")]
    meta: Option<std::collections::HashMap<String, IgnoredAny>>,
}

/// Whether a first message is one of the Model Context Protocol: `initialize` with a `protocolVersion`,
/// `server/discover`, or a request whose `_meta` names a revision.
pub fn is_mcp(message: &[u8]) -> bool {
    // Params of another shape belong to another protocol.
    let Ok(probe) = serde_json::from_slice::<OpeningProbe>(message) else { return false };
    let params = probe.params.unwrap_or_default();
    match probe.method.as_ref() {
        "initialize" => params.protocol_version.is_some(),
        "server/discover" => true,
        _ => params.meta.is_some_and(|meta| meta.contains_key(VERSION_KEY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_eras_differ_from_the_native_dialect() {
        for opening in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#,
            r#"{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        ] {
            assert!(is_mcp(opening.as_bytes()), "{opening}");
        }
        for other in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"session.open","params":{"cwd":"/"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#,
            r#"[{"method":"server/discover"}]"#,
            "{",
        ] {
            assert!(!is_mcp(other.as_bytes()), "{other}");
        }
    }
}
