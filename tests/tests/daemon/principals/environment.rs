//! Variables that a client sets for the commands of its session.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire};

use crate::principals::peers::{RequestScript, spoken};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";

/// Variables that turn a harmless command into another program, or change where it looks.
const HARMFUL: &[&str] = &[
    "PATH",
    "HOME",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_0",
    "GIT_SSH_COMMAND",
    "GIT_PAGER",
    "PAGER",
    "LESSOPEN",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "CARGO_HOME",
    "JAVA_TOOL_OPTIONS",
    "MAKEFLAGS",
    "EDITOR",
    "VISUAL",
    "XDG_CONFIG_HOME",
    "SSH_AUTH_SOCK",
    "TAR_OPTIONS",
    "LANGUAGE",
    "TOOLD_SOCKET",
    "TOOLD_RUN",
    "toString",
];

/// Variables that only change how output looks.
const HARMLESS: &[&str] = &["LANG", "LC_ALL", "LC_TIME", "TZ", "TERM", "COLORTERM", "NO_COLOR", "CI"];

fn all() -> BTreeMap<&'static str, &'static str> {
    HARMFUL.iter().chain(HARMLESS).map(|name| (*name, "/evil")).collect()
}

#[track_caller]
fn only_harmful_are_ignored(opened: &Value) {
    let mut ignored: Vec<&str> =
        opened["env_ignored"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    ignored.sort_unstable();
    let mut expected = HARMFUL.to_vec();
    expected.sort_unstable();
    assert_eq!(ignored, expected);
}

/// The variables that a command of this session finds.
fn found(wire: &mut Wire) -> String {
    wire.tool("bash", json!({"command": "env"}))["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn an_agent_sets_harmless_variables_alone_and_hears_which_are_ignored() {
    let daemon = Setup::new().config(ALLOW).start();
    let mut wire = Wire::connect(&daemon.socket());
    let opened = wire.result("session.open", json!({"cwd": daemon.work(), "role": "agent", "env": all()}));
    only_harmful_are_ignored(&opened);
    daemon.connect();
    let env = found(&mut wire);
    let mut set: Vec<&str> = env.lines().filter_map(|line| line.strip_suffix("=/evil")).collect();
    set.sort_unstable();
    let mut expected = HARMLESS.to_vec();
    expected.sort_unstable();
    assert_eq!(set, expected, "{env}");
}

#[test]
fn a_person_sets_any_variable() {
    let daemon = Setup::new().config(ALLOW).start();
    let mut wire = Wire::connect(&daemon.socket());
    let opened =
        wire.result("session.open", json!({"cwd": daemon.work(), "env": {"PATH": "/evil:/usr/bin:/bin", "X": "1"}}));
    assert!(opened.get("env_ignored").is_none(), "{opened}");
    let env = found(&mut wire);
    assert!(env.contains("PATH=/evil:/usr/bin:/bin\n") && env.contains("X=1\n"), "{env}");
}

#[test]
fn an_agent_comes_back_to_its_session_with_no_more_variables() {
    let mut daemon = Setup::new().config(ALLOW).start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"session_id": "mine", "cwd": daemon.work(), "role": "agent"}));
    daemon.restart("TERM");
    let mut wire = Wire::connect(&daemon.socket());
    let opened = wire.result("session.open", json!({"session_id": "mine", "role": "agent", "env": all()}));
    assert_eq!(opened["resumed"], true);
    only_harmful_are_ignored(&opened);
}

#[test]
fn agent_passes_its_own_environment_without_secrets() {
    let daemon = Setup::new().config(ALLOW).start();
    let own = [("PATH", "/venv/bin:/usr/bin:/bin"), ("VIRTUAL_ENV", "/venv"), ("GITHUB_TOKEN", "abc")];
    let env: BTreeMap<&str, &str> = own.into_iter().chain([("NODE_OPTIONS", "--require /evil")]).collect();
    // Only its own connection identifies the program, so the person connects first.
    daemon.connect();
    let answers = spoken(
        &daemon,
        &own,
        &json!([
            ["session.open", {"cwd": daemon.work(), "role": "agent", "env": env}],
            ["tools.execute", {"name": "bash", "arguments": {"command": "env"}}],
        ]),
    );
    assert_eq!(answers[0]["result"]["env_ignored"], json!(["GITHUB_TOKEN", "NODE_OPTIONS"]), "{}", answers[0]);
    let found = answers[1]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(found.contains("PATH=/venv/bin:/usr/bin:/bin\n") && found.contains("VIRTUAL_ENV=/venv\n"), "{found}");
}

