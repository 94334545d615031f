//! Trust applies to content: plugins of projects run only as a person reviewed them, and only a person decides.

use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, Wire, toolctl, until};

fn says(tool: &str, text: &str) -> String {
    format!(
        "hygge.register_tool{{name = '{tool}', description = '{text}', parallelizable = true, \
         execute = function() return '{text}' end}}\n"
    )
}

fn open(daemon: &TestDaemon, below: &str) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work().join(below), "client": {"name": "test"}}));
    wire
}

fn plugin(wire: &mut Wire, name: &str) -> Value {
    let list = wire.result("plugins.list", json!({}));
    let plugins = list["plugins"].as_array().unwrap();
    plugins.iter().find(|plugin| plugin["name"] == name).cloned().unwrap_or(Value::Null)
}

fn has_tool(wire: &mut Wire, name: &str) -> bool {
    let tools = wire.result("tools.list", json!({"names": [name]}));
    !tools["tools"].as_array().unwrap().is_empty()
}

fn project() -> Setup {
    let setup = Setup::new().file("p/.toold/plugins/here.lua", says("here", "v1"));
    setup.file("p/.hygge/plugins/old/plugin.lua", says("old", "old")).file("q/x", "")
}

#[test]
fn an_untrusted_plugin_is_reported_and_does_not_run() {
    let loud = "io.open('ran', 'w'):close()";
    let daemon = Setup::new().file("p/.toold/plugins/here.lua", loud).start();
    let mut wire = open(&daemon, "p");
    let here = plugin(&mut wire, "here");
    assert_eq!((&here["status"], &here["tools"]), (&json!("untrusted"), &json!([])));
    assert_eq!(here["project"], json!(daemon.work().join("p")));
    assert!(!daemon.work().join("p/ran").exists());
}

#[test]
fn a_trusted_plugin_is_in_the_view_of_its_project_and_asks() {
    let daemon = project().start();
    let (mut inside, mut outside) = (open(&daemon, "p"), open(&daemon, "q"));
    let report = inside.result("plugins.trust", json!({"path": daemon.work().join("p")}));
    assert_eq!(report["items"].as_array().unwrap().len(), 2, "{report}");
    assert!(report["items"].as_array().unwrap().iter().all(|item| item["trusted"] == true), "{report}");
    assert!(has_tool(&mut inside, "here") && has_tool(&mut inside, "old"));
    assert!(!has_tool(&mut outside, "here") && plugin(&mut outside, "here").is_null());
    assert_eq!(outside.call("tools.execute", json!({"name": "here"}))["error"]["code"], -32001);
    // Trusting a plugin does not allow everything that it will ever do.
    let denied = inside.tool("here", json!({}));
    assert!(denied["is_error"] == true && denied["metadata"]["permission"]["category"] == "plugin", "{denied}");
    inside.result("permissions.grant", json!({"category": "plugin", "pattern": "here", "scope": "project"}));
    assert_eq!(inside.tool("here", json!({}))["content"][0]["text"], "v1");
}

#[test]
fn a_change_waits_for_a_person() {
    let daemon = project().start();
    let mut wire = open(&daemon, "p");
    let (path, yolo) = (daemon.work().join("p/.toold/plugins/here.lua"), json!({"mode": "yolo"}));
    wire.result("permissions.set_mode", yolo);
    wire.result("plugins.trust", json!({"path": path}));
    assert_eq!(plugin(&mut wire, "old")["status"], "untrusted");
    std::fs::write(&path, says("here", "v2")).unwrap();
    until("the change is seen", || (plugin(&mut wire, "here")["status"] == "untrusted").then_some(()));
    assert_eq!(wire.tool("here", json!({}))["content"][0]["text"], "v1");
    wire.result("plugins.trust", json!({"path": path}));
    assert_eq!(wire.tool("here", json!({}))["content"][0]["text"], "v2");
}

