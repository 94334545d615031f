//! `toolctl mcp`: servers are added as users of other agents type it, tried, shown with what is wrong, and removed.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Tmux, toolctl};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n\
                     [[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";

fn stand_in() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/stand_in.py").display().to_string()
}

fn config(daemon: &TestDaemon) -> String {
    std::fs::read_to_string(daemon.setup.path("config/toold/config.toml")).unwrap_or_default()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn succeeds(output: Output) -> String {
    assert!(output.status.success(), "{}", words(&output));
    words(&output)
}

#[test]
fn a_server_is_added_tried_listed_and_removed_by_commands() {
    let daemon = Setup::new().config(ALLOW).start();
    let stand_in = stand_in();
    succeeds(daemon.toolctl(&["mcp", "add", "-e", "KEY=a value", "good", "--", "python3", &stand_in]));
    assert!(config(&daemon).starts_with(ALLOW), "{}", config(&daemon));
    let again = daemon.toolctl(&["mcp", "add", "good", "http://127.0.0.1:1/mcp"]);
    assert_eq!(again.status.code(), Some(2), "{}", words(&again));

    let tried = succeeds(daemon.toolctl(&["mcp", "test", "good", "-t", "echo", "text=tea"]));
    assert!(tried.contains("good_echo") && tried.contains("tea"), "{tried}");
    let no_tool = daemon.toolctl(&["mcp", "test", "good", "-t", "ecco"]);
    assert_eq!(no_tool.status.code(), Some(5), "{}", words(&no_tool));
    let listed = succeeds(daemon.toolctl(&["mcp", "list"]));
    assert!(listed.contains("MEMORY") && listed.contains("LEFT OUT") && listed.contains("running"), "{listed}");
    succeeds(daemon.toolctl(&["mcp", "restart", "good"]));
    succeeds(daemon.toolctl(&["mcp", "logs", "good", "-n", "5"]));

    succeeds(daemon.toolctl(&["mcp", "remove", "good"]));
    assert_eq!(config(&daemon).trim_end(), ALLOW.trim_end());
    assert_eq!(daemon.toolctl(&["mcp", "remove", "good"]).status.code(), Some(5));
    assert_eq!(daemon.toolctl(&["mcp", "list", "good"]).status.code(), Some(5));
}

#[test]
fn a_failing_server_is_shown_everywhere_with_advice_that_helps() {
    let daemon = Setup::new().config("[mcp.servers.broken]\ncommand = \"/nowhere/server\"\n").start();
    let tried = daemon.toolctl(&["mcp", "test", "broken"]);
    assert_eq!(tried.status.code(), Some(3), "{}", words(&tried));
    assert!(words(&tried).contains("/nowhere/server"), "{}", words(&tried));
    let advice = "correct its command, args and env in [mcp.servers.broken] with `toolctl config edit`; then run \
                  `toolctl mcp test broken`";
    for command in [&["doctor"][..], &["mcp", "doctor"]] {
        let shown = daemon.toolctl(command);
        assert_eq!(shown.status.code(), Some(3), "{}", words(&shown));
        assert!(words(&shown).contains(advice), "{command:?}: {}", words(&shown));
    }
    let status = succeeds(daemon.toolctl(&["status"]));
    assert!(status.contains("failing      mcp server broken: "), "{status}");

    // As the advice says.
    let file = daemon.setup.path("config/toold/config.toml");
    let repaired = format!("[mcp.servers.broken]\ncommand = \"python3\"\nargs = [{:?}]\n", stand_in());
    std::fs::write(file, repaired).unwrap();
    succeeds(daemon.toolctl(&["config", "reload"]));
    succeeds(daemon.toolctl(&["mcp", "test", "broken"]));
    let status = succeeds(daemon.toolctl(&["status"]));
    assert!(!status.contains("failing"), "{status}");
}

#[test]
fn a_check_of_the_configuration_starts_each_server_on_request() {
    let daemon = Setup::new().config("").start();
    let import = daemon.setup.path("home/mcp.json");
    std::fs::write(&import, r#"{"mcpServers": {"odd": {"command": "x", "args": ["${NOT_SET}"]}}}"#).unwrap();
    let config = format!(
        "[mcp]\nimport = [{import:?}]\n[mcp.servers.good]\ncommand = \"python3\"\nargs = [{:?}]\n\
         [mcp.servers.broken]\ncommand = \"/nowhere/server\"\n",
        stand_in()
    );
    std::fs::write(daemon.setup.path("config/toold/config.toml"), config).unwrap();
    succeeds(daemon.toolctl(&["config", "reload"]));
    let read = succeeds(daemon.toolctl(&["config", "check"]));
    let why = "the imported MCP server odd cannot be used: the daemon's environment has no variable NOT_SET";
    assert!(read.contains(why), "{read}");
    let started = daemon.toolctl(&["config", "check", "--servers"]);
    assert_eq!(started.status.code(), Some(1), "{}", words(&started));
    let said = words(&started);
    assert!(said.contains("good runs") && said.contains("broken: ") && said.contains("/nowhere/server"), "{said}");
}

#[test]
fn a_failing_hook_is_shown_by_status_and_doctor() {
    let hook =
        |command: &str| format!("{ALLOW}[[hooks]]\nevent = \"pre_tool\"\nname = \"gate\"\ncommand = [\"{command}\"]\n");
    let daemon = Setup::new().config(&hook("false")).start();
    let run = |daemon: &TestDaemon| {
        let call = json!({"name": "list", "arguments": {"path": "."}});
        daemon.connect().result("tools.execute", call);
    };
    run(&daemon);
    let status = succeeds(daemon.toolctl(&["status"]));
    assert!(
        status.contains("failing      hook gate (pre_tool): ") && status.contains("calls go on without it"),
        "{status}"
    );
    let doctor = words(&daemon.toolctl(&["doctor"]));
    assert!(doctor.contains("gate (pre_tool): ") && doctor.contains("[[hooks]]"), "{doctor}");
    // As the advice says.
    std::fs::write(daemon.setup.path("config/toold/config.toml"), hook("true")).unwrap();
    succeeds(daemon.toolctl(&["config", "reload"]));
    run(&daemon);
    let status = succeeds(daemon.toolctl(&["status"]));
    assert!(!status.contains("failing"), "{status}");
}

/// A file of VS Code, whose inputs are asked for once.
#[test]
fn a_secret_that_a_server_wants_is_asked_for_once() {
    let setup = Setup::new().config("");
    std::fs::create_dir(setup.path("credentials")).unwrap();
    std::fs::write(setup.path("credentials/toold-secrets"), "the key of this test").unwrap();
    let credentials = format!("CREDENTIALS_DIRECTORY={}", setup.path("credentials").display());
    let import = setup.path("home/mcp.json");
    let server = json!({"command": "python3", "args": [stand_in()], "env": {"KEY": "${input:token}"}});
    std::fs::write(&import, json!({"servers": {"asks": server}}).to_string()).unwrap();
    let daemon = setup.config(&format!("[mcp]\nimport = [{import:?}]\n")).through(&["env", &credentials]).start();
    let missing = "there is no secret token; `toolctl secrets set token` sets it";
    let refused = words(&daemon.toolctl(&["call", "asks_add"]));
    assert!(refused.contains(missing), "{refused}");
    let checked = words(&daemon.toolctl(&["config", "check"]));
    assert!(checked.contains(&format!("the MCP server asks cannot be used: {missing}")), "{checked}");
    let tmux = Tmux::start(&daemon);
    let pane = tmux.first();
    pane.run("toolctl mcp test asks");
    pane.wait_for("asks wants token:");
    pane.type_line("a value of six characters");
    let screen = pane.wait_for("ok   mcp server  asks");
    assert!(!screen.contains("a value of six"), "{screen}");
    pane.run("toolctl mcp test asks");
    let screen = pane.wait_for("ok   mcp server  asks");
    assert!(!screen.contains("wants token"), "{screen}");
    let checked = words(&daemon.toolctl(&["config", "check"]));
    assert!(!checked.contains("token"), "{checked}");
    pane.wait_for_prompt();
    // The server ends before the terminal is gone: no process may be left then.
    std::fs::write(daemon.setup.path("config/toold/config.toml"), "").unwrap();
    succeeds(daemon.toolctl(&["config", "reload"]));
}

/// Also with another socket, where no daemon could refuse it.
#[test]
fn no_configuration_is_written_for_a_tool() {
    let daemon = Setup::new().config(ALLOW).start();
    let mut wire = daemon.connect();
    let cursor = daemon.setup.path("home/.cursor/mcp.json");
    for command in [
        "mcp install cursor --yes",
        "agents install cursor --yes",
        "mcp add evil -- /bin/true",
        "mcp add evil http://127.0.0.1:1/",
        "mcp remove evil",
    ] {
        for socket in ["", "TOOLD_SOCKET=/nowhere/toold.sock "] {
            if !socket.is_empty() && command.starts_with("mcp add") || command.starts_with("mcp remove") {
                // These need a daemon in any case.
                continue;
            }
            let line = format!("{socket}'{}' {command}; echo status $?", toolctl().display());
            let result = wire.result("tools.execute", json!({"name": "bash", "arguments": {"command": line}}));
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(!text.contains("status 0"), "{command}: {text}");
            assert!(!cursor.exists(), "{command}: {text}");
        }
    }
    assert_eq!(config(&daemon), ALLOW);
}

/// An agent's own shell is no tool of the daemon: it is known by the client that the agent has.
#[test]
fn no_configuration_is_written_for_an_agent() {
    let daemon = TestDaemon::start();
    let script = r#"
import json, os, subprocess, sys
toolctl, elsewhere = sys.argv[1:]
bridge = subprocess.Popen([toolctl, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}) + "\n")
bridge.stdin.flush()
bridge.stdout.readline()
said = []
for environment in (os.environ, {**os.environ, "TOOLD_SOCKET": elsewhere}):
    for command in (["mcp", "install", "cursor", "--yes"], ["agents", "install", "cursor", "--yes"]):
        done = subprocess.run([toolctl, *command], env=environment, capture_output=True, text=True)
        said.append([done.returncode, done.stderr])
print(json.dumps(said))
bridge.stdin.close()
bridge.wait()
"#;
    let mut command = daemon.setup.command(Path::new("/usr/bin/env"));
    command.args(["python3", "-c", script]).arg(toolctl()).arg(daemon.setup.path("run/other.sock"));
    let output = command.output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", words(&output)));
    for answer in said.as_array().unwrap() {
        assert_ne!(answer[0], 0, "{said}");
        assert!(answer[1].as_str().unwrap().contains("configurations are written by people"), "{said}");
    }
    assert!(!daemon.setup.path("home/.cursor").exists());
}
