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

/// A moment as RFC 3339, or as the time from it to `now`, such as `15m` or `2h 30m`.
///
/// # Errors
/// The text has neither form; the message tells the user which forms there are.
pub fn read_since(text: &str, now: SystemTime) -> Result<SystemTime, String> {
    if let Some(at) = from_rfc3339(text) {
        return Ok(at);
    }
    match humantime::parse_duration(text) {
        Ok(ago) => Ok(now.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH)),
        Err(_) => Err(format!(
            "since: {text:?} is neither a time, such as 2026-01-31T12:00:00Z, nor how long ago, such as 15m"
        )),
    }
}
