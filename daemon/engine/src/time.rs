//! Times as the wire writes them.

use std::time::{Duration, SystemTime};

/// The last second of the year 9999 since 1970: RFC 3339 has no later one.
const LAST_SECOND: u64 = 253_402_300_799;

/// RFC 3339 in UTC, with milliseconds. Times beyond the year 9999 become its last second.
pub fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at.min(last())).to_string()
}

/// The moment so many seconds after another one; the last second of the year 9999 at the latest.
pub fn after(from: SystemTime, seconds: u64) -> SystemTime {
    from.checked_add(Duration::from_secs(seconds)).map_or_else(last, |at| at.min(last()))
}

fn last() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(LAST_SECOND)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_beyond_the_year_9999_is_the_last_one() {
        let now = SystemTime::now();
        for seconds in [LAST_SECOND, u64::MAX / 2, u64::MAX] {
            assert_eq!(rfc3339(after(now, seconds)), "9999-12-31T23:59:59.000Z");
        }
        assert_eq!(after(now, 1), now + Duration::from_secs(1));
        assert_eq!(rfc3339(now + Duration::from_secs(LAST_SECOND)), "9999-12-31T23:59:59.000Z");
    }
}
