//! The configuration: layered, checked, shown, and reloaded as a whole or not at all.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toold_tests::{FleetPlan, Setup, TestDaemon, Wire, toolctl, toold, until};

const ALLOW_MAKE: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"make\"\naction = \"allow\"\n";
const DENY_MAKE: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"make\"\naction = \"deny\"\n";

fn verdict(wire: &mut Wire) -> String {
    let checked = wire.result("permissions.check", json!({"category": "shell", "target": "make"}));
    checked["verdict"].as_str().unwrap().to_owned()
}

fn write_config(daemon: &TestDaemon, text: &str) {
    std::fs::write(daemon.setup.path("config/toold/config.toml"), text).unwrap();
}

fn entry(shown: &Value, key: &str) -> Value {
    let entries = shown["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["key"] == key).cloned().unwrap_or(Value::Null)
}

fn stdout(command: &mut Command) -> (String, Option<i32>) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    (
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn a_saved_file_counts_without_a_restart() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["config.changed"]}));
    assert_eq!(verdict(&mut wire), "ask");
    for (text, expected) in [(ALLOW_MAKE, "allow"), (DENY_MAKE, "deny"), ("", "ask")] {
        write_config(&daemon, text);
        until("the file is read", || (verdict(&mut wire) == expected).then_some(()));
    }
    let event = wire.notification("events.event")["result"].take();
    assert_eq!(event["file"], json!(daemon.setup.path("config/toold/config.toml")));
    assert!(event.get("problems").is_none(), "{event}");
}

#[test]
fn broken_file_is_reported_and_the_last_valid_configuration_stays() {
    let daemon = Setup::new().config(DENY_MAKE).start();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["config.changed"]}));
    write_config(&daemon, &format!("{ALLOW_MAKE}[limits]\ncals = 7\n"));
    let event = wire.notification("events.event")["result"].take();
    let problem = event["problems"][0].as_str().unwrap();
    assert!(problem.contains("config.toml:6") && problem.contains("did you mean calls"), "{problem}");
    assert_eq!(verdict(&mut wire), "deny");
    assert_eq!(wire.result("daemon.status", json!({}))["problems"][0], problem);
    let reloaded = wire.result("daemon.reload", json!({}));
    assert_eq!((&reloaded["applied"], &reloaded["problems"][0]), (&json!(false), &json!(problem)));
    assert!(daemon.log().contains("the previous one stays active"));
    let output = daemon.toolctl(&["config", "reload"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean calls"));
    // A rule that cannot be read is as bad.
    write_config(&daemon, &ALLOW_MAKE.replace("shell", "shel"));
    let refused = wire.result("daemon.reload", json!({}));
    assert_eq!((&refused["applied"], verdict(&mut wire)), (&json!(false), "deny".into()));
    write_config(&daemon, ALLOW_MAKE);
    assert_eq!(wire.result("daemon.reload", json!({}))["applied"], true);
    assert_eq!(verdict(&mut wire), "allow");
    assert!(wire.result("daemon.status", json!({})).get("problems").is_none());
}

#[test]
fn a_signal_reads_the_file_again() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    // Where the system reports no changes, such as on a network disk, a person reloads it.
    write_config(&daemon, ALLOW_MAKE);
    daemon.signal("HUP");
    until("the file is read", || (verdict(&mut wire) == "allow").then_some(()));
    assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
}

