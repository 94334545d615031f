//! Times for people: in the local zone, or in UTC with `--utc`. JSON keeps the daemon's times, RFC 3339 in UTC.

use chrono::{DateTime, FixedOffset, Local, TimeZone, Utc};

use crate::output::{self, one_line};

/// The time zone in which times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    Utc,
    /// That of `TZ`, else of this computer.
    Local,
}

/// Date and time to the second, with a `Z` in UTC: `2026-01-31 12:00:00Z`.
pub(crate) fn date_and_time(at: &str) -> String {
    date_and_time_in(at, zone())
}

/// [`date_and_time`] in another zone.
pub(crate) fn date_and_time_in(at: &str, zone: Zone) -> String {
    shown(at, "%Y-%m-%d %H:%M:%S", zone)
}

/// `12:00:00`, with a `Z` in UTC.
pub(crate) fn time_of_day(at: &str) -> String {
    time_of_day_in(at, zone())
}

/// [`time_of_day`] in another zone.
pub(crate) fn time_of_day_in(at: &str, zone: Zone) -> String {
    shown(at, "%H:%M:%S", zone)
}

/// `2026-01-31`.
pub(crate) fn date(at: &str) -> String {
    let date = shown(at, "%Y-%m-%d", zone());
    date.trim_end_matches('Z').to_owned()
}

/// UTC with `--utc`, else the zone of `TZ`, else of this computer.
pub(crate) fn zone() -> Zone {
    // Unit tests have the same output in every zone.
    if output::presentation().utc || cfg!(test) { Zone::Utc } else { Zone::Local }
}

/// A text that is no time is shown as it is: another version of the daemon may have written it.
fn shown(at: &str, format: &str, zone: Zone) -> String {
    let Ok(time) = DateTime::parse_from_rfc3339(at) else { return one_line(at) };
    match zone {
        Zone::Utc => in_zone(time, format, &Utc),
        Zone::Local => in_zone(time, format, &Local),
    }
}

fn in_zone<Z: TimeZone>(time: DateTime<FixedOffset>, format: &str, zone: &Z) -> String {
    let time = time.with_timezone(zone).fixed_offset();
    let is_utc = time.offset().local_minus_utc() == 0;
    format!("{}{}", time.format(format), if is_utc { "Z" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_their_zone() {
        let at = "2026-01-31T23:30:05.678Z";
        let format = "%Y-%m-%d %H:%M:%S";
        assert_eq!(shown(at, format, Zone::Utc), "2026-01-31 23:30:05Z");
        assert_eq!(shown("soon\u{1b}", format, Zone::Utc), "soon\\u{1b}");
        let time = DateTime::parse_from_rfc3339(at).unwrap();
        let hours = |hours: i32| FixedOffset::east_opt(hours * 3600).unwrap();
        assert_eq!(in_zone(time, format, &hours(1)), "2026-02-01 00:30:05");
        assert_eq!(in_zone(time, "%H:%M:%S", &hours(-5)), "18:30:05");
    }
}