#[test]
fn plugin_that_changed_since_it_was_shown_is_not_trusted() {
    let daemon = project().start();
    let mut wire = open(&daemon, "p");
    let path = daemon.work().join("p");
    let shown = wire.result("plugins.trust", json!({"path": path, "preview": true}));
    assert_eq!(plugin(&mut wire, "here")["status"], "untrusted");
    let expect: serde_json::Map<String, Value> = shown["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["path"].as_str().unwrap().to_owned(), item["digest"].clone()))
        .collect();
    std::fs::write(path.join(".toold/plugins/here.lua"), says("here", "other")).unwrap();
    let refused = wire.error("plugins.trust", json!({"path": path, "expect": expect}));
    assert_eq!(refused["data"]["kind"], "changed", "{refused}");
    assert_eq!(plugin(&mut wire, "old")["status"], "untrusted");
}

#[test]
fn only_project_files_can_be_trusted() {
    let daemon = project().plugin("mine.lua", &says("mine", "x")).start();
    let mut wire = open(&daemon, "p");
    for path in [daemon.plugins().join("mine.lua"), daemon.work().join("p/nowhere"), "p".into()] {
        assert_eq!(wire.error("plugins.trust", json!({"path": path}))["code"], -32602, "{}", path.display());
    }
}

#[test]
fn an_agent_decides_nothing() {
    let daemon = project().start();
    let mut agent = Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"cwd": daemon.work().join("p"), "role": "agent"}));
    for (method, params) in [
        ("plugins.trust", json!({"path": daemon.work().join("p")})),
        ("plugins.trust", json!({"path": daemon.work().join("p"), "preview": true})),
        ("plugins.enable", json!({"name": "here"})),
        ("plugins.disable", json!({"name": "here"})),
        ("daemon.reload", json!({})),
        ("daemon.config", json!({})),
    ] {
        assert_eq!(agent.error(method, params)["code"], -32002, "{method}");
    }
}

#[test]
fn a_switch_outlives_the_daemon() {
    let mut daemon = Setup::new().plugin("mine.lua", &says("mine", "x")).config("[plugins]\ndisabled = [\"c\"]\n");
    daemon = daemon.plugin("c.lua", &says("c", "x"));
    let mut daemon = daemon.start();
    let mut wire = daemon.connect();
    let off = wire.result("plugins.disable", json!({"name": "mine"}));
    assert!(
        off["plugins"].as_array().unwrap().iter().any(|p| p["name"] == "mine" && p["status"] == "disabled"),
        "{off}"
    );
    assert!(!has_tool(&mut wire, "mine"));
    daemon.restart("TERM");
    let mut wire = daemon.connect();
    assert!(!has_tool(&mut wire, "mine"));
    wire.result("plugins.enable", json!({"name": "mine"}));
    assert!(has_tool(&mut wire, "mine"));
    let refused = wire.error("plugins.enable", json!({"name": "c"}));
    assert!(refused["message"].as_str().unwrap().contains("configuration"), "{refused}");
    assert_eq!(wire.error("plugins.disable", json!({"name": "none"}))["data"]["kind"], "unknown_plugin");
}

#[test]
fn plugins_show_lists_tools_files_and_who_trusted_them() {
    let daemon = project().start();
    let mut wire = open(&daemon, "p");
    wire.result("plugins.trust", json!({"path": daemon.work().join("p")}));
    let shown = wire.result("plugins.show", json!({"name": "here"}));
    assert_eq!((&shown["tools"][0]["name"], &shown["trusted"]["client"]), (&json!("here"), &json!("test")));
    assert_eq!(shown["files"][0]["path"], json!(daemon.work().join("p/.toold/plugins/here.lua")));
    assert_eq!(wire.error("plugins.show", json!({"name": "none"}))["code"], -32004);
}

#[test]
fn stores_and_tables_of_one_name_are_apart() {
    let script = "hygge.register_tool{name = hygge.config.tool, permission = false, execute = function() \
                  hygge.store.set('n', (hygge.store.get('n') or 0) + 1) return tostring(hygge.store.get('n')) end}\n";
    let config = |tool: &str| format!("[plugins.same]\ntool = \"{tool}\"\n");
    let daemon = Setup::new()
        .file("p/.toold/config.toml", config("of_p"))
        .file("p/.toold/plugins/same.lua", script)
        .file("q/.toold/config.toml", config("of_q"))
        .file("q/.toold/plugins/same.lua", script)
        .start();
    for (below, tool) in [("p", "of_p"), ("q", "of_q")] {
        let mut wire = open(&daemon, below);
        wire.result("plugins.trust", json!({"path": daemon.work().join(below)}));
        assert_eq!(wire.tool(tool, json!({}))["content"][0]["text"], "1", "{below}");
    }
}

