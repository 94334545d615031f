//! Numbers on the command line, with errors that say what is expected.

use std::str::FromStr;
use std::time::Duration;

/// A whole number from 0.
pub(crate) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number, such as 10".to_owned())
}

/// A whole number from 1.
pub(crate) fn at_least_1(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "expected a whole number from 1, such as 10".to_owned())
}

/// A number of a port; 0 is a free one.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "expected the number of a port, from 0 to 65535".to_owned())
}

/// A time in seconds: a whole number of them, or a duration such as `1h`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let given = text.parse().ok().or_else(|| Some(humantime::parse_duration(text).ok()?.as_secs()));
    given.ok_or_else(|| "expected a time, such as 30m or 1h, or a whole number of seconds".to_owned())
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "expected a duration, such as 30s or 10m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_or_explained() {
        assert_eq!((whole("7"), at_least_1("7"), port("0")), (Ok(7_usize), Ok(7), Ok(0)));
        assert!(whole::<u64>("-1").unwrap_err().contains("whole number") && at_least_1("0").is_err());
        assert_eq!((seconds("90"), seconds("2m"), seconds("1h 1s")), (Ok(90), Ok(120), Ok(3601)));
        assert!(seconds("soon").unwrap_err().contains("1h") && seconds("-1").is_err());
        assert!(duration("10m").is_ok() && duration("soon").unwrap_err().contains("such as"));
        assert!(port("65536").unwrap_err().contains("65535"));
    }
}
