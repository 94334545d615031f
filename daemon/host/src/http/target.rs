//! The host and port of a URL, determined before any ask and any name resolution.

use std::net::IpAddr;

use toold_engine::need::Need;
use toold_proto::tool::Category;
use url::{Host, ParseError, Url};

use super::HttpError;
use super::guard::{GUARD, Guard, kind_of};

/// The most characters of a host name, with the final dot (RFC 1035, section 2.3.4, less the bytes of its wire form).
const MAX_HOST: usize = 254;

/// A host and a port to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    /// In lower case, without a trailing dot. An address is in its canonical form, IPv6 in brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Set if the host is an address.
    pub(crate) address: Option<IpAddr>,
}

/// Parses a URL that may be requested.
///
/// # Errors
/// Schemes other than `http` and `https`, user names and passwords, a host that is missing or longer than a host name can be.
pub fn parse(text: &str) -> Result<Url, HttpError> {
    let bad = |reason: String| HttpError::BadUrl { url: super::shown(text), reason };
    let text = text.trim();
    let url = match Url::parse(text) {
        Ok(url) if !has_port_for_path(&url) => url,
        Ok(_) | Err(ParseError::RelativeUrlWithoutBase) => {
            return Err(bad("begin it with http:// or https://".to_owned()));
        }
        Err(error) => return Err(bad(error.to_string())),
    };
    check(&url).map_err(bad)?;
    Ok(url)
}

/// Whether the scheme is a host name: the path of `localhost:3000/x` begins with a port.
fn has_port_for_path(url: &Url) -> bool {
    let port: &str = url.path().split('/').next().unwrap_or_default();
    url.cannot_be_a_base() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn check(url: &Url) -> Result<(), String> {
    match url.scheme() {
        "http" | "https" => {}
        other => return Err(format!("{other} is not allowed, only http and https are")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds a user name or a password".into());
    }
    match url.host_str() {
        None | Some("" | ".") => Err("it names no host".into()),
        Some(host) if host.len() > MAX_HOST => {
            Err(format!("its host has {} characters, and a host has at most {MAX_HOST}", host.len()))
        }
        Some(_) => Ok(()),
    }
}

impl HostPort {
    /// The target of a URL that was checked.
    pub(crate) fn of(url: &Url) -> Self {
        let (host, address) = match url.host() {
            Some(Host::Domain(name)) => (name.trim_end_matches('.').to_owned(), None),
            // The parser has converted all notations of an address, such as `0x7f.1` and `2130706433`, to this one.
            Some(Host::Ipv4(address)) => (address.to_string(), Some(IpAddr::V4(address))),
            Some(Host::Ipv6(address)) => match address.to_ipv4_mapped() {
                Some(inner) => (inner.to_string(), Some(IpAddr::V4(inner))),
                None => (format!("[{address}]"), Some(IpAddr::V6(address))),
            },
            None => (String::new(), None),
        };
        Self { host, port: url.port_or_known_default().unwrap_or_default(), address }
    }

    /// The permission that a request to this host and port needs.
    pub(super) fn need(&self, guard: &Guard, reason: String) -> Need {
        let mut need = Need::new(Category::Network, self.to_string()).because(reason);
        need.forbidden = self.forbidden(guard).map(|why| format!("{GUARD}: {why}"));
        need
    }

    /// Why no rule may allow it. Names can be checked only once they are resolved.
    pub(super) fn forbidden(&self, guard: &Guard) -> Option<String> {
        let address = self.address.filter(|address| !guard.admits(*address, &self.host, self.port))?;
        Some(format!("{address} {}, and [network] allow_private does not list it", kind_of(address)))
    }
}

impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_is_seen() {
        let spellings = "http://127.0.0.1 http://2130706433 http://0x7f000001 http://0x7f.1 http://127.1 http://0177.0.0.1 \
            http://017700000001 http://127.0.0.1. http://1２7.0.0.1 http://127。0。0。1 http://[::ffff:127.0.0.1] \
            http://[::ffff:7f00:1] http://%31%32%37.0.0.1 http:127.0.0.1 http:\\\\127.0.0.1 https://127.0.0.1:80";
        for url in spellings.split_whitespace() {
            let target = HostPort::of(&parse(url).unwrap());
            assert_eq!(target.to_string(), "127.0.0.1:80", "{url}");
            assert!(target.forbidden(&Guard::default()).is_some(), "{url}");
        }
        for url in
            ["http://0/", "http://[::1]", "http://[::]", "http://0x0", "http://[::127.0.0.1]", "http://[fe80::1]"]
        {
            let target = HostPort::of(&parse(url).unwrap());
            assert!(target.forbidden(&Guard::default()).is_some(), "{url}");
        }
    }

    #[test]
    fn hosts_are_written_in_one_way() {
        for (url, target) in [
            ("HTTPS://EXAMPLE.com/a", "example.com:443"),
            ("http://example.com.:8080/", "example.com:8080"),
            ("http://grün.example", "xn--grn-ioa.example:80"),
            ("http://[2606:4700:0:0::1]/", "[2606:4700::1]:80"),
        ] {
            assert_eq!(HostPort::of(&parse(url).unwrap()).to_string(), target);
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for bad in [
            "file:///etc/passwd",
            "ftp://example.com",
            "gopher://127.0.0.1:6379/_x",
            "data:text/plain,x",
            "javascript:alert(1)",
            "example.com",
            "/etc/passwd",
            "",
            "http://",
            "http://./",
            "http://user@example.com",
            "http://user:password@example.com",
            "http://:password@example.com",
            "http://[::1",
            "http://1.2.3.4.5",
            "http://256.1.1.1",
            "http://exa mple.com",
            "http://example.com:99999",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
