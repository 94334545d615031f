//! By which names browsers may call the page, and from which other pages.
//!
//! Unlike clients with a token, a browser sends its cookie by itself. So a request that changes something, or opens a
//! connection, has to show that the page itself made it.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName};

use crate::transport::http::names::{bare, is_host, only};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The name by which a browser reached the page, in lower case and without a port, as browsers keep cookies. It must be
/// this machine's by a name that no other site can point here, or one of `page.hosts`.
///
/// # Errors
/// It is not, for the person at the browser.
pub(super) fn find_host(headers: &HeaderMap, hosts: &[String], local: IpAddr) -> Result<String, &'static str> {
    let host = only(headers, HOST).and_then(|host| host.parse::<Authority>().ok());
    let host = host.ok_or("the header Host is missing, or is not one name")?;
    let name = bare(host.host()).to_ascii_lowercase();
    let is_machine = ["localhost", "127.0.0.1", "::1"].contains(&name.as_str())
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == local.to_canonical());
    match is_machine || hosts.iter().any(|known| is_host(known, &host)) {
        true => Ok(name),
        false => Err("unknown host name: add it to page.hosts"),
    }
}

/// The request comes from the page itself, which this listener serves with TLS or without.
///
/// # Errors
/// Why not.
pub(super) fn check_own(headers: &HeaderMap, tls: bool) -> Result<(), &'static str> {
    let (origin, host) = (only(headers, ORIGIN), only(headers, HOST));
    // Behind a proxy with TLS, the origin has another scheme than this listener, and the proxy's name. With TLS here, one
    // without TLS is a page that somebody on the way may have made.
    let of_origin = origin.and_then(|origin| {
        let plain = origin.strip_prefix("http://").filter(|_| !tls);
        plain.or_else(|| origin.strip_prefix("https://"))
    });
    match (of_origin, host) {
        (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host) => check_site(headers),
        (None, _) if !headers.contains_key(ORIGIN) => Err("the origin is missing: only the page itself may do this"),
        (_, _) => Err("this request comes from another origin: only the page itself may do this"),
    }
}

/// If the browser says from which site the request comes, it is the page's.
///
/// # Errors
/// It is another one.
pub(super) fn check_site(headers: &HeaderMap) -> Result<(), &'static str> {
    match headers.get(SITE).is_none_or(|site| site == "same-origin") {
        true => Ok(()),
        false => Err("this comes from another site: only the page itself may do this"),
    }
}

/// Other sites may link to the page, and not load its files.
///
/// # Errors
/// The request is one of another site, and no link.
pub(super) fn check_navigation(headers: &HeaderMap) -> Result<(), &'static str> {
    let is_own = headers.get(SITE).is_none_or(|site| site == "same-origin" || site == "none");
    match is_own || headers.get(MODE).is_some_and(|mode| mode == "navigate") {
        true => Ok(()),
        false => Err("this comes from another site: it may link to the page, and not load its files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_host(host: &str, expected: Option<&str>) {
        let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
        let hosts = ["page.example".to_owned(), "proxy.example:8443".to_owned()];
        let found = find_host(&headers, &hosts, IpAddr::from([192, 168, 1, 5])).ok();
        assert_eq!(found.as_deref(), expected, "{host}");
    }

    #[test]
    fn hosts_are_this_machine_and_those_that_are_named() {
        check_host("LOCALHOST:1", Some("localhost"));
        check_host("[::1]:1", Some("::1"));
        check_host("192.168.1.5:8443", Some("192.168.1.5"));
        check_host("Page.Example:9", Some("page.example"));
        check_host("proxy.example:8443", Some("proxy.example"));
        for other in
            ["proxy.example", "192.168.1.6", "evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "a b"]
        {
            check_host(other, None);
        }
    }
}
