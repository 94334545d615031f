//! The command sandbox: failing and working commands, and reports about it.
//!
//! Where this machine has no sandbox, the daemon must report that and run nothing; the tests check that instead.

mod builds;
mod everyday;
pub(crate) mod floors;
mod guard;
mod hidden;
mod left_behind;
mod metadata;
mod network;
mod others;
mod owners;
mod replaced;

use std::io::Write;
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, toold, until};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n\
                     [[permission.rules]]\ncategory = \"file.write\"\npattern = \"/**\"\naction = \"allow\"\n";

/// Whether this machine can confine programs, asked from the program that does.
fn machine_can() -> bool {
    let output = std::process::Command::new(toold()).args(["sandbox-exec", "--", "/bin/true"]).output().unwrap();
    output.status.success()
}

/// Whether its kernel keeps signals within a sandbox; says so where it does not, since less is tested then.
fn machine_scopes() -> bool {
    let arguments = ["sandbox-exec", "--needs-scope", "--", "/bin/true"];
    let scopes = std::process::Command::new(toold()).args(arguments).output().unwrap().status.success();
    if !scopes {
        toold_tests::skip("this kernel does not keep signals in a sandbox");
    }
    scopes
}

/// A daemon with this sandbox that allows every command; `None` where the machine cannot give it, which was tested.
fn confined(sandbox: &str, setup: Setup) -> Option<TestDaemon> {
    let daemon = setup.config(&format!("{ALLOW}[sandbox]\n{sandbox}\n")).start();
    if machine_can() {
        return Some(daemon);
    }
    let mut wire = daemon.connect();
    let problems = wire.result("daemon.status", json!({}))["problems"].to_string();
    assert!(problems.contains("sandbox: "), "{problems}");
    assert_eq!(wire.tool("bash", json!({"command": "touch ran"}))["is_error"], true);
    assert!(!daemon.work().join("ran").exists());
    toold_tests::skip("this machine cannot confine programs: only the refusal was tested");
    None
}

#[track_caller]
fn run(wire: &mut Wire, command: &str) -> String {
    let result = wire.tool("bash", json!({"command": command}));
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

#[test]
fn read_only_reads_and_writes_nothing() {
    let setup = Setup::new().file("here.txt", "what is here\n");
    let Some(daemon) = confined("mode = \"read-only\"", setup) else { return };
    let mut wire = daemon.connect();
    assert_eq!(run(&mut wire, "cat here.txt; head -c 4 /dev/urandom | wc -c; echo x > /dev/null"), "what is here\n4\n");
    for command in
        ["echo x > new", "echo x >> here.txt", "rm here.txt", "mkdir d", "truncate -s 0 here.txt", "mv here.txt b"]
    {
        let result = wire.tool("bash", json!({"command": command}));
        assert_eq!(result["is_error"], true, "{command}: {result}");
        assert_eq!(result["metadata"]["sandbox"], "read-only, no network", "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("[it ran in a sandbox: read-only, no network]"), "{text}");
    }
    let work: Vec<_> = std::fs::read_dir(daemon.work()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(work, ["here.txt"]);
    assert_eq!(std::fs::read_to_string(daemon.work().join("here.txt")).unwrap(), "what is here\n");
    // A program's temporary files are private and removed with it.
    assert_eq!(run(&mut wire, "f=$(mktemp) && echo text > $f && cat $f; sort <<< b"), "text\nb\n");
    assert_eq!(run(&mut wire, "ls -A $TMPDIR | wc -l"), "0\n");
}

#[test]
fn workspace_write_writes_in_the_workspace_alone() {
    let setup = Setup::new().file(".toold/config.toml", "").file(".toolignore", "kept\n").file("kept", "secret\n");
    let setup = setup.file(".env", "SECRET=1\n").file("a/b", "x\n");
    std::fs::create_dir_all(setup.path("home/.ssh")).unwrap();
    std::fs::write(setup.path("home/.ssh/id_ed25519"), "key\n").unwrap();
    std::fs::create_dir_all(setup.path("extra")).unwrap();
    let extra = setup.path("extra").display().to_string();
    let Some(daemon) = confined(&format!("mode = \"workspace-write\"\nwritable = [\"{extra}\"]"), setup) else {
        return;
    };
    let mut wire = daemon.connect();
    assert_eq!(run(&mut wire, &format!("echo one > a/c && mv a/c a/d && cat a/d; echo two > {extra}/f")), "one\n");
    assert!(daemon.work().join("a/d").exists() && daemon.setup.path("extra/f").exists());
    let home = daemon.setup.path("home").display().to_string();
    let config = daemon.setup.path("config/toold/config.toml").display().to_string();
    for command in [
        format!("sh -c 'echo x > {home}/new'"),
        "sh -c 'echo x > .toold/config.toml'".to_owned(),
        "touch .toold/new".to_owned(),
        "rm -r .toold".to_owned(),
        "mv .toold .other".to_owned(),
        "rm .toolignore".to_owned(),
        format!("sh -c 'echo x >> {config}'"),
        "umount .toold".to_owned(),
        "mknod null c 1 3".to_owned(),
    ] {
        assert_eq!(wire.tool("bash", json!({"command": command}))["is_error"], true, "{command}");
    }
    assert_eq!(std::fs::read_to_string(daemon.work().join(".toold/config.toml")).unwrap(), "");
    // Secrets are empty: by name, in the home folder, and files that the project excludes from tools.
    std::fs::write(daemon.work().join("look.sh"), format!("cat .env kept; ls -A {home}/.ssh\n")).unwrap();
    assert_eq!(run(&mut wire, "sh look.sh"), "[no output]");
    let state = daemon.state().display().to_string();
    assert!(!run(&mut wire, &format!("cat {state}/toold.db")).contains("SQLite"));
}

#[test]
fn git_works_in_the_workspace() {
    let Some(daemon) = confined("mode = \"workspace-write\"", Setup::new()) else { return };
    let mut wire = daemon.connect();
    let git = "git -c user.name=n -c user.email=e@example.org -c init.defaultBranch=main";
    let command =
        format!("{git} init -q && echo x > f && git add f && {git} commit -q -m first && git log --format=%s");
    assert_eq!(run(&mut wire, &command), "first\n");
}

/// Tries to reach the given addresses, and the daemon's own socket.
const REACH: &str = r#"
import socket, sys
def report(name, make):
    try:
        make(); print(name, "reached")
    except OSError as error:
        print(name, error.strerror)
def unix(kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind); s.connect(sys.argv[1])
report("daemon", unix)
report("datagram", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
report("tcp", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2])), 5))
report("pair", socket.socketpair)
"#;

