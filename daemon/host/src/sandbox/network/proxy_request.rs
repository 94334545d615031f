//! Reads the heads of requests to the proxy, and writes those that go on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::http::target::HostPort;
use crate::sandbox::network::hosts::target_of;

/// The end of a head.
pub(super) const END: &[u8] = b"\r\n\r\n";
/// The most lines of a head.
const MAX_LINES: usize = 200;

/// Headers of the connection to the proxy, which do not go on. `Host` is made again, from the target.
const OF_CONNECTION: [&str; 8] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
];

/// A request to the proxy.
#[derive(Debug)]
pub(super) struct ProxyRequest {
    pub(super) target: HostPort,
    /// From the credentials.
    pub(super) secret: Option<String>,
    /// The head for the host; `None` for a tunnel (`CONNECT`).
    pub(super) head: Option<Vec<u8>>,
}

impl ProxyRequest {
    /// Parses a whole head, with the empty line at its end.
    ///
    /// # Errors
    /// What is wrong with it, in words for people.
    pub(super) fn parse(head: &[u8]) -> Result<Self, String> {
        let (first, headers) = split(head)?;
        let text = std::str::from_utf8(first).map_err(|_| "the request line is not text")?;
        let words: Vec<&str> = text.split(' ').collect();
        let [method, uri, version @ ("HTTP/1.1" | "HTTP/1.0")] = words[..] else {
            return Err("this is a proxy for HTTP/1.1: expected a request line".to_owned());
        };
        if !is_token(method.as_bytes()) {
            return Err("the request has no method".to_owned());
        }
        let secret =
            headers.iter().find(|(name, _)| name == "proxy-authorization").and_then(|(_, value)| password(value));
        if method == "CONNECT" {
            return Ok(Self { target: target_of(uri)?, secret, head: None });
        }
        let (authority, path) = absolute(uri)?;
        let target = target_of(&authority)?;
        let head = head_for_host((method, &path, version), &host_header(&target), &headers);
        Ok(Self { target, secret, head: Some(head) })
    }
}

/// A header, its name in lower case.
type ParsedHeader = (String, Vec<u8>);

/// RFC 9110, section 5.6.2.
fn is_token(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_!#$%&'*+.^`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_part)
}

/// The first line and the headers.
fn split(head: &[u8]) -> Result<(&[u8], Vec<ParsedHeader>), String> {
    let head = head.strip_suffix(END).ok_or("the head has no end")?;
    let mut lines = Vec::new();
    let mut rest = head;
    while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
        lines.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    lines.push(rest);
    if lines.len() > MAX_LINES {
        return Err(format!("the head has more than {MAX_LINES} lines"));
    }
    // Lines that others would read as two, or as one with the line before.
    if lines.iter().any(|line| line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))) {
        return Err("the head has a control character".to_owned());
    }
    let header = |line: &&[u8]| -> Result<ParsedHeader, String> {
        let at = memchr::memchr(b':', line).ok_or("a header has no colon")?;
        let (name, value) = (&line[..at], line[at + 1..].trim_ascii());
        if !is_token(name) {
            return Err("a header has no name".to_owned());
        }
        Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec()))
    };
    let headers = lines[1..].iter().map(header).collect::<Result<_, _>>()?;
    Ok((lines[0], headers))
}

/// The password of Basic credentials.
fn password(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let (scheme, credentials) = text.split_once(' ')?;
    let decoded = STANDARD.decode(credentials.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let decoded = String::from_utf8(decoded).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}

/// The authority of a URL, with its port, and the rest of it as it was written.
fn absolute(uri: &str) -> Result<(String, String), String> {
    let scheme = uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let Some(rest) = scheme.and_then(|scheme| uri.get(scheme.len()..)) else {
        return Err(
            "this is the proxy of toold for the commands of a session: expected a URL that begins with http://, \
                    or CONNECT"
                .to_owned(),
        );
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    // Credentials for the host are in a header of their own.
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']') && !port.is_empty());
    let authority = if has_port { authority.to_owned() } else { format!("{}:80", authority.trim_end_matches(':')) };
    Ok((authority, path))
}

fn host_header(target: &HostPort) -> String {
    if target.port == 80 { target.host.clone() } else { target.to_string() }
}

fn head_for_host((method, path, version): (&str, &str, &str), host: &str, headers: &[ParsedHeader]) -> Vec<u8> {
    let mut head = format!("{method} {path} {version}\r\nHost: {host}\r\nConnection: close\r\n").into_bytes();
    write_headers(&mut head, headers);
    head
}

