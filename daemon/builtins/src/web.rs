//! The state that the web tools share. [`decode`] decodes bytes to text, [`page`] converts HTML for readers, and
//! [`search`] implements the search services.

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

/// The HTTP client and the search service of the web tools. The configuration may change at any time.
pub struct Web {
    pub http: Arc<Http>,
    searching: Mutex<Searching>,
}

/// The service of `web_search`.
#[derive(Clone)]
pub enum Searching {
    /// The configuration names no service.
    Unset,
    /// The configuration is invalid; the reason in words for people.
    Broken(String),
    Set(Arc<WebSearch>),
}

impl Default for Web {
    /// Public addresses only, and no search service.
    fn default() -> Self {
        Self { http: Arc::new(Http::new(Guard::default())), searching: Mutex::new(Searching::Unset) }
    }
}

impl Web {
    /// Takes effect with the next call.
    pub fn set_searching(&self, searching: Searching) {
        *self.searching.lock() = searching;
    }

    pub(crate) fn searching(&self) -> Searching {
        self.searching.lock().clone()
    }
}

/// The shortest interval between two progress messages about a body.
const EVERY: Duration = Duration::from_millis(500);

/// A call that makes a request and reports its progress.
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