fn reach(daemon: &TestDaemon) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!("python3 reach.py {} {port}", daemon.socket().display());
    run(&mut daemon.connect(), &command)
}

#[test]
fn without_the_network_nothing_is_reached() {
    let setup = Setup::new().file("reach.py", REACH);
    let Some(daemon) = confined("mode = \"read-only\"", setup) else { return };
    let no = "Operation not permitted";
    assert_eq!(reach(&daemon), format!("daemon {no}\ndatagram {no}\ntcp {no}\npair reached\n"));
}

#[test]
fn with_the_network_the_daemon_is_not_reached_either() {
    let setup = Setup::new().file("reach.py", REACH);
    let Some(daemon) = confined("mode = \"workspace-write\"\nnetwork = true", setup) else { return };
    let no = "Operation not permitted";
    assert_eq!(reach(&daemon), format!("daemon {no}\ndatagram {no}\ntcp reached\npair reached\n"));
    let result = daemon.connect().tool("bash", json!({"command": "true"}));
    assert_eq!(result["metadata"]["sandbox"], "workspace-write, network");
}

#[test]
fn it_holds_in_the_background_and_at_a_terminal() {
    let Some(daemon) = confined("mode = \"read-only\"", Setup::new()) else { return };
    let mut wire = daemon.connect();
    let line = "test -t 1 && tty=yes; (setsid touch left &); touch made; echo tty=$tty; read w; touch made; echo $w";
    for tty in [false, true] {
        let arguments = json!({"command": line, "background": true, "tty": tty});
        let result = wire.tool("bash", arguments);
        assert_eq!(result["metadata"]["sandbox"], "read-only, no network");
        let id = result["metadata"]["shell_id"].as_str().unwrap().to_owned();
        wire.result("shells.attach", json!({"shell_id": id}));
        wire.result("shells.write", json!({"shell_id": id, "text": "word\n", "typed": true}));
        let mut text = String::new();
        while let Some(more) = wire.notification("shells.output")["result"]["text"].as_str() {
            text.push_str(more);
        }
        assert!(text.contains(if tty { "tty=yes" } else { "tty=" }) && text.contains("word"), "{text}");
        assert!(text.contains("cannot touch"), "{text}");
    }
    let result = wire.tool("bash", json!({"command": "stty size; touch made", "tty": true}));
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("24 80\n"), "{result}");
    until("what left is gone", || daemon.processes().is_empty().then_some(()));
    assert_eq!(std::fs::read_dir(daemon.work()).unwrap().count(), 0);
}

#[test]
fn a_confined_command_is_ended_as_any_other() {
    let Some(daemon) = confined("mode = \"read-only\"", Setup::new()) else { return };
    let mut wire = daemon.connect();
    let command = "trap '' TERM; setsid sleep 1000 & echo before; sleep 1000";
    let result = wire.tool("bash", json!({"command": command, "timeout_ms": 4000}));
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("before\n[ended after"), "{result}");
    until("its processes are gone", || daemon.processes().is_empty().then_some(()));
    let result = wire.tool("bash", json!({"command": "exit 7"}));
    assert_eq!(result["metadata"]["exit_code"], 7);
    assert_eq!(run(&mut wire, "echo $FROM$BASH_ENV; env | grep -c ^TOOLD_RUN="), "\n1\n");
}

