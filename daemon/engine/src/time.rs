//! Times as the wire writes them.

use std::time::SystemTime;

/// RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

/// The time that such a text means; `None` for any other.
pub fn from_rfc3339(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339_weak(text).ok()
}
