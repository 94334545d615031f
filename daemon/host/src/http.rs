//! Requests to the web on behalf of tools: guarded, bounded, and with permission for each host.
//!
//! [`guard`] decides which addresses may be reached, [`target`] extracts the host and port of a URL, [`resolve`]
//! resolves names to checked addresses; `client` holds the connections.

pub mod guard;
pub mod request;
pub mod resolve;
pub mod target;

mod cache;
mod client;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_proto::cut::cut_chars;
use url::Url;

use crate::http::cache::{CacheLookup, CachedResponse, HttpCache, ResponseHead};
use crate::http::client::Clients;
use crate::http::guard::Guard;
use crate::http::request::HttpRequest;
use crate::http::resolve::{AddressLookup, ResolveError, SystemLookup};
use crate::http::target::HostPort;

/// For connections that are not made for a tool: trusts the system's certificates. Blocks briefly.
///
/// # Errors
/// When this build cannot encrypt; the message is for people.
pub fn tls_config() -> Result<rustls::ClientConfig, String> {
    client::tls()
}

/// Makes requests. One per daemon: it keeps connections open for a while.
///
/// Connects only to public addresses and to those in the configuration. Uses no proxy and keeps no cookies. Decodes
/// `gzip` and `br`.
pub struct Http {
    clients: Arc<Clients>,
    cache: HttpCache,
}

/// The limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Time limit for everything, including redirects; waiting for a person's answer does not count.
    pub timeout: Duration,
    /// Size limit of the decompressed body, in bytes.
    pub max_bytes: usize,
    /// The most redirects to follow.
    pub redirects: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), max_bytes: 5 * 1024 * 1024, redirects: 10 }
    }
}

/// The caller for whom a request is made.
pub trait Requester: Send + Sync {
    /// Asks for permission to reach the need's target (`host:port`). Called before the first connection, and whenever a
    /// redirect leads to another host or port.
    fn require(&self, need: Need) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Reports how many bytes of the body have arrived, and the total if it is known.
    fn received(&self, _bytes: usize, _total: Option<u64>) {}
}

impl Requester for Cx {
    fn require(&self, need: Need) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.require(need))
    }
}

/// A response. Its status may be any except that of a redirect that was followed.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpResponse {
    /// The final URL, after redirects.
    pub url: String,
    pub status: u16,
    /// Names in lower case, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// Decoded from `gzip` and `br`; at most `max_bytes`.
    pub body: Vec<u8>,
    pub ending: BodyEnding,
    /// The URLs requested before `url`, in order.
    pub redirects: Vec<String>,
    /// The response came from the cache.
    pub from_cache: bool,
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnding {
    Whole,
    /// It is longer than `max_bytes`.
    TooLong,
    TimedOut,
    /// The call's token fired.
    Stopped,
    /// The connection broke, or the content does not match its header.
    Broken(String),
}

/// Why there is no response.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{url} cannot be requested: {reason}")]
    BadUrl { url: String, reason: String },
    #[error("the request cannot be made: {0}")]
    BadRequest(String),
    /// An address that is neither public nor in the configuration.
    #[error("refused: {0}")]
    Private(String),
    #[error("{url} redirects to what cannot be requested: {reason}")]
    BadRedirect { url: String, reason: String },
    #[error("{0}")]
    TooManyRedirects(String),
    /// A person or a rule denied it, or the call ended during the ask.
    #[error(transparent)]
    Leave(ToolError),
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The call's token fired.
    #[error("cancelled")]
    Stopped,
    #[error("{url}: {reason}")]
    Failed { url: String, reason: String },
}

impl From<HttpError> for ToolError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Leave(error) => error,
            HttpError::Stopped => Self::Cancelled,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl HttpResponse {
    /// The first header with this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The standard text of the status, such as `Not Found`.
    pub fn status_text(&self) -> Option<&'static str> {
        http::StatusCode::from_u16(self.status).ok()?.canonical_reason()
    }
}

impl Http {
    pub fn new(guard: Guard) -> Self {
        Self::with_lookup(guard, Arc::new(SystemLookup))
    }

    /// Uses another way to look up names.
    pub fn with_lookup(guard: Guard, lookup: Arc<dyn AddressLookup>) -> Self {
        let user_agent = concat!("toold/", env!("CARGO_PKG_VERSION")).to_owned();
        Self { clients: Arc::new(Clients::new(lookup, guard, user_agent)), cache: HttpCache::default() }
    }

    /// Sets what may be reached from now on. Running requests continue; no open connection is reused.
    pub fn set_guard(&self, guard: Guard) {
        self.clients.set_guard(guard);
        self.cache.clear();
    }

    /// The permission that the request needs, before its name is resolved. A redirect may need more: then
    /// [`Http::send`] asks.
    pub fn need(&self, request: &HttpRequest) -> Need {
        HostPort::of(&request.url).need(&self.clients.guard(), reason(request, None))
    }

