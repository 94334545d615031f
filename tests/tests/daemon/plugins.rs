//! Plugins on a real daemon: added, saved as editors do, broken and fixed, called by two clients.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

fn tool(answer: &str) -> String {
    format!(
        "hygge.register_tool{{name = \"say\", description = \"Says\", parallelizable = true,\n\
         input_schema = {{type = \"object\"}}, execute = function() return \"{answer}\" end}}\n"
    )
}

fn say(wire: &mut Wire) -> String {
    wire.tool("say", json!({}))["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The next `tools.changed`; each must be the next revision.
fn changed(wire: &mut Wire) -> Value {
    loop {
        let event = wire.notification("events.event")["result"].take();
        if event["kind"] == "tools.changed" {
            return event;
        }
    }
}

#[test]
fn every_way_of_saving_is_followed_by_one_revision() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["tools.changed"]}));
    let path = daemon.plugins().join("say.lua");
    let beside = |name: &str| daemon.plugins().join(name);
    type Save = (&'static str, Box<dyn Fn(&str)>);
    let (p, q, r, s, t) = (path.clone(), path.clone(), path.clone(), path.clone(), path.clone());
    let (new, swap, backup, tilde) =
        (beside("say.lua.tmp"), beside(".say.lua.swp"), beside("say.lua.bak"), beside("say.lua~"));
    let saves: Vec<Save> = vec![
        ("created", Box::new(move |text| fs::write(&p, text).unwrap())),
        ("truncated and written", Box::new(move |text| fs::write(&q, text).unwrap())),
        (
            "written beside and renamed",
            Box::new(move |text| {
                fs::write(&new, text).unwrap();
                fs::rename(&new, &r).unwrap();
            }),
        ),
        (
            "with a swap file",
            Box::new(move |text| {
                fs::write(&swap, "swap").unwrap();
                fs::write(&s, text).unwrap();
                fs::remove_file(&swap).unwrap();
            }),
        ),
        (
            "moved to a backup first",
            Box::new(move |text| {
                fs::rename(&t, &backup).unwrap();
                fs::write(&t, text).unwrap();
                fs::rename(&backup, &tilde).unwrap();
            }),
        ),
    ];
    let mut revision = wire.result("tools.list", json!({}))["revision"].as_u64().unwrap();
    for (how, save) in saves {
        save(&tool(how));
        let mut event = changed(&mut wire);
        // A slow machine may notice that the file is gone before it is back; that is a revision too.
        while how == "moved to a backup first" && event["removed"] == json!(["say"]) {
            event = changed(&mut wire);
            revision += 1;
        }
        assert_eq!(say(&mut wire), how);
        revision += 1;
        assert_eq!(event["revision"], revision, "{how}: {event}");
    }
    fs::rename(&path, beside("other.lua")).unwrap();
    // Renamed: another plugin with the same tool, which the registry may report in one step or in two.
    changed(&mut wire);
    while wire.result("plugins.list", json!({}))["plugins"][0]["name"] != "other"
        || wire.result("tools.list", json!({"names": ["say"]}))["tools"].as_array().unwrap().is_empty()
    {
        changed(&mut wire);
    }
    fs::remove_file(beside("other.lua")).unwrap();
    let mut event = changed(&mut wire);
    while event["removed"] != json!(["say"]) {
        event = changed(&mut wire);
    }
    assert_eq!(wire.error("tools.execute", json!({"name": "say"}))["code"], -32001);
    let unchanged = wire.result("tools.list", json!({"if_revision": event["revision"], "if_epoch": event["epoch"]}));
    assert_eq!(unchanged["unchanged"], true);
}

