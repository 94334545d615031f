//! The state that the web tools share. From bytes to text is [`decode`], from HTML to what a reader
//! wants of it [`page`]; [`search`] knows the services that search.

pub mod search;

pub(crate) mod decode;
pub(crate) mod page;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::http::guard::Guard;
use toold_host::http::{Http, Requester};
use toold_proto::call::Progress;

use crate::web::search::WebSearch;

/// How the tools of the web reach and search it. What the configuration says may change at any time.
pub struct Web {
    pub http: Arc<Http>,
    searching: Mutex<Searching>,
}

/// What `web_search` searches with.
#[derive(Clone)]
pub enum Searching {
    /// The configuration names no service.
    Unset,
    /// The configuration cannot be followed, in words for people.
    Broken(String),
    Set(Arc<WebSearch>),
}

impl Default for Web {
    /// Public addresses only, and nothing to search with.
    fn default() -> Self {
        Self { http: Arc::new(Http::new(Guard::default())), searching: Mutex::new(Searching::Unset) }
    }
}

impl Web {
    /// From the next call on.
    pub fn set_searching(&self, searching: Searching) {
        *self.searching.lock() = searching;
    }

    pub(crate) fn searching(&self) -> Searching {
        self.searching.lock().clone()
    }
}

/// How often at most a caller hears how far a body has come.
const EVERY: Duration = Duration::from_millis(500);

/// A call that makes a request, and tells its caller how far it is.
pub(crate) struct Fetching<'a> {
    cx: &'a Cx,
    last: Mutex<Instant>,
}

impl<'a> Fetching<'a> {
    pub(crate) fn new(cx: &'a Cx) -> Self {
        Self { cx, last: Mutex::new(Instant::now()) }
    }
}

impl Requester for Fetching<'_> {
    fn require(&self, need: Need) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.cx.require(need))
    }

    fn received(&self, bytes: usize, total: Option<u64>) {
        let mut last = self.last.lock();
        if last.elapsed() < EVERY {
            return;
        }
        *last = Instant::now();
        self.cx.report(Progress::Update {
            progress: Some(bytes as f64),
            total: total.map(|total| total as f64),
            message: Some(format!("{bytes} bytes have come")),
            content: None,
            details: None,
        });
    }
}
