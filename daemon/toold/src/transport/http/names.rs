//! By which names clients may call this host, and from which web pages.
//!
//! A page that a person looks at can make its browser send requests here; what it cannot do is lie about its own
//! origin, or about the name that led it here.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

use super::is_same_origin;

pub(super) struct AllowedNames {
    /// Each with or without a port.
    pub(super) hosts: Vec<String>,
    /// Such as `http://localhost:*`.
    pub(super) origins: Vec<String>,
}

impl AllowedNames {
    /// # Errors
    /// Why not, for who called.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let host = only(headers, HOST).and_then(|host| host.parse::<Authority>().ok());
        if !host.is_some_and(|host| self.hosts.iter().any(|known| is_host(known, &host))) {
            return Err("unknown host name: add it to mcp.hosts");
        }
        // Who sends none is no browser.
        if !headers.contains_key(ORIGIN) || is_same_origin(headers) {
            return Ok(());
        }
        let origin = only(headers, ORIGIN).and_then(|origin| origin.parse::<Uri>().ok());
        match origin.is_some_and(|origin| self.origins.iter().any(|known| is_origin(known, &origin))) {
            true => Ok(()),
            false => Err("this origin is not allowed: add it to mcp.origins"),
        }
    }
}

/// A header that is there once.
pub(super) fn only(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first: &HeaderValue = all.next()?;
    if all.next().is_some() { None } else { first.to_str().ok() }
}

pub(super) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

pub(super) fn is_host(known: &str, host: &Authority) -> bool {
    let same = |name: &str| bare(name).eq_ignore_ascii_case(bare(host.host()));
    // An IPv6 address may be named without brackets, and has no port then.
    same(known)
        || known
            .parse::<Authority>()
            .is_ok_and(|known| same(known.host()) && known.port_u16().is_none_or(|port| host.port_u16() == Some(port)))
}

fn is_origin(known: &str, origin: &Uri) -> bool {
    let port = |uri: &Uri| {
        uri.port_u16().or(match uri.scheme_str() {
            Some("http") => Some(80),
            Some("https") => Some(443),
            Some(_) | None => None,
        })
    };
    let (name, any_port) = known.strip_suffix(":*").map_or((known, false), |name| (name, true));
    name.parse::<Uri>().is_ok_and(|known| {
        origin.scheme().is_some()
            && known.scheme() == origin.scheme()
            && known.host().zip(origin.host()).is_some_and(|(known, host)| known.eq_ignore_ascii_case(host))
            && (any_port || port(&known) == port(origin))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, expected: bool) {
        let names = AllowedNames {
            hosts: ["localhost", "::1", "tools.example:7345"].map(str::to_owned).into(),
            origins: ["https://app.example", "http://localhost:*"].map(str::to_owned).into(),
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        assert_eq!(names.check(&headers).is_ok(), expected, "{host} {origin:?}");
    }

    #[test]
    fn hosts_are_those_that_are_named() {
        check("localhost", None, true);
        check("LOCALHOST:7345", None, true);
        check("[::1]:7345", None, true);
        check("tools.example:7345", None, true);
        check("tools.example", None, false);
        check("tools.example:1", None, false);
        check("evil.example", None, false);
        check("localhost.evil.example", None, false);
    }

    #[test]
    fn origins_are_those_that_are_named_and_our_own() {
        check("localhost:7345", Some("https://app.example"), true);
        check("localhost:7345", Some("https://app.example:443"), true);
        check("localhost:7345", Some("https://app.example:444"), false);
        check("localhost:7345", Some("http://app.example"), false);
        check("localhost:7345", Some("http://localhost:1"), true);
        check("localhost:7345", Some("http://localhost:7345"), true);
        check("[::1]:1", Some("http://[::1]:1"), true);
        check("localhost", Some("null"), false);
        check("localhost", Some("http://evil.example"), false);
    }

    #[test]
    fn two_hosts_are_none() {
        let names = AllowedNames { hosts: vec!["a".into(), "b".into()], origins: Vec::new() };
        let mut headers = HeaderMap::new();
        assert!(names.check(&headers).is_err());
        headers.append(HOST, "a".parse().unwrap());
        assert!(names.check(&headers).is_ok());
        headers.append(HOST, "b".parse().unwrap());
        assert!(names.check(&headers).is_err());
    }
}
