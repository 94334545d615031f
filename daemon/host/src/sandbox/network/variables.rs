//! The variables by which programs learn of the guard, and wait as long as a person may take to answer.

use std::net::SocketAddr;
use std::time::Duration;

use crate::environment::Environment;

/// Both spellings: some programs read one, some the other, and curl reads `http_proxy` only in small letters.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The session's own servers are reached directly.
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// Time limits that would be over before a person has answered, in seconds.
const SECONDS: [&str; 6] = [
    "PIP_DEFAULT_TIMEOUT",
    "UV_HTTP_TIMEOUT",
    "UV_HTTP_CONNECT_TIMEOUT",
    "CARGO_HTTP_TIMEOUT",
    "POETRY_REQUESTS_TIMEOUT",
    "BUNDLE_TIMEOUT",
];
/// The same in milliseconds.
const MILLISECONDS: [&str; 2] = ["npm_config_fetch_timeout", "YARN_HTTP_TIMEOUT"];

/// Adds the variables. Time limits that are set already stay as they are; `wait` is the longest time of an ask.
pub(super) fn with_guard(environment: Environment, guard: SocketAddr, secret: &str, wait: Duration) -> Environment {
    let proxy = format!("http://toold:{secret}@{guard}");
    let wait = wait + Duration::from_secs(60);
    let seconds = SECONDS.iter().map(|name| (*name, wait.as_secs().to_string()));
    let millis = MILLISECONDS.iter().map(|name| (*name, wait.as_millis().to_string()));
    let limits: Vec<(&str, String)> =
        seconds.chain(millis).filter(|(name, _)| environment.get(name).is_none()).collect();
    environment
        .with(limits)
        .with(PROXIES.map(|name| (name, proxy.as_str())))
        .with([("NO_PROXY", DIRECT), ("no_proxy", DIRECT), ("NODE_USE_ENV_PROXY", "1")])
        // Yarn reads no others.
        .with([("YARN_HTTP_PROXY", proxy.as_str()), ("YARN_HTTPS_PROXY", proxy.as_str())])
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn programs_wait_longer_than_a_person_unless_they_are_told_otherwise() {
        let own = Environment::default().with([("PIP_DEFAULT_TIMEOUT", "5"), ("HTTP_PROXY", "http://other.example")]);
        let environment = with_guard(own, "127.0.0.2:1234".parse().unwrap(), "secret", Duration::from_secs(600));
        let get = |name: &str| environment.get(name).and_then(OsStr::to_str);
        assert_eq!(get("HTTP_PROXY"), Some("http://toold:secret@127.0.0.2:1234"));
        assert_eq!([get("PIP_DEFAULT_TIMEOUT"), get("CARGO_HTTP_TIMEOUT")], [Some("5"), Some("660")]);
        assert_eq!(get("npm_config_fetch_timeout"), Some("660000"));
    }
}
