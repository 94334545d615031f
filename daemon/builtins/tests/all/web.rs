//! `web_fetch` and `web_search` against local servers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toold_builtins::web::Searching;
use toold_builtins::web::search::{SearchKey, SearchService, WebSearch};
use toold_host::http::guard::Guard;
use toold_host::http::{Http, target};
use toold_proto::permission::Verdict;
use toold_proto::tool::{Block, Category, ToolResult};
use toold_test_kit::{ProgressRecord, ScriptedServer, ServerStep, answer, ok, redirect};

use crate::builtin_test::BuiltinTest;

/// A test whose tools may reach this machine.
fn test() -> BuiltinTest {
    let test = BuiltinTest::new();
    test.toolkit.web.http.set_guard(Guard::parse(&["127.0.0.1".to_owned()]).unwrap());
    test
}

async fn fetch(bytes: impl Into<Vec<u8>>) -> ToolResult {
    let server = ScriptedServer::of(bytes).await;
    test().call("web_fetch", json!({"url": server.url("/page")})).await
}

#[track_caller]
fn check(result: &ToolResult, is_error: bool, parts: &[&str]) {
    let text = result.text();
    assert_eq!(result.is_error, is_error, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

const PAGE: &str = "<!doctype html><title>The page</title><h1>Head</h1><p>Some <b>bold</b> <a href=/x>link</a></p>";

#[tokio::test]
async fn page_is_returned_as_markdown_text_or_raw() {
    let test = test();
    let server = ScriptedServer::of(ok("text/html; charset=utf-8", PAGE)).await;
    let result = test.call("web_fetch", json!({"url": server.url("/page")})).await;
    let link = server.url("/x");
    assert_eq!(result.text(), format!("Title: The page\n\n# Head\n\nSome **bold** [link]({link})"));
    let metadata = &result.metadata;
    assert_eq!(metadata["url"], server.url("/page"));
    assert_eq!((&metadata["status"], &metadata["title"]), (&json!(200), &json!("The page")));
    assert_eq!(
        (&metadata["content_type"], &metadata["charset"]),
        (&json!("text/html; charset=utf-8"), &json!("UTF-8"))
    );
    assert_eq!((&metadata["bytes"], &metadata["truncated"]), (&json!(PAGE.len()), &json!(false)));
    let text = test.ok("web_fetch", json!({"url": server.url("/"), "format": "text"})).await;
    assert_eq!(text, "Title: The page\n\nHead\n\nSome bold link");
    assert_eq!(test.ok("web_fetch", json!({"url": server.url("/"), "format": "raw"})).await, PAGE);
}

#[tokio::test]
async fn other_text_is_returned_unchanged() {
    let body = "{\"a\":  [1, 2],\n \"b\": \"<p>\"}";
    assert_eq!(fetch(ok("application/json", body)).await.text(), body);
    assert_eq!(fetch(ok("text/plain", "a <b> c")).await.text(), "a <b> c");
    assert_eq!(fetch(answer("200 OK", &[("Connection", "close")], "# no type")).await.text(), "# no type");
    assert_eq!(fetch(answer("200 OK", &[], "<HTML><p>no type, but HTML")).await.text(), "no type, but HTML");
    assert_eq!(fetch(ok("image/svg+xml", "<svg><text>x</text></svg>")).await.text(), "<svg><text>x</text></svg>");
}

#[tokio::test]
async fn images_are_shown_and_other_bytes_are_named() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\0\0\0\0\0\0\0\0IEND\xaeB\x60\x82";
    let result = fetch(ok("text/html", png)).await;
    check(&result, false, &["image/png, 1 x 1 pixels, 45 bytes"]);
    assert!(matches!(&result.content[1], Block::Image { mime_type, .. } if mime_type == "image/png"));
    check(
        &fetch(ok("text/plain", b"%PDF-1.7\n\xff\xfe")).await,
        true,
        &["is a PDF: not shown", "`curl -fLo FILE 'http://"],
    );
    check(&fetch(ok("text/html", b"\x00\x01\x02\x03")).await, true, &["is not text (text/html, 4 bytes): not shown"]);
    check(&fetch(ok("image/png", &png[..40])).await, true, &["is a damaged image: its end is missing"]);
    let large = [png.to_vec(), vec![0; 6 << 20]].concat();
    let server = ScriptedServer::of(ok("image/png", large)).await;
    let arguments = json!({"url": server.url("/"), "max_bytes": 10_000_000});
    check(&test().call("web_fetch", arguments).await, true, &["image/png", "not shown"]);
}

#[tokio::test]
async fn header_page_and_bytes_decide_the_encoding() {
    let latin = b"<p>gr\xfcn und wei\xdf";
    check(&fetch(ok("text/html; charset=ISO-8859-1", latin)).await, false, &["grün und weiß"]);
    check(&fetch(ok("text/html; charset=utf-8", latin)).await, false, &["grün und weiß"]);
    check(&fetch(ok("text/html; charset=nonsense", latin)).await, false, &["grün und weiß"]);
    check(&fetch(ok("text/html; charset=ISO-8859-1", "<p>grün")).await, false, &["grün"]);
    let page = b"<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2";
    check(&fetch(ok("text/html", page)).await, false, &["Привет"]);
    check(&fetch(ok("text/plain", b"\xff\xfeh\0i\0")).await, false, &["hi"]);
}

#[tokio::test]
async fn error_status_is_reported_with_the_start_of_the_body() {
    let result = fetch(answer("404 Not Found", &[("Content-Type", "text/html")], "<h1>No such page</h1>")).await;
    check(&result, true, &["404 Not Found: http://127.0.0.1:", "# No such page"]);
    assert_eq!(result.metadata["status"], 404);
    let long = "x".repeat(100_000);
    let result = fetch(answer("500 Oops", &[("Content-Type", "text/plain")], long)).await;
    check(&result, true, &["500 Internal Server Error", "xxx..."]);
    assert!(result.text().len() < 3000);
    check(&fetch(answer("599 Odd", &[], "")).await, true, &["599: http://"]);
}

#[tokio::test]
async fn empty_body_is_reported() {
    for kind in ["text/plain", "text/html"] {
        check(&fetch(ok(kind, "")).await, false, &["[the body is empty: 200 OK]"]);
    }
    check(&fetch(ok("text/html", " \n")).await, false, &["[the body is empty: 200 OK]"]);
    check(&fetch("HTTP/1.1 204 No Content\r\n\r\n").await, false, &["[the body is empty: 204 No Content]"]);
    check(&fetch(answer("302 Found", &[], "")).await, false, &["[the body is empty: 302 Found]"]);
    check(&fetch(answer("429 Too Many Requests", &[("Retry-After", "9")], "")).await, true, &["429", "is empty"]);
    let garbage = answer("200 OK", &[("Content-Type", "text/html"), ("Content-Encoding", "gzip")], "no gzip");
    check(&fetch(garbage).await, true, &["[the body is empty: 200 OK]", "[broke off after 0 bytes: "]);
    let bare = fetch(ok("text/html", "<title>T</title>")).await;
    check(&bare, false, &["Title: T", "[the page has no text]"]);
    let scripted = ok("text/html", "<title>T</title><SCRIPT src=x></SCRIPT>");
    check(&fetch(scripted).await, false, &["Title: T", "[the page has no text: it may be written by JavaScript"]);
}

#[tokio::test]
async fn missing_response_is_reported() {
    for bytes in ["", "garbage\n\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "<html>HTTP/0.9"] {
        check(&fetch(bytes).await, true, &["http://127.0.0.1:", "/page: "]);
    }
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    check(&fetch(long).await, true, &["http://127.0.0.1:"]);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_shown_as_far_as_it_came() {
    for bytes in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthe start",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nthe start\r\nnonsense\r\n",
    ] {
        let result = fetch(bytes).await;
        check(&result, false, &["the start", "[broke off after 9 bytes: "]);
        assert_eq!(result.metadata["truncated"], true);
    }
    let gzip = answer("200 OK", &[("Content-Encoding", "gzip"), ("Connection", "close")], "not gzip");
    check(&fetch(gzip).await, true, &["[broke off after 0 bytes: "]);
    let other = answer("200 OK", &[("Content-Encoding", "zstd")], "\u{28}\u{b5}");
    check(&fetch(other).await, true, &["compressed with zstd"]);
}

#[tokio::test]
async fn a_long_body_is_cut_with_a_word_how_to_go_on() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n";
    let server = ScriptedServer::start(move |_| {
        vec![ServerStep::Send(head.into()), ServerStep::Flood("üü\n".repeat(100).into())]
    })
    .await;
    let result = test().call("web_fetch", json!({"url": server.url("/"), "max_bytes": 1001})).await;
    check(&result, false, &["üü\n", "[cut after 1001 bytes; for more set max_bytes, at most 20971520]"]);
    assert!(!result.text().contains('\u{fffd}'), "{}", result.text());
}

