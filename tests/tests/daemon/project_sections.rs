//! Other sections of a project's configuration than rules, hooks, plugins and servers: none counts until it is trusted.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, toold};

const ALLOW_ALL: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";
const READ_ONLY: &str = "[sandbox]\nmode = \"read-only\"\n";

fn machine_can() -> bool {
    std::process::Command::new(toold()).args(["sandbox-exec", "--", "/bin/true"]).output().unwrap().status.success()
}

fn open(daemon: &TestDaemon, folder: &str) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work().join(folder)}));
    wire
}

fn run(wire: &mut Wire, command: &str) -> Value {
    wire.tool("bash", json!({"command": command}))["metadata"]["sandbox"].take()
}

#[track_caller]
fn trust(wire: &mut Wire, daemon: &TestDaemon, folder: &str) {
    let report = wire.result("plugins.trust", json!({"path": daemon.work().join(folder)}));
    assert_eq!(report["items"][0]["trusted"], true, "{report}");
}

#[test]
fn the_sandbox_of_a_project_counts_once_it_is_trusted_and_in_the_project_only() {
    if !machine_can() {
        return;
    }
    let setup = Setup::new().config(ALLOW_ALL).file("p/.toold/config.toml", READ_ONLY).file("q/x", "");
    let daemon = setup.start();
    let (mut inside, mut outside) = (open(&daemon, "p"), open(&daemon, "q"));
    assert_eq!(run(&mut inside, "touch before"), Value::Null);
    assert!(daemon.work().join("p/before").exists());
    let shown = inside.result("plugins.trust", json!({"path": daemon.work().join("p"), "preview": true}));
    assert!(shown["items"][0]["settings"].to_string().contains("sandbox.mode"), "{shown}");
    trust(&mut inside, &daemon, "p");
    assert_eq!(run(&mut inside, "touch after"), "read-only, no network");
    assert!(!daemon.work().join("p/after").exists());
    assert_eq!(run(&mut outside, "touch after"), Value::Null);
    // From the first call on where it was trusted before.
    drop((inside, outside));
    let mut daemon = daemon;
    daemon.restart("TERM");
    assert_eq!(run(&mut open(&daemon, "p"), "true"), "read-only, no network");
}

#[test]
fn a_project_loosens_nothing_of_the_users_sandbox() {
    if !machine_can() {
        return;
    }
    let looser = "[sandbox]\nmode = \"workspace-write\"\nnetwork = true\nwritable = [\"/\"]\n";
    let setup = Setup::new()
        .config(&format!("{ALLOW_ALL}{READ_ONLY}"))
        .file("p/.toold/config.toml", looser)
        .file("q/.toold/config.toml", "[sandbox]\nmode = \"off\"\n");
    let daemon = setup.start();
    for folder in ["p", "q"] {
        let mut wire = open(&daemon, folder);
        trust(&mut wire, &daemon, folder);
        assert_eq!(run(&mut wire, "touch made"), "read-only, no network");
        assert!(!daemon.work().join(folder).join("made").exists());
    }
}

#[test]
fn the_sub_agents_of_a_project_are_there_once_it_is_trusted_and_stand_behind_the_users() {
    let own = "[subagents.both]\ncommand = [\"echo\", \"the user's\"]\n";
    let theirs = "[subagents.both]\ncommand = [\"echo\", \"the project's\"]\n\
                  [subagents.theirs]\ndescription = \"d\"\ncommand = [\"echo\", \"it ran\"]\n";
    let daemon = Setup::new().config(own).file("p/.toold/config.toml", theirs).file("q/x", "").start();
    let (mut inside, mut outside) = (open(&daemon, "p"), open(&daemon, "q"));
    let ask = |wire: &mut Wire, kind: &str| {
        wire.tool("subagent", json!({"type": kind, "description": "d", "prompt": "p"}))["content"][0]["text"].take()
    };
    assert!(ask(&mut inside, "theirs").to_string().contains("there is no sub-agent theirs"));
    trust(&mut inside, &daemon, "p");
    toold_tests::until("the project's sub-agent is there", || {
        ask(&mut inside, "theirs").to_string().contains("it ran").then_some(())
    });
    assert!(ask(&mut inside, "both").to_string().contains("the user's"));
    assert!(ask(&mut outside, "theirs").to_string().contains("there is no sub-agent theirs"));
    let listed = inside.result("subagents.list", json!({})).to_string();
    assert!(listed.contains("p/.toold/config.toml"), "{listed}");
}

/// Nobody trusts the change, and so it raises nothing.
#[test]
fn a_level_that_a_trusted_file_sets_outlasts_a_change_of_the_file() {
    let user = "[permission]\nlevel = \"edit\"\n";
    let file = "[permission]\nlevel = \"read\"\n";
    for changed in [Some("[permission]\nlevel = \"develop\"\n"), Some(""), None] {
        let daemon = Setup::new().config(user).file("p/.toold/config.toml", file).start();
        let mut wire = open(&daemon, "p");
        trust(&mut wire, &daemon, "p");
        let path = daemon.work().join("p/.toold/config.toml");
        match changed {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        wire.result("daemon.reload", json!({}));
        assert_eq!(wire.result("permissions.level", json!({}))["level"], "read", "{changed:?}");
        if changed.is_some() {
            trust(&mut wire, &daemon, "p");
            assert_eq!(wire.result("permissions.level", json!({}))["level"], "edit", "{changed:?}");
        }
    }
}
