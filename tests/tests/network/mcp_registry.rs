//! Servers of an MCP registry: searched, shown and mounted, from a registry of the published schema on this machine.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use toold_test_kit::{ScriptedServer, ServerStep, answer, ok, redirect};
use toold_tests::{Setup, TestDaemon};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n";

struct LocalRegistry(ScriptedServer);

impl LocalRegistry {
    fn new(script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self(ScriptedServer::start_thread(move |request| vec![ServerStep::Send(script(request))]))
    }

    /// Lists these servers, each in its latest version, one on a page.
    fn of(servers: Vec<Value>) -> Self {
        Self::new(move |request| {
            let path = request.split(' ').nth(1).unwrap();
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
            if path == "/v0.1/servers" {
                let word = parameter("search").unwrap();
                let found: Vec<&Value> =
                    servers.iter().filter(|server| server["name"].as_str().unwrap().contains(word)).collect();
                let at: usize = parameter("cursor").map_or(0, |cursor| cursor.parse().unwrap());
                let page: Vec<Value> = found.iter().skip(at).take(1).map(|server| listed(server)).collect();
                let mut metadata = json!({"count": page.len()});
                if at + 1 < found.len() {
                    metadata["nextCursor"] = (at + 1).to_string().into();
                }
                return json_answer(&json!({"servers": page, "metadata": metadata}));
            }
            let name = path.strip_prefix("/v0.1/servers/").and_then(|rest| rest.strip_suffix("/versions/latest"));
            let name = name.map(|name| name.replace("%2F", "/"));
            match servers.iter().find(|server| server["name"].as_str() == name.as_deref()) {
                Some(server) => json_answer(&listed(server)),
                None => answer("404 Not Found", &[("Connection", "close")], r#"{"error": "Server not found"}"#),
            }
        })
    }

    fn config(&self) -> String {
        format!("{ALLOW}[mcp]\nregistry = \"{}\"\n", self.0.url(""))
    }
}

fn json_answer(value: &Value) -> Vec<u8> {
    ok("application/json", value.to_string())
}

fn listed(server: &Value) -> Value {
    json!({"server": server, "_meta": {"io.modelcontextprotocol.registry/official": {
        "status": "active", "publishedAt": "2026-01-01T00:00:00Z", "isLatest": true}}})
}

fn weather() -> Value {
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.someone/weather", "title": "Weather", "version": "1.2.0",
        "description": "Forecasts for any place", "repository": {"url": "https://example.org/weather", "source": "git"},
        "packages": [{
            "registryType": "npm", "identifier": "@someone/weather", "version": "1.2.0", "transport": {"type": "stdio"},
            "runtimeArguments": [{"type": "named", "name": "-y"}],
            "packageArguments": [
                {"type": "named", "name": "--place", "description": "The place", "isRequired": true},
                {"type": "named", "name": "--units", "description": "Units", "choices": ["metric", "imperial"]},
                {"type": "positional", "valueHint": "mode", "value": "serve"},
            ],
            "environmentVariables": [
                {"name": "WEATHER_KEY", "description": "Key of the service", "isSecret": true, "isRequired": true},
                {"name": "WEATHER_LOG", "description": "How much to log", "default": "warn"},
            ],
        }],
        "remotes": [{"type": "streamable-http", "url": "https://weather.example.org/mcp",
            "headers": [{"name": "Authorization", "value": "Bearer {token}",
                "variables": {"token": {"isSecret": true, "isRequired": true}}}]}],
    })
}

fn other(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "version": "0.1.0",
        "packages": [{"registryType": "pypi", "identifier": "other", "version": "0.1.0", "transport": {"type": "stdio"}}]})
}

/// A daemon whose `npx` runs the stand-in server instead of a package, with the package's arguments in a file.
fn start(registry: &LocalRegistry) -> TestDaemon {
    start_with(&registry.config())
}

