//! `hygge.http`, against a server of the test's own.

use std::sync::Arc;

use serde_json::json;
use tokio::net::TcpListener;
use toold_host::http::Http;
use toold_host::http::guard::Guard;
use toold_proto::permission::Verdict;
use toold_test_kit::{ScriptedServer, answer};

use crate::world::TestPlugins;

/// Gives every request the same answer.
async fn server(status: &str, headers: &[(&str, &str)], body: &str) -> ScriptedServer {
    ScriptedServer::of(answer(status, &[&[("connection", "close")], headers].concat(), body)).await
}

const FETCH: &str =
    "hygge.register_tool{name = 'fetch', permission = false, cacheable = true, execute = function(ctx, input)
   local answer = hygge.http.request(input)
   return {content = answer.body, structured = {status = answer.status, ok = answer.ok, headers = answer.headers,
     url = answer.url, truncated = answer.truncated}} end}
 hygge.register_tool{name = 'short', permission = false, execute = function(ctx, input)
   return hygge.http.get(input.url .. '/get').body .. hygge.http.post(input.url .. '/post', {b = 1}).body end}";

/// A plugin that may reach this computer.
async fn world() -> TestPlugins {
    let local = |options: &mut toold_lua::reload::options::PluginHostOptions| {
        options.http = Arc::new(Http::new(Guard::parse(&["127.0.0.1".to_owned()]).unwrap()));
    };
    TestPlugins::with(&[("p.lua", FETCH)], local).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_sent_and_its_answer_read() {
    let world = world().await;
    world.allow_all();
    let server = server("201 Created", &[("X-A", "1"), ("x-a", "2")], "made").await;
    let url = server.url("/x?y=1");
    let request =
        json!({"url": url, "method": "put", "headers": {"X-Token": "t", "x-list": ["a", "b"]}, "json": {"n": 1}});
    let result = world.call("fetch", request).await;
    assert!(!result.is_error, "{}", result.text());
    let response = result.structured.as_ref().unwrap();
    assert_eq!((result.text().as_str(), &response["status"], &response["ok"]), ("made", &json!(201), &json!(true)));
    assert_eq!(
        (&response["headers"]["x-a"], &response["url"], &response["truncated"]),
        (&json!("1, 2"), &json!(url), &json!(null))
    );
    let sent = &server.requests()[0];
    assert!(sent.starts_with("PUT /x?y=1 HTTP/1.1\r\n") && sent.ends_with("\r\n\r\n{\"n\":1}"), "{sent}");
    for header in ["x-token: t\r\n", "x-list: a\r\n", "x-list: b\r\n", "content-type: application/json\r\n"] {
        assert!(sent.contains(header), "{header}: {sent}");
    }
    let cut = world.call("fetch", json!({"url": url, "max_bytes": 2})).await;
    assert_eq!((cut.text().as_str(), &cut.structured.unwrap()["truncated"]), ("ma", &json!(true)));
    assert_eq!(world.text("short", json!({"url": server.url("")})).await, "mademade");
    let sent = server.requests();
    assert!(sent[2].starts_with("GET /get ") && sent[3].ends_with("{\"b\":1}"), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_reading_requests_are_kept() {
    let world = world().await;
    world.allow_all();
    let server = server("200 OK", &[], "x").await;
    for (method, times) in [("GET", 1), ("POST", 3)] {
        for _ in 0..2 {
            world.call("fetch", json!({"url": server.url(""), "method": method})).await;
        }
        assert_eq!(server.requests().len(), times, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_needs_permission_redirects_included() {
    let world = world().await;
    let target = server("200 OK", &[], "secret").await;
    let server = server("302 Found", &[("location", &target.url("/there"))], "").await;
    let refused = world.call("fetch", json!({"url": server.url("")})).await;
    assert!(refused.is_error && refused.text().contains("network 127.0.0.1:"), "{}", refused.text());
    assert!(server.requests().is_empty());
    grant(&world, &server.address.to_string());
    let refused = world.call("fetch", json!({"url": server.url("")})).await;
    assert!(refused.is_error && refused.text().contains(&target.address.to_string()), "{}", refused.text());
    assert_eq!((server.requests().len(), target.requests().len()), (1, 0));
    grant(&world, &target.address.to_string());
    assert_eq!(world.text("fetch", json!({"url": server.url("")})).await, "secret");
}

fn grant(world: &TestPlugins, pattern: &str) {
    let params = serde_json::from_value(
        json!({"category": "network", "pattern": pattern, "action": Verdict::Allow, "scope": "session", "chain": ["p"]}),
    )
    .unwrap();
    let session = toold_engine::policy::grants::GrantScope::Session(world.session.id.clone());
    toold_engine::permission::grant(&world.engine, &params, session, None).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_and_bad_requests_are_refused() {
    let world = TestPlugins::new(&[
        ("p.lua", FETCH),
        ("held/plugin.toml", "api = 'toold'\n[capabilities]\ntools = true"),
        ("held/plugin.lua", "hygge.register_tool{name = 'held', permission = false, execute = function() hygge.http.get('http://x.org') end}"),
        ("early.lua", "hygge.http.get('http://example.org')"),
    ])
    .await;
    world.allow_all();
    for (request, words) in [
        (json!({"url": "http://127.0.0.1:1/"}), "refused: "),
        (json!({"url": "ftp://example.org/"}), "cannot be requested"),
        (json!({"url": "http://example.org/", "headers": {"Host": "other"}}), "cannot be set by callers"),
        (json!({"url": "http://example.org/", "body": {"a": 1}}), "pass a table as json"),
        (json!({}), "field 'url': expected a string"),
    ] {
        let result = world.call("fetch", request.clone()).await;
        assert!(result.is_error && result.text().contains(words), "{request}: {}", result.text());
    }
    let held = world.call("held", json!({})).await;
    assert!(held.text().contains("capability network"), "{}", held.text());
    assert!(world.plugin("early").error.unwrap().message.contains("not allowed: network"));
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_server_times_out() {
    let world = world().await;
    world.allow_all();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let result = world.call("fetch", json!({"url": url, "timeout": "40ms"})).await;
    assert!(result.is_error && result.text().contains("no answer within 40 ms"), "{}", result.text());
    let call = world.call_of("fetch", json!({"url": url}));
    let cancel = call.cancel.clone();
    let cancelling = async {
        listener.accept().await.unwrap();
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(world.execute(call), cancelling);
    assert_eq!(ended.unwrap_err().to_string(), "the call was cancelled");
}
