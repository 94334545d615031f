//! Answers that may be used again, by the rules of HTTP for caches that several share.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_cache_semantics::{AfterResponse, BeforeRequest, CachePolicy};

use super::request::HttpRequest;

/// Of all bodies together; the oldest answers go first.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// A longer body is not kept.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// What an answer takes beside its body, about.
const ENTRY_BYTES: usize = 2048;

/// Answers to requests that allow it, in memory only.
#[derive(Default)]
pub(super) struct HttpCache {
    kept: Mutex<CachedResponses>,
}

#[derive(Default)]
struct CachedResponses {
    by_url: HashMap<String, Arc<CachedResponse>>,
    /// As they came, the oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

/// An answer, and when it may be given again.
pub(super) struct CachedResponse {
    policy: CachePolicy,
    head: ResponseHead,
    pub(super) body: Bytes,
}

/// The head of an answer.
#[derive(Clone)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

/// What there is for a request.
pub(super) enum CacheLookup {
    Nothing,
    /// May be given as it is.
    Fresh(ResponseHead, Arc<CachedResponse>),
    /// The server may say, in answer to these headers, that it is still good.
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

    /// The head of a kept answer, of which the server has just said that it is still good.
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
            // It does not say which answer it means, so nothing is learnt of how long this one is good. But what was
            // asked about is this one.
            AfterResponse::Modified(..) => entry.head.clone(),
        }
    }

    /// Keeps a whole answer, if it may be kept.
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

/// `None` for a URL that the library cannot take, which is then asked for each time.
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