    /// Sends the request, follows redirects, and reads the response. If the body is interrupted, the part that arrived
    /// is returned. Dropping the future ends everything at once; `stop` does so too, but returns the partial body.
    ///
    /// # Errors
    /// When there is no response at all. A response with any status is not an error.
    pub async fn send(
        &self,
        mut request: HttpRequest,
        limits: HttpLimits,
        requester: &dyn Requester,
        stop: &CancellationToken,
    ) -> Result<HttpResponse, HttpError> {
        let mut clock = RequestClock { left: limits.timeout, limit: limits.timeout, stop };
        let mut visited: Vec<String> = Vec::new();
        let mut asked: Option<HostPort> = None;
        loop {
            let target = HostPort::of(&request.url);
            let guard = self.clients.guard();
            if let Some(refused) = target.forbidden(&guard) {
                return Err(HttpError::Private(refused));
            }
            if asked.as_ref() != Some(&target) {
                let need = target.need(&guard, reason(&request, visited.last().map(String::as_str)));
                requester.require(need).await.map_err(HttpError::Leave)?;
            }
            let answer = self.exchange(&request, &target, &mut clock).await?;
            asked = Some(target);
            let url = request.url.to_string();
            let Some(next) = redirect(&request, answer.head())? else {
                let place = (url, visited);
                return Ok(self.finish(&request, answer, place, limits.max_bytes, requester, &mut clock).await);
            };
            if let ResponseSource::Live(head, _) = &answer {
                self.keep(&request, head, Bytes::new());
            }
            visited.push(url);
            if visited.len() > limits.redirects {
                let words = match limits.redirects {
                    0 => format!("it redirects to {}, which is not followed", next.url),
                    _ => format!("{} redirects, and no end: the last was to {}", visited.len(), next.url),
                };
                return Err(HttpError::TooManyRedirects(words));
            }
            if visited.iter().any(|seen| seen == next.url.as_str()) && next.method == request.method {
                return Err(HttpError::TooManyRedirects(format!("redirects go in a circle, back to {}", next.url)));
            }
            request = next;
        }
    }

    /// One request and the head of its response.
    async fn exchange(
        &self,
        request: &HttpRequest,
        target: &HostPort,
        clock: &mut RequestClock<'_>,
    ) -> Result<ResponseSource, HttpError> {
        let found = if request.may_be_kept { self.cache.find(request) } else { CacheLookup::Nothing };
        let (headers, stale) = match found {
            CacheLookup::Nothing => (request.headers.clone(), None),
            CacheLookup::Fresh(head, entry) => return Ok(ResponseSource::Kept(head, entry)),
            CacheLookup::Stale(headers, entry) => (headers, Some(entry)),
        };
        let failed = |reason: String| HttpError::Failed { url: shown(request.url.as_str()), reason };
        let client = self.clients.for_port(target.port).await.map_err(failed)?;
        let mut builder = client.request(request.method.clone(), request.url.clone()).headers(headers);
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        let answer = match clock.within(builder.send()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                return Err(match find::<ResolveError>(&error) {
                    Some(ResolveError::Private { .. }) => HttpError::Private(cause(&error)),
                    Some(ResolveError::Unknown { .. }) | None => failed(cause(&error)),
                });
            }
            Err(Cut::TimedOut) => return Err(HttpError::TimedOut(clock.limit)),
            Err(Cut::Stopped) => return Err(HttpError::Stopped),
        };
        let head = ResponseHead { status: answer.status(), headers: answer.headers().clone() };
        if let Some(entry) = stale.filter(|_| head.status == http::StatusCode::NOT_MODIFIED) {
            return Ok(ResponseSource::Kept(self.cache.renew(request, &entry, &head), entry));
        }
        Ok(ResponseSource::Live(head, answer))
    }

    async fn finish(
        &self,
        request: &HttpRequest,
        answer: ResponseSource,
        (url, redirects): (String, Vec<String>),
        max_bytes: usize,
        requester: &dyn Requester,
        clock: &mut RequestClock<'_>,
    ) -> HttpResponse {
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let from_cache = matches!(answer, ResponseSource::Kept(..));
        let (head, body, ending) = match answer {
            ResponseSource::Kept(head, entry) => {
                let kept = &entry.body[..entry.body.len().min(max_bytes)];
                let ending = if kept.len() < entry.body.len() { BodyEnding::TooLong } else { BodyEnding::Whole };
                (head, kept.to_vec(), ending)
            }
            ResponseSource::Live(head, answer) => {
                let (body, ending) = read(answer, max_bytes, requester, clock).await;
                if ending == BodyEnding::Whole {
                    self.keep(request, &head, Bytes::copy_from_slice(&body));
                }
                (head, body, ending)
            }
        };
        let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        HttpResponse { url, status: head.status.as_u16(), headers, body, ending, redirects, from_cache }
    }

    fn keep(&self, request: &HttpRequest, head: &ResponseHead, body: Bytes) {
        if request.may_be_kept {
            self.cache.keep(request, head, body);
        }
    }
}