#[test]
fn broken_save_keeps_the_old_version_and_reports_the_line() {
    let daemon = Setup::new().plugin("say.lua", &tool("good")).start();
    let mut wire = daemon.connect();
    assert_eq!(say(&mut wire), "good");
    wire.result("events.subscribe", json!({"kinds": ["plugin.failed", "plugin.loaded"]}));
    let path = daemon.plugins().join("say.lua");
    for (broken, line) in [("local x = 1\nlocal = 2\n", 2), ("local t = nil\n\nprint(t.field)\n", 3)] {
        fs::write(&path, broken).unwrap();
        let event = wire.notification("events.event")["result"].take();
        assert_eq!((&event["kind"], &event["plugin"]), (&json!("plugin.failed"), &json!("say")), "{event}");
        assert_eq!(event["error"]["line"], line, "{event}");
        assert_eq!(event["error"]["source_line"], broken.lines().nth(line - 1).unwrap(), "{event}");
        assert!(event["error"]["file"].as_str().unwrap().ends_with("say.lua"), "{event}");
        assert_eq!(say(&mut wire), "good");
        let listed = wire.result("plugins.list", json!({}))["plugins"][0].take();
        assert_eq!((&listed["status"], &listed["tools"]), (&json!("failed"), &json!(["say"])));
    }
    fs::write(&path, tool("mended")).unwrap();
    let event = wire.notification("events.event")["result"].take();
    assert_eq!(event["kind"], "plugin.loaded", "{event}");
    assert_eq!(say(&mut wire), "mended");
    let listed = wire.result("plugins.list", json!({}))["plugins"][0].take();
    assert_eq!((&listed["status"], &listed["error"]), (&json!("loaded"), &Value::Null));
}

#[test]
fn plugin_that_is_broken_at_the_next_start_serves_its_last_good_version() {
    let mut daemon = Setup::new().plugin("say.lua", &tool("good")).start();
    assert_eq!(say(&mut daemon.connect()), "good");
    daemon.signal("TERM");
    daemon.wait();
    fs::write(daemon.plugins().join("say.lua"), "local = 2\n").unwrap();
    daemon.start_again();
    let mut wire = daemon.connect();
    assert_eq!(say(&mut wire), "good");
    let listed = wire.result("plugins.list", json!({}))["plugins"][0].take();
    assert_eq!((&listed["status"], &listed["tools"]), (&json!("failed"), &json!(["say"])));
    let out = String::from_utf8(daemon.toolctl(&["plugins", "list"]).stdout).unwrap();
    // In the zone of this machine.
    assert!(out.contains("say.lua:1") && out.contains("the version that was loaded at 20"), "{out}");
    // No tool reads or changes what the daemon keeps.
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    let kept = fs::read_dir(daemon.state().join("plugin-versions")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(wire.tool("read", json!({"path": kept}))["is_error"], true);
    assert_eq!(wire.tool("write", json!({"path": kept, "content": "{}"}))["is_error"], true);
}

#[test]
fn a_call_in_flight_ends_on_its_own_version() {
    let slow = |answer: &str| {
        format!(
            "hygge.register_tool{{name = \"slow\", description = \"Waits for a file\", parallelizable = true,\n\
             input_schema = {{type = \"object\"}}, execute = function(ctx)\n\
             ctx.progress(\"started\")\n\
             while not hygge.fs.exists(\"go\") do hygge.sleep(\"5ms\") end\n\
             return \"{answer}\" end}}\n"
        )
    };
    let daemon = Setup::new().plugin("slow.lua", &slow("old")).start();
    let (mut wire, mut watcher) = (daemon.connect(), daemon.connect());
    let id = wire.request("tools.execute", json!({"name": "slow", "progress": true}));
    wire.notification("tools.progress");
    // Not before the call runs: a subscriber from the start also receives the events of the first load.
    watcher.result("events.subscribe", json!({"kinds": ["tools.changed"]}));
    fs::write(daemon.plugins().join("slow.lua"), slow("new")).unwrap();
    changed(&mut watcher);
    fs::write(daemon.work().join("go"), "").unwrap();
    assert_eq!(wire.answer(id)["result"]["content"][0]["text"], "old");
    assert_eq!(wire.tool("slow", json!({}))["content"][0]["text"], "new");
}

#[test]
fn folder_plugins_have_a_manifest_and_modules() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["plugin.loaded"]}));
    // Created elsewhere and moved in, as a package manager does.
    let made = daemon.work().join("made");
    fs::create_dir_all(made.join("lib")).unwrap();
    fs::write(made.join("plugin.toml"), "name = \"weather\"\nversion = \"1.2.3\"\nentrypoint = \"main.lua\"\n")
        .unwrap();
    fs::write(made.join("lib/words.lua"), "return {sun = \"sunny\"}\n").unwrap();
    let main = "local words = require(\"words\")\n\
                hygge.register_tool{name = \"weather\", description = \"Tells\", input_schema = {type = \"object\"},\n\
                execute = function() return words.sun .. \" \" .. hygge.plugin.version end}\n";
    fs::write(made.join("main.lua"), main).unwrap();
    fs::rename(&made, daemon.plugins().join("folder")).unwrap();
    assert_eq!(wire.notification("events.event")["result"]["plugin"], "weather");
    assert_eq!(wire.tool("weather", json!({}))["content"][0]["text"], "sunny 1.2.3");
    fs::write(daemon.plugins().join("folder/lib/words.lua"), "return {sun = \"rainy\"}\n").unwrap();
    wire.notification("events.event");
    assert_eq!(wire.tool("weather", json!({}))["content"][0]["text"], "rainy 1.2.3");
    let listed = wire.result("plugins.list", json!({}))["plugins"][0].take();
    assert_eq!((&listed["name"], &listed["version"]), (&json!("weather"), &json!("1.2.3")));
}

