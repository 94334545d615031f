//! Rules, grants and names that can match nothing are mistakes, and the message says what was probably meant.

use std::process::Stdio;

use serde_json::json;
use toold_tests::{Setup, TestDaemon, toolctl};

/// The output of `toolctl config check` for a file, and its exit status.
fn check(setup: &Setup, file: &str) -> (String, Option<i32>) {
    let mut command = setup.command(toolctl());
    let output = command.args(["config", "check", file]).stdin(Stdio::null()).output().unwrap();
    (String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(), output.status.code())
}

fn rule(category: &str, pattern: &str, action: &str, more: &str) -> String {
    format!("[[permission.rules]]\ncategory = {category:?}\npattern = {pattern:?}\naction = {action:?}\n{more}\n")
}

#[test]
fn a_rule_that_can_match_nothing_is_a_mistake_with_its_line() {
    for (text, said) in [
        (rule("mcp", "*", "allow", ""), "did you mean \"**\"?"),
        (rule("mcp", "github", "deny", ""), "did you mean \"github/*\"?"),
        (rule("network", "https://example.com/*", "allow", ""), "did you mean \"example.com\"?"),
        (rule("network", "example.com:70000", "deny", ""), "ports are numbers up to 65535"),
        (rule("file.read", "/srv/www/", "allow", ""), "did you mean \"/srv/www/**\"?"),
        (rule("file.write", "/srv/../www/*", "ask", ""), "did you mean \"/www/*\"?"),
        (rule("shell", "git status && ls", "allow", ""), "separate rule for each of \"git status\" and \"ls\""),
        (rule("shell", "FOO=1 cargo *", "allow", ""), "did you mean \"cargo *\"?"),
        (rule("shel", "ls", "allow", ""), "did you mean shell?"),
        (rule("shell", "ls", "alow", ""), "did you mean allow?"),
        (rule("shell", "ls", "allow", "tools = [\"Bash\"]"), "did you mean \"bash\"?"),
        (rule("shell", "ls", "allow", "tools = []"), "the rule applies to no tool"),
        (rule("shell", "ls", "allow", "cwd = \"/srv/../www\""), "did you mean \"/www\"?"),
        (rule("shell", "ls", "allow", "cwd = \"www\""), "is not absolute"),
    ] {
        // A choice that does not exist has a place of its own.
        let place = match said {
            "did you mean shell?" => "config.toml:3:12:",
            "did you mean allow?" => "config.toml:5:10:",
            _ => "config.toml:2:",
        };
        let setup = Setup::new().file("config.toml", format!("\n{text}"));
        let (output, code) = check(&setup, "config.toml");
        assert!(code == Some(1) && output.contains(place) && output.contains(said), "{text}{output}");
        // A project's file is read in the same way, except that relative folders are in the project.
        if !text.contains("cwd = \"www\"") {
            let setup = Setup::new().file("p/.toold/config.toml", format!("\n{text}"));
            let (output, code) = check(&setup, "p/.toold/config.toml");
            assert!(code == Some(1) && output.contains(place) && output.contains(said), "{text}{output}");
        }
    }
}

#[test]
fn a_name_that_nothing_can_have_is_a_mistake_with_its_line() {
    for (text, said) in [
        ("[mcp.clients.\"\"]\napprove = true\n", "\"\" is not a valid name"),
        ("[mcp.clients.\"a\\nb\"]\napprove = true\n", "\"a\\nb\" is not a valid name"),
        ("[subagents.\" \"]\ndescription = \"x\"\n", "\" \" is not a valid name"),
        ("plugins.disabled = [\"Noisy.lua\"]\n", "did you mean noisy?"),
        ("plugins.bundled = [\"json query\"]\n", "did you mean json_query?"),
        ("[plugins.\"My-Plugin\"]\ncity = \"Bonn\"\n", "did you mean my-plugin?"),
        ("[[hooks]]\nevent = \"pre_tool\"\ncommand = [\"x\"]\ntools = [\"Bash\"]\n", "did you mean \"bash\"?"),
        ("permission.protected_writes = [\"deploy/\"]\n", "did you mean deploy/**?"),
        ("network.allow_private = [\"http://10.0.0.1\"]\n", "10.0.0.1"),
    ] {
        // A choice that does not exist has a place of its own.
        let place = match said {
            "did you mean shell?" => "config.toml:3:12:",
            "did you mean allow?" => "config.toml:5:10:",
            _ => "config.toml:2:",
        };
        let setup = Setup::new().file("config.toml", format!("\n{text}"));
        let (output, code) = check(&setup, "config.toml");
        assert!(code == Some(1) && output.contains(place) && output.contains(said), "{text}{output}");
    }
}

