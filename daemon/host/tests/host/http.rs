//! Requests to local servers, well-behaved and not.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::http::guard::Guard;
use toold_host::http::request::HttpRequest;
use toold_host::http::resolve::AddressLookup;
use toold_host::http::{BodyEnding, Http, HttpError, HttpLimits, HttpResponse, Requester};
use toold_test_kit::{ScriptedServer, ServerStep, answer, ok, redirect};

/// Allows all targets but one, and records the asks.
#[derive(Default)]
struct RecordingRequester {
    asked: Mutex<Vec<String>>,
    refuses: Option<&'static str>,
    /// Fires when this many bytes have arrived.
    stop_at: Option<(usize, CancellationToken)>,
}

impl Requester for RecordingRequester {
    fn require(&self, need: Need) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move {
            let refused = self.refuses.is_some_and(|target| need.target.starts_with(target));
            self.asked.lock().unwrap().push(need.target);
            if refused { Err(ToolError::Failed("no".into())) } else { Ok(()) }
        })
    }

    fn received(&self, bytes: usize, _: Option<u64>) {
        if let Some((wanted, token)) = &self.stop_at
            && bytes >= *wanted
        {
            token.cancel();
        }
    }
}

/// Fixed addresses for names. The second lookup of a name may return another address than the first.
struct TestNames {
    known: Vec<(&'static str, Vec<&'static str>)>,
    lookups: AtomicUsize,
}

impl AddressLookup for TestNames {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let turn = self.lookups.fetch_add(1, Ordering::SeqCst);
        let found = self.known.iter().find(|(name, _)| *name == host).map(|(_, addresses)| addresses.clone());
        Box::pin(async move {
            let addresses = found.ok_or_else(|| io::Error::other("no such name"))?;
            let address = addresses.get(turn).or(addresses.last()).expect("a name has addresses");
            Ok(vec![address.parse().unwrap()])
        })
    }
}

fn names(known: &[(&'static str, &[&'static str])]) -> Arc<TestNames> {
    let known = known.iter().map(|(name, addresses)| (*name, addresses.to_vec())).collect();
    Arc::new(TestNames { known, lookups: AtomicUsize::new(0) })
}