#[test]
fn tool_started_process_sets_only_harmless_variables() {
    let daemon = Setup::new().config(ALLOW).start();
    let requests = json!([["session.open", {"env": all()}]]);
    let speaker = RequestScript::new(&daemon, "requests", &requests);
    let env: Vec<String> = HARMFUL.iter().filter(|name| **name != "PATH").map(|name| format!("{name}=/evil")).collect();
    // These values are in its own environment, which it set itself.
    let line = format!("env {} {}", env.join(" "), speaker.line());
    let ran = daemon.connect().tool("bash", json!({"command": line}));
    assert_eq!(ran["is_error"], false, "{ran}");
    only_harmful_are_ignored(&speaker.answers()[0]["result"]);
}

#[test]
fn the_configuration_names_further_variables() {
    let daemon = Setup::new().config("[agents]\nenv = [\"MY_*\"]\n").start();
    let mut wire = Wire::connect(&daemon.socket());
    let env = json!({"MY_MODE": "1", "LANG": "C", "OTHER": "2"});
    let opened = wire.result("session.open", json!({"cwd": daemon.work(), "role": "agent", "env": env}));
    assert_eq!(opened["env_ignored"], json!(["LANG", "OTHER"]));
}

#[test]
fn the_bridge_for_mcp_clients_passes_its_variables_on() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let daemon = Setup::new().config(ALLOW).start();
    let mut command = daemon.setup.command(toold_tests::toolctl());
    command
        .arg("mcp")
        .env("VIRTUAL_ENV", "/venv")
        .env("NPM_TOKEN", "secret-of-npm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut bridge = command.spawn().unwrap();
    let (mut input, mut output) = (bridge.stdin.take().unwrap(), BufReader::new(bridge.stdout.take().unwrap()));
    let mut say = |message: Value, wants_answer: bool| {
        writeln!(input, "{message}").unwrap();
        let mut answer = json!({});
        while wants_answer && answer.get("id") != Some(&message["id"]) {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "the bridge ended");
            answer = serde_json::from_str(&line).unwrap();
        }
        answer
    };
    let client = json!({"name": "agent", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}), true);
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), false);
    let call = json!({"name": "bash", "arguments": {"command": "env"}});
    let ran = say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}), true);
    let found = ran["result"]["content"][0]["text"].as_str().unwrap();
    assert!(found.contains("VIRTUAL_ENV=/venv\n") && !found.contains("secret-of-npm"), "{found}");
    drop(input);
    assert!(bridge.wait().unwrap().success());
}

#[test]
fn a_token_sets_harmless_variables_alone() {
    let daemon = Setup::new().config("[mcp]\nlisten = \"127.0.0.1:0\"\n").start();
    let opened = over_http(&daemon, json!({"cwd": daemon.work(), "env": all()}));
    only_harmful_are_ignored(&opened);
}

/// The answer to `session.open` for a client with the calling token.
pub(crate) fn over_http(daemon: &TestDaemon, params: Value) -> Value {
    use std::io::{Read, Write};
    let status = daemon.connect().result("daemon.status", json!({}));
    let url = status["rpc_url"].as_str().unwrap().strip_prefix("ws://").unwrap();
    let address = url.strip_suffix("/rpc").unwrap();
    let token = std::fs::read_to_string(daemon.state().join("mcp-token")).unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": params}).to_string();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /rpc HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, json) = answer.split_once("\r\n\r\n").unwrap();
    let mut json: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {answer}"));
    json["result"].take()
}

#[test]
fn variables_that_no_program_can_use_are_ignored_and_too_many_are_refused() {
    let daemon = TestDaemon::start();
    let mut wire = Wire::connect(&daemon.socket());
    let env =
        json!({"LC_a/b": "x", "LC_\u{e9}": "x", "LC_ALL": "C\nPATH=/evil", "TERM": "x\u{1b}]0;t\u{7}", "LC_TIME": "C"});
    let opened = wire.result("session.open", json!({"cwd": daemon.work(), "role": "agent", "env": env}));
    assert_eq!(opened["env_ignored"].as_array().unwrap().len(), 4, "{opened}");
    let many: BTreeMap<String, &str> = (0..5_000).map(|number| (format!("X_{number}"), "x")).collect();
    let roots: Vec<String> = (0..300).map(|number| format!("/r/{number}")).collect();
    for params in [json!({"cwd": daemon.work(), "env": many}), json!({"cwd": daemon.work(), "roots": roots})] {
        assert_eq!(wire.error("session.open", params)["code"], -32602);
    }
}