#[tokio::test(start_paused = true)]
async fn slow_server_times_out() {
    let server = ScriptedServer::start(|_| vec![ServerStep::Hang]).await;
    let text = test().bad("web_fetch", json!({"url": server.url("/"), "timeout_ms": 5000})).await;
    assert_eq!(text, "no answer within 5000 ms");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe start";
    let server = ScriptedServer::start(move |_| vec![ServerStep::Send(head.into()), ServerStep::Hang]).await;
    let result = test().call("web_fetch", json!({"url": server.url("/")})).await;
    check(&result, false, &["the start", "[timed out after 9 bytes; for more set timeout_ms]"]);
}

#[tokio::test]
async fn a_cancelled_fetch_ends() {
    let test = test();
    let call = test.prepare("web_fetch", json!({"url": ""}));
    let cancel = call.cancel.clone();
    let server = ScriptedServer::start(move |_| {
        cancel.cancel();
        vec![ServerStep::Hang]
    })
    .await;
    let call = toold_engine::call::Call { arguments: json!({"url": server.url("/")}), ..call };
    assert!(test.run(call).await.is_err());
}

#[tokio::test]
async fn a_page_that_would_break_the_converter_is_shown_as_it_came() {
    let result = fetch(ok("text/html", "<b><i>".repeat(5000) + "deep")).await;
    check(&result, false, &["[shown as it came: the elements of the page nest deeper than 512 levels]", "<b><i>"]);
}