#[test]
fn control_files_are_written_by_no_tool_in_any_mode() {
    let daemon = project().plugin("mine.lua", &says("mine", "x")).file("p/.aiexclude", "").start();
    let mut wire = open(&daemon, "p");
    let work = daemon.work().join("p");
    let config = daemon.setup.path("config/toold");
    for mode in ["default", "accept_edits", "yolo"] {
        wire.result("permissions.set_mode", json!({"mode": mode}));
        for path in [
            work.join(".toold/config.toml"),
            work.join(".toold/plugins/new.lua"),
            work.join(".hygge/plugins/old/plugin.lua"),
            work.join(".aiexclude"),
            work.join("deep/.toolignore"),
            config.join("config.toml"),
            config.join("plugins/mine.lua"),
            daemon.state().join("toold.db"),
            daemon.state().join("new"),
            daemon.socket(),
            daemon.socket().with_file_name("other"),
        ] {
            let before = std::fs::read(&path).ok();
            assert_eq!(
                wire.tool("write", json!({"path": path, "content": "x"}))["is_error"],
                true,
                "{}",
                path.display()
            );
            assert_eq!(std::fs::read(&path).ok().map(|text| text == b"x"), before.map(|_| false));
            let check = wire.result("permissions.check", json!({"category": "file.write", "target": path}));
            assert_eq!(check["verdict"], "deny", "{mode} {}", path.display());
            let redirect = format!("echo x > {}", path.display());
            let check = wire.result("permissions.check", json!({"category": "shell", "target": redirect}));
            assert_eq!(check["verdict"], "deny", "{mode} {redirect}");
        }
    }
}

/// A real terminal, where a person looks before deciding.
fn at_terminal(daemon: &TestDaemon, below: &str, arguments: &[&str]) -> Terminal {
    let mut command = daemon.setup.command(toolctl());
    Terminal::run(command.args(arguments).current_dir(daemon.work().join(below)))
}

#[test]
fn toolctl_trust_shows_the_files_and_asks() {
    let config = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"make *\"\naction = \"allow\"\n\
                  [[hooks]]\nevent = \"pre_tool\"\ncommand = [\"./check\"]\n";
    let daemon = project().file("p/.toold/config.toml", config).start();
    let mut wire = open(&daemon, "p");
    let mut terminal = at_terminal(&daemon, "p", &["plugins", "trust"]);
    for shown in ["here.lua", "plugin.lua", "make *", "./check", "[y/N]"] {
        terminal.wait_for(shown);
    }
    terminal.press("n\r");
    let (status, _) = terminal.end();
    assert_eq!(status.code(), Some(3));
    assert_eq!(plugin(&mut wire, "here")["status"], "untrusted");

    let mut terminal = at_terminal(&daemon, "p", &["plugins", "trust"]);
    terminal.wait_for("[y/N]");
    terminal.press("y\r");
    assert!(terminal.end().0.success());
    assert_eq!(plugin(&mut wire, "here")["status"], "loaded");
    // Nothing is left to decide, and without a terminal nobody could.
    let again = daemon.setup.command(toolctl()).args(["plugins", "trust", "p"]).output().unwrap();
    assert!(again.status.success(), "{again:?}");
    std::fs::write(daemon.work().join("p/.toold/plugins/here.lua"), says("here", "v3")).unwrap();
    assert_eq!(daemon.toolctl(&["plugins", "trust", "p"]).status.code(), Some(2));
    assert!(daemon.toolctl(&["plugins", "trust", "p", "--yes"]).status.success());
    assert_eq!(plugin(&mut wire, "here")["status"], "loaded");
}

#[test]
fn watching_person_can_trust_new_versions() {
    let daemon = project().start();
    let mut wire = open(&daemon, "p");
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    let terminal = at_terminal(&daemon, "p", &["plugins", "trust", "--watch", "--yes"]);
    terminal.wait_for("watching");
    for version in ["v2", "v3"] {
        std::fs::write(daemon.work().join("p/.toold/plugins/here.lua"), says("here", version)).unwrap();
        until("the new version serves", || {
            (wire.tool("here", json!({}))["content"][0]["text"] == version).then_some(())
        });
    }
}

#[test]
fn toolctl_switches_plugins() {
    let daemon = Setup::new().plugin("mine.lua", &says("mine", "x")).start();
    let mut wire = daemon.connect();
    assert!(daemon.toolctl(&["plugins", "disable", "mine"]).status.success());
    until("it is off", || (plugin(&mut wire, "mine")["status"] == "disabled").then_some(()));
    assert!(daemon.toolctl(&["plugins", "enable", "mine"]).status.success());
    until("it is on", || (plugin(&mut wire, "mine")["status"] == "loaded").then_some(()));
}
