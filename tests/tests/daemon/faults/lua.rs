//! Plugins that hold on to a thread, memory or files.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

fn tool(name: &str, body: &str) -> String {
    format!(
        "hygge.register_tool{{name = \"{name}\", description = \"Tries\", parallelizable = true, timeout = \"10m\",\n\
         input_schema = {{type = \"object\"}}, execute = function()\n{body}\nend}}\n"
    )
}

#[track_caller]
fn gives(wire: &mut Wire, name: &str, expected: &str) {
    let result = wire.tool(name, json!({}));
    assert_eq!(result["content"][0]["text"], expected, "{result}");
}

fn status(daemon: &TestDaemon) -> Value {
    daemon.connect().result("daemon.status", json!({}))
}

/// Code that runs for very long without a point at which it can be interrupted.
const STRETCHES: [(&str, &str); 6] = [
    ("find", r#"return tostring((("a"):rep(60)):find((".-"):rep(30) .. "b"))"#),
    ("gmatch", r#"for _ in (("a"):rep(60)):gmatch((".-"):rep(30) .. "b") do end return """#),
    ("gsub", r#"return (("a"):rep(60)):gsub((".-"):rep(30) .. "b", "")"#),
    ("match", r#"return tostring((("x"):rep(60)):match((".*"):rep(20) .. "y"))"#),
    (
        "sort",
        r#"local list = {} for i = 1, 100 do list[i] = i end
        table.sort(list, function(a, b) for _ = 1, 1e12 do end return a < b end) return """#,
    ),
    ("index", r#"return setmetatable({}, {__index = function() for _ = 1, 1e12 do end end}).x or """#),
];

#[test]
fn uninterruptible_code_blocks_no_other_call() {
    let plugins = STRETCHES.iter().fold(Setup::new().file("a.txt", "here"), |setup, (name, body)| {
        setup.plugin(&format!("{name}.lua"), &tool(name, body))
    });
    let daemon = plugins.plugin("quick.lua", &tool("quick", "return \"quick\"")).start();
    let mut wire = daemon.connect();
    gives(&mut wire, "quick", "quick");
    let mut running = daemon.connect();
    let ids: Vec<u64> =
        STRETCHES.iter().map(|(name, _)| running.request("tools.execute", json!({"name": name}))).collect();
    let all = STRETCHES.len() as u64;
    until("all of them run", || (status(&daemon)["queues"]["running"].as_u64() == Some(all)).then_some(()));
    // If another call had to wait for them, this would take as long as they do.
    for _ in 0..30 {
        assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
        gives(&mut wire, "quick", "quick");
        assert_eq!(daemon.connect().tool("read", json!({"path": "a.txt"}))["is_error"], false);
    }
    assert_eq!(status(&daemon)["queues"]["running"].as_u64(), Some(all), "they did not run all the time");
    // The daemon kept reading from the connection that sent them.
    assert_eq!(running.result("daemon.ping", json!({})), json!({}));
    for id in ids {
        running.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
        assert_eq!(running.answer(id)["error"]["code"], -32800);
    }
    until("they have ended", || (status(&daemon)["calls"]["in_flight"] == 0).then_some(()));
}

/// Scripts that allocate until there is no memory left, within a `pcall`, and the objects that hold it afterwards.
const HUNGRY: [(&str, &str); 8] = [
    ("strings", r#"kept = {} while true do kept[#kept + 1] = ("x"):rep(100000) .. #kept end"#),
    ("tables", "kept = {} while true do kept[#kept + 1] = {{}, {}, {}} end"),
    ("coroutines", "kept = {} while true do kept[#kept + 1] = coroutine.create(function() coroutine.yield() end) end"),
    (
        "wrapped",
        "local f = function() return 1 end for i = 1, 1000000 do local inner = f f = coroutine.wrap(function() return inner() end) \
         kept = f end kept()",
    ),
    ("closures", "kept = {} while true do local n = #kept kept[n + 1] = function() return n end end"),
    ("one table", "kept = {} for i = 1, 1e9 do kept[i] = i end"),
    ("keys", "kept = {} for i = 1, 1e9 do kept[\"key\" .. i] = true end"),
    ("joined", r#"kept = "x" while true do kept = kept .. kept end"#),
];

#[test]
fn memory_that_a_script_used_up_is_given_back_also_when_it_caught_the_error() {
    let body = |code: &str| format!("local ok = pcall(function() {code} end) return \"caught: \" .. tostring(ok)");
    let mut setup = Setup::new();
    for (number, (_, code)) in HUNGRY.iter().enumerate() {
        let ordinary =
            tool(&format!("ordinary{number}"), "local t = {} for i = 1, 100000 do t[i] = {i} end return \"fine\"");
        let script = tool(&format!("hungry{number}"), &body(code)) + &ordinary;
        setup = setup.plugin(&format!("plugin{number}.lua"), &script);
    }
    let daemon = setup.start();
    let mut wire = daemon.connect();
    for (number, (name, _)) in HUNGRY.iter().enumerate() {
        for _ in 0..3 {
            let result = wire.tool(&format!("hungry{number}"), json!({}));
            assert!(result["content"][0]["text"].is_string(), "{name}: {result}");
            gives(&mut wire, &format!("ordinary{number}"), "fine");
        }
    }
    let memory = status(&daemon)["lua"]["memory_bytes"].as_u64().unwrap();
    assert!(memory < 200 << 20, "{} MiB", memory >> 20);
}

#[test]
fn a_plugin_that_nobody_calls_gives_its_memory_back_and_is_there_at_the_next_call() {
    let counts = "count = (count or 0) + 1 return tostring(count)";
    // A script that reads the clock while it loads may hold a value that another run would not have.
    let holds = format!("local started = os.time()\n{}", tool("holds", counts));
    let config = "[plugins]\nrelease_after_ms = 100\n";
    let daemon =
        Setup::new().config(config).plugin("counts.lua", &tool("counts", counts)).plugin("holds.lua", &holds).start();
    let mut wire = daemon.connect();
    for round in 1..=3 {
        gives(&mut wire, "counts", "1");
        gives(&mut wire, "holds", &round.to_string());
        until("one machine is left", || (status(&daemon)["lua"]["machines"] == 1).then_some(()));
    }
}

#[test]
fn of_each_plugin_a_few_registrations_are_kept_however_often_it_is_saved() {
    let daemon = Setup::new().plugin("say.lua", &tool("say", "return \"0\"")).start();
    let mut wire = daemon.connect();
    for round in (0..12).map(|round| round.to_string()) {
        let script = format!("-- {round}\n{}", tool("say", &format!("return \"{round}\"")));
        std::fs::write(daemon.plugins().join("say.lua"), script).unwrap();
        until("the new version serves", || {
            let answer = wire.call("tools.execute", json!({"name": "say"}));
            (answer["result"]["content"][0]["text"] == round).then_some(())
        });
    }
    let kept = std::fs::read_dir(daemon.state().join("registrations")).unwrap().count();
    assert!((1..=4).contains(&kept), "{kept} are kept");
}

#[test]
fn text_that_outgrows_its_limit_outside_lua_is_refused() {
    let body = r#"local ok, why = pcall(hygge.json.decode, "[" .. ("1,"):rep(10000000) .. "1]") return tostring(why)"#;
    let daemon = Setup::new().plugin("decode.lua", &tool("decode", body)).start();
    let result = daemon.connect().tool("decode", json!({}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("hygge.json.decode: the decoded values would take"), "{result}");
}