#[test]
fn the_commands_of_plugins_are_confined_too() {
    let plugin = r#"
hygge.register_tool{ name = "try", description = "Tries", input_schema = {type = "object"},
  execute = function()
    local made = hygge.exec("touch", {"made"})
    local shell = io.popen("touch made 2>&1; echo shell"):read("a")
    return made.code .. " " .. made.stderr .. shell
  end }"#;
    let setup = Setup::new().plugin("try.lua", plugin);
    let Some(daemon) = confined("mode = \"read-only\"", setup) else { return };
    let result = daemon.connect().tool("try", json!({}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("1 ") && text.ends_with("shell\n") && text.matches("cannot touch").count() == 2, "{text}");
    assert!(!daemon.work().join("made").exists());
}

#[test]
fn prompts_show_the_sandbox_mode_and_configuration_can_relax_it() {
    if !machine_can() {
        return;
    }
    let daemon = Setup::new().config("[sandbox]\nmode = \"workspace-write\"\n").start();
    let (mut person, mut agent) = (daemon.connect(), daemon.connect());
    person.result("permissions.subscribe", json!({}));
    let arguments = json!({"command": "touch f", "description": "makes f"});
    let id = agent.request("tools.execute", json!({"name": "bash", "arguments": arguments}));
    let asked = person.notification("permissions.event")["result"]["request"].take();
    assert_eq!(asked["reason"], "[sandbox: workspace-write, no network]; changes files");
    person.result("permissions.reply", json!({"request_id": asked["request_id"], "action": "allow"}));
    assert_eq!(agent.answer(id)["result"]["is_error"], false);

    let deny = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"cat *\"\naction = \"deny\"\n";
    let config = format!("{deny}[sandbox]\nmode = \"read-only\"\nease = true\n");
    let daemon = Setup::new().config(&config).file("f", "x").start();
    let mut wire = daemon.connect();
    for mode in ["default", "plan"] {
        wire.result("permissions.set_mode", json!({"mode": mode}));
        assert_eq!(run(&mut wire, "ls"), "f\n", "{mode}");
    }
    wire.result("permissions.set_mode", json!({"mode": "default"}));
    assert_eq!(wire.tool("bash", json!({"command": "rm f"}))["is_error"], true);
    assert_eq!(wire.tool("bash", json!({"command": "cat f"}))["metadata"]["permission"]["category"], "shell");
    // A file that the line writes needs its own permission.
    assert_eq!(wire.tool("bash", json!({"command": "ls > g"}))["metadata"]["permission"]["category"], "file.write");
    assert!(daemon.work().join("f").exists());

    // Without the sandbox, prompts are not relaxed any more.
    std::fs::write(daemon.setup.path("config/toold/config.toml"), deny).unwrap();
    wire.result("daemon.reload", json!({}));
    assert_eq!(wire.tool("bash", json!({"command": "rm f"}))["metadata"]["permission"]["category"], "shell");
    assert!(daemon.work().join("f").exists());
}

#[test]
fn conflicting_sandbox_settings_are_reported_and_nothing_runs() {
    let daemon = Setup::new().config(&format!("{ALLOW}[sandbox]\nmode = \"workspace-write\"\nease = true\n")).start();
    let mut wire = daemon.connect();
    let problems = wire.result("daemon.status", json!({}))["problems"].take();
    let reported =
        problems.as_array().unwrap().iter().any(|problem| problem.as_str().unwrap().contains("sandbox: ease is for"));
    assert!(reported, "{problems}");
    assert_eq!(wire.tool("bash", json!({"command": "touch ran"}))["is_error"], true);
    assert!(!daemon.work().join("ran").exists());
}

/// Sandboxes do not nest, so a daemon in a sandbox stands for a system without any.
#[test]
fn unsupported_sandbox_features_are_reported_and_nothing_runs() {
    if !machine_can() {
        return;
    }
    let setup = Setup::new().config(&format!("{ALLOW}[sandbox]\nmode = \"read-only\"\n"));
    let mut command = setup.command(toold());
    command.args(["sandbox-exec", "--network", "--write"]).arg(setup.path("")).arg("--").arg(toold()).arg("--stdio");
    let mut daemon = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let status = json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.status"});
    let arguments = json!({"name": "bash", "arguments": {"command": "touch ran"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools.execute", "params": arguments});
    daemon.stdin.take().unwrap().write_all(format!("{status}\n{call}\n").as_bytes()).unwrap();
    let output = daemon.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // In whatever order they come.
    let answer = |id: u64| answers.iter().find(|answer| answer["id"] == id).expect("each request is answered");
    let problem = answer(1)["result"]["problems"][0].as_str().unwrap();
    assert!(problem.contains("sandbox: the system does not allow "), "{problem}");
    assert_eq!(answer(2)["result"]["is_error"], true, "{}", answer(2));
    assert!(!setup.path("work/ran").exists());
}

#[test]
fn hooks_are_the_users_own_and_not_confined() {
    let hook = "[[hooks]]\nevent = \"pre_tool\"\ncommand = [\"touch\", \"hooked\"]\ntools = [\"bash\"]\n";
    let Some(daemon) = confined(&format!("mode = \"read-only\"\n{hook}"), Setup::new()) else { return };
    let result: Value = daemon.connect().tool("bash", json!({"command": "true"}));
    assert_eq!(result["is_error"], false, "{result}");
    assert!(daemon.work().join("hooked").exists());
}
