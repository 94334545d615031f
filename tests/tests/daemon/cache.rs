//! Results that are served again, on a real daemon: plugins' tools, files, grants, frontends.

use std::fs;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const TOOLS: &str = r#"
local runs = 0
local function counted(text) runs = runs + 1 return runs .. ": " .. text end
hygge.register_tool{
  name = "count", description = "Counts its runs", cacheable = true,
  input_schema = {type = "object"},
  execute = function(ctx, input) return counted("ran") end,
}
hygge.register_tool{
  name = "brief", description = "Is good for a moment", cache_ttl = "30ms",
  input_schema = {type = "object"},
  execute = function() return counted("ran") end,
}
hygge.register_tool{
  name = "show", description = "Shows a file", cacheable = true,
  input_schema = {type = "object", properties = {path = {type = "string"}}},
  execute = function(ctx, input)
    if not hygge.fs.exists(input.path) then return counted("nothing") end
    return counted(io.open(input.path):read("a"))
  end,
}
hygge.register_tool{
  name = "whose", description = "Tells the session", cacheable = true,
  input_schema = {type = "object"},
  execute = function(ctx) return counted(ctx.session.id == hygge.session.id and ctx.session.id or "?") end,
}
hygge.register_tool{
  name = "names", description = "Lists a folder", cacheable = true,
  input_schema = {type = "object"},
  execute = function() return counted(tostring(#hygge.fs.list("."))) end,
}
hygge.register_tool{
  name = "wait", description = "Waits until it is released", cacheable = true,
  input_schema = {type = "object"},
  execute = function(ctx)
    ctx.progress("waiting")
    while not hygge.store.get("release") do hygge.sleep("5ms") end
    return counted("went")
  end,
}
hygge.register_tool{
  name = "go", description = "Lets those that wait go", parallelizable = true,
  input_schema = {type = "object"},
  execute = function() hygge.store.set("release", true) return "gone" end,
}
"#;

fn daemon() -> TestDaemon {
    Setup::new().plugin("tools.lua", TOOLS).file("notes.txt", "one").start()
}

#[track_caller]
fn text_and_cached(wire: &mut Wire, name: &str, arguments: Value) -> (String, bool) {
    seen(&wire.tool(name, arguments))
}

#[track_caller]
fn seen(result: &Value) -> (String, bool) {
    assert_eq!(result["is_error"], false, "{result}");
    (result["content"][0]["text"].as_str().unwrap().to_owned(), result["cached"].as_bool().unwrap())
}

fn fresh(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

fn kept(text: &str) -> (String, bool) {
    (text.to_owned(), true)
}

#[test]
fn a_result_is_served_again_to_every_frontend_of_the_folder() {
    let daemon = daemon();
    let (mut one, mut two) = (daemon.connect(), daemon.connect());
    assert_eq!(text_and_cached(&mut one, "count", json!({"a": 1, "b": 2})), fresh("1: ran"));
    assert_eq!(text_and_cached(&mut two, "count", json!({"b": 2, "a": 1})), kept("1: ran"));
    let uncached = json!({"name": "count", "arguments": {"a": 1, "b": 2}, "no_cache": true});
    assert_eq!(seen(&one.result("tools.execute", uncached)), fresh("2: ran"));
    let stats = one.result("cache.stats", json!({}));
    assert_eq!((&stats["hits"], &stats["misses"], &stats["entries"]), (&json!(1), &json!(1), &json!(1)), "{stats}");
    assert_eq!((&stats["hit_rate"], &stats["evictions"]), (&json!(0.5), &json!(0)));
    assert!(stats["size"].as_u64() > Some(0) && stats["capacity"] == 64 << 20, "{stats}");
    assert_eq!(one.result("cache.clear", json!({})), json!({"cleared": 1}));
    assert_eq!(text_and_cached(&mut two, "count", json!({"a": 1, "b": 2})), fresh("3: ran"));
}

#[test]
fn a_result_is_good_for_as_long_as_its_tool_says() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    assert_eq!(text_and_cached(&mut wire, "brief", json!({})), fresh("1: ran"));
    until("the result is too old", || {
        (text_and_cached(&mut wire, "brief", json!({})) == fresh("2: ran")).then_some(())
    });
}

#[test]
fn the_configuration_bounds_the_cache() {
    let daemon = Setup::new().plugin("tools.lua", TOOLS).config("[cache]\nmax_mib = 0\n").start();
    let mut wire = daemon.connect();
    assert_eq!(text_and_cached(&mut wire, "count", json!({})), fresh("1: ran"));
    assert_eq!(text_and_cached(&mut wire, "count", json!({})), fresh("2: ran"));
    assert_eq!(wire.result("cache.stats", json!({}))["capacity"], 0);
}

#[test]
fn cached_result_of_a_plugin_is_valid_until_its_file_changes() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let file = daemon.work().join("notes.txt");
    let mut show = |path: &str| text_and_cached(&mut wire, "show", json!({"path": path}));
    assert_eq!(show("notes.txt"), fresh("1: one"));
    assert_eq!(show("notes.txt"), kept("1: one"));
    // The same size, and right after the other write, so that the file's time may be equal, too.
    fs::write(&file, "two").unwrap();
    assert_eq!(show("notes.txt"), fresh("2: two"));
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "six").unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
    assert_eq!(show("notes.txt"), fresh("3: six"));
    assert_eq!(show("notes.txt"), kept("3: six"));
    fs::remove_file(&file).unwrap();
    assert_eq!(show("notes.txt"), fresh("4: nothing"));
    assert_eq!(show("notes.txt"), kept("4: nothing"));
    std::os::unix::fs::symlink("other.txt", &file).unwrap();
    fs::write(daemon.work().join("other.txt"), "far").unwrap();
    assert_eq!(show("notes.txt"), fresh("5: far"));
}