#[test]
fn tool_name_belongs_to_the_first_plugin() {
    let daemon = Setup::new().plugin("read.lua", &tool("x").replace("\"say\"", "\"read\"")).start();
    let mut wire = daemon.connect();
    let listed = wire.result("plugins.list", json!({}))["plugins"][0].take();
    assert_eq!(listed["status"], "failed");
    let words = listed["error"]["message"].as_str().unwrap();
    assert!(words.contains("read") && words.contains("builtin"), "{words}");
    assert_eq!(wire.result("tools.schema", json!({"name": "read"}))["source"]["kind"], "builtin");
}

#[test]
fn parallelizable_calls_of_one_connection_run_side_by_side() {
    // Each call waits until the other one has begun, so in sequence they would never end.
    let meet = r#"
hygge.register_tool{
  name = "meet", description = "Waits for another call", parallelizable = true,
  input_schema = {type = "object", properties = {me = {type = "string"}, you = {type = "string"}}},
  execute = function(ctx, input)
    ctx.progress(input.me)
    while not hygge.fs.exists(input.you) do hygge.sleep("5ms") end
    return "met " .. input.you
  end,
}"#;
    let daemon = Setup::new().plugin("meet.lua", meet).start();
    let mut wire = daemon.connect();
    let one =
        wire.request("tools.execute", json!({"name": "meet", "arguments": {"me": "a", "you": "b"}, "progress": true}));
    let two =
        wire.request("tools.execute", json!({"name": "meet", "arguments": {"me": "b", "you": "a"}, "progress": true}));
    for _ in 0..2 {
        let name = wire.notification("tools.progress")["text"].as_str().unwrap().to_owned();
        fs::write(daemon.work().join(name), "").unwrap();
    }
    assert_eq!(wire.answer(one)["result"]["content"][0]["text"], "met b");
    assert_eq!(wire.answer(two)["result"]["content"][0]["text"], "met a");
}

#[test]
fn a_plugin_that_loops_at_load_delays_nobody() {
    let daemon = Setup::new().plugin("loop.lua", "while true do end\n").plugin("say.lua", &tool("here")).start();
    let mut wire = daemon.connect();
    assert_eq!(say(&mut wire), "here");
}