#[tokio::test]
async fn invalid_urls_are_reported_without_an_ask() {
    let test = BuiltinTest::strict();
    for url in ["file:///etc/passwd", "ftp://a.example/", "nonsense", "http://u:secret@a.example/", "http://"] {
        let text = test.bad("web_fetch", json!({"url": url})).await;
        assert!(text.contains("cannot be requested") && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_mode() {
    let test = BuiltinTest::new();
    for url in
        ["http://127.0.0.1:1/", "http://2130706433/", "http://0x7f.1/", "http://[::ffff:10.0.0.1]/", "http://[::1]"]
    {
        let text = test.bad("web_fetch", json!({"url": url})).await;
        assert!(text.contains("not allowed: network") && text.contains("not a public address"), "{text}");
    }
    let text = test.bad("web_fetch", json!({"url": "http://localhost:1/"})).await;
    assert!(text.starts_with("refused: localhost is at "), "{text}");
}

#[tokio::test]
async fn hosts_are_judged_before_anything_is_sent_and_again_for_each_redirect() {
    let last = ScriptedServer::of(ok("text/plain", "at last")).await;
    let first = ScriptedServer::of(redirect("302 Found", &last.url("/end"))).await;
    let test = BuiltinTest::strict();
    test.toolkit.web.http.set_guard(Guard::parse(&["127.0.0.1".to_owned()]).unwrap());
    let arguments = json!({"url": first.url("/")});
    let text = test.bad("web_fetch", arguments.clone()).await;
    assert!(text.contains(&format!("not allowed: network {}", first.address)), "{text}");
    assert!(first.requests().is_empty());
    test.rule(Category::Network, &first.address.to_string(), Verdict::Allow);
    let text = test.bad("web_fetch", arguments.clone()).await;
    assert!(text.contains(&format!("not allowed: network {}", last.address)), "{text}");
    assert!(last.requests().is_empty());
    test.rule(Category::Network, &last.address.to_string(), Verdict::Allow);
    let result = test.call("web_fetch", arguments).await;
    assert_eq!(result.text(), "at last");
    assert_eq!(result.metadata["redirects"], json!([first.url("/")]));
    assert_eq!(result.metadata["url"], last.url("/end"));
}

#[tokio::test]
async fn a_page_that_may_be_kept_is_fetched_once() {
    let headers = [("Cache-Control", "max-age=600"), ("Content-Type", "text/plain"), ("Connection", "close")];
    let server = ScriptedServer::of(answer("200 OK", &headers, "kept")).await;
    let test = test();
    let arguments = json!({"url": server.url("/")});
    let first = test.call("web_fetch", arguments.clone()).await;
    let second = test.call("web_fetch", arguments.clone()).await;
    assert_eq!((first.text(), second.text()), ("kept".into(), "kept".into()));
    assert_eq!((&first.metadata["from_cache"], &second.metadata["from_cache"]), (&json!(false), &json!(true)));
    let mut uncached = test.prepare("web_fetch", arguments);
    uncached.no_cache = true;
    assert_eq!(test.run(uncached).await.unwrap().metadata["from_cache"], false);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn redirects_to_forbidden_addresses_are_reported() {
    let circle = fetch(redirect("301 Moved", "/page")).await;
    check(&circle, true, &["in a circle"]);
    check(&fetch(redirect("302 Found", "file:///etc/passwd")).await, true, &["file is not allowed"]);
    check(&fetch(redirect("302 Found", "http://169.254.169.254/latest")).await, true, &["not a public address"]);
    let page = ScriptedServer::of(ok("text/html", PAGE)).await;
    check(&fetch(redirect("308 Permanent", &page.url("/new"))).await, false, &["URL: http://127.0.0.1:", "/new\n"]);
}

#[tokio::test(start_paused = true)]
async fn the_caller_hears_how_far_it_is() {
    let server = ScriptedServer::start(|_| vec![ServerStep::Hang]).await;
    let test = test();
    let mut call = test.prepare("web_fetch", json!({"url": server.url("/")}));
    let heard = Arc::<ProgressRecord>::default();
    call.progress = vec![heard.clone()];
    test.run(call).await.unwrap();
    assert!(!heard.all().is_empty());
}

fn searxng(server: &ScriptedServer) -> SearchService {
    SearchService::Searxng { url: target::parse(&server.url("/")).unwrap() }
}

/// A test that searches with this service.
fn searching(service: SearchService) -> BuiltinTest {
    let test = BuiltinTest::new();
    let http = Http::new(Guard::parse(&["127.0.0.1".to_owned()]).unwrap());
    let search = WebSearch { service, http, timeout: Duration::from_secs(15) };
    test.toolkit.web.set_searching(Searching::Set(Arc::new(search)));
    test
}

/// The answer of a real instance, cut to two results.
fn searxng_answer() -> Value {
    json!({
        "query": "rust traits", "number_of_results": 0,
        "results": [
            {"url": "https://doc.rust-lang.org/book/traits.html", "title": "Traits - The Rust Book",
             "content": "A trait defines the functionality a type has", "publishedDate": null, "thumbnail": null,
             "engine": "brave", "template": "default.html", "parsed_url": ["https", "doc.rust-lang.org", "", "", "", ""],
             "img_src": "", "priority": "", "engines": ["brave", "mojeek"], "positions": [1, 2], "score": 3.0,
             "category": "general"},
            {"url": "https://notrust-lang.org/", "title": "Ads &amp; more", "content": "", "engine": "mojeek",
             "publishedDate": "2024-05-01T00:00:00", "engines": ["mojeek"], "positions": [3], "score": 0.3,
             "category": "general"}
        ],
        "answers": [], "corrections": [], "infoboxes": [], "suggestions": ["rust trait objects"],
        "unresponsive_engines": [["duckduckgo", "CAPTCHA"]]
    })
}

#[tokio::test]
async fn a_searxng_instance_is_asked() {
    let server = ScriptedServer::of(ok("application/json", searxng_answer().to_string())).await;
    let test = searching(searxng(&server));
    let result = test.call("web_search", json!({"query": "rust traits & \"more\""})).await;
    assert_eq!(
        result.text(),
        "1. Traits - The Rust Book\n   https://doc.rust-lang.org/book/traits.html\n   A trait defines the functionality a \
         type has\n\n2. Ads & more\n   https://notrust-lang.org/"
    );
    assert_eq!(
        result.structured.unwrap()["results"][1],
        json!({"title": "Ads & more", "url": "https://notrust-lang.org/", "snippet": "", "published": "2024-05-01T00:00:00"})
    );
    assert!(server.requests()[0].starts_with("GET /search?q=rust+traits+%26+%22more%22&format=json HTTP/1.1"));
}

#[tokio::test]
async fn results_are_filtered_by_domain_and_number() {
    let server = ScriptedServer::of(ok("application/json", searxng_answer().to_string())).await;
    let test = searching(searxng(&server));
    let text = test.ok("web_search", json!({"query": "rust", "allowed_domains": ["rust-lang.org"]})).await;
    assert!(text.contains("doc.rust-lang.org") && !text.contains("notrust"), "{text}");
    assert!(server.requests()[0].contains("q=rust+site%3Arust-lang.org&"), "{:?}", server.requests());
    let text = test.ok("web_search", json!({"query": "rust", "blocked_domains": ["rust-lang.org"]})).await;
    assert!(text.starts_with("1. Ads & more"), "{text}");
    let text = test.ok("web_search", json!({"query": "rust", "allowed_domains": ["other.example"]})).await;
    assert_eq!(text, "nothing was found for \"rust\"; the domains left out 2 results");
    let text = test.ok("web_search", json!({"query": "rust", "max_results": 1})).await;
    assert!(text.contains("1. ") && !text.contains("2. "), "{text}");
    let text = test.bad("web_search", json!({"query": "rust", "allowed_domains": ["https://x.example/"]})).await;
    assert!(text.contains("is not a domain"), "{text}");
}

#[tokio::test]
async fn errors_of_an_instance_are_reported() {
    for (bytes, part) in [
        (answer("403 Forbidden", &[], "no"), "names json in search.formats"),
        (answer("429 Too Many Requests", &[], ""), "limits requests"),
        (answer("500 Internal Server Error", &[], "{\"error\": \"broken\"}"), "500 Internal Server Error: broken"),
        (ok("text/html", "<html>"), "cannot be read"),
        (ok("application/json", "{}"), "it has no results"),
        (ok("application/json", "{\"results\": [], \"unresponsive_engines\": [[\"x\", \"CAPTCHA\"]]}"), "x: CAPTCHA"),
        (answer("200 OK", &[], vec![b' '; 3 << 20]), "over 2097152 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{".to_vec(), "broke off"),
    ] {
        let server = ScriptedServer::of(bytes).await;
        let text = searching(searxng(&server)).bad("web_search", json!({"query": "x"})).await;
        assert!(text.contains(part), "{part}: {text}");
    }
}

fn brave(server: &ScriptedServer, key: SearchKey) -> SearchService {
    SearchService::Brave { url: target::parse(&server.url("/res/v1/web/search")).unwrap(), key }
}

#[tokio::test]
async fn brave_is_asked_with_its_key() {
    let body = json!({
        "type": "search", "query": {"original": "rust", "more_results_available": true},
        "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": false}]},
        "web": {"type": "search", "family_friendly": true, "results": [
            {"title": "Rust", "url": "https://rust-lang.org/", "is_source_local": false, "language": "en",
             "description": "A language <strong>empowering</strong> everyone", "page_age": "2025-01-15T00:00:00",
             "profile": {"name": "Rust", "url": "https://rust-lang.org/"}, "type": "search_result"}
        ]}
    });
    let server = ScriptedServer::of(ok("application/json", body.to_string())).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "the key\n").unwrap();
    for key in [SearchKey::Value("the key".into()), SearchKey::File(file)] {
        let test = searching(brave(&server, key));
        let text = test.ok("web_search", json!({"query": "rust"})).await;
        assert_eq!(text, "1. Rust\n   https://rust-lang.org/\n   A language empowering everyone");
        let request = server.requests().pop().unwrap();
        assert!(
            request.starts_with("GET /res/v1/web/search?q=rust&count=20&text_decorations=false HTTP/1.1"),
            "{request}"
        );
        assert!(request.contains("x-subscription-token: the key\r\n"), "{request}");
    }
    let nothing =
        ScriptedServer::of(ok("application/json", "{\"type\": \"search\", \"query\": {\"original\": \"x\"}}")).await;
    let test = searching(brave(&nothing, SearchKey::Value("k".into())));
    assert_eq!(test.ok("web_search", json!({"query": "x"})).await, "nothing was found for \"x\"");
}

