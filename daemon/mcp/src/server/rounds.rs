//! Work whose client is to come again, and the sealed state by which it does.
//!
//! What the client keeps is a number and a MAC over it, the method, the name, the arguments and who
//! called: it opens nothing else and nobody else's, and each only once. The work itself stays here.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde_json::{Map, Value};

use crate::server::work::Work;
use crate::server::{Connection, Kind};

/// Work that waits for clients, of all of them.
const MAX_WAITING: usize = 512;

pub(crate) struct Rounds {
    codec: RequestStateCodec,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Work>>,
}

impl Rounds {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let codec = RequestStateCodec::try_new(key).expect("32 bytes are enough for a key");
        Self { codec, next: AtomicU64::new(1), waiting: Mutex::default() }
    }

    /// Keeps work, and gives the state by which its client finds it for so long. `None` when too much waits.
    pub(super) fn keep(&self, work: Work, binding: &Binding, ttl: Duration) -> Option<String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().expect("no code panics while it holds this lock");
        waiting.retain(|_, work| !work.is_over());
        if waiting.len() >= MAX_WAITING {
            return None;
        }
        waiting.insert(id, work);
        let options = SealOptions::new().associated_data(&binding.0).ttl(ttl);
        Some(self.codec.seal_with(&id.to_be_bytes(), &options))
    }

    /// The work that a client comes back to.
    ///
    /// # Errors
    /// Invalid params: the state is none of ours, is of another request or client, is over, or was used.
    pub(super) fn find(&self, state: &str, binding: &Binding) -> Result<Work, ErrorData> {
        let refused = |words: &str| ErrorData::invalid_params(format!("requestState: {words}"), None);
        let opened = self.codec.open_with(state, &binding.0).map_err(|error| match error {
            RequestStateError::Expired => refused("its time is over; call again without it"),
            _ => refused("it is not what was given for this request"),
        })?;
        let id = <[u8; 8]>::try_from(opened.as_slice()).map_err(|_| refused("it is not what was given"))?;
        let mut waiting = self.waiting.lock().expect("no code panics while it holds this lock");
        waiting
            .remove(&u64::from_be_bytes(id))
            .ok_or_else(|| refused("it was used, or what it stands for has ended; call again without it"))
    }
}

/// What a state is good for.
pub(super) struct Binding(Vec<u8>);

impl Binding {
    pub(super) fn new(
        method: &str,
        name: &str,
        arguments: Option<&Map<String, Value>>,
        connection: &Connection,
    ) -> Self {
        let mut text = String::new();
        if let Some(arguments) = arguments {
            write_sorted(&Value::Object(arguments.clone()), &mut text);
        }
        let digest = blake3::hash(text.as_bytes());
        let who = match connection.kind {
            Kind::Stream => format!("connection {}", connection.id),
            // One token, one principal; each request has a connection of its own.
            Kind::Http => format!("http {:?}", connection.principal),
        };
        // Lengths first, so that no part can pass for the beginning of the next.
        let parts = [method.as_bytes(), name.as_bytes(), digest.as_bytes(), who.as_bytes()];
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
