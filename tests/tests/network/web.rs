//! The web tools on a real daemon: hosts and search services that the configuration allows.

use serde_json::{Value, json};
use toold_test_kit::{ScriptedServer, ok};
use toold_tests::{Setup, TestDaemon, Wire};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"network\"\npattern = \"**\"\naction = \"allow\"\n";

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn fetch(wire: &mut Wire, url: &str) -> Value {
    wire.tool("web_fetch", json!({"url": url}))
}

#[test]
fn private_addresses_are_reached_once_the_configuration_names_them() {
    let site = ScriptedServer::thread_of(ok("text/html", "<title>Intranet</title><h1>News</h1><p>None today.</p>"));
    let daemon = Setup::new().config(ALLOW).start();
    let mut wire = daemon.connect();
    let url = site.url("/");
    let refused = fetch(&mut wire, &url);
    assert!(text(&refused).contains("not a public address, and [network] allow_private does not list it"), "{refused}");

    let config = format!("{ALLOW}\n[network]\nallow_private = [\"{}\"]\n", site.address);
    std::fs::write(daemon.setup.path("config/toold/config.toml"), config).unwrap();
    let page = until_reached(&mut wire, &url);
    assert_eq!(text(&page), "Title: Intranet\n\n# News\n\nNone today.");
    let by_name = fetch(&mut wire, &format!("http://localhost:{}/", site.address.port()));
    assert_eq!(text(&by_name), text(&page), "a name that leads to an allowed address");
}

/// A new configuration becomes active a moment later.
fn until_reached(wire: &mut Wire, url: &str) -> Value {
    toold_tests::until("the site is reached", || Some(fetch(wire, url)).filter(|page| page["is_error"] == false))
}

#[test]
fn toolctl_fetches_a_page() {
    let site = ScriptedServer::thread_of(ok("text/plain; charset=utf-8", "grün\n"));
    let config = format!("{ALLOW}\n[network]\nallow_private = [\"127.0.0.0/8\"]\n");
    let daemon = Setup::new().config(&config).start();
    let output = daemon.toolctl(&["call", "web_fetch", &format!("url={}", site.url("/x"))]);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), "grün\n"));
}

#[test]
fn without_a_rule_the_network_is_closed() {
    let site = ScriptedServer::thread_of(ok("text/plain", "x"));
    let daemon = Setup::new().config("[network]\nallow_private = [\"127.0.0.1\"]\n").start();
    let refused = fetch(&mut daemon.connect(), &site.url("/"));
    assert!(text(&refused).contains("not allowed: network 127.0.0.1:"), "{refused}");
    assert!(site.requests().is_empty());
}

#[test]
fn plugins_are_held_to_the_same_list() {
    let site = ScriptedServer::thread_of(ok("text/plain", "from the site"));
    let plugin = r#"hygge.register_tool{
        name = "peek", description = "Peeks", permissions = {"network"},
        input_schema = {type = "object", properties = {url = {type = "string"}}, required = {"url"}},
        execute = function(ctx, input) return hygge.http.get(input.url).body end,
    }"#;
    let open = format!("{ALLOW}\n[network]\nallow_private = [\"127.0.0.1\"]\n");
    for (config, reached) in [(ALLOW, false), (open.as_str(), true)] {
        let daemon = Setup::new().config(config).plugin("peek.lua", plugin).start();
        let result = daemon.connect().tool("peek", json!({"url": site.url("/")}));
        assert_eq!(text(&result) == "from the site", reached, "{result}");
    }
    assert_eq!(site.requests().len(), 1);
}

#[test]
fn a_configured_service_is_searched_and_nothing_else_is_reached_by_that() {
    let answer = json!({"results": [{"url": "https://a.example/", "title": "A", "content": "first"}]});
    let site = ScriptedServer::thread_of(ok("application/json", answer.to_string()));
    let config = format!("{ALLOW}\n[web.search]\nkind = \"searxng\"\nurl = \"{}\"\n", site.url(""));
    let daemon = Setup::new().config(&config).start();
    let mut wire = daemon.connect();
    let found = wire.tool("web_search", json!({"query": "x"}));
    assert_eq!(text(&found), "1. A\n   https://a.example/\n   first");
    assert_eq!(found["structured"]["results"][0]["url"], "https://a.example/");
    assert!(text(&fetch(&mut wire, &site.url("/"))).contains("not a public address"));
}

#[test]
fn a_key_comes_from_the_daemon_s_environment() {
    let site = ScriptedServer::thread_of(ok("application/json", "{\"type\": \"search\", \"web\": {\"results\": []}}"));
    let config = format!(
        "{ALLOW}\n[web.search]\nkind = \"brave\"\nurl = \"{}\"\napi_key_env = \"LC_ALL\"\n",
        site.url("/res/v1/web/search")
    );
    let daemon = Setup::new().config(&config).start();
    let found = daemon.connect().tool("web_search", json!({"query": "x"}));
    assert_eq!(text(&found), "nothing was found for \"x\"");
    assert!(site.requests()[0].contains("x-subscription-token: C.UTF-8\r\n"));
}

#[test]
fn configuration_errors_are_reported() {
    let search = |lines: &str| {
        let daemon = Setup::new().config(&format!("[web.search]\n{lines}\n")).start();
        let found = daemon.connect().tool("web_search", json!({"query": "x"}));
        text(&found).to_owned()
    };
    assert!(search("kind = \"searxng\"").contains("searxng needs url"));
    assert!(search("kind = \"brave\"").contains("set api_key_env or api_key_file"));
    assert!(search("kind = \"command\"\ncommand = [\"ddgr\"]").contains("{query}"));
    assert!(search("").contains("kind = \"searxng\""));

    let daemon: TestDaemon = Setup::new().config("[network]\nallow_private = [\"10.0.0.0/99\"]\n").start();
    let status = daemon.connect().result("daemon.status", json!({}));
    assert!(status.to_string().contains("10.0.0.0/99"), "{status}");
}
