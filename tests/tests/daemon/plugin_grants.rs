//! Permissions that plugins asked for and were refused: how they are listed and granted.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, Wire, toolctl};

/// `fetch` needs the network, `peek` a file outside of the session's folder, `secret` a file that nobody reads.
const ASKING: &str = r#"
hygge.register_tool { name = "fetch", execute = function(ctx, input)
  return hygge.http.get(input.url).body
end }
hygge.register_tool { name = "peek", execute = function(ctx, input)
  return hygge.fs.read(input.path)
end }
"#;

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Runs a command line of a message as it is, in a shell that finds `toolctl`.
fn run_as_written(daemon: &TestDaemon, line: &str) {
    let mut shell = daemon.setup.command("/bin/sh".as_ref());
    let path = toolctl().parent().unwrap().display().to_string();
    let output = shell.args(["-c", line]).env("PATH", format!("{path}:/usr/bin:/bin")).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The command line that a refusal names.
#[track_caller]
fn named_command(refusal: &Value) -> &str {
    assert_eq!(refusal["is_error"], true, "{refusal}");
    let (_, command) = text(refusal).split_once("Allow it with: ").unwrap_or_else(|| panic!("no command in {refusal}"));
    command.split(" (or ").next().unwrap()
}

fn refused(wire: &mut Wire) -> Vec<Value> {
    let shown = wire.result("plugins.show", json!({"name": "asking"}));
    shown["refused"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_refused_need_of_a_plugin_is_listed_once_with_the_pattern_that_allows_it() {
    let setup =
        Setup::new().plugin("asking.lua", ASKING).file("outside/note.txt", "a note").file("outside/.env", "KEY=1");
    let note = setup.path("outside/note.txt");
    let daemon = setup.start();
    let mut wire = daemon.connect();
    assert_eq!(refused(&mut wire), [] as [Value; 0]);
    for _ in 0..2 {
        wire.tool("fetch", json!({"url": "https://example.org/"}));
    }
    wire.tool("peek", json!({"path": note}));
    wire.tool("peek", json!({"path": note.with_file_name(".env")}));
    let refused = refused(&mut wire);
    let seen: Vec<_> = refused.iter().map(|one| (&one["category"], &one["times"], &one["pattern"])).collect();
    let (file, network) = (json!("file.read"), json!("network"));
    assert_eq!(
        seen,
        [
            (&file, &json!(1), &Value::Null),
            (&file, &json!(1), &json!(note)),
            (&network, &json!(2), &json!("example.org:443")),
        ],
        "{refused:?}"
    );
    assert!(refused.iter().all(|one| one["chain"] == json!(["asking"]) && one["at_load"] == false), "{refused:?}");

    let mut agent = BTreeMap::from([("role", json!("agent")), ("cwd", json!(daemon.work()))]);
    agent.insert("client", json!({"name": "agent", "version": "1"}));
    let mut other = daemon.connect();
    other.result("session.open", json!(agent));
    let shown = other.result("plugins.show", json!({"name": "asking"}));
    assert_eq!(shown.get("refused"), None, "another session's refusals are not shown to an agent: {shown}");

    let grant = json!({"category": "network", "pattern": "*.net:443", "scope": "always", "chain": ["asking"]});
    wire.result("permissions.grant", grant);
    assert_eq!(self::refused(&mut wire).len(), 3, "the grant does not match it");
    let grant = json!({"category": "network", "pattern": "example.org:443", "scope": "always", "chain": ["asking"]});
    wire.result("permissions.grant", grant);
    assert_eq!(self::refused(&mut wire).len(), 2);
}

/// Needs of every category, of a person's session and of a plugin, which the default configuration refuses while nobody
/// can be asked.
#[test]
fn the_command_that_a_refusal_names_allows_it() {
    let needs = r#"
local function declared(name, category, target)
  hygge.register_tool { name = name, permission = function() return { category = category, target = target } end,
    execute = function() return "allowed" end }
end
declared("of_file_read", "file.read", "/etc/it's here")
declared("of_file_write", "file.write", "/srv/[x] y/$HOME")
declared("of_network", "network", "example.org:443")
declared("of_mcp", "mcp", "git hub/search*")
declared("of_plugin", "plugin", "-other")
for _, category in ipairs { "file_read", "file_write", "network", "mcp", "plugin" } do
  hygge.register_tool { name = "inner_" .. category, execute = function()
    return hygge.call_tool("of_" .. category, {})
  end }
end
hygge.register_tool { name = "inner_shell", execute = function()
  local ran = hygge.exec("printf", { "%s", "it's \"$x\"" })
  return { content = ran.stdout .. ran.stderr, is_error = ran.code ~= 0 }
end }
"#;
    let config = "[permission]\nread_only_commands = \"ask\"\n[[permission.rules]]\ncategory = \"plugin\"\n\
                  pattern = \"-other\"\naction = \"ask\"\n";
    let daemon = Setup::new().config(config).plugin("asking.lua", needs).start();
    let mut wire = daemon.connect();
    let own = ["of_file_read", "of_file_write", "of_network", "of_mcp", "of_plugin"].map(|tool| (tool, json!({})));
    let shell = ("bash", json!({"command": "printf '%s' \"it's\""}));
    let through = ["inner_file_read", "inner_file_write", "inner_network", "inner_mcp", "inner_plugin", "inner_shell"];
    let through = through.map(|tool| (tool, json!({})));
    for (tool, arguments) in own.into_iter().chain([shell]).chain(through) {
        let refusal = wire.tool(tool, arguments.clone());
        let command = named_command(&refusal);
        // A need that a plugin's tool declares is the plugin's own; calling the tool is its caller's.
        let is_callers = ["bash", "of_plugin"].contains(&tool);
        assert_eq!(command.contains(" --chain asking"), !is_callers, "{command}");
        run_as_written(&daemon, command);
        let allowed = wire.tool(tool, arguments);
        assert_eq!(allowed["is_error"], false, "{tool} after {command}: {allowed}");
    }
}

#[test]
fn a_refusal_that_no_grant_overrides_names_none() {
    let config = "[[permission.rules]]\ncategory = \"network\"\npattern = \"example.org\"\naction = \"deny\"\n";
    let daemon = Setup::new().config(config).plugin("asking.lua", ASKING).start();
    let mut wire = daemon.connect();
    for refusal in [
        wire.tool("web_fetch", json!({"url": "https://example.org/"})),
        wire.tool("fetch", json!({"url": "https://example.org/"})),
        wire.tool("read", json!({"path": "/etc/shadow"})),
    ] {
        assert!(refusal["is_error"] == true && text(&refusal).contains("not allowed"), "{refusal}");
        assert!(!text(&refusal).contains("Allow it with"), "{refusal}");
    }
}

#[test]
fn a_grant_of_every_host_holds_for_public_addresses_only() {
    let daemon = Setup::new().plugin("asking.lua", ASKING).start();
    let mut wire = daemon.connect();
    let verdict = |wire: &mut Wire| {
        wire.result("permissions.check", json!({"category": "network", "target": "example.org:443"}))["verdict"].clone()
    };
    assert_eq!(verdict(&mut wire), "deny");
    run_as_written(&daemon, "toolctl permissions grant network '*'");
    assert_eq!(verdict(&mut wire), "allow");
    assert!(named_command(&wire.tool("fetch", json!({"url": "http://example.org/"}))).contains("--chain"));
    run_as_written(&daemon, "toolctl permissions grant network '*:*' --chain asking");
    let private = wire.tool("fetch", json!({"url": "http://127.0.0.1:9/"}));
    assert!(text(&private).contains("is not a public address"), "{private}");
}

#[test]
fn a_grant_without_a_chain_says_that_it_does_not_reach_plugins_that_were_refused() {
    let setup = Setup::new().plugin("asking.lua", ASKING);
    std::fs::write(setup.path("note.txt"), "a note").unwrap();
    let note = setup.path("note.txt");
    let daemon = setup.start();
    let mut wire = daemon.connect();
    let said = |daemon: &TestDaemon| {
        let output = daemon.toolctl(&["permissions", "grant", "file.read", "/**"]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(said(&daemon), "");
    assert_eq!(wire.tool("peek", json!({"path": note}))["is_error"], true);
    let said = said(&daemon);
    assert!(said.contains("--chain asking") && said.contains("toolctl plugins grant asking"), "{said}");
    assert_eq!(wire.tool("peek", json!({"path": note}))["is_error"], true);
}

#[test]
fn everything_that_a_plugin_was_refused_is_granted_in_one_go() {
    let setup = Setup::new().plugin("asking.lua", ASKING);
    std::fs::write(setup.path("note.txt"), "a note").unwrap();
    let note = setup.path("note.txt");
    let daemon = setup.start();
    let mut wire = daemon.connect();
    let toolctl = |arguments: &[&str]| {
        let output = daemon.toolctl(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = toolctl(&["plugins", "grant", "asking"]);
    assert!(code == 0 && out.contains("refused nothing since the daemon started"), "{out}{err}");

    wire.tool("peek", json!({"path": note}));
    wire.tool("peek", json!({"path": "/etc/shadow"}));
    wire.tool("fetch", json!({"url": "https://example.org/"}));
    let (code, out, err) = toolctl(&["plugins", "grant", "asking"]);
    assert!(code != 0 && err.contains("pass --yes to confirm"), "{out}{err}");
    assert_eq!(refused(&mut wire).len(), 3);
    assert_eq!(wire.result("permissions.list", json!({}))["grants"], json!([]));

    let (code, out, err) = toolctl(&["plugins", "grant", "asking", "--yes", "--expires-in", "3600", "--json"]);
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((report["refused"].as_array().unwrap().len(), &report["plugin"]["status"]), (3, &json!("loaded")));
    let granted = report["granted"].as_array().unwrap();
    let all: Vec<_> = granted.iter().map(|grant| (&grant["category"], &grant["chain"])).collect();
    let chain = json!(["asking"]);
    assert_eq!(all, [(&json!("network"), &chain), (&json!("file.read"), &chain)], "never a secret: {out}");
    assert!(granted.iter().all(|grant| grant["expires_at"].is_string() && grant["by"] == "toolctl"), "{out}");
    assert_eq!(text(&wire.tool("peek", json!({"path": note}))), "a note");
    let left = refused(&mut wire);
    assert!(left.len() == 1 && left[0]["target"] == "/etc/shadow", "{left:?}");
}

#[test]
fn single_permissions_are_chosen_at_the_terminal() {
    let daemon = Setup::new().plugin("asking.lua", ASKING).start();
    let mut wire = daemon.connect();
    wire.tool("fetch", json!({"url": "https://one.example/"}));
    wire.tool("fetch", json!({"url": "https://two.example/"}));
    let begin = || {
        let mut command = daemon.setup.command(toolctl());
        let terminal = Terminal::run(command.args(["plugins", "grant", "asking"]));
        terminal.wait_for("Grant all 2? [y/N, c: choose]");
        terminal
    };
    let mut terminal = begin();
    terminal.press("n");
    assert_eq!(terminal.end().0.code(), Some(3));
    assert_eq!(refused(&mut wire).len(), 2);

    let mut terminal = begin();
    terminal.press("c");
    terminal.wait_for("Grant network two.example:443? [y/N]");
    terminal.press("n");
    terminal.wait_for("Grant network one.example:443? [y/N]");
    terminal.press("y");
    let (status, shown) = terminal.end();
    assert!(status.success() && shown.contains("only through asking"), "{shown}");
    let left = refused(&mut wire);
    assert!(left.len() == 1 && left[0]["target"] == "two.example:443", "{left:?}");
}

/// No other tool, no grant and no mode gives a capability that the manifest does not declare.
#[test]
fn declared_capabilities_are_the_limit_of_everything_that_a_plugin_calls() {
    let manifest = "name = \"limited\"\napi = \"toold\"\n[capabilities]\ntools = true\nfs_read = true\n";
    let source = r#"hygge.register_tool { name = "limited", execute = function(ctx, input)
  return hygge.call_tool(input.tool, input.arguments)
end }"#;
    let setup = Setup::new().file("a.txt", "content");
    std::fs::create_dir(setup.path("config/toold/plugins/limited")).unwrap();
    let setup = setup.plugin("limited/plugin.toml", manifest).plugin("limited/plugin.lua", source);
    let daemon = setup.start();
    let mut wire = daemon.connect();
    let shell = json!({"tool": "bash", "arguments": {"command": "echo x"}});
    let write = json!({"tool": "write", "arguments": {"path": "b.txt", "content": "x"}});
    for (category, pattern) in [("shell", "**"), ("file.write", "**")] {
        let grant = json!({"category": category, "pattern": pattern, "scope": "always", "chain": ["limited"]});
        wire.result("permissions.grant", grant);
    }
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    for (arguments, capability) in [(&shell, "exec"), (&write, "fs_write")] {
        let refusal = wire.tool("limited", arguments.clone());
        assert!(text(&refusal).contains(&format!("does not declare the capability {capability}")), "{refusal}");
    }
    let read = wire.tool("limited", json!({"tool": "read", "arguments": {"path": "a.txt"}}));
    assert!(text(&read).contains("content"), "{read}");
    let refused = wire.result("plugins.show", json!({"name": "limited"}))["refused"].take();
    assert!(refused.as_array().unwrap().iter().all(|one| one.get("pattern").is_none()), "{refused}");

    // A manifest that declares it lifts the limit.
    std::fs::write(daemon.plugins().join("limited/plugin.toml"), manifest.replace("fs_read", "exec = true\nfs_read"))
        .unwrap();
    wire.result("plugins.reload", json!({"name": "limited"}));
    assert!(text(&wire.tool("limited", shell)).contains('x'));
}
