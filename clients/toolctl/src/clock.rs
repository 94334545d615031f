//! Times for people: in the local zone, or in UTC with `--utc`. JSON keeps the daemon's times, RFC 3339 in UTC.

use chrono::{DateTime, FixedOffset, Local, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeZone, Utc};

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

/// The text with each time of the daemon in it, such as `2026-01-31T12:00:00.000Z`, as [`date_and_time`].
pub(crate) fn with_times(text: &str) -> String {
    let word = |word: &str| {
        let end = word.trim_end_matches([',', ';', '.', ':', ')']);
        let is_time = DateTime::parse_from_rfc3339(end).is_ok();
        if is_time { format!("{}{}", date_and_time(end), &word[end.len()..]) } else { word.to_owned() }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The moment that a person's text means, for the daemon: a time as tables print it, in their zone, a date, or a time of the last
/// 24 hours. Other texts, such as how long ago, stay as they are.
pub(crate) fn moment(text: &str) -> String {
    moment_in(text, zone(), Utc::now())
}

fn moment_in(text: &str, zone: Zone, now: DateTime<Utc>) -> String {
    let in_words = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return in_words(at.with_timezone(&Utc));
    }
    match (text.strip_suffix('Z'), zone) {
        (Some(bare), _) => moment_of(bare, &Utc, now),
        (None, Zone::Utc) => moment_of(text, &Utc, now),
        (None, Zone::Local) => moment_of(text, &Local, now),
    }
    .map_or_else(|| text.to_owned(), in_words)
}

fn moment_of<Z: TimeZone>(text: &str, zone: &Z, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let at = |time: NaiveDateTime| Some(zone.from_local_datetime(&time).earliest()?.with_timezone(&Utc));
    for format in ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, format) {
            return at(time);
        }
    }
    if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return at(date.and_time(NaiveTime::MIN));
    }
    let time = ["%H:%M:%S", "%H:%M"].iter().find_map(|format| NaiveTime::parse_from_str(text, format).ok())?;
    let today = now.with_timezone(zone).date_naive();
    let past = |date: NaiveDate| at(date.and_time(time)).filter(|at| *at <= now);
    past(today).or_else(|| past(today.pred_opt()?))
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
    fn times_that_people_type_are_of_their_zone() {
        let now = DateTime::parse_from_rfc3339("2026-01-31T12:00:00Z").unwrap().with_timezone(&Utc);
        for (text, moment) in [
            ("2026-01-31T10:00:00+02:00", "2026-01-31T08:00:00.000Z"),
            ("2026-01-30 23:30:05", "2026-01-30T23:30:05.000Z"),
            ("2026-01-30 23:30:05Z", "2026-01-30T23:30:05.000Z"),
            ("2026-01-30 23:30", "2026-01-30T23:30:00.000Z"),
            ("2026-01-30", "2026-01-30T00:00:00.000Z"),
            ("11:30", "2026-01-31T11:30:00.000Z"),
            ("17:00", "2026-01-30T17:00:00.000Z"),
            ("7d", "7d"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(moment_in(text, Zone::Utc, now), moment);
        }
        let tokyo = FixedOffset::east_opt(9 * 3600).unwrap();
        let at = moment_of("2026-01-31 08:30:05", &tokyo, now).unwrap();
        assert_eq!(in_zone(at.fixed_offset(), "%Y-%m-%d %H:%M:%S", &tokyo), "2026-01-31 08:30:05");
        assert_eq!(moment_of("20:00", &tokyo, now).unwrap().to_rfc3339(), "2026-01-31T11:00:00+00:00");
        assert_eq!(with_times("at 2026-01-31T11:00:00.123Z: by me"), "at 2026-01-31 11:00:00Z: by me");
    }

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
