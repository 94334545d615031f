//! The OpenRPC document, which describes every method to programs.
//!
//! OpenRPC 1.3.2, <https://spec.open-rpc.org>. Notifications have no place in that specification;
//! they are under `x-notifications`, and a subscription names its own in `x-items`.

#[cfg(test)]
mod make;

use serde_json::Value;

/// The document, `openrpc.json`. It is long, and read again at each call.
pub fn document() -> Value {
    serde_json::from_str(include_str!("../openrpc.json")).expect("a test writes the file as JSON")
}
