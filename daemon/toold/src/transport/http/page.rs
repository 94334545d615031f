//! The page for browsers, below `/page/`: its [`files`], and JSON-RPC on a WebSocket for those that are signed in.
//!
//! Files need no sign-in. A code of `page.open` buys a cookie, and the cookie opens the WebSocket, and nothing else.
//! [`origins`] keeps other web pages out.

mod files;
mod local_peer;
mod origins;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, LOCATION,
    ORIGIN, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, USER_AGENT, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rustls::ServerConfig;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{HttpAnswer, HttpConnection, HttpGate, not_allowed, refusal, websocket};
use crate::config::page::PageConfig;
use crate::lifecycle::notify::ButtonRefused;
use crate::peer::Peer;
use crate::peer::agent_processes::ProcessId;
use crate::peer::page_sign_ins::{CodeRefused, NewBrowser, PageBrowser};
use crate::peer::socket_holders::people_with;
use crate::rpc::Services;
use crate::transport::ClientServer;
use crate::transport::http::page::files::PageFiles;
use crate::transport::http::page::local_peer::OtherEnd;

/// Bytes of the body of a sign-in.
const MAX_LOGIN: usize = 1_024;
/// Bytes of the body of a button of a notification.
const MAX_BUTTON: usize = 128;
/// Characters of a browser's name for itself that are kept.
const MAX_BROWSER: usize = 200;
/// Looks for a connection's processes at one time. Each takes all of a core.
const MAX_LOOKS: usize = 2;
/// The page may load the daemon's own files and nothing else, and runs no inline script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'none'; \
                      frame-ancestors 'none'; base-uri 'none'";
const PERMISSIONS: &str = "camera=(), microphone=(), geolocation=(), display-capture=(), payment=(), usb=(), serial=(), \
                           midi=(), publickey-credentials-get=()";

/// A listener's part for browsers.
pub(super) struct PageSite {
    tls: Option<Arc<ServerConfig>>,
}

impl PageSite {
    pub(super) fn new(tls: Option<Arc<ServerConfig>>) -> Self {
        Self { tls }
    }

    pub(super) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }
}

/// Checks and answers the requests of browsers.
pub(super) struct PageGate {
    files: PageFiles,
    services: Arc<Services>,
    /// Cookies are sent to all ports of a host, so each daemon has a name of its own.
    cookie: String,
    tls: Option<Arc<ArcSwap<ServerConfig>>>,
    looks: Semaphore,
}

