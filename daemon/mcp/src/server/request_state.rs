//! Requests that wait for their clients to resume them, and the sealed `requestState` with which
//! clients do.
//!
//! The client stores a number, with a MAC over it, the method, the name, the arguments and the
//! caller. So a state can be used only once, for the same request of the same client. The request
//! itself stays here.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde_json::{Map, Value};

use crate::server::running_request::RunningRequest;
use crate::server::{ConnectionKind, McpConnection};

/// Waiting requests of all clients.
const MAX_WAITING: usize = 512;

/// What a model should know when the call that its client was asked about is not found. Somebody else may have answered, and a
/// daemon that was restarted since may have carried it out.
const MAY_HAVE_RUN: &str = "somebody may have answered elsewhere and the call may have run, also if the daemon was restarted \
                            meanwhile; look at what it changed before you make it again";

/// How long a client finds its request: people leave dialogs open.
const KEPT: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct RequestStates {
    codec: RequestStateCodec,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, RunningRequest>>,
}

impl RequestStates {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let codec = RequestStateCodec::try_new(key).expect("32 bytes are enough for a key");
        Self { codec, next: AtomicU64::new(1), waiting: Mutex::default() }
    }

    /// Stores a request, and returns the state with which its client finds it within a day. `None`
    /// when too many wait.
    pub(super) fn keep(&self, request: RunningRequest, binding: &StateBinding) -> Option<String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock();
        waiting.retain(|_, request| !request.is_over());
        if waiting.len() >= MAX_WAITING {
            return None;
        }
        waiting.insert(id, request);
        let options = SealOptions::new().associated_data(&binding.0).ttl(KEPT);
        Some(self.codec.seal_with(&id.to_be_bytes(), &options))
    }

    /// The request that a client comes back to.
    ///
    /// # Errors
    /// Invalid params: the state was not issued here, belongs to another request or client, has
    /// expired, or was used.
    pub(super) fn find(&self, state: &str, binding: &StateBinding) -> Result<RunningRequest, ErrorData> {
        let refused = |why: &str| ErrorData::invalid_params(format!("requestState: {why}"), None);
        let opened = self.codec.open_with(state, &binding.0).map_err(|error| match error {
            RequestStateError::Expired => refused(&format!("it has expired: {MAY_HAVE_RUN}")),
            _ => refused(&format!("this daemon gave no such state for this request: {MAY_HAVE_RUN}")),
        })?;
        let id = <[u8; 8]>::try_from(opened.as_slice()).map_err(|_| refused("it holds no number"))?;
        let mut waiting = self.waiting.lock();
        let found = waiting.remove(&u64::from_be_bytes(id));
        found.ok_or_else(|| refused(&format!("it was used already, or its call has ended: {MAY_HAVE_RUN}")))
    }
}

/// The values that a state is bound to.
pub(super) struct StateBinding(Vec<u8>);

impl StateBinding {
    pub(super) fn new(
        method: &str,
        name: &str,
        arguments: Option<&Map<String, Value>>,
        connection: &McpConnection,
    ) -> Self {
        let mut text = String::new();
        if let Some(arguments) = arguments {
            write_sorted(&Value::Object(arguments.clone()), &mut text);
        }
        let digest = blake3::hash(text.as_bytes());
        let caller = match connection.kind {
            ConnectionKind::Stream => format!("connection {}", connection.id),
            // One token, one identity; each request has a connection of its own.
            ConnectionKind::Http => format!("http {:?}", connection.identity),
        };
        // Each part follows its length, so that no part can be taken for the beginning of the next.
        let parts = [method.as_bytes(), name.as_bytes(), digest.as_bytes(), caller.as_bytes()];
        let mut bound = Vec::new();
        for part in parts {
            bound.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bound.extend_from_slice(part);
        }
        Self(bound)
    }
}

/// JSON with members in the order of their names: the same arguments are the same text.
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            out.push('{');
            for name in names {
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                write_sorted(&members[name], out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_sorted(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_arguments_does_not_matter() {
        let text = |value: Value| {
            let mut text = String::new();
            write_sorted(&value, &mut text);
            text
        };
        assert_eq!(
            text(json!({"a": [1, {"c": 2, "b": 3}], "d": null})),
            text(json!({"d": null, "a": [1, {"b": 3, "c": 2}]}))
        );
        assert_ne!(text(json!({"a": "1"})), text(json!({"a": 1})));
        assert_ne!(text(json!(["a", "b"])), text(json!(["a,b"])));
    }
}