fn start_with(config: &str) -> TestDaemon {
    let setup = Setup::new().config(config);
    let bin = setup.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/stand_in.py");
    let script =
        format!("#!/bin/sh\necho \"$@\" >'{}'\nexec python3 '{}'\n", setup.path("seen").display(), stand_in.display());
    std::fs::write(bin.join("npx"), script).unwrap();
    std::fs::set_permissions(bin.join("npx"), std::fs::Permissions::from_mode(0o755)).unwrap();
    setup.start_by(|setup| {
        let mut command: Command = setup.command(toold_tests::toold());
        command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        command
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn config_of(daemon: &TestDaemon) -> String {
    std::fs::read_to_string(daemon.setup.path("config/toold/config.toml")).unwrap()
}

#[track_caller]
fn succeeds(output: Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn best_matches_of_all_words_and_pages_come_first() {
    let registry = LocalRegistry::of(vec![
        other("io.github.a/weather-map", "Pictures"),
        weather(),
        other("io.github.b/forecast", "Money"),
    ]);
    let daemon = start(&registry);
    let found = succeeds(daemon.toolctl(&["mcp", "search", "weather", "FORECASTS"]));
    let names: Vec<&str> = found.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["io.github.someone/weather", "io.github.a/weather-map"], "{found}");
    assert!(found.contains("npm, remote") && found.contains("Forecasts for any place"), "{found}");
    let as_json: Value = serde_json::from_str(&succeeds(daemon.toolctl(&["mcp", "search", "map", "--json"]))).unwrap();
    assert_eq!(as_json["servers"][0]["launches"][0]["args"], json!(["other@0.1.0"]));
    let nothing = daemon.toolctl(&["mcp", "search", "nothing-like-it"]);
    assert!(text(&nothing.stderr).contains("lists no such server"), "{}", text(&nothing.stderr));
}

#[test]
fn added_server_is_shown_before_and_answers_after() {
    let registry = LocalRegistry::of(vec![weather()]);
    let daemon = start(&registry);
    let missing = daemon.toolctl(&["mcp", "add", "io.github.someone/weather", "--yes"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        text(&missing.stderr).contains("the server wants place: pass --set place=VALUE"),
        "{}",
        text(&missing.stderr)
    );
    assert_eq!(config_of(&daemon), registry.config());

    let add = ["mcp", "add", "io.github.someone/weather", "--set", "place=Graz an der Mur", "--yes"];
    let added = daemon.toolctl(&add);
    assert!(added.status.success(), "{}", text(&added.stderr));
    let shown = text(&added.stdout);
    for words in [
        "io.github.someone/weather 1.2.0",
        "source: https://example.org/weather",
        "runs: npx -y @someone/weather@1.2.0 --place=${input:place} --units=${input:units} serve",
        "wants place (required): The place",
        "wants WEATHER_KEY (secret, required): Key of the service",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(text(&added.stderr).contains("toolctl secrets set WEATHER_KEY"), "{}", text(&added.stderr));
    let config = config_of(&daemon);
    let added_text = config.strip_prefix(&registry.config()).unwrap();
    insta::assert_snapshot!(added_text, @r#"

    [mcp.servers.weather]
    args = ["-y", "@someone/weather@1.2.0", "--place=Graz an der Mur", "serve"]
    command = "npx"

    [mcp.servers.weather.env]
    WEATHER_KEY = "${secret:WEATHER_KEY}"
    WEATHER_LOG = "warn"
    "#);
    let again = daemon.toolctl(&add);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("has a server weather already"), "{}", text(&again.stderr));
    assert_eq!(config_of(&daemon), config);
}

#[test]
fn remote_server_is_added_by_its_url() {
    let registry = LocalRegistry::of(vec![weather()]);
    let daemon = start(&registry);
    let add = ["mcp", "add", "io.github.someone/weather", "--via", "remote", "--as", "sky", "--yes"];
    succeeds(daemon.toolctl(&add));
    let config = config_of(&daemon);
    assert!(
        config.contains("[mcp.servers.sky]\nurl = \"https://weather.example.org/mcp\"\n")
            && config.contains("Authorization = \"Bearer ${secret:token}\""),
        "{config}"
    );
    let wrong = daemon.toolctl(&["mcp", "add", "io.github.someone/weather", "--via", "oci", "--yes"]);
    assert!(text(&wrong.stderr).contains("has no oci, only npm, remote"), "{}", text(&wrong.stderr));
}

/// A description is written by strangers, and the configuration expands `${env:NAME}` and `${secret:NAME}`.
#[test]
fn description_that_reads_secrets_is_refused_wherever_it_does() {
    let places = [
        "/packages/0/identifier",
        "/packages/0/version",
        "/packages/0/packageArguments/0/name",
        "/packages/0/packageArguments/2/value",
        "/packages/0/packageArguments/1/choices/0",
        "/packages/0/environmentVariables/0/name",
        "/packages/0/environmentVariables/1/default",
        "/packages/0/runtimeArguments/0/name",
    ];
    let hostile = ["${env:HOME}", "${secret:KEY}", "a\nb", "\u{1b}[2J"];
    let mut servers = Vec::new();
    for (place, text) in places.iter().flat_map(|place| hostile.iter().map(move |text| (place, text))) {
        let mut server = weather();
        server["name"] = format!("io.github.evil/n{}", servers.len()).into();
        server["remotes"] = json!([]);
        *server.pointer_mut(place).unwrap() = (*text).into();
        servers.push(server);
    }
    for text in hostile {
        for place in ["/remotes/0/url", "/remotes/0/headers/0/value", "/remotes/0/headers/0/name"] {
            let mut server = weather();
            server["name"] = format!("io.github.evil/n{}", servers.len()).into();
            server["packages"] = json!([]);
            *server.pointer_mut(place).unwrap() = text.into();
            servers.push(server);
        }
    }
    let names: Vec<String> = servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect();
    let registry = LocalRegistry::of(servers);
    let daemon = start(&registry);
    let mut wire = daemon.connect();
    for name in names {
        let server = wire.result("mcp.registry.get", json!({"name": name}));
        let problem = server["launches"][0]["problem"].as_str().unwrap_or_default();
        assert!(problem.contains("one of its texts holds ${ or a control character"), "{server}");
    }
    let refused = daemon.toolctl(&["mcp", "add", "io.github.evil/n0", "--yes"]);
    assert!(text(&refused.stderr).contains("cannot be mounted: one of its texts"), "{}", text(&refused.stderr));
    assert_eq!(config_of(&daemon), registry.config());
}

#[test]
fn registry_that_fails_is_named_with_the_reason() {
    let elsewhere = LocalRegistry::of(Vec::new());
    let away = elsewhere.0.url("/v0.1/servers");
    for (bytes, reason) in [
        (answer("500 Internal Server Error", &[("Connection", "close")], "oops"), "500 Internal Server Error"),
        (ok("application/json", "{"), "its answer is not that of a registry"),
        (ok("text/html", "x".repeat(5 << 20)), "more than 4194304 bytes"),
        (redirect("302 Found", &away), "it redirects to 127.0.0.1:"),
    ] {
        let registry = LocalRegistry::new(move |_| bytes.clone());
        // A place that tools may reach is no place of the registry.
        let daemon = start_with(&format!("{}[network]\nallow_private = [\"127.0.0.0/8\"]\n", registry.config()));
        let failed = daemon.toolctl(&["mcp", "search", "x"]);
        assert_eq!(failed.status.code(), Some(3));
        let words = text(&failed.stderr);
        assert!(words.contains(&registry.0.url("/")) && words.contains(reason), "{reason}: {words}");
    }
    assert!(elsewhere.0.requests().is_empty());
    let registry = LocalRegistry::of(Vec::new());
    let daemon = start(&registry);
    let unknown = daemon.toolctl(&["mcp", "add", "io.github.no/body", "--yes"]);
    assert_eq!(unknown.status.code(), Some(5));
    assert!(
        text(&unknown.stderr).contains("there is no registry server io.github.no/body"),
        "{}",
        text(&unknown.stderr)
    );
}
