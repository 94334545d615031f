//! The page's files, which are part of the program.

use std::collections::HashMap;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};

use crate::rpc::compressed::{PAGE, plain};
use crate::transport::http::{HttpAnswer, refusal};

const INDEX: &str = "index.html";
/// Files below it have a digest of their content in their names.
const HASHED: &str = "assets/";

struct PageFile {
    compressed: &'static [u8],
    etag: String,
}

pub(super) struct PageFiles(HashMap<&'static str, PageFile>);

impl Default for PageFiles {
    fn default() -> Self {
        let files = PAGE.iter().map(|&(name, compressed)| {
            let etag = format!("\"{}\"", &blake3::hash(compressed).to_hex()[..32]);
            (name, PageFile { compressed, etag })
        });
        Self(files.collect())
    }
}

impl PageFiles {
    /// The file of exactly this name; the index for none.
    pub(super) async fn answer(&self, name: &str, headers: &HeaderMap) -> HttpAnswer {
        let name = if name.is_empty() { INDEX } else { name };
        let Some(file) = self.0.get(name) else {
            return refusal(StatusCode::NOT_FOUND, "the page has no such file");
        };
        let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == file.etag.as_bytes());
        let kind = content_type(name);
        let takes_gzip = accepts_gzip(headers);
        let body = match (is_known, takes_gzip) {
            (true, _) => Bytes::new(),
            (false, true) => Bytes::from_static(file.compressed),
            (false, false) => file.plain().await,
        };
        let mut answer = Response::new(Full::new(body).boxed());
        if is_known {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(ETAG, file.etag.parse().expect("hexadecimal digits fit"));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if takes_gzip && !is_known {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let cache = if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        answer
    }
}

impl PageFile {
    async fn plain(&self) -> Bytes {
        let compressed = self.compressed;
        let body = tokio::task::spawn_blocking(move || Bytes::from(plain(compressed)));
        body.await.expect("decompressing does not panic")
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
