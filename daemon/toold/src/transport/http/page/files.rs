//! The page's files, which are part of the program.

use std::collections::HashMap;
use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;

use crate::transport::http::{HttpAnswer, refusal};

const INDEX: &str = "index.html";
/// Files below it have a digest of their content in their names.
const HASHED: &str = "assets/";

/// Names and contents, sorted by name.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

struct PageFile {
    data: &'static [u8],
    etag: String,
    /// Compressed when it is asked for the first time.
    compressed: Mutex<Option<Bytes>>,
}

pub(super) struct PageFiles(HashMap<&'static str, PageFile>);

impl Default for PageFiles {
    fn default() -> Self {
        let files = FILES.iter().map(|&(name, data)| {
            let etag = format!("\"{}\"", &blake3::hash(data).to_hex()[..32]);
            (name, PageFile { data, etag, compressed: Mutex::default() })
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
        let compress = is_text(kind) && accepts_gzip(headers);
        let body = match (is_known, compress) {
            (true, _) => Bytes::new(),
            (false, false) => Bytes::from_static(file.data),
            (false, true) => file.compressed().await,
        };
        let mut answer = Response::new(Full::new(body).boxed());
        if is_known {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(ETAG, file.etag.parse().expect("hexadecimal digits fit"));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if compress && !is_known {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let cache = if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        answer
    }
}

impl PageFile {
    async fn compressed(&self) -> Bytes {
        if let Some(body) = &*self.compressed.lock() {
            return body.clone();
        }
        let data = self.data;
        let body = tokio::task::spawn_blocking(move || gzip(data)).await.expect("compressing does not panic");
        self.compressed.lock().insert(body).clone()
    }
}

fn gzip(data: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(data).and_then(|()| encoder.finish());
    Bytes::from(written.expect("memory takes all that is written"))
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

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/") || kind.contains("json") || kind.contains("svg")
}