/// Whether a request is for the page.
pub(super) fn is_below(path: &str) -> bool {
    path.strip_prefix("/page").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// To the page's index.
pub(super) fn redirect() -> HttpAnswer {
    let mut answer = refusal(StatusCode::PERMANENT_REDIRECT, "the page is at /page/");
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/page/"));
    protect(answer.headers_mut());
    answer
}

impl PageGate {
    pub(super) fn new(site: PageSite, clients: &ClientServer) -> Self {
        let services = clients.services.clone();
        let cookie = format!("toold_page_{}", &blake3::hash(services.instance.as_bytes()).to_hex()[..8]);
        let tls = site.tls.map(|tls| Arc::new(ArcSwap::new(tls)));
        if let Some(tls) = &tls {
            services.engine.tasks.spawn(renew(services.clone(), tls.clone()));
        }
        Self { files: PageFiles::default(), services, cookie, tls, looks: Semaphore::new(MAX_LOOKS) }
    }

    /// With the certificate of now.
    pub(super) fn tls(&self) -> Option<TlsAcceptor> {
        self.tls.as_ref().map(|tls| TlsAcceptor::from(tls.load_full()))
    }

    /// Answers a request below `/page`.
    pub(super) async fn answer(
        &self,
        gate: &HttpGate,
        request: Request<Incoming>,
        client: HttpConnection,
    ) -> HttpAnswer {
        let is_post = request.method() == Method::POST;
        let mut answer = self.route(gate, request, client).await;
        if is_post && !answer.status().is_success() {
            // The body may not have been read, and is not waited for.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        protect(answer.headers_mut());
        answer
    }

    async fn route(&self, gate: &HttpGate, request: Request<Incoming>, client: HttpConnection) -> HttpAnswer {
        let loaded = self.services.config.loaded();
        let config = &loaded.config.page;
        if !config.enabled {
            return refusal(StatusCode::NOT_FOUND, "the page is turned off: page.enabled is false");
        }
        let headers = request.headers();
        let host = match origins::find_host(headers, &config.hosts, client.local.ip()) {
            Ok(host) => host,
            Err(words) => return refusal(StatusCode::FORBIDDEN, words),
        };
        let shown = self.browser(headers, &host);
        let asks = is_for_sign_in(request.uri().path());
        // Without a cookie, there is nothing but a sign-in to have, and an answer by a notification's button.
        let decides = asks && (shown.is_some() || ["/page/login", "/page/push"].contains(&request.uri().path()));
        let mut processes = Vec::new();
        if asks || shown.is_some() {
            let known = shown.as_ref().map(|shown| shown.processes.clone()).unwrap_or_default();
            match self.check_caller(config, &client, decides.then_some(known)).await {
                Ok(found) => processes = found,
                Err(words) => return refusal(StatusCode::FORBIDDEN, words),
            }
        }
        if shown.is_some() {
            client.place.has_shown_a_token();
        }
        let path = request.uri().path();
        let method = request.method();
        match path.strip_prefix("/page").unwrap_or(path) {
            "/login" if method == Method::POST => self.login(gate, request, client, &host, processes).await,
            "/logout" if method == Method::POST => self.logout(headers, &host),
            "/push" if method == Method::POST => self.press(gate, request).await,
            "/login" | "/logout" | "/push" => not_allowed("POST"),
            "/session" if method == Method::GET => match (origins::check_site(headers), shown) {
                (Err(words), _) => refusal(StatusCode::FORBIDDEN, words),
                (Ok(()), Some(_)) => empty(),
                (Ok(()), None) => refusal(StatusCode::UNAUTHORIZED, "not signed in: run toolctl page"),
            },
            "/session" => not_allowed("GET"),
            "/rpc" if websocket::is_upgrade(&request) => self.connect(gate, request, client, shown),
            "/rpc" => not_allowed("GET, or GET with an upgrade to a WebSocket"),
            _ if method != Method::GET && method != Method::HEAD => not_allowed("GET, HEAD"),
            "" => redirect(),
            name => match origins::check_navigation(headers) {
                Ok(()) => self.files.answer(name.trim_start_matches('/'), headers).await,
                Err(words) => refusal(StatusCode::FORBIDDEN, words),
            },
        }
    }

    /// The browser whose cookie a request shows.
    fn browser(&self, headers: &HeaderMap, host: &str) -> Option<PageBrowser> {
        cookies(headers, &self.cookie).find_map(|value| self.services.lifecycle.page.sign_ins.find(value, host))
    }

    /// Whoever connects may have the page. One that decides must be a person's program, or one of the processes that are
    /// known to be; returns its processes on this machine.
    ///
    /// # Errors
    /// Why not.
    async fn check_caller(
        &self,
        config: &PageConfig,
        client: &HttpConnection,
        decides: Option<Arc<[ProcessId]>>,
    ) -> Result<Vec<ProcessId>, &'static str> {
        let end = local_peer::other_end(client.peer, client.local).await;
        let socket = match end {
            OtherEnd::Elsewhere => return Ok(Vec::new()),
            OtherEnd::Closed => return Err("the program that sent this is gone"),
            OtherEnd::Here(socket) => socket,
        };
        if socket.user != rustix::process::geteuid().as_raw() && !is_proxy_user(config, socket.user).await {
            return Err("this page belongs to another user of this machine; for a proxy, set page.proxy_user");
        }
        let Some(known) = decides else { return Ok(Vec::new()) };
        let agents = self.services.agent_processes.clone();
        let people = {
            // It is never closed.
            let _place = self.looks.acquire().await;
            let look = move || people_with(socket.inode, socket.user, &agents, &known);
            tokio::task::spawn_blocking(look).await
        };
        let Some(people) = people.ok().flatten() else {
            return Err("a tool or an agent cannot use the page: open it in your own browser");
        };
        // One that closed the socket before the look was not seen.
        match local_peer::other_end(client.peer, client.local).await == end {
            true => Ok(people),
            false => Err("the program that sent this is gone"),
        }
    }

    async fn login(
        &self,
        gate: &HttpGate,
        request: Request<Incoming>,
        client: HttpConnection,
        host: &str,
        processes: Vec<ProcessId>,
    ) -> HttpAnswer {
        #[derive(Deserialize)]
        struct Login {
            code: String,
        }
        if let Err(words) = origins::check_own(request.headers(), self.tls.is_some()) {
            return refusal(StatusCode::FORBIDDEN, words);
        }
        let (parts, body) = request.into_parts();
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json")) {
            return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected application/json");
        }
        let body = match gate.body(&parts.headers, body, MAX_LOGIN).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let Ok(Login { code }) = serde_json::from_slice(&body) else {
            return refusal(StatusCode::BAD_REQUEST, "expected {\"code\": \"...\"}");
        };
        let browser = parts.headers.get(USER_AGENT).map(|name| String::from_utf8_lossy(name.as_bytes()));
        let browser: String = browser.unwrap_or_default().chars().take(MAX_BROWSER).collect();
        let from = client.peer.ip().to_canonical().to_string();
        let new = NewBrowser { from: from.clone(), browser, processes };
        match self.services.lifecycle.page.sign_ins.sign_in(code.trim(), host, new) {
            Ok(cookie) => {
                tracing::info!(from, "a browser signed in to the page");
                client.place.has_shown_a_token();
                let mut answer = empty();
                answer.headers_mut().insert(SET_COOKIE, self.set_cookie(&parts.headers, &cookie, ""));
                answer
            }
            Err(CodeRefused::Wrong) => {
                tracing::warn!(from, "a browser showed a code that is not valid");
                let words =
                    "the code is not valid: it was used, or is older than 2 minutes; run toolctl page for a new one";
                refusal(StatusCode::FORBIDDEN, words)
            }
            Err(CodeRefused::TooMany) => {
                let words = "too many codes that are not valid: wait a minute, or run toolctl page for a new one";
                let mut answer = refusal(StatusCode::TOO_MANY_REQUESTS, words);
                answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
                answer
            }
        }
    }

    /// A button of a notification was pressed: in any program, on any page, since its code is all that counts.
    async fn press(&self, gate: &HttpGate, request: Request<Incoming>) -> HttpAnswer {
        let (parts, body) = request.into_parts();
        let body = match gate.body(&parts.headers, body, MAX_BUTTON).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let (status, words) = match self.services.notifier.press(String::from_utf8_lossy(&body).trim()) {
            Ok(words) => (StatusCode::OK, words),
            Err(ButtonRefused::Ended(words)) => (StatusCode::CONFLICT, words),
            Err(ButtonRefused::Unknown) => {
                (StatusCode::FORBIDDEN, "this button is not valid any more: open the page".to_owned())
            }
        };
        let mut answer = refusal(status, &words);
        // The site of the notification shows how it went.
        answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        answer
    }

    fn logout(&self, headers: &HeaderMap, host: &str) -> HttpAnswer {
        if let Err(words) = origins::check_own(headers, self.tls.is_some()) {
            return refusal(StatusCode::FORBIDDEN, words);
        }
        for cookie in cookies(headers, &self.cookie) {
            self.services.lifecycle.page.sign_ins.sign_out(cookie, host);
        }
        let mut answer = empty();
        answer.headers_mut().insert(SET_COOKIE, self.set_cookie(headers, "", "; Max-Age=0"));
        answer
    }

    fn set_cookie(&self, headers: &HeaderMap, value: &str, more: &str) -> HeaderValue {
        // A proxy with TLS in front counts too.
        let is_secure =
            self.tls.is_some() || headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
        let secure = if is_secure { "; Secure" } else { "" };
        let cookie = format!("{}={value}; Path=/page; HttpOnly; SameSite=Strict{secure}{more}", self.cookie);
        cookie.parse().expect("it has no control characters")
    }

    /// Answers with the upgrade to a WebSocket.
    fn connect(
        &self,
        gate: &HttpGate,
        request: Request<Incoming>,
        client: HttpConnection,
        shown: Option<PageBrowser>,
    ) -> HttpAnswer {
        if let Err(words) = origins::check_own(request.headers(), self.tls.is_some()) {
            return refusal(StatusCode::FORBIDDEN, words);
        }
        let Some(browser) = shown else {
            return refusal(StatusCode::UNAUTHORIZED, "not signed in: run toolctl page");
        };
        let ended = browser.ended.child_token();
        self.services.engine.tasks.spawn(end_after(
            browser.remaining,
            ended.clone(),
            self.services.lifecycle.stopping(),
        ));
        let held = (client.place, browser, ended.clone().drop_guard());
        // The word in the names of browsers that says so.
        let name = request.headers().get(USER_AGENT).and_then(|name| name.to_str().ok());
        let is_phone = name.is_some_and(|name| name.contains("Mobi"));
        websocket::upgrade(&gate.clients, request, Peer::of_page(is_phone), ended, held)
    }
}

