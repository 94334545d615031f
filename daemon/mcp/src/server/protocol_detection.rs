//! Distinguishes the Model Context Protocol from the native dialect by the first message of a
//! connection.

use std::borrow::Cow;

use serde::Deserialize;
use toold_proto::mcp_line::Members;

/// The member of `_meta` that every request of the stateless revisions has.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The member of `_meta` that the bridge adds to its client's first message: it has no clients of the native dialect.
const BRIDGE_KEY: &str = "toold/bridge";

#[derive(Deserialize)]
struct OpeningProbe<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<Members<'a>>,
}

/// Whether a first message is one of the Model Context Protocol: `initialize` with a `protocolVersion`,
/// `server/discover`, or a request whose `_meta` names a revision or a bridge.
pub fn is_mcp(message: &[u8]) -> bool {
    // Params of another shape belong to another protocol.
    let Ok(probe) = serde_json::from_slice::<OpeningProbe>(message) else { return false };
    let params = probe.params.unwrap_or_default();
    let has_member = match probe.method.as_ref() {
        "initialize" => params.contains_key("protocolVersion"),
        method => method == "server/discover",
    };
    has_member || has_meta(&params, VERSION_KEY) || has_meta(&params, BRIDGE_KEY)
}

/// Whether a message is of a stateless revision: its `_meta` names one.
pub(super) fn is_stateless(message: &[u8]) -> bool {
    let probe = serde_json::from_slice::<OpeningProbe>(message).ok();
    probe.and_then(|probe| probe.params).is_some_and(|params| has_meta(&params, VERSION_KEY))
}

fn has_meta(params: &Members<'_>, name: &str) -> bool {
    let meta = params.get("_meta").and_then(|meta| serde_json::from_str::<Members<'_>>(meta.get()).ok());
    meta.is_some_and(|meta| meta.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_eras_differ_from_the_native_dialect() {
        for opening in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":null}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":{"toold/bridge":"b"}}}"#,
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
