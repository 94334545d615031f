//! A request, valid once it is made.

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method};
use url::Url;

use super::{HttpError, target};

/// The destination and content of a request.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    pub(super) may_be_kept: bool,
}

/// Headers that belong to the connection, or that would direct a request to another host than the approved one.
const OURS: [HeaderName; 8] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHORIZATION,
];

/// Headers that another host may see, too. All others may be secrets of the first host.
const PLAIN: [HeaderName; 5] =
    [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT, header::CONTENT_TYPE, header::RANGE];

/// Headers that describe a body.
const OF_BODY: [HeaderName; 3] = [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_LANGUAGE];

impl HttpRequest {
    pub fn get(url: &str) -> Result<Self, HttpError> {
        Self::new("GET", url, &[], None)
    }

    /// `method` is in upper case, as in HTTP; headers may repeat.
    ///
    /// # Errors
    /// A URL that may not be requested (see [`target::parse`]), an invalid method or header, or a header that callers
    /// may not set, such as `Host`.
    pub fn new(
        method: &str,
        url: &str,
        headers: &[(String, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Self, HttpError> {
        let bad = HttpError::BadRequest;
        let url = target::parse(url)?;
        let method = match Method::from_bytes(method.as_bytes()) {
            Ok(Method::CONNECT) | Err(_) => return Err(bad(format!("{method:?} is not a request method"))),
            Ok(method) => method,
        };
        let mut map = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let parsed: HeaderName = name.parse().map_err(|_| bad(format!("{name:?} is not a header name")))?;
            if OURS.contains(&parsed) {
                return Err(bad(format!("the header {parsed} cannot be set by callers")));
            }
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| bad(format!("the header {parsed} holds a line break or another control character")))?;
            map.append(parsed, value);
        }
        Ok(Self { method, url, headers: map, body: body.map(Bytes::from), may_be_kept: false })
    }

    /// The host and the port that it is sent to, as permissions name them.
    pub fn host_port(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        format!("{}:{}", host.trim_end_matches('.'), self.url.port_or_known_default().unwrap_or_default())
    }

    /// With one header more, or another value of it. A redirect to another host does not carry it on.
    ///
    /// # Errors
    /// As [`HttpRequest::new`].
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, HttpError> {
        let bad = HttpError::BadRequest;
        let parsed: HeaderName = name.parse().map_err(|_| bad(format!("{name:?} is not a header name")))?;
        if OURS.contains(&parsed) || PLAIN.contains(&parsed) {
            return Err(bad(format!("the header {parsed} cannot carry a secret")));
        }
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            bad(format!("the value of the header {parsed} holds a line break or another control character"))
        })?;
        value.set_sensitive(true);
        self.headers.insert(parsed, value);
        Ok(self)
    }

    /// Allows using a cached response and caching the new one, by the rules of HTTP. Only for `GET`.
    pub fn from_cache(mut self) -> Self {
        self.may_be_kept = self.method == Method::GET && self.body.is_none();
        self
    }

    /// The request to send for a redirect with this status.
    pub(super) fn redirected(&self, status: u16, url: Url) -> Self {
        let mut next = Self { url, ..self.clone() };
        let becomes_get = match status {
            303 => self.method != Method::HEAD,
            301 | 302 => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            next.method = Method::GET;
            next.body = None;
            for name in &OF_BODY {
                next.headers.remove(name);
            }
        }
        if next.url.origin() != self.url.origin() {
            let names: Vec<HeaderName> = next.headers.keys().filter(|name| !PLAIN.contains(name)).cloned().collect();
            for name in &names {
                next.headers.remove(name);
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, headers: &[(&str, &str)]) -> Result<HttpRequest, HttpError> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        HttpRequest::new(method, "https://a.example/x", &headers, Some(b"body".to_vec()))
    }

    #[test]
    fn headers_of_the_connection_are_not_for_callers() {
        for name in ["Host", "content-length", "Transfer-Encoding", "connection"] {
            assert!(request("GET", &[(name, "x")]).is_err(), "{name}");
        }
        assert!(request("GET", &[("x-a", "1\r\nHost: b.example")]).is_err());
        assert!(request("GET", &[("x a", "1")]).is_err());
        assert!(request("CONNECT", &[]).is_err());
        assert!(request("GET /other", &[]).is_err());
        assert!(request("PURGE", &[("X-Grün", "ü")]).is_err());
        assert!(request("PURGE", &[("X-A", "ü")]).is_ok());
    }

    #[track_caller]
    fn check(status: u16, method: &str, to: &str, expected: (&str, bool, &[&str])) {
        let headers =
            [("authorization", "secret"), ("x-api-key", "secret"), ("accept", "a/b"), ("content-type", "c/d")];
        let next = request(method, &headers).unwrap().redirected(status, to.parse().unwrap());
        let mut names: Vec<&str> = next.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!((next.method.as_str(), next.body.is_some(), names.as_slice()), expected);
    }

    #[test]
    fn redirect_keeps_the_right_headers() {
        let all = ["accept", "authorization", "content-type", "x-api-key"].as_slice();
        check(307, "POST", "https://a.example/y", ("POST", true, all));
        check(308, "PUT", "https://a.example/y", ("PUT", true, all));
        check(302, "PUT", "https://a.example/y", ("PUT", true, all));
        check(303, "HEAD", "https://a.example/y", ("HEAD", true, all));
        check(302, "POST", "https://a.example/y", ("GET", false, &["accept", "authorization", "x-api-key"]));
        check(303, "DELETE", "https://b.example/y", ("GET", false, &["accept"]));
        check(307, "POST", "https://b.example/y", ("POST", true, &["accept", "content-type"]));
        check(307, "POST", "https://a.example:444/y", ("POST", true, &["accept", "content-type"]));
        check(307, "POST", "http://a.example/y", ("POST", true, &["accept", "content-type"]));
    }
}