#[test]
fn a_write_through_the_daemon_is_never_followed_by_an_old_answer() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    for n in 0..20 {
        let text = format!("text {}", n % 10);
        wire.tool("read", json!({"path": "notes.txt"}));
        let written = wire.tool("write", json!({"path": "notes.txt", "content": text}));
        assert_eq!(written["is_error"], false, "{written}");
        let (shown, cached) = text_and_cached(&mut wire, "show", json!({"path": "notes.txt"}));
        assert!(shown.ends_with(&text) && !cached, "{shown}");
        assert!(
            wire.tool("read", json!({"path": "notes.txt"}))["content"][0]["text"].as_str().unwrap().contains(&text)
        );
    }
}

#[test]
fn session_dependent_result_is_cached_for_that_session_only() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let mut ask = |session: &str| {
        wire.result("session.open", json!({"cwd": daemon.work(), "session_id": session}));
        text_and_cached(&mut wire, "whose", json!({}))
    };
    assert_eq!(ask("one"), fresh("1: one"));
    assert_eq!(ask("one"), kept("1: one"));
    assert_eq!(ask("two"), fresh("2: two"));
}

#[test]
fn results_that_list_a_folder_are_not_cached() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    assert_eq!(text_and_cached(&mut wire, "names", json!({})), fresh("1: 1"));
    assert_eq!(text_and_cached(&mut wire, "names", json!({})), fresh("2: 1"));
}

#[test]
fn a_file_that_tools_may_not_read_any_more_is_not_shown_from_memory() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    assert_eq!(text_and_cached(&mut wire, "show", json!({"path": "notes.txt"})), fresh("1: one"));
    assert_eq!(text_and_cached(&mut wire, "show", json!({"path": "notes.txt"})), kept("1: one"));
    fs::create_dir(daemon.work().join(".git")).unwrap();
    fs::write(daemon.work().join(".aiexclude"), "notes.txt\n").unwrap();
    let refused = wire.tool("show", json!({"path": "notes.txt"}));
    assert_eq!(refused["is_error"], true, "{refused}");
    assert!(!refused.to_string().contains("one"), "{refused}");
}

#[test]
fn a_plugin_that_was_loaded_again_runs_again() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    assert_eq!(text_and_cached(&mut wire, "count", json!({})), fresh("1: ran"));
    assert_eq!(text_and_cached(&mut wire, "count", json!({})), kept("1: ran"));
    fs::write(daemon.plugins().join("tools.lua"), TOOLS.replace("\"ran\"", "\"ran, changed\"")).unwrap();
    until("the plugin is reloaded", || {
        (text_and_cached(&mut wire, "count", json!({})).0 == "1: ran, changed").then_some(())
    });
}

#[test]
fn identical_calls_in_flight_run_once_and_outlive_the_first() {
    let daemon = daemon();
    let (mut one, mut two) = (daemon.connect(), daemon.connect());
    let call = |id: &str| json!({"name": "wait", "arguments": {}, "call_id": id, "progress": true});
    one.request("tools.execute", call("first"));
    one.notification("tools.progress");
    let second = two.request("tools.execute", call("second"));
    let third = two.request("tools.execute", call("third"));
    let running = |wire: &mut Wire| wire.result("daemon.status", json!({}))["calls"]["in_flight"].clone();
    let mut other = daemon.connect();
    until("all three are in flight", || (running(&mut other) == 3).then_some(()));
    let cancelled = one.result("tools.cancel", json!({"call_id": "first"}));
    assert_eq!(cancelled["cancelled"], true);
    text_and_cached(&mut other, "go", json!({}));
    let results = [(second, "second"), (third, "third")].map(|(id, name)| {
        let result = two.answer(id)["result"].take();
        assert_eq!(result["call_id"], name);
        seen(&result).0.to_owned()
    });
    // The cancelled call may have ended just before the cancellation arrived.
    assert!(results[0] == "1: went" || results[0] == "2: went", "{results:?}");
    assert_eq!(results[0], results[1]);
}