#[tokio::test]
async fn rejected_or_missing_key_is_reported() {
    let body = json!({"type": "ErrorResponse", "time": 1, "error": {
        "id": "x", "status": 422, "code": "SUBSCRIPTION_TOKEN_INVALID",
        "detail": "The provided subscription token is invalid."}});
    let server = ScriptedServer::of(answer("422 Unprocessable Entity", &[], body.to_string())).await;
    let test = searching(brave(&server, SearchKey::Value("wrong".into())));
    let text = test.bad("web_search", json!({"query": "x"})).await;
    assert!(text.contains("422") && text.contains("token is invalid") && !text.contains("wrong"), "{text}");
    let test = searching(brave(&server, SearchKey::Missing("KEY is not set".into())));
    assert!(test.bad("web_search", json!({"query": "x"})).await.contains("KEY is not set"));
    let test = searching(brave(&server, SearchKey::File("/no/such/file".into())));
    assert!(test.bad("web_search", json!({"query": "x"})).await.contains("/no/such/file"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_command_searches() {
    let run = |script: &str| {
        let command = ["bash", "-c", script, "search", "{query}", "{max_results}"].map(str::to_owned).to_vec();
        searching(SearchService::Command { command })
    };
    let script =
        "printf '[{\"title\": \"%s\", \"link\": \"https://a.example/%s\", \"abstract\": \"s\"}]' \"$1\" \"$2\"";
    let text = run(script).ok("web_search", json!({"query": "a b; $(id)"})).await;
    assert_eq!(text, "1. a b; $(id)\n   https://a.example/20\n   s");
    // The query is not an option, even if it begins with a dash.
    let text = run("printf '{\"results\": [{\"url\": \"https://a.example/\", \"title\": \"x%sx\"}]}' \"$1\"")
        .ok("web_search", json!({"query": "--help"}))
        .await;
    assert!(text.starts_with("1. x --helpx"), "{text}");
    assert!(
        run("echo oops >&2; exit 3").bad("web_search", json!({"query": "x"})).await.contains("with status 3: oops")
    );
    assert!(run("echo no json").bad("web_search", json!({"query": "x"})).await.contains("expected JSON"));
    let missing = searching(SearchService::Command { command: vec!["/no/such/program".into(), "{query}".into()] });
    assert!(missing.bad("web_search", json!({"query": "x"})).await.contains("can't run /no/such/program"));
}

#[tokio::test]
async fn a_search_is_judged_by_the_service_s_host() {
    let server = ScriptedServer::of(ok("application/json", searxng_answer().to_string())).await;
    let test = searching(searxng(&server));
    test.rule(Category::Network, &server.address.to_string(), Verdict::Deny);
    let text = test.bad("web_search", json!({"query": "x"})).await;
    assert!(text.contains(&format!("not allowed: network {}", server.address)), "{text}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn without_a_service_the_result_explains_how_to_configure_one() {
    let test = BuiltinTest::strict();
    let text = test.bad("web_search", json!({"query": "x"})).await;
    assert!(text.contains("[web.search]") && text.contains("searxng") && text.contains("brave"), "{text}");
    test.toolkit.web.set_searching(Searching::Broken("url: no host".into()));
    assert!(test.bad("web_search", json!({"query": "x"})).await.contains("url: no host"));
    assert!(test.bad("web_search", json!({"query": "  "})).await.contains("the query is empty"));
}
