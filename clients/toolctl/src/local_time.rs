//! Times of the daemon, which are in UTC, in the user's time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::output::one_line;

/// UTC if the user wants it, else the time zone of `TZ`, else of the system.
pub(crate) fn zone(utc: bool) -> TimeZone {
    if utc { TimeZone::UTC } else { TimeZone::system() }
}

/// Date and time to the second, of an RFC 3339 time. A text that is no such time stays as it is.
pub(crate) fn local_time(at: &str, zone: &TimeZone) -> String {
    match at.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => one_line(at),
    }
}

/// As [`local_time`], without the date.
pub(crate) fn local_clock(at: &str, zone: &TimeZone) -> String {
    let time = local_time(at, zone);
    time.get(11..19).map(str::to_owned).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_zone_of_the_user() {
        let tokyo = TimeZone::fixed(jiff::tz::offset(9));
        assert_eq!(local_time("2026-01-02T20:04:05.678Z", &tokyo), "2026-01-03 05:04:05");
        assert_eq!(local_clock("2026-01-02T20:04:05Z", &tokyo), "05:04:05");
        assert_eq!(local_time("not\u{1b}[2J a time", &tokyo), "not\\u{1b}[2J a time");
    }
}
