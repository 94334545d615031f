//! Caches responses that may be reused, by the HTTP rules for shared caches.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_cache_semantics::{AfterResponse, BeforeRequest, CachePolicy};

use super::request::HttpRequest;

/// Limit of all bodies together; the oldest responses are evicted first.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Longer bodies are not cached.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// The approximate size of a response without its body.
const ENTRY_BYTES: usize = 2048;

/// Responses to requests that allow caching, in memory only.
#[derive(Default)]
pub(super) struct HttpCache {
    kept: Mutex<CachedResponses>,
}

#[derive(Default)]
struct CachedResponses {
    by_url: HashMap<String, Arc<CachedResponse>>,
    /// In order of arrival, oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

/// A response and its caching policy.
pub(super) struct CachedResponse {
    policy: CachePolicy,
    head: ResponseHead,
    pub(super) body: Bytes,
}

/// The status and headers of a response.
#[derive(Clone)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

/// The cache's result for a request.
pub(super) enum CacheLookup {
    Nothing,
    /// The response may be used as it is.
    Fresh(ResponseHead, Arc<CachedResponse>),
    /// The server must confirm, in reply to these headers, that the response is still valid.
    Stale(HeaderMap, Arc<CachedResponse>),
}

impl HttpCache {
    pub(super) fn find(&self, request: &HttpRequest) -> CacheLookup {
        let entry = self.kept.lock().by_url.get(request.url.as_str()).cloned();
        let (Some(entry), Some(parts)) = (entry, parts(request)) else { return CacheLookup::Nothing };
        match entry.policy.before_request(&parts, SystemTime::now()) {
            BeforeRequest::Fresh(head) => {
                CacheLookup::Fresh(ResponseHead { status: head.status, headers: head.headers }, entry)
            }
            BeforeRequest::Stale { request, matches: true } => CacheLookup::Stale(request.headers, entry),
            BeforeRequest::Stale { .. } => CacheLookup::Nothing,
        }
    }

    /// The head of a cached response that the server has just confirmed.
    pub(super) fn renew(&self, request: &HttpRequest, entry: &CachedResponse, said: &ResponseHead) -> ResponseHead {
        let Some(parts) = parts(request) else { return entry.head.clone() };
        match entry.policy.after_response(&parts, &response(said), SystemTime::now()) {
            AfterResponse::NotModified(policy, renewed) => {
                let head = ResponseHead { status: renewed.status, headers: renewed.headers };
                self.insert(
                    request.url.as_str(),
                    CachedResponse { policy, head: head.clone(), body: entry.body.clone() },
                );
                head
            }
            // The reply does not say which response it confirms, so it says nothing about how long this one is fresh.
            // But this response is the one that was asked about.
            AfterResponse::Modified(..) => entry.head.clone(),
        }
    }

    /// Stores a complete response, if it is cacheable.
    pub(super) fn keep(&self, request: &HttpRequest, head: &ResponseHead, body: Bytes) {
        let Some(parts) = parts(request).filter(|_| body.len() <= MAX_BODY) else { return };
        let policy = CachePolicy::new(&parts, &response(head));
        if policy.is_storable() {
            self.insert(request.url.as_str(), CachedResponse { policy, head: head.clone(), body });
        }
    }

    pub(super) fn clear(&self) {
        *self.kept.lock() = CachedResponses::default();
    }

    fn insert(&self, url: &str, entry: CachedResponse) {
        let mut kept = self.kept.lock();
        kept.remove(url);
        kept.bytes += entry.bytes(url);
        kept.by_url.insert(url.to_owned(), Arc::new(entry));
        kept.order.push_back(url.to_owned());
        while kept.bytes > MAX_BYTES
            && let Some(oldest) = kept.order.front().cloned()
        {
            kept.remove(&oldest);
        }
    }
}

impl CachedResponses {
    fn remove(&mut self, url: &str) {
        if let Some(entry) = self.by_url.remove(url) {
            self.bytes -= entry.bytes(url);
            self.order.retain(|known| known != url);
        }
    }
}

impl CachedResponse {
    fn bytes(&self, url: &str) -> usize {
        self.body.len() + 2 * url.len() + ENTRY_BYTES
    }
}

/// `None` for a URL that the library rejects; it is then requested each time.
fn parts(request: &HttpRequest) -> Option<Parts> {
    let mut whole = http::Request::builder().method(request.method.clone()).uri(request.url.as_str()).body(()).ok()?;
    *whole.headers_mut() = request.headers.clone();
    Some(whole.into_parts().0)
}

fn response(head: &ResponseHead) -> http::Response<()> {
    let mut response = http::Response::new(());
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers.clone();
    response
}