fn guard(allowed: &[&str]) -> Guard {
    Guard::parse(&allowed.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
}

/// May reach this machine, for the tests' servers.
fn local() -> Http {
    Http::new(guard(&["127.0.0.1"]))
}

async fn get_as(
    http: &Http,
    url: &str,
    person: &RecordingRequester,
    limits: HttpLimits,
) -> Result<HttpResponse, HttpError> {
    http.send(HttpRequest::get(url).unwrap(), limits, person, &CancellationToken::new()).await
}

async fn get(http: &Http, url: &str) -> Result<HttpResponse, HttpError> {
    get_as(http, url, &RecordingRequester::default(), HttpLimits::default()).await
}

/// The error of a request to a server that answers like this.
async fn error_of(bytes: &[u8]) -> HttpError {
    let server = ScriptedServer::of(bytes).await;
    get(&local(), &server.url("/")).await.unwrap_err()
}

async fn answer_of(bytes: &[u8]) -> HttpResponse {
    let server = ScriptedServer::of(bytes).await;
    get(&local(), &server.url("/")).await.unwrap()
}

#[tokio::test]
async fn response_is_returned_unchanged() {
    let server = ScriptedServer::of(answer("404 Not Found", &[("X-A", "1"), ("x-a", "2")], "nothing")).await;
    let response = get(&local(), &server.url("/a?b=c#d")).await.unwrap();
    assert_eq!((response.status, response.body.as_slice()), (404, b"nothing".as_slice()));
    assert_eq!(response.headers.iter().filter(|(name, _)| name == "x-a").count(), 2);
    assert_eq!(response.ending, BodyEnding::Whole);
    assert_eq!(response.url, server.url("/a?b=c#d"));
    assert!(server.requests()[0].starts_with("GET /a?b=c HTTP/1.1\r\n"), "{:?}", server.requests());
}

#[tokio::test]
async fn a_body_is_sent_with_its_headers() {
    let server = ScriptedServer::of(ok("text/plain", "")).await;
    let headers = [("X-Token".to_owned(), "secret".to_owned())];
    let request = HttpRequest::new("POST", &server.url("/"), &headers, Some(b"the body".to_vec())).unwrap();
    let person = RecordingRequester::default();
    local().send(request, HttpLimits::default(), &person, &CancellationToken::new()).await.unwrap();
    let request = &server.requests()[0];
    assert!(request.starts_with("POST / ") && request.ends_with("\r\n\r\nthe body"), "{request}");
    assert!(request.contains("x-token: secret\r\n") && request.contains("user-agent: toold/"), "{request}");
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_before_anybody_is_asked() {
    let server = ScriptedServer::of(ok("text/plain", "secret")).await;
    let http = Http::new(Guard::default());
    let port = server.address.port();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]", "0", "169.254.169.254"] {
        let person = RecordingRequester::default();
        let error = get_as(&http, &format!("http://{host}:{port}/"), &person, HttpLimits::default()).await.unwrap_err();
        assert!(matches!(error, HttpError::Private(_)), "{host}: {error}");
        assert!(person.asked.lock().unwrap().is_empty());
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_need_names_host_and_port_and_forbids_private_addresses() {
    let need = |url: &str| Http::new(Guard::default()).need(&HttpRequest::get(url).unwrap());
    assert_eq!(need("https://Example.com/x").target, "example.com:443");
    assert_eq!(need("https://Example.com/x").forbidden, None);
    assert_eq!(need("https://Example.com/x").reason.as_deref(), Some("GET https://example.com/x"));
    assert!(need("http://127.1").forbidden.unwrap().contains("127.0.0.1 is not a public address"));
}

#[tokio::test]
async fn names_with_private_addresses_are_refused_after_approval() {
    let server = ScriptedServer::of(ok("text/plain", "secret")).await;
    let port = server.address.port();
    for address in ["127.0.0.1", "::ffff:127.0.0.1", "10.0.0.1", "fd00::1", "169.254.169.254"] {
        let http = Http::with_lookup(Guard::default(), names(&[("evil.test", &[address])]));
        let person = RecordingRequester::default();
        let error =
            get_as(&http, &format!("http://evil.test:{port}/"), &person, HttpLimits::default()).await.unwrap_err();
        assert!(matches!(&error, HttpError::Private(words) if words.contains("evil.test")), "{error:?}");
        assert_eq!(*person.asked.lock().unwrap(), [format!("evil.test:{port}")]);
    }
    let localhost = get(&Http::new(Guard::default()), &format!("http://localhost:{port}/")).await;
    assert!(matches!(localhost, Err(HttpError::Private(_))), "{localhost:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_refused_name_is_not_even_looked_up() {
    let lookup = names(&[("a.test", &["127.0.0.1"])]);
    let http = Http::with_lookup(guard(&["127.0.0.1"]), lookup.clone());
    let person = RecordingRequester { refuses: Some("a.test"), ..RecordingRequester::default() };
    let error = get_as(&http, "http://a.test:1/", &person, HttpLimits::default()).await.unwrap_err();
    assert!(matches!(error, HttpError::Leave(_)));
    assert_eq!(lookup.lookups.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_address_gains_nothing() {
    let server = ScriptedServer::of(redirect("302 Found", "/again")).await;
    let port = server.address.port();
    // Allowed at first by the name's own address, then rebound to one that is not allowed.
    let lookup = names(&[("evil.test", &["127.0.0.1", "10.0.0.1"])]);
    let http = Http::with_lookup(guard(&["127.0.0.1"]), lookup.clone());
    let error = get(&http, &format!("http://evil.test:{port}/")).await.unwrap_err();
    assert!(matches!(error, HttpError::Private(_)), "{error:?}");
    assert_eq!(lookup.lookups.load(Ordering::SeqCst), 2, "each connection goes to an address that was checked");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn private_addresses_can_be_allowed_by_port() {
    let server = ScriptedServer::of(ok("text/plain", "intranet")).await;
    let port = server.address.port();
    let url = format!("http://wiki.corp.test:{port}/");
    for (allowed, good) in [
        ("*.corp.test", true),
        (&*format!("*.corp.test:{port}"), true),
        ("*.corp.test:1", false),
        ("127.0.0.0/8", true),
    ] {
        let http = Http::with_lookup(guard(&[allowed]), names(&[("wiki.corp.test", &["127.0.0.1"])]));
        assert_eq!(get(&http, &url).await.is_ok(), good, "{allowed}");
    }
}

#[tokio::test]
async fn guard_can_change_while_connections_are_open() {
    let server = ScriptedServer::of(answer("200 OK", &[], "kept open")).await;
    let http = local();
    assert!(get(&http, &server.url("/")).await.is_ok());
    http.set_guard(Guard::default());
    assert!(matches!(get(&http, &server.url("/")).await, Err(HttpError::Private(_))));
    http.set_guard(guard(&["127.0.0.0/8"]));
    assert!(get(&http, &server.url("/")).await.is_ok());
}

#[tokio::test]
async fn unknown_name_is_reported() {
    let http = Http::with_lookup(Guard::default(), names(&[]));
    let error = get(&http, "http://nowhere.test/").await.unwrap_err();
    assert_eq!(error.to_string(), "http://nowhere.test/: nowhere.test has no address: no such name");
}

#[tokio::test]
async fn redirects_are_followed_and_other_hosts_asked_for() {
    let last = ScriptedServer::of(ok("text/plain", "here")).await;
    let to = format!("http://b.test:{}/end", last.address.port());
    let first = ScriptedServer::start(move |request| {
        let bytes =
            if request.starts_with("GET /start") { redirect("301 Moved", "next") } else { redirect("302 Found", &to) };
        vec![ServerStep::Send(bytes)]
    })
    .await;
    let http = Http::with_lookup(guard(&["127.0.0.1"]), names(&[("b.test", &["127.0.0.1"])]));
    let person = RecordingRequester::default();
    let response = get_as(&http, &first.url("/start"), &person, HttpLimits::default()).await.unwrap();
    assert_eq!(response.body, b"here");
    assert_eq!(response.redirects, [first.url("/start"), first.url("/next")]);
    assert_eq!(*person.asked.lock().unwrap(), [first.address.to_string(), format!("b.test:{}", last.address.port())]);

    let person = RecordingRequester { refuses: Some("b.test"), ..RecordingRequester::default() };
    let error = get_as(&http, &first.url("/start"), &person, HttpLimits::default()).await.unwrap_err();
    assert!(matches!(error, HttpError::Leave(ToolError::Failed(_))));
    assert_eq!(last.requests().len(), 1);
}

#[tokio::test]
async fn secrets_stay_with_the_host_they_were_meant_for() {
    let last = ScriptedServer::of(ok("text/plain", "")).await;
    let first = ScriptedServer::of(redirect("307 Temporary Redirect", &last.url("/"))).await;
    let headers = [("Authorization", "Bearer x"), ("X-Api-Key", "x"), ("Cookie", "x"), ("Accept", "text/x")];
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = HttpRequest::new("GET", &first.url("/"), &headers, None).unwrap();
    let person = RecordingRequester::default();
    local().send(request, HttpLimits::default(), &person, &CancellationToken::new()).await.unwrap();
    let (first, last) = (first.requests().remove(0), last.requests().remove(0));
    assert!(first.contains("authorization:") && first.contains("x-api-key:") && first.contains("cookie:"), "{first}");
    assert!(!last.contains("authorization:") && !last.contains("x-api-key:") && !last.contains("cookie:"), "{last}");
    assert!(last.contains("accept: text/x"), "{last}");
}

#[tokio::test]
async fn bad_redirects_are_reported() {
    for (location, part) in [
        ("file:///etc/passwd", "file is not allowed"),
        ("ftp://example.com/", "ftp is not allowed"),
        ("http://user:pw@example.com/", "user name or a password"),
        ("http://[::1", "redirects to what cannot be requested"),
        ("http://10.0.0.1/", "not a public address"),
        ("http://0xa9fea9fe/", "169.254.169.254 is not a public address"),
        ("/", "in a circle"),
    ] {
        let error = error_of(&redirect("302 Found", location)).await.to_string();
        assert!(error.contains(part) && !error.contains("pw"), "{location}: {error}");
    }
    // Without a `Location` it is an ordinary response.
    assert_eq!(answer_of(&answer("302 Found", &[], "where?")).await.status, 302);
}

#[tokio::test]
async fn redirects_end() {
    let server = ScriptedServer::start(|request| {
        let number: u32 = request["GET /".len()..].split(' ').next().unwrap().parse().unwrap();
        vec![ServerStep::Send(redirect("302 Found", &format!("/{}", number + 1)))]
    })
    .await;
    let error = get(&local(), &server.url("/0")).await.unwrap_err();
    assert!(matches!(error, HttpError::TooManyRedirects(_)), "{error}");
    assert_eq!(server.requests().len(), 11);
}

#[tokio::test(start_paused = true)]
async fn silent_server_times_out() {
    for sent in ["", "HTTP/1.1 200 OK\r\nContent-Type: text"] {
        let server = ScriptedServer::start(move |_| vec![ServerStep::Send(sent.into()), ServerStep::Hang]).await;
        let error = get(&local(), &server.url("/")).await.unwrap_err();
        assert_eq!(error.to_string(), "no answer within 30000 ms");
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_body_is_returned_in_part() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe beginning";
    let server = ScriptedServer::start(move |_| vec![ServerStep::Send(head.into()), ServerStep::Hang]).await;
    let response = get(&local(), &server.url("/")).await.unwrap();
    assert_eq!((response.body.as_slice(), response.ending), (b"the beginning".as_slice(), BodyEnding::TimedOut));
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let server = ScriptedServer::start(move |_| {
        vec![ServerStep::Send(head.into()), ServerStep::Flood("0123456789".repeat(1000).into())]
    })
    .await;
    let limits = HttpLimits { max_bytes: 100_001, ..HttpLimits::default() };
    let response = get_as(&local(), &server.url("/"), &RecordingRequester::default(), limits).await.unwrap();
    assert_eq!((response.body.len(), response.ending), (100_001, BodyEnding::TooLong));
}

#[tokio::test]
async fn body_of_exactly_the_limit_is_complete() {
    let server = ScriptedServer::of(ok("text/plain", "12345")).await;
    let limits = HttpLimits { max_bytes: 5, ..HttpLimits::default() };
    let response = get_as(&local(), &server.url("/"), &RecordingRequester::default(), limits).await.unwrap();
    assert_eq!((response.body.as_slice(), response.ending), (b"12345".as_slice(), BodyEnding::Whole));
}

#[tokio::test]
async fn token_ends_a_request_and_keeps_the_partial_body() {
    let head = "HTTP/1.1 200 OK\r\n\r\nsome";
    let server = ScriptedServer::start(move |_| vec![ServerStep::Send(head.into()), ServerStep::Hang]).await;
    let stop = CancellationToken::new();
    let person = RecordingRequester { stop_at: Some((4, stop.clone())), ..RecordingRequester::default() };
    let request = HttpRequest::get(&server.url("/")).unwrap();
    let response = local().send(request.clone(), HttpLimits::default(), &person, &stop).await.unwrap();
    assert_eq!((response.body.as_slice(), response.ending), (b"some".as_slice(), BodyEnding::Stopped));
    let error = local().send(request, HttpLimits::default(), &person, &stop).await.unwrap_err();
    assert!(matches!(error, HttpError::Stopped));
}

#[tokio::test]
async fn headers_have_a_bound() {
    let long = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "x".repeat(1 << 20));
    assert!(matches!(error_of(long.as_bytes()).await, HttpError::Failed { .. }));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Many: x\r\n".repeat(1000));
    assert!(matches!(error_of(many.as_bytes()).await, HttpError::Failed { .. }));
    let server = ScriptedServer::start(|_| {
        vec![ServerStep::Send("HTTP/1.1 200 OK\r\n".into()), ServerStep::Flood("X-Endless: x\r\n".into())]
    })
    .await;
    assert!(matches!(get(&local(), &server.url("/")).await, Err(HttpError::Failed { .. })));
}

#[tokio::test]
async fn invalid_http_is_reported() {
    for bytes in
        ["", "hello there\n", "<html>HTTP/0.9</html>", "HTTP/1.1 abc\r\n\r\n", "SSH-2.0-OpenSSH_9\r\n", "\0\0\0"]
    {
        let error = error_of(bytes.as_bytes()).await;
        assert!(matches!(error, HttpError::Failed { .. }), "{bytes:?}: {error:?}");
    }
}

#[tokio::test]
async fn interrupted_body_is_reported_with_its_part() {
    for bytes in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n",
    ] {
        let response = answer_of(bytes.as_bytes()).await;
        assert_eq!(response.body, b"some", "{bytes}");
        assert!(matches!(&response.ending, BodyEnding::Broken(words) if !words.is_empty()), "{:?}", response.ending);
    }
}

#[tokio::test]
async fn lengths_that_contradict_each_other_are_an_error() {
    let two = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 2\r\n\r\nsome";
    assert!(matches!(error_of(two.as_bytes()).await, HttpError::Failed { .. }));
    let none = "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nsome";
    assert!(matches!(error_of(none.as_bytes()).await, HttpError::Failed { .. }));
    // Bytes after the announced length belong to no response.
    assert_eq!(answer_of(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsomething").await.body, b"some");
}

#[tokio::test]
async fn missing_tls_is_reported() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (http, url) = (local(), format!("https://{}/", listener.local_addr().unwrap()));
    let greet = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&answer("400 Bad Request", &[], "speak plainly")).await.unwrap();
        stream
    };
    let (answer, _stream) = tokio::join!(get(&http, &url), greet);
    assert!(matches!(answer, Err(HttpError::Failed { .. })), "{answer:?}");
}

#[tokio::test]
async fn refused_connection_is_reported() {
    // Nobody listens there: the system gives no such port to those that ask for any.
    let error = get(&local(), "http://127.0.0.1:1/").await.unwrap_err();
    assert!(error.to_string().contains("connect"), "{error}");
}

/// One megabyte of zeros, compressed with gzip.
fn zeros() -> Vec<u8> {
    include_bytes!("http/zeros.gz").to_vec()
}

fn packed(encoding: &str, body: &[u8]) -> Vec<u8> {
    answer("200 OK", &[("Content-Encoding", encoding), ("Connection", "close")], body)
}

#[tokio::test]
async fn compression_is_undone() {
    let response = answer_of(&packed("gzip", &zeros())).await;
    assert_eq!(response.header("content-encoding"), None);
    assert_eq!((response.body.len(), response.ending), (1 << 20, BodyEnding::Whole));
}

/// The tools name an encoding that nobody asked for, in place of bytes that nobody can read.
#[tokio::test]
async fn other_compressions_are_neither_requested_nor_undone() {
    let server = ScriptedServer::of(packed("br", b"\x0b\x02")).await;
    let response = get(&local(), &server.url("/")).await.unwrap();
    assert_eq!((response.body.as_slice(), response.header("content-encoding")), (&b"\x0b\x02"[..], Some("br")));
    let request = server.requests().concat();
    assert!(request.to_ascii_lowercase().contains("accept-encoding: gzip\r\n"), "{request}");
}

#[tokio::test]
async fn a_bomb_is_cut_where_any_body_is() {
    let server = ScriptedServer::of(packed("gzip", &zeros())).await;
    let limits = HttpLimits { max_bytes: 10_000, ..HttpLimits::default() };
    let response = get_as(&local(), &server.url("/"), &RecordingRequester::default(), limits).await.unwrap();
    assert_eq!((response.body.len(), response.ending), (10_000, BodyEnding::TooLong));
}

#[tokio::test]
async fn broken_compression_is_reported() {
    for body in [b"not gzip at all".as_slice(), &zeros()[..20], &[zeros()[..500].to_vec(), vec![0xff; 600]].concat()] {
        let response = answer_of(&packed("gzip", body)).await;
        assert!(matches!(response.ending, BodyEnding::Broken(_)), "{:?}", response.ending);
    }
}

/// A server's responses to the same request, one after another; the flag says whether the last came from the cache.
async fn twice(first: &[(&str, &str)], second: Vec<u8>) -> (HttpResponse, Vec<String>) {
    let first = answer("200 OK", first, "first");
    let count = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| {
        let turn = count.fetch_add(1, Ordering::SeqCst);
        vec![ServerStep::Send(if turn == 0 { first.clone() } else { second.clone() })]
    })
    .await;
    let (http, request) = (local(), HttpRequest::get(&server.url("/")).unwrap().from_cache());
    let stop = CancellationToken::new();
    assert_eq!(
        http.send(request.clone(), HttpLimits::default(), &RecordingRequester::default(), &stop).await.unwrap().body,
        b"first"
    );
    let person = RecordingRequester { refuses: Some("127.0.0.1"), ..RecordingRequester::default() };
    let refused = http.send(request.clone(), HttpLimits::default(), &person, &stop).await;
    assert!(matches!(refused, Err(HttpError::Leave(_))), "permission is checked before the cache");
    let last = http.send(request.clone(), HttpLimits::default(), &RecordingRequester::default(), &stop).await.unwrap();
    (last, server.requests())
}

#[tokio::test]
async fn fresh_answers_are_used_again() {
    let (last, requests) = twice(&[("Cache-Control", "max-age=600"), ("Connection", "close")], Vec::new()).await;
    assert_eq!((last.body.as_slice(), last.from_cache, requests.len()), (b"first".as_slice(), true, 1));
    for private in ["no-store", "private, max-age=600", "no-cache"] {
        let second = answer("200 OK", &[("Connection", "close")], "second");
        let (last, requests) = twice(&[("Cache-Control", private), ("Connection", "close")], second).await;
        assert_eq!((last.body.as_slice(), last.from_cache, requests.len()), (b"second".as_slice(), false, 2));
    }
}

#[tokio::test]
async fn stale_answers_are_asked_about() {
    let first = [("Cache-Control", "max-age=0"), ("ETag", "\"v1\""), ("Connection", "close")];
    let same = b"HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nConnection: close\r\n\r\n".to_vec();
    let (last, requests) = twice(&first, same).await;
    assert_eq!((last.status, last.body.as_slice(), last.from_cache), (200, b"first".as_slice(), true));
    assert!(requests[1].contains("if-none-match: \"v1\""), "{requests:?}");
    let bare = b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_vec();
    let dated = [("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"), ("Cache-Control", "max-age=0")];
    let (last, requests) = twice(&dated, bare).await;
    assert_eq!((last.status, last.body.as_slice(), last.from_cache), (200, b"first".as_slice(), true));
    assert!(requests[1].contains("if-modified-since: Mon, 01 Jan 2024"), "{requests:?}");
    let (last, _) = twice(&first, answer("200 OK", &[("Connection", "close")], "second")).await;
    assert_eq!((last.body.as_slice(), last.from_cache), (b"second".as_slice(), false));
}

#[tokio::test]
async fn cache_is_not_used_for_requests_that_do_not_allow_it() {
    let server =
        ScriptedServer::of(answer("200 OK", &[("Cache-Control", "max-age=600"), ("Connection", "close")], "x")).await;
    let http = local();
    let stop = CancellationToken::new();
    let request = HttpRequest::get(&server.url("/")).unwrap().from_cache();
    http.send(request.clone(), HttpLimits::default(), &RecordingRequester::default(), &stop).await.unwrap();
    assert!(!get(&http, &server.url("/")).await.unwrap().from_cache);
    // The guard has changed, and with it what callers may learn.
    http.set_guard(guard(&["127.0.0.1"]));
    assert!(
        !http.send(request, HttpLimits::default(), &RecordingRequester::default(), &stop).await.unwrap().from_cache
    );
    assert_eq!(server.requests().len(), 3);
}
