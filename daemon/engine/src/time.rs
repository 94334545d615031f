//! Times as the wire writes them.

use std::time::SystemTime;

/// RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}