/// All but those of the connection, and those that it names.
fn write_headers(head: &mut Vec<u8>, headers: &[ParsedHeader]) {
    let of_connection = headers.iter().filter(|(name, _)| name == "connection");
    let named: Vec<String> = of_connection
        .flat_map(|(_, value)| {
            String::from_utf8_lossy(value).split(',').map(|name| name.trim().to_ascii_lowercase()).collect::<Vec<_>>()
        })
        .filter(|name| !matches!(name.as_str(), "content-length" | "transfer-encoding"))
        .collect();
    for (name, value) in
        headers.iter().filter(|(name, _)| !OF_CONNECTION.contains(&name.as_str()) && !named.contains(name))
    {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
}

/// The head of a response for the program: the connection ends with it, so that the next request, which may be for another
/// host, comes by a new one. Returns whether it is the last head: after one with a status below 200, another follows.
/// `None` if it cannot be read.
pub(super) fn head_of_response(head: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (first, headers) = split(head).ok()?;
    let status: u16 = std::str::from_utf8(first.get(9..12)?).ok()?.parse().ok()?;
    if !first.starts_with(b"HTTP/1.") {
        return None;
    }
    if (100..200).contains(&status) {
        // Nothing was asked for that could change the protocol.
        return (status != 101).then(|| (head.to_vec(), false));
    }
    let mut text = first.to_vec();
    text.extend_from_slice(b"\r\nConnection: close\r\n");
    write_headers(&mut text, &headers);
    Some((text, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ProxyRequest, String> {
        ProxyRequest::parse(text.as_bytes())
    }

    #[test]
    fn a_request_goes_on_to_the_host_of_its_url() {
        let request = parse(
            "GET http://a.example:8080/x?y=1#z HTTP/1.1\r\nHost: b.example\r\nProxy-Authorization: Basic dG9vbGQ6czE=\r\n\
             Connection: keep-alive, X-Own\r\nX-Own: 1\r\nAccept: */*\r\nAuthorization: Basic eA==\r\n\r\n",
        )
        .unwrap();
        assert_eq!((request.target.to_string(), request.secret.as_deref()), ("a.example:8080".to_owned(), Some("s1")));
        let head = String::from_utf8(request.head.unwrap()).unwrap();
        assert_eq!(
            head,
            "GET /x?y=1 HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\naccept: */*\r\nauthorization: Basic eA==\r\n\r\n"
        );
        for (uri, line, host) in [
            ("http://a.example", "GET / HTTP/1.1", "a.example"),
            ("HTTP://user:word@A.example?q", "GET /?q HTTP/1.1", "a.example"),
            ("http://[::1]/", "GET / HTTP/1.1", "[::1]"),
            ("http://a.example/../%2e/x", "GET /../%2e/x HTTP/1.1", "a.example"),
        ] {
            let head = parse(&format!("GET {uri} HTTP/1.1\r\n\r\n")).unwrap().head.unwrap();
            let head = String::from_utf8(head).unwrap();
            assert!(head.starts_with(&format!("{line}\r\nHost: {host}\r\n")), "{uri}: {head}");
        }
    }

    #[test]
    fn a_tunnel_names_a_host_and_a_port() {
        let request = parse("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n").unwrap();
        assert_eq!(
            (request.target.to_string(), request.head, request.secret),
            ("a.example:443".to_owned(), None, None)
        );
    }

    #[test]
    fn other_heads_are_refused() {
        for bad in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a.example/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.example/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "CONNECT a.example HTTP/1.1\r\n\r\n",
            "CONNECT a.example:443 HTTP/2\r\n\r\n",
            "CONNECT  a.example:443 HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\n X: folded\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nX : 1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nX: 1\nHost: b\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nno colon\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(ProxyRequest::parse(b"GET http://a.example/\0 HTTP/1.1\r\n\r\n").is_err());
        let many = "X: 1\r\n".repeat(MAX_LINES + 1);
        assert!(parse(&format!("GET http://a.example/ HTTP/1.1\r\n{many}\r\n")).is_err());
    }

    #[test]
    fn a_response_ends_the_connection() {
        let head =
            |text: &str| head_of_response(text.as_bytes()).map(|(head, last)| (String::from_utf8(head).unwrap(), last));
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nKeep-Alive: 5\r\nConnection: Keep-Alive\r\nContent-Length: 3\r\n\r\n"),
            Some(("HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 3\r\n\r\n".to_owned(), true))
        );
        let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        assert_eq!(head(go_on), Some((go_on.to_owned(), false)));
        assert_eq!(head("HTTP/1.1 101 Switching\r\n\r\n"), None);
        assert_eq!(head("SSH-2.0-x\r\n\r\n"), None);
    }
}