/// The head of a response, and the source of its body.
enum ResponseSource {
    Live(ResponseHead, reqwest::Response),
    Kept(ResponseHead, Arc<CachedResponse>),
}

impl ResponseSource {
    fn head(&self) -> &ResponseHead {
        match self {
            Self::Live(head, _) | Self::Kept(head, _) => head,
        }
    }
}

/// The reason that the user sees in the ask.
fn reason(request: &HttpRequest, from: Option<&str>) -> String {
    let words = format!("{} {}", request.method, shown(request.url.as_str()));
    match from {
        Some(from) => format!("{words}, to which {} redirects", shown(from)),
        None => words,
    }
}

/// The next request; `None` if the response is not a redirect.
fn redirect(request: &HttpRequest, head: &ResponseHead) -> Result<Option<HttpRequest>, HttpError> {
    let status = head.status.as_u16();
    let location = head.headers.get(http::header::LOCATION);
    let (true, Some(location)) = (matches!(status, 301 | 302 | 303 | 307 | 308), location) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let bad = |reason: String| HttpError::BadRedirect {
        url: shown(request.url.as_str()),
        reason: format!("{}: {reason}", shown(&location)),
    };
    let mut url: Url = request.url.join(&location).map_err(|error| bad(error.to_string()))?;
    target::check(&url).map_err(bad)?;
    if url.fragment().is_none() {
        url.set_fragment(request.url.fragment());
    }
    Ok(Some(request.redirected(status, url)))
}

async fn read(
    mut answer: reqwest::Response,
    max_bytes: usize,
    requester: &dyn Requester,
    clock: &mut RequestClock<'_>,
) -> (Vec<u8>, BodyEnding) {
    let total = answer.content_length();
    let mut body = Vec::new();
    let ending = loop {
        let chunk: Bytes = match clock.within(answer.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break BodyEnding::Whole,
            Ok(Err(error)) => break BodyEnding::Broken(cause(&error)),
            Err(Cut::TimedOut) => break BodyEnding::TimedOut,
            Err(Cut::Stopped) => break BodyEnding::Stopped,
        };
        let room = max_bytes - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        requester.received(body.len(), total);
        if chunk.len() > room {
            break BodyEnding::TooLong;
        }
    };
    (body, ending)
}

/// The remaining time of a request, and the token that ends it.
struct RequestClock<'a> {
    left: Duration,
    limit: Duration,
    stop: &'a CancellationToken,
}

enum Cut {
    TimedOut,
    Stopped,
}

impl RequestClock<'_> {
    async fn within<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Cut> {
        let start = Instant::now();
        let output = tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Cut::Stopped),
            output = tokio::time::timeout(self.left, work) => output.map_err(|_| Cut::TimedOut),
        };
        self.left = self.left.saturating_sub(start.elapsed());
        output
    }
}

/// At most 300 characters of a URL, without its password.
fn shown(url: &str) -> String {
    let without = match (url.find("://"), url.find('@')) {
        (Some(scheme), Some(at)) if !url[scheme + 3..at.max(scheme + 3)].contains(['/', '?', '#']) => {
            format!("{}://...@{}", &url[..scheme], &url[at + 1..])
        }
        _ => url.to_owned(),
    };
    cut_chars(&without, 300, "...").into_owned()
}

/// The messages of an error and of its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// The cause of a failed request: the client's outermost error says only that it failed.
fn cause(error: &reqwest::Error) -> String {
    if let Some(resolving) = find::<ResolveError>(error) {
        return resolving.to_string();
    }
    if is_no_tls(error) {
        return "it does not answer with TLS: its address may begin with http:// instead of https://".to_owned();
    }
    let top = std::error::Error::source(error).unwrap_or(error);
    match top.source() {
        Some(below) if error.is_request() => chain(below),
        _ => chain(top),
    }
}

/// Whether the server's answer to the beginning of TLS was something else, such as HTTP.
fn is_no_tls(error: &reqwest::Error) -> bool {
    let mut causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.any(|cause| matches!(tls_error(cause), Some(rustls::Error::InvalidMessage(_))))
}

/// The error of TLS in an error. One of the system has others in it, and not as its cause.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    match error.downcast_ref::<std::io::Error>() {
        Some(system) => tls_error(system.get_ref()?),
        None => error.downcast_ref(),
    }
}

fn find<E: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    let mut causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.find_map(|error| error.downcast_ref::<E>())
}