#[test]
fn reload_by_name_loads_again() {
    let daemon = Setup::new().plugin("say.lua", &tool("here")).start();
    let mut wire = daemon.connect();
    let before = wire.result("tools.list", json!({}))["revision"].as_u64().unwrap();
    let listed = wire.result("plugins.reload", json!({"name": "say"}));
    assert_eq!(listed["plugins"][0]["status"], "loaded");
    assert_eq!(wire.result("tools.list", json!({}))["revision"], before + 1);
    assert_eq!(wire.error("plugins.reload", json!({"name": "no"}))["code"], -32004);
    assert!(Path::new(listed["plugins"][0]["path"].as_str().unwrap()).is_absolute());
}

/// Why there is no tool of this name.
fn why(wire: &mut Wire, name: &str) -> String {
    let executed = wire.error("tools.execute", json!({"name": name}));
    assert_eq!(executed["data"]["kind"], "unknown_tool", "{executed}");
    let described = wire.error("tools.schema", json!({"name": name}));
    assert_eq!(executed["message"], described["message"]);
    executed["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_missing_tool_has_a_reason() {
    let named = |name: &str| format!("hygge.register_tool{{name = \"{name}\", execute = print}}\n");
    let twin = |name: &str| format!("hygge.register_tool{{name = '{name}', execute = print}}");
    let setup = Setup::new()
        .config(
            "[plugins]\ndisabled = [\"off\"]\n\
             [mcp.servers.files]\ncommand = \"no-such-program\"\n\
             [mcp.servers.quiet]\ncommand = \"x\"\nenabled = false\n",
        )
        .plugin("off.lua", &named("asleep"))
        .plugin("broken.lua", &format!("{}error('out of tea')", named("tea")))
        .file("../config/toold/plugins/a/plugin.toml", "name = 'twin'")
        .file("../config/toold/plugins/a/plugin.lua", twin("first"))
        .file("../config/toold/plugins/b/plugin.toml", "name = 'twin'")
        .file("../config/toold/plugins/b/plugin.lua", twin("second"));
    let daemon = setup.start();
    let project = |name: &str| {
        let folder = daemon.setup.path(name);
        fs::create_dir_all(folder.join(".toold/plugins")).unwrap();
        let plugin = folder.join(format!(".toold/plugins/{name}_plugin.lua"));
        fs::write(plugin, named(&format!("{name}_tool"))).unwrap();
        folder.display().to_string()
    };
    let (mine, others) = (project("mine"), project("others"));
    let mut wire = daemon.connect();
    wire.result("session.open", json!({"cwd": mine}));
    let mut stranger = daemon.connect();
    stranger.result("session.open", json!({"cwd": others}));
    wire.result("plugins.list", json!({}));
    let mut check = |name: &str, expected: &str| {
        let message = why(&mut wire, name);
        assert!(message.starts_with(&format!("there is no tool {name}")) && message.contains(expected), "{message}");
    };
    check("asleep", ": the plugin off has it and is disabled: `toolctl plugins enable off`");
    check("tea", "the plugin broken has it, but its newest version did not load (broken.lua:2: out of tea");
    check("json_query", "the plugin json_query, which ships with the daemon, has it and is not enabled");
    check("second", "b has it, and another plugin of that name serves");
    check("mine_tool", "the plugin mine_plugin of this project has it, and nobody has trusted its files");
    check("quiet_read", "MCP server quiet, whose tools are called quiet_..., is disabled in the configuration");
    check("files_read", "MCP server files, whose tools are called files_..., ");
    check("firts", "; did you mean first?");
    // A project's plugins are nobody else's business.
    check("others_tool", "there is no tool others_tool");
    assert!(!why(&mut wire, "others_tool").contains("others_plugin"));
    assert!(why(&mut stranger, "others_tool").contains("others_plugin"));
    let called = daemon.toolctl(&["call", "json_query"]);
    let message = String::from_utf8(called.stderr).unwrap();
    assert!(message.contains("toolctl plugins enable json_query"), "{message}");
    wire.result("session.open", json!({"cwd": daemon.work(), "tools": {"disable": ["first"]}}));
    assert!(why(&mut wire, "first").contains("a filter of tools that leaves it out"));
}
