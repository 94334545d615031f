//! Filters results by their domains.

use anyhow::ensure;
use url::Url;

/// The domains to include (all if empty) and to exclude.
pub(crate) struct Domains {
    allowed: Vec<String>,
    blocked: Vec<String>,
}

/// With more domains than this, the query names none: services truncate long queries.
const MAX_OPERATORS: usize = 5;

impl Domains {
    /// # Errors
    /// An entry that is not a domain, such as a URL.
    pub(crate) fn parse(allowed: &[String], blocked: &[String]) -> anyhow::Result<Self> {
        let read = |domains: &[String]| domains.iter().map(|domain| read(domain)).collect::<anyhow::Result<_>>();
        Ok(Self { allowed: read(allowed)?, blocked: read(blocked)? })
    }

    /// Whether a result with this URL is included. Domains are compared by label: `rust-lang.org` is not below
    /// `lang.org`.
    pub(crate) fn admit(&self, url: &str) -> bool {
        let Some(host) = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase)) else {
            return false;
        };
        let host = host.trim_end_matches('.');
        let below = |domain: &String| {
            host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        (self.allowed.is_empty() || self.allowed.iter().any(below)) && !self.blocked.iter().any(below)
    }

    /// The query with `site:` operators, so that the service searches the right domains. A service may ignore them;
    /// [`Domains::admit`] decides.
    pub(crate) fn with_operators(&self, query: &str) -> String {
        match self.allowed.as_slice() {
            [] => query.to_owned(),
            [one] => format!("{query} site:{one}"),
            some if some.len() <= MAX_OPERATORS => {
                let sites: Vec<String> = some.iter().map(|domain| format!("site:{domain}")).collect();
                format!("{query} ({})", sites.join(" OR "))
            }
            _ => query.to_owned(),
        }
    }
}

fn read(text: &str) -> anyhow::Result<String> {
    let domain = text.trim().trim_start_matches("*.").trim_matches('.').to_lowercase();
    let host = Url::parse(&format!("http://{domain}/")).ok().filter(|url| {
        let plain = !domain.contains(['/', '?', '#', '@', ':', '\\']) && !domain.contains(char::is_whitespace);
        plain && url.port().is_none()
    });
    let host = host.and_then(|url| url.host_str().map(str::to_owned));
    ensure!(host.is_some(), "{text:?} is not a domain: expected a name such as docs.rs");
    Ok(host.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(allowed: &[&str], blocked: &[&str]) -> anyhow::Result<Domains> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Domains::parse(&owned(allowed), &owned(blocked))
    }

    #[track_caller]
    fn check(allowed: &[&str], blocked: &[&str], url: &str, admitted: bool) {
        assert_eq!(domains(allowed, blocked).unwrap().admit(url), admitted, "{url}");
    }

    #[test]
    fn domains_match_by_label() {
        check(&[], &[], "https://a.example/", true);
        check(&["rust-lang.org"], &[], "https://doc.rust-lang.org/std/", true);
        check(&["rust-lang.org"], &[], "https://RUST-LANG.org./", true);
        check(&["lang.org"], &[], "https://rust-lang.org/", false);
        check(&["rust-lang.org"], &[], "https://rust-lang.org.evil.test/", false);
        check(&["rust-lang.org"], &[], "https://evil.test/?rust-lang.org", false);
        check(&["*.Example.COM", ".other.test"], &[], "https://www.example.com/", true);
        check(&["grün.example"], &[], "https://xn--grn-ioa.example/", true);
        check(&["example.com"], &["ads.example.com"], "https://x.ads.example.com/", false);
        check(&[], &["example.com"], "https://example.com:8080/", false);
        check(&[], &[], "no url", false);
    }

    #[test]
    fn invalid_domain_is_reported() {
        for bad in ["", "*.", "https://a.example", "a.example/path", "a example", "a:80", "u@a.example"] {
            assert!(domains(&[bad], &[]).is_err(), "{bad}");
        }
    }

    #[test]
    fn query_names_the_wanted_domains() {
        assert_eq!(domains(&[], &["b.test"]).unwrap().with_operators("x"), "x");
        assert_eq!(domains(&["a.test"], &[]).unwrap().with_operators("x"), "x site:a.test");
        assert_eq!(domains(&["a.test", "b.test"], &[]).unwrap().with_operators("x"), "x (site:a.test OR site:b.test)");
        assert_eq!(domains(&["a.test"; 6], &[]).unwrap().with_operators("x"), "x");
    }
}