/// Whether this is the user of the proxy that the configuration names.
async fn is_proxy_user(config: &PageConfig, user: u32) -> bool {
    let config = config.clone();
    let named = tokio::task::spawn_blocking(move || config.proxy_user_id()).await;
    matches!(named, Ok(Ok(Some(named))) if named == user)
}

/// Whether a request below `/page` is for more than a file.
fn is_for_sign_in(path: &str) -> bool {
    ["/page/login", "/page/logout", "/page/session", "/page/rpc", "/page/push"].contains(&path)
}

/// The headers of every answer.
fn protect(headers: &mut HeaderMap) {
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// The values of all cookies of a name. A browser may send several, of other paths.
fn cookies<'h>(headers: &'h HeaderMap, name: &'h str) -> impl Iterator<Item = &'h str> {
    let all = headers.get_all(COOKIE).into_iter().filter_map(|cookies| cookies.to_str().ok());
    let pairs = all.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(known, _)| *known == name).map(|(_, value)| value).take(4)
}

fn empty() -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::new()).boxed());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// Ends a connection whose browser has been signed in for as long as it may.
async fn end_after(remaining: Duration, ended: CancellationToken, stop: CancellationToken) {
    tokio::select! {
        () = ended.cancelled() => {}
        () = stop.cancelled() => {}
        () = tokio::time::sleep(remaining) => ended.cancel(),
    }
}

/// Reads the certificate again when the configuration is reloaded. While the files are wrong, the last good one stays.
async fn renew(services: Arc<Services>, tls: Arc<ArcSwap<ServerConfig>>) {
    let (mut changes, stop) = (services.config.loaded_changes(), services.lifecycle.stopping());
    changes.mark_unchanged();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            changed = changes.changed() => if changed.is_err() { return },
        }
        let config = services.config.clone();
        let home = config.options.paths.home.clone();
        let read = tokio::task::spawn_blocking(move || config.loaded().config.page.tls(home.as_deref()));
        match read.await {
            Ok(Ok(Some(read))) => tls.store(read),
            Ok(Ok(None)) => tracing::warn!("TLS of the page stays as it is until the daemon is restarted"),
            Ok(Err(error)) => tracing::error!("the page keeps its certificate: {error:#}"),
            Err(error) => tracing::error!(%error, "the certificate of the page could not be read"),
        }
    }
}