#[test]
fn limits_hooks_and_plugins_are_replaced_too() {
    let says = "hygge.register_tool{name = hygge.config.name or 'plain', execute = function() return 'x' end}\n";
    let daemon = Setup::new().plugin("p.lua", says).file("more/q.lua", says.replace("plain", "other")).start();
    let mut wire = daemon.connect();
    let tools = |wire: &mut Wire| {
        let listed = wire.result("tools.list", json!({"source": "plugin"}));
        let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(tools(&mut wire), ["plain"]);
    let hook = "[[hooks]]\nevent = \"pre_tool\"\ncommand = [\"sh\", \"-c\", \"echo hooked >&2; exit 2\"]\n";
    let more = daemon.work().join("more");
    let plugins = format!("[plugins]\npaths = [{more:?}]\n[plugins.p]\nname = \"renamed\"\n");
    write_config(
        &daemon,
        &format!("{hook}{plugins}[limits]\ncalls = 1\nmessage_bytes = 1048576\n[cache]\nmax_mib = 3\n"),
    );
    let reloaded = wire.result("daemon.reload", json!({}));
    assert_eq!(reloaded, json!({"applied": true, "needs_restart": ["cache.max_mib", "limits.message_bytes"]}));
    until("the plugins are others", || (tools(&mut wire) == ["other", "renamed"]).then_some(()));
    assert!(wire.tool("renamed", json!({}))["content"][0]["text"].as_str().unwrap().contains("hooked"));
    write_config(&daemon, "[plugins]\ndisabled = [\"p\"]\n");
    wire.result("daemon.reload", json!({}));
    until("the plugin is off", || tools(&mut wire).is_empty().then_some(()));
}

#[test]
fn the_configuration_is_shown_with_its_origins() {
    let daemon = Setup::new()
        .config("[limits]\ncalls = 7\n\n[plugins.weather]\napi_key = \"secret-1\"\n")
        .file("p/.toold/config.toml", ALLOW_MAKE)
        .start();
    let mut wire = daemon.connect();
    let shown = wire.result("daemon.config", json!({}));
    let calls = entry(&shown, "limits.calls");
    assert_eq!(calls["value"], 7);
    assert!(calls["origin"].as_str().unwrap().ends_with("config.toml:2"), "{calls}");
    assert_eq!(entry(&shown, "limits.result_bytes")["origin"], "default");
    assert!(!shown.to_string().contains("secret-1"), "{shown}");

    let mut command = daemon.setup.command(toolctl());
    command.args(["config", "show", "--origin"]).current_dir(daemon.work().join("p"));
    let (text, code) = stdout(&mut command);
    assert_eq!(code, Some(0));
    for words in ["limits.calls = 7", "config.toml:2", "not trusted", "permission.rules[0]", "p/.toold/config.toml:1"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for (key, line) in [
        ("permission.level", "permission.level = \"read\"\n"),
        ("sandbox.mode", "sandbox.mode = \"off\"\n"),
        ("mcp.listen", "mcp.listen = not set\n"),
    ] {
        assert_eq!(stdout(daemon.setup.command(toolctl()).args(["config", "show", key])), (line.to_owned(), Some(0)));
    }
    let (json, _) = stdout(daemon.setup.command(toolctl()).args(["config", "show", "--json", "limits"]));
    let shown: Value = serde_json::from_str(&json).unwrap();
    assert!(shown["entries"].as_array().unwrap().iter().all(|e| e["key"].as_str().unwrap().starts_with("limits")));
}

#[test]
fn the_environment_and_flags_stand_over_the_file() {
    let setup = Setup::new().config("[limits]\ncalls = 7\ntimeout_ms = 8\n");
    let mut command = setup.command(toold());
    command.args(["--stdio", "--set", "limits.timeout_ms=9"]).env("TOOLD_LIMITS_CALLS", "11");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.config"});
    writeln!(child.stdin.take().unwrap(), "{request}").unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |key: &str| {
        let entry = entry(&answer["result"], key);
        (entry["value"].clone(), entry["origin"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(of("limits.calls"), (json!(11), "environment TOOLD_LIMITS_CALLS".into()));
    assert_eq!(of("limits.timeout_ms"), (json!(9), "flag --set limits.timeout_ms=9".into()));
}

#[test]
fn a_file_can_be_checked_without_a_daemon() {
    let setup =
        Setup::new().file("bad.toml", "[limits]\ncals = 1\n[[hooks]]\nevnt = 1\n").file("good.toml", ALLOW_MAKE);
    let setup = setup.file("p/.toold/config.toml", "[limits]\ncalls = 1\n");
    let check = |arguments: &[&str]| stdout(setup.command(toolctl()).args(["config", "check"]).args(arguments));
    let (text, code) = check(&["bad.toml"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("bad.toml:2:1: unknown key cals in [limits]: did you mean calls?"), "{text}");
    assert!(text.contains("bad.toml:4:1: unknown key evnt in [hooks]: did you mean event?"), "{text}");
    assert_eq!(check(&["good.toml"]).1, Some(0));
    let (text, code) = check(&["p/.toold/config.toml"]);
    assert!(code == Some(1) && text.contains("for the user's configuration"), "{text}");
    assert_eq!(check(&[]).1, Some(0));
    let (path, _) = stdout(setup.command(toolctl()).args(["config", "path"]));
    assert_eq!(path.trim(), setup.path("config/toold/config.toml").display().to_string());
    let (schema, _) = stdout(setup.command(toolctl()).args(["config", "schema"]));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["properties"]["limits"]["additionalProperties"], false);
}

#[test]
fn rules_that_match_no_tool_of_a_server_are_found_by_a_check() {
    let rule = |pattern: &str| {
        format!("[[permission.rules]]\ncategory = \"mcp\"\npattern = \"{pattern}\"\naction = \"deny\"\n")
    };
    let server = "[mcp.servers.github]\nurl = \"https://mcp.example/\"\n";
    let setup = Setup::new().file("star.toml", rule("*"));
    let setup = setup.file("known.toml", rule("github/*") + &rule("*/search") + server);
    let setup = setup.file("near.toml", rule("gihub/*") + server);
    let check = |file: &str| stdout(setup.command(toolctl()).args(["config", "check", file]));
    let (text, code) = check("star.toml");
    assert!(code == Some(1) && text.contains("can match nothing") && text.contains("did you mean \"**\"?"), "{text}");
    let (text, code) = check("known.toml");
    assert!(code == Some(0) && !text.contains("warning"), "{text}");
    let (text, code) = check("near.toml");
    assert_eq!(code, Some(0), "it may be mounted later: {text}");
    let words =
        "near.toml:1: warning: there is no MCP server gihub now, so the rule matches no call yet: did you mean github?";
    assert!(text.contains(words), "{text}");
}

#[test]
fn rules_that_say_something_else_than_they_mean_are_found_by_a_check() {
    let rule = |action: &str, category: &str, pattern: &str| {
        format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"{pattern}\"\naction = \"{action}\"\n")
    };
    let rules = [
        rule("allow", "shell", "**"),
        rule("deny", "shell", "git push:*"),
        rule("deny", "shell", "yarn"),
        rule("ask", "shell", "git reset *"),
        rule("allow", "file.read", "/no/such/folder/**"),
        rule("deny", "file.read", "/no/such/folder/**"),
        rule("allow", "shell", "docker buildx bake *"),
        rule("allow", "shell", "docker compose -f dev.yml up *"),
        rule("deny", "shell", "kubectl delte *"),
        rule("deny", "shell", "docker buildx bake *"),
        rule("allow", "shell", "docker buildx bake web"),
    ];
    let setup = Setup::new().file("rules.toml", rules.concat());
    let (text, code) = stdout(setup.command(toolctl()).args(["config", "check", "rules.toml"]));
    assert_eq!(code, Some(0), "{text}");
    for (line, words) in [
        (5, "deny \"git push:*\""),
        (5, "did you mean \"git push *\"?"),
        (9, "deny \"yarn\": it is about this command without further words: for those too, write \"yarn *\""),
        (17, "there is no folder /no/such/folder"),
        (25, "covers no command, since toold does not know what docker buildx does"),
        (25, "write each command that you mean in full, without a wildcard"),
        (29, "covers no command, since -f reads another file, which decides what is run"),
        (33, "toold does not know what kubectl delte does: did you mean delete?"),
    ] {
        let found = |found: &&str| found.contains(&format!("rules.toml:{line}: warning: ")) && found.contains(words);
        assert!(text.lines().find(found).is_some(), "{line}: {words}: {text}");
    }
    assert_eq!(text.matches("warning: ").count(), 6, "{text}");
}

#[test]
fn an_edited_file_knows_its_schema_and_is_checked() {
    let setup = Setup::new();
    let edit = |editor: &str| stdout(setup.command(toolctl()).args(["config", "edit"]).env("VISUAL", editor));
    let (text, code) = edit("printf '[limits]\\ncals = 1\\n' >>");
    assert!(code == Some(1) && text.contains("config.toml:3") && text.contains("did you mean calls"), "{text}");
    let written = std::fs::read_to_string(setup.path("config/toold/config.toml")).unwrap();
    assert!(written.starts_with("#:schema ./config.schema.json\n"), "{written}");
    assert!(setup.path("config/toold/config.schema.json").exists());
    assert_eq!(edit("sed -i s/cals/calls/").1, Some(0));
}

/// The report of `config check --json`, its exit status, and all of its problems as `LINE: MESSAGE`.
fn checked(setup: &Setup, arguments: &[&str]) -> (Value, Option<i32>, Vec<String>) {
    let mut command = setup.command(toolctl());
    let output = command.args(["config", "check", "--json"]).args(arguments).stdin(Stdio::null()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let reports = [&report, &report["project"]];
    let problems = reports.iter().filter_map(|report| report["problems"].as_array()).flatten();
    let shown = problems.map(|found| format!("{}: {}", found["line"], found["message"].as_str().unwrap())).collect();
    (report, output.status.code(), shown)
}

fn doctor(setup: &Setup) -> (Vec<Value>, Option<i32>) {
    let output = setup.command(toolctl()).args(["doctor", "--json"]).stdin(Stdio::null()).output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

/// The daemon denies everything in a project whose file it can't read, and so the file is what is wrong.
#[test]
fn a_project_file_that_can_not_be_read_is_a_problem() {
    type MakeUnreadable = fn(&std::path::Path);
    let make: [(&str, MakeUnreadable); 4] = [
        ("utf-8", |file| std::fs::write(file, b"\xff\xfe").unwrap()),
        ("folder", |file| std::fs::create_dir(file).unwrap()),
        ("is a link to nowhere, which does not exist", |file| std::os::unix::fs::symlink("nowhere", file).unwrap()),
        ("unknown key", |file| std::fs::write(file, "[permission]\nruls = []\n").unwrap()),
    ];
    for (words, make) in make {
        let setup = Setup::new();
        let folder = setup.path("work/.toold");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("config.toml");
        make(&file);
        for arguments in [&[] as &[&str], &[".toold/config.toml"]] {
            let (_, code, problems) = checked(&setup, arguments);
            assert_eq!((code, problems.len()), (Some(1), 1), "{words}: {problems:?}");
            assert!(problems[0].contains(words), "{problems:?}");
        }
        let (findings, code) = doctor(&setup);
        let is_it = |finding: &&Value| finding["about"] == "config" && finding["health"] == "bad";
        let bad: Vec<&Value> = findings.iter().filter(is_it).collect();
        assert_eq!((code, bad.len()), (Some(3), 1), "{words}: {findings:?}");
        let (message, advice) = (bad[0]["message"].as_str().unwrap(), bad[0]["advice"].as_str().unwrap());
        assert!(message.contains(words) && message.contains(".toold/config.toml"), "{message}");
        assert!(advice.contains(".toold/config.toml") && advice.contains("--project"), "{advice}");
        let daemon = setup.start();
        assert_eq!(verdict(&mut daemon.connect()), "deny", "{words}");
    }
}

/// Behind the link there may be rules that deny.
#[test]
fn a_configuration_that_is_a_link_to_nowhere_denies() {
    for link in ["config/toold/config.toml", "config/toold"] {
        let setup = Setup::new();
        let place = setup.path(link);
        if place.is_dir() {
            std::fs::remove_dir_all(&place).unwrap();
        }
        std::os::unix::fs::symlink(setup.path("nowhere"), &place).unwrap();
        let (_, code, problems) = checked(&setup, &[]);
        assert_eq!((code, problems.len()), (Some(1), 1), "{problems:?}");
        assert!(problems[0].contains("is a link to"), "{problems:?}");
        let daemon = setup.start();
        assert_eq!(verdict(&mut daemon.connect()), "deny", "{link}");
        let (findings, code) = doctor(&daemon.setup);
        assert_eq!(code, Some(3), "{findings:?}");
        assert!(!findings.iter().any(|finding| finding["message"] == "none; the defaults apply"), "{findings:?}");
    }
}

/// The daemon runs without these servers, and says so only in their own states.
#[test]
fn every_mistake_in_a_server_is_named_with_its_line() {
    let text = r#"[mcp.servers.a]
[mcp.servers.b]
command = "bin/b"
url = "not a url"
max_instances = 0
tools = { allow = ["["] }
[mcp.servers."a/b"]
command = "true"
cwd = "relative"
[mcp.servers.c]
url = "https://c.example"
oauth = { grant = "client_credentials" }
[mcp.servers.d]
command = "true"
args = ["${env:NOBODY_SETS_THIS}"]
[remotes.e]
[remotes.F]
command = ["bin/f"]
url = "https://f.example"
token_file = "/token"
"#;
    let setup = Setup::new().config(text).file("b.toml", text).file(".toold/config.toml", "[mcp.servers.p]\n");
    let expected = [
        "1: mcp.servers.a: set one of command, url and socket: none of them is set",
        "2: mcp.servers.b: set only one of command, url and socket: more than one is set",
        "3: mcp.servers.b: \"bin/b\" is neither a name nor an absolute path",
        "4: mcp.servers.b: \"not a url\" is not an http or https URL",
        "5: mcp.servers.b: max_instances must be at least 1",
        "6: mcp.servers.b: tools: ",
        "7: mcp.servers.a/b: its name must be",
        "9: mcp.servers.a/b: \"relative\" is not an absolute path",
        "12: mcp.servers.c: oauth: the grant client_credentials needs",
        "16: remotes.e: set command or url: neither is set",
        "17: remotes.F: its name must be",
        "17: remotes.F: set either command or url, not both",
        "18: remotes.F: \"bin/f\" is neither a name nor an absolute path",
        "19: remotes.F: ",
    ];
    let of_project = "1: mcp.servers.p: set one of command, url and socket: none of them is set";
    for (arguments, more) in [(&[] as &[&str], Some(of_project)), (&["b.toml"], None)] {
        let (report, code, problems) = checked(&setup, arguments);
        assert_eq!(code, Some(1));
        let expected: Vec<&str> = expected.into_iter().chain(more).collect();
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for (found, expected) in problems.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found} is not {expected}");
        }
        let variable = &report["warnings"][0];
        assert_eq!(variable["line"], 15, "{report}");
        assert!(report["problems"].as_array().unwrap().iter().all(|problem| problem["column"].is_u64()), "{report}");
    }
    // Nothing else in the file is invalid.
    let daemon = setup.start();
    assert_eq!(verdict(&mut daemon.connect()), "ask");
}

/// The daemon runs without its fleet then, and says why.
#[test]
fn every_mistake_in_a_fleet_is_named_with_its_place() {
    let plan = FleetPlan::new(&["a", "b"], &["anna"]);
    let (a, anna) = (plan.daemon_public_key("a"), plan.person_public_key("anna"));
    let private = fs::read_to_string(plan.daemon_key("a")).unwrap();
    let private = private.trim();
    let text = format!(
        r#"[fleet]
name = "any"
servers = ["nats://nats.example:4222", "tls://user:word@nats.example", "nats.example"]
credentials = "nats.creds"
person = "bert"
labels = ["GPU", "a"]
cwd = "work"
offer = {{ deny = ["["] }}
[fleet.daemons.a]
key = "{a}"
[fleet.daemons.c]
key = "{a}"
tools = {{ allow = ["["] }}
[fleet.daemons.d]
[fleet.daemons.e]
key = "{anna}"
[fleet.daemons.f]
key = "{private}"
[fleet.people.anna]
key = "{anna}"
[fleet.people.Bert]
key = "x"
[fleet.use_labels.a]
"#
    );
    let setup = Setup::new().config(&text);
    let (report, code, problems) = checked(&setup, &[]);
    assert_eq!(code, Some(1));
    let expected = [
        "2: fleet.name: any is reserved",
        "3: fleet.servers: nats://nats.example:4222 would send arguments and results unencrypted",
        "3: fleet.servers: tls://nats.example contains a login",
        "3: fleet.servers: \"nats.example\" is not an address",
        "4: fleet.credentials: \"nats.creds\" is not an absolute path",
        "5: fleet.person: bert is not in [fleet.people]",
        "6: fleet.labels: \"GPU\" is no name",
        "6: fleet.labels: a is the name of a daemon already",
        "7: fleet.cwd: \"work\" is not an absolute path",
        "8: fleet.offer: ",
        "12: fleet.daemons.c.key: fleet.daemons.a has the same key",
        "13: fleet.daemons.c.tools: ",
        "14: fleet.daemons.d.key: give the public key of this daemon",
        "16: fleet.daemons.e.key: ",
        "18: fleet.daemons.f.key: this is a private key",
        "20: fleet.people.anna.key: fleet.daemons.e has the same key",
        "21: fleet.people.Bert: \"Bert\" is no name",
        "22: fleet.people.Bert.key: \"x\" is not a public key",
        "23: fleet.use_labels.a: a is the name of a daemon already",
    ];
    for (found, expected) in problems.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found} is not {expected}: {problems:#?}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    let texts = report.to_string();
    assert!(!texts.contains(private) && !texts.contains("user:word"), "{texts}");
    // Nothing else in the file is invalid.
    let daemon = setup.start();
    let mut wire = daemon.connect();
    assert_eq!(verdict(&mut wire), "ask");
    let status = wire.result("fleet.status", json!({}));
    assert!(status["error"].as_str().unwrap().contains("fleet.name: any is reserved"), "{status}");
}

/// Keys are looked at only when the texts are correct.
#[test]
fn keys_that_do_not_fit_the_fleet_are_named() {
    let plan = FleetPlan::new(&["a", "b"], &["anna", "bert"]);
    let (a, b, anna) = (plan.daemon_public_key("a"), plan.daemon_public_key("b"), plan.person_public_key("anna"));
    let text = |name: &str, key: &str, more: &str| {
        format!(
            "[fleet]\nname = {name:?}\nservers = [\"nats://127.0.0.1:1\"]\nkey_file = {key:?}\n{more}\n\
             [fleet.daemons.a]\nkey = {a:?}\n[fleet.daemons.b]\nkey = {b:?}\n[fleet.people.anna]\nkey = {anna:?}\n"
        )
    };
    let file = |path: PathBuf| path.display().to_string();
    let key = file(plan.daemon_key("a"));
    let nowhere = file(plan.daemon_key("nobody"));
    let berts = format!("person = \"anna\"\nperson_key_file = {:?}", plan.person_key("bert"));
    for (text, expected) in [
        (text("a", &key, ""), None),
        (text("b", &key, ""), Some("4: fleet.key_file: ")),
        (text("a", &nowhere, ""), Some("4: fleet.key_file: there is no key ")),
        (text("a", &key, &berts), Some("6: fleet.person_key_file: ")),
        (text("a", &key, "cwd = \"/none\""), Some("5: fleet.cwd: /none is not a folder")),
        (text("a", &key, "ca_file = \"/none\""), Some("5: fleet.ca_file: there is no file /none")),
        // Not a part of a fleet.
        (text("a", &nowhere, "enabled = false"), None),
    ] {
        let (_, _, problems) = checked(&Setup::new().config(&text), &[]);
        match expected {
            None => assert_eq!(problems, Vec::<String>::new()),
            Some(expected) => assert!(problems.len() == 1 && problems[0].starts_with(expected), "{problems:#?}"),
        }
    }
}

#[test]
fn a_rule_for_a_daemon_that_is_not_in_the_fleet_is_a_warning() {
    let plan = FleetPlan::new(&["laptop", "build"], &[]);
    let rule = |pattern: &str| {
        format!("\n[[permission.rules]]\ncategory = \"mcp\"\npattern = {pattern:?}\naction = \"allow\"\n")
    };
    let config = plan.config("laptop", "nats://127.0.0.1:1", None, "[fleet.use_labels.gpu]");
    let rules = ["fleet:build/*", "fleet:gpu/*", "fleet:biuld/read"].map(rule).concat();
    let (report, code, _) = checked(&Setup::new().config(&(config + &rules)), &[]);
    assert_eq!(code, Some(0));
    let warnings = report["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{report}");
    let words = warnings[0]["message"].as_str().unwrap();
    assert!(words.contains("there is no daemon or label biuld of the fleet now"), "{words}");
    assert!(words.contains("did you mean fleet:build?"), "{words}");
}

#[test]
fn a_variable_that_names_no_key_is_named_and_the_rest_counts() {
    let setup = Setup::new().config("[limits]\ncalls = 7\n");
    let mut command = setup.command(toold());
    command.arg("--stdio").env("TOOLD_SECRETS_PASSPHRASE", "x");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let request = |id: u64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    let requests = format!("{}\n{}\n", request(1, "daemon.config"), request(2, "daemon.status"));
    child.stdin.take().unwrap().write_all(requests.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let mut answers: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(entry(&answers[0]["result"], "limits.calls")["value"], 7);
    let problems = answers[1]["result"]["problems"].to_string();
    assert!(problems.contains("environment TOOLD_SECRETS_PASSPHRASE"), "{problems}");
}