#[test]
fn rule_for_a_tool_that_may_appear_later_is_a_warning() {
    let absent = rule("shell", "ls", "allow", "cwd = \"/not/there\"");
    for (text, said) in [
        (absent.as_str(), ":2: warning: there is no folder /not/there"),
        (
            "plugins.disabled = [\"todo_findr\"]\n",
            ":2: warning: plugins.disabled: there is no plugin todo_findr now: did you mean todo_finder?",
        ),
    ] {
        let setup = Setup::new().file("config.toml", format!("\n{text}"));
        let (output, code) = check(&setup, "config.toml");
        assert!(code == Some(0) && output.contains(said), "{text}{output}");
    }
    let setup =
        Setup::new().file("config.toml", "plugins.disabled = [\"todo_finder\", \"own\"]\n").plugin("own.lua", "");
    assert!(!check(&setup, "config.toml").0.contains("warning"));
}

fn verdict(daemon: &TestDaemon, category: &str, target: &str) -> String {
    let checked = daemon.connect().result("permissions.check", json!({"category": category, "target": target}));
    checked["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn an_allow_that_matches_nothing_is_reported_and_takes_nothing_away() {
    let daemon = Setup::new().config(&(rule("mcp", "*", "allow", "") + &rule("shell", "ls", "allow", ""))).start();
    assert_eq!(verdict(&daemon, "shell", "ls"), "allow");
    assert_eq!(verdict(&daemon, "mcp", "github/search"), "ask");
    let mut wire = daemon.connect();
    let problem = wire.result("daemon.status", json!({}))["problems"][0].as_str().unwrap().to_owned();
    assert!(problem.contains("config.toml:1:") && problem.contains("did you mean \"**\"?"), "{problem}");
    assert_eq!(wire.result("permissions.list", json!({}))["broken"], json!([problem]));
}

#[test]
fn a_deny_that_matches_nothing_denies_its_category() {
    let daemon = Setup::new().config(&(rule("mcp", "*", "deny", "") + &rule("mcp", "**", "allow", ""))).start();
    assert_eq!(verdict(&daemon, "mcp", "github/search"), "deny");
}

#[test]
fn grant_that_can_match_nothing_is_refused_with_a_suggestion() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    for (category, pattern, said) in [
        ("mcp", "*", "did you mean \"**\"?"),
        ("network", "https://example.com/x", "did you mean \"example.com\"?"),
        ("shell", "cd x && make", "write a separate rule for each of \"cd x\" and \"make\""),
        ("file.write", "/srv//www", "did you mean \"/srv/www\"?"),
    ] {
        let grant = json!({"category": category, "pattern": pattern, "scope": "always"});
        let error = wire.error("permissions.grant", grant);
        assert!(error["code"] == -32602 && error.to_string().replace("\\\"", "\"").contains(said), "{error}");
        let output = daemon.toolctl(&["permissions", "grant", category, pattern]);
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.contains(said), "{output}");
    }
    let names = json!({"category": "shell", "pattern": "ls", "scope": "always", "chain": ["My Plugin"]});
    assert!(wire.error("permissions.grant", names).to_string().contains("is not a plugin name"));
    let names = json!({"category": "shell", "pattern": "ls", "scope": "always", "tools": ["ba*"]});
    assert!(wire.error("permissions.grant", names).to_string().contains("is not a tool name"));
    assert_eq!(wire.result("permissions.list", json!({}))["grants"], json!([]));
}

#[test]
fn a_reply_with_a_pattern_that_can_match_nothing_is_refused_and_the_ask_waits() {
    let daemon = TestDaemon::asking();
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let mut agent = daemon.connect();
    let id = agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "ls"}}));
    let ask = person.notification("permissions.event")["result"]["request"].take();
    let reply = |pattern: &str| json!({"request_id": ask["request_id"], "action": "allow", "scope": "session", "pattern": pattern});
    let error = person.error("permissions.reply", reply("FOO=1 ls"));
    assert!(error["code"] == -32602 && error.to_string().contains("did you mean"), "{error}");
    person.result("permissions.reply", reply("ls"));
    assert_eq!(agent.answer(id)["result"]["is_error"], false);
}

#[test]
fn a_kept_grant_that_can_match_nothing_still_loads() {
    let mut daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    wire.result("permissions.grant", json!({"category": "mcp", "pattern": "a/*", "scope": "always"}));
    daemon.signal("TERM");
    daemon.wait();
    let kept = rusqlite::Connection::open(daemon.state().join("toold.db")).unwrap();
    assert_eq!(kept.execute("UPDATE grants SET pattern = '*'", []).unwrap(), 1);
    drop(kept);
    daemon.start_again();
    let grants = daemon.connect().result("permissions.list", json!({}))["grants"].take();
    assert_eq!((grants.as_array().unwrap().len(), &grants[0]["pattern"]), (1, &json!("*")));
}

#[test]
fn plugin_cannot_request_a_permission_that_no_rule_can_match() {
    let source = "hygge.register_tool{name = 'odd', permission = function() return {category = 'mcp', target = 'search'} end,\n\
                  execute = function() return 'x' end}\n";
    let daemon = Setup::new().plugin("p.lua", source).start();
    let refused = daemon.connect().tool("odd", json!({}));
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(refused["is_error"] == true && text.contains("expected SERVER/TOOL"), "{refused}");
}
