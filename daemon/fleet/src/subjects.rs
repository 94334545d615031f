//! The subjects, buckets and streams of a fleet.

use crate::names::FleetName;

/// Key-value bucket: a record of each daemon, which it renews.
pub const DAEMONS: &str = "toold_daemons";
/// Key-value bucket: a record of each tool, by `DAEMON.TOOL`.
pub const TOOLS: &str = "toold_tools";
/// Key-value bucket: grants of persons, by `PERSON.ID`.
pub const GRANTS: &str = "toold_grants";
/// Stream of asks, one message for each subject.
pub const ASKS: &str = "TOOLD_ASKS";
/// Stream of rows of the audit logs.
pub const AUDIT: &str = "TOOLD_AUDIT";
/// Object store of texts that exceed the message limit.
pub const BLOBS: &str = "TOOLD_BLOBS";

/// The name of the daemons in NATS's services API.
pub const SERVICE: &str = "toold";

/// Calls for one daemon.
pub fn call(daemon: &FleetName) -> String {
    format!("toold.{daemon}.call")
}

/// Calls for any daemon that has a label. Its subscribers are a queue group of the label's name.
pub fn any_call(label: &FleetName) -> String {
    format!("toold.any.{label}.call")
}

pub fn cancel(daemon: &FleetName, call_id: &str) -> String {
    format!("toold.{daemon}.cancel.{call_id}")
}

/// The caller's heartbeats.
pub fn alive(daemon: &FleetName, call_id: &str) -> String {
    format!("toold.{daemon}.alive.{call_id}")
}

pub fn ask(person: &FleetName, ask_id: &str) -> String {
    format!("toold.ask.{person}.{ask_id}")
}

pub fn answer(ask_id: &str) -> String {
    format!("toold.answer.{ask_id}")
}

/// The subjects of rows of the audit logs begin with this; the daemon's name follows.
pub const AUDIT_PREFIX: &str = "toold.audit.";

pub fn audit(daemon: &FleetName) -> String {
    format!("{AUDIT_PREFIX}{daemon}")
}

/// The key of a tool in [`TOOLS`].
pub fn tool_key(daemon: &FleetName, tool: &str) -> String {
    format!("{daemon}.{tool}")
}

/// The key of a grant in [`GRANTS`].
pub fn grant_key(person: &FleetName, id: &str) -> String {
    format!("{person}.{id}")
}

/// Names that subjects of the same form use for something else.
pub const RESERVED: [&str; 4] = ["any", "ask", "answer", "audit"];
