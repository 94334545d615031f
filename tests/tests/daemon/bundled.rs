//! The bundled plugins: off by default, switched on, still on after a restart.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, toolctl};

const DATA: &str = r#"{"cities": [{"name": "Oslo"}, {"name": "Bonn"}]}"#;

fn listed(daemon: &TestDaemon, params: Value) -> Vec<(String, String)> {
    let list = daemon.connect().result("plugins.list", params);
    let text = |plugin: &Value, key: &str| plugin[key].as_str().unwrap().to_owned();
    let plugins = list["plugins"].as_array().unwrap();
    plugins.iter().map(|plugin| (text(plugin, "name"), text(plugin, "status"))).collect()
}

fn run(daemon: &TestDaemon, arguments: &[&str]) -> String {
    let output = daemon.setup.command(toolctl()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn query(daemon: &TestDaemon) -> String {
    let arguments = json!({"name": "json_query", "arguments": {"path": "data.json", "query": ".cities[].name"}});
    daemon.connect().result("tools.execute", arguments)["content"][0]["text"].as_str().unwrap().to_owned()
}

fn folder(daemon: &TestDaemon) -> PathBuf {
    let mut folders = fs::read_dir(daemon.state().join("bundled")).unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    assert!(folders.next().is_none(), "nothing lies beside it");
    folder
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, status)| ((*name).to_owned(), (*status).to_owned())).collect()
}

/// The plugins in the repository, sorted.
fn shipped() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_file = path.extension().is_some_and(|end| end == "lua") && !name.ends_with("_test");
        if is_file || path.join("plugin.toml").exists() {
            names.push(name);
        }
    }
    names.sort();
    names
}

#[test]
fn all_bundled_plugins_serve_together() {
    let config = format!("[plugins]\nbundled = {:?}\n", shipped());
    let daemon = Setup::new().config(&config).start();
    let on: Vec<_> = shipped().into_iter().map(|name| (name, "loaded".to_owned())).collect();
    assert_eq!(listed(&daemon, json!({})), on);
}

#[test]
fn bundled_plugins_are_off_and_listed_when_asked_for() {
    let daemon = TestDaemon::start();
    assert_eq!(listed(&daemon, json!({})), []);
    let shipped = shipped();
    assert_eq!(shipped.len(), 10);
    let off: Vec<_> = shipped.iter().map(|name| (name.clone(), "disabled".to_owned())).collect();
    assert_eq!(listed(&daemon, json!({"all": true})), off);
    let table = run(&daemon, &["plugins", "list", "--all"]);
    assert_eq!(table.matches("disabled (bundled)").count(), shipped.len(), "{table}");
    assert_eq!(run(&daemon, &["plugins", "list"]), "");
    let status = daemon.connect().result("daemon.status", json!({}));
    assert_eq!(status["plugins"], json!({"loaded": 0, "failed": 0, "other": 0}));
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(daemon.state().join("bundled")), mode(folder(&daemon))), (0o700, 0o700));
}

#[test]
fn enabled_plugin_serves_after_a_restart() {
    let mut daemon = Setup::new().file("data.json", DATA).start();
    let table = run(&daemon, &["plugins", "enable", "json_query"]);
    assert!(table.contains("loaded (bundled)") && !table.contains("todo_finder"), "{table}");
    let before = query(&daemon);
    assert!(before.contains("Oslo") && before.contains("Bonn"), "{before}");
    daemon.restart("TERM");
    assert_eq!(listed(&daemon, json!({})), pairs(&[("json_query", "loaded")]));
    assert_eq!(query(&daemon), before);
    run(&daemon, &["plugins", "disable", "json_query"]);
    assert_eq!(listed(&daemon, json!({})), []);
    let tools = daemon.connect().result("tools.list", json!({"names": ["json_query"]}));
    assert_eq!(tools["tools"], json!([]));
}

#[test]
fn the_configuration_names_those_that_serve_and_altered_files_are_put_right() {
    let config = "[plugins]\nbundled = [\"git_summary\", \"json_query\"]\n";
    let mut daemon = Setup::new().config(config).file("data.json", DATA).start();
    let on = pairs(&[("git_summary", "loaded"), ("json_query", "loaded")]);
    assert_eq!(listed(&daemon, json!({})), on);
    daemon.signal("TERM");
    daemon.wait();
    let script = folder(&daemon).join("json_query.lua");
    let whole = fs::read_to_string(&script).unwrap();
    fs::write(&script, "error(\"altered\")").unwrap();
    fs::remove_file(folder(&daemon).join("git_summary/parse.lua")).unwrap();
    daemon.start_again();
    assert_eq!(listed(&daemon, json!({})), on);
    assert_eq!(fs::read_to_string(&script).unwrap(), whole);
    assert!(query(&daemon).contains("Oslo"));
}

#[test]
fn a_plugin_of_ones_own_comes_before_the_bundled_one_of_its_name() {
    let own = "hygge.register_tool{name = \"json_query\", execute = function() return \"own\" end}\n";
    let daemon = Setup::new()
        .config("[plugins]\nbundled = [\"json_query\"]\n")
        .file("data.json", DATA)
        .plugin("json_query.lua", own)
        .start();
    assert_eq!(listed(&daemon, json!({})), pairs(&[("json_query", "loaded"), ("json_query", "shadowed")]));
    assert_eq!(query(&daemon), "own");
}

#[test]
fn no_tool_writes_to_bundled_plugins() {
    let rule = "[[permission.rules]]\ncategory = \"file.write\"\npattern = \"/**\"\naction = \"allow\"\n";
    let daemon = Setup::new().config(rule).start();
    let mut wire = daemon.connect();
    wire.result("plugins.list", json!({}));
    let path = folder(&daemon).join("json_query.lua");
    let before = fs::read_to_string(&path).unwrap();
    let arguments = json!({"name": "write", "arguments": {"path": path.to_str(), "content": "x"}});
    let answer = wire.result("tools.execute", arguments);
    assert_eq!(answer["is_error"], true, "{answer}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}
