//! Times for people: in the local zone, or in UTC with `--utc`. JSON keeps the daemon's times, RFC 3339 in UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::output::{self, one_line};

/// Date and time to the second, with a `Z` in UTC: `2026-01-31 12:00:00Z`.
pub(crate) fn date_and_time(at: &str) -> String {
    date_and_time_in(at, &zone())
}

/// [`date_and_time`] in another zone.
pub(crate) fn date_and_time_in(at: &str, zone: &TimeZone) -> String {
    shown(at, "%Y-%m-%d %H:%M:%S", zone)
}

/// `12:00:00`, with a `Z` in UTC.
pub(crate) fn time_of_day(at: &str) -> String {
    time_of_day_in(at, &zone())
}

/// [`time_of_day`] in another zone.
pub(crate) fn time_of_day_in(at: &str, zone: &TimeZone) -> String {
    shown(at, "%H:%M:%S", zone)
}

/// `2026-01-31`.
pub(crate) fn date(at: &str) -> String {
    let date = shown(at, "%Y-%m-%d", &zone());
    date.trim_end_matches('Z').to_owned()
}

/// UTC with `--utc`, else the zone of `TZ`, else of this computer.
pub(crate) fn zone() -> TimeZone {
    // Unit tests have the same output in every zone.
    if output::presentation().utc || cfg!(test) { TimeZone::UTC } else { TimeZone::system() }
}

/// A text that is no time is shown as it is: another version of the daemon may have written it.
fn shown(at: &str, format: &str, zone: &TimeZone) -> String {
    let Ok(time) = at.parse::<Timestamp>() else { return one_line(at) };
    let time = time.to_zoned(zone.clone());
    let is_utc = time.offset().is_zero() && matches!(zone.iana_name(), None | Some("UTC" | "Etc/UTC"));
    format!("{}{}", time.strftime(format), if is_utc { "Z" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_their_zone() {
        let zone = |name: &str| TimeZone::posix(name).unwrap();
        let at = "2026-01-31T23:30:05.678Z";
        let format = "%Y-%m-%d %H:%M:%S";
        assert_eq!(shown(at, format, &TimeZone::UTC), "2026-01-31 23:30:05Z");
        assert_eq!(shown(at, format, &zone("CET-1")), "2026-02-01 00:30:05");
        assert_eq!(shown(at, "%H:%M:%S", &zone("EST5")), "18:30:05");
        assert_eq!(shown("soon\u{1b}", format, &TimeZone::UTC), "soon\\u{1b}");
    }
}
