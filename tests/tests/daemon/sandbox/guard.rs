//! The mode `guard`: the files that it protects, and that everything else works as without a sandbox.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, toold};

use crate::sandbox::{confined, machine_can, run};

const GUARD: &str = "mode = \"guard\"";

fn guarded(setup: Setup) -> Option<TestDaemon> {
    confined(GUARD, setup)
}

/// Runs a command from a file, so that the policy, which denies some of these by their text, does not see it.
fn attempt(daemon: &TestDaemon, command: &str) -> Value {
    std::fs::write(daemon.work().join("attempt.sh"), command).unwrap();
    let result = daemon.connect().tool("bash", json!({"command": "bash attempt.sh"}));
    assert_eq!(result["metadata"]["sandbox"], "guard", "{command}: {result}");
    result
}

/// All files below a folder, with their content.
fn contents(folder: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(contents(&path)),
            path => found.push((path.clone(), std::fs::read(path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn guarded_command_cannot_change_files_that_control_the_daemon() {
    let setup = Setup::new().file(".toold/config.toml", "").file(".toolignore", "kept\n").file("sub/f", "x\n");
    let Some(daemon) = guarded(setup.plugin("p.lua", "")) else { return };
    let top = daemon.setup.path("");
    let config = daemon.setup.path("config/toold");
    let before = contents(&config);
    let own = daemon.work().join(".toold");
    for command in [
        "echo x >> {C}/config.toml",
        "rm {C}/config.toml",
        "rm -r {C}/plugins",
        "touch {C}/plugins/new.lua",
        "chmod 777 {C}",
        "touch -d 2001-01-01 {C}/config.toml",
        "ln {C}/config.toml linked",
        "mv {C} {C}2",
        // Folders above it cannot be moved away either.
        "mv {T}/config {T}/config2",
        "mv {T} {T}2",
        "mv {T}/state {T}/state2",
        "mount -t tmpfs none {C}",
        "umount {C}",
        "unshare --user --map-root-user --mount umount {C}",
        "unshare --user --map-root-user --mount mount -o remount,bind,rw {C}",
        "echo x >> .toold/config.toml",
        "mv .toold .toold2",
        "rm .toolignore",
        "cd {C} && echo x >> config.toml",
        "cd .toold && echo x > new",
    ] {
        let shown = top.display().to_string();
        let command = command.replace("{C}", &config.display().to_string()).replace("{T}", shown.trim_end_matches('/'));
        let result = attempt(&daemon, &command);
        assert_eq!(result["is_error"], true, "{command}: {result}");
    }
    assert!(contents(&config) == before && !own.join("new").exists());
    assert_eq!(std::fs::read(daemon.work().join(".toolignore")).unwrap(), b"kept\n");
}

#[test]
fn a_program_that_starts_in_a_folder_that_is_kept_cannot_change_it() {
    if !machine_can() {
        return;
    }
    let setup = Setup::new();
    let kept = setup.path("config/toold");
    let mut command = setup.command(toold());
    command.args(["sandbox-exec", "--guard", "--protect"]).arg(&kept).args(["--", "/bin/sh", "-c", "echo x > new"]);
    let output = command.current_dir(&kept).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("Read-only file system"), "{output:?}");
    assert!(!kept.join("new").exists());
}

#[test]
fn the_daemons_own_files_are_hidden() {
    let setup = Setup::new();
    let look = format!("cat {0}/toold.db; ls -A {0}/log\n", setup.path("state/toold").display());
    let Some(daemon) = guarded(setup.file("look.sh", look)) else { return };
    let mut wire = daemon.connect();
    let state = daemon.state().display().to_string();
    assert!(std::fs::read(daemon.state().join("toold.db")).unwrap().starts_with(b"SQLite"));
    assert_eq!(run(&mut wire, "sh look.sh"), "[no output]");
    let socket = daemon.socket().display().to_string();
    let pid = wire.result("daemon.status", json!({}))["pid"].to_string();
    for command in [
        format!("test -S {socket}"),
        format!("echo x > {state}/toold.db.new"),
        format!("cat /proc/{pid}/root/{state}/toold.db"),
        format!("ls /proc/{pid}/cwd/"),
        format!("head -c 1 /proc/{pid}/mem"),
    ] {
        assert_eq!(attempt(&daemon, &command)["is_error"], true, "{command}");
    }
}

#[test]
fn all_else_is_as_without_a_sandbox() {
    // A script, since `cat .env` is refused before it runs.
    let setup = Setup::new().file(".env", "SECRET=1\n").file("f", "x\n").file("look.sh", "cat .env\n");
    let Some(daemon) = guarded(setup) else { return };
    let mut wire = daemon.connect();
    let home = daemon.setup.path("home");
    let listening = daemon.setup.path("home/socket");
    let (unix, tcp) = (UnixListener::bind(&listening).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let reach = format!(
        "import socket; socket.socket(socket.AF_UNIX).connect({:?}); socket.create_connection((\"127.0.0.1\", {}))",
        listening.display().to_string(),
        tcp.local_addr().unwrap().port()
    );
    std::fs::write(daemon.work().join("reach.py"), reach).unwrap();
    let home = home.display();
    let command = format!("sh look.sh; echo y > {home}/new && cat {home}/new && mv f {home}/f && ls; python3 reach.py");
    assert_eq!(run(&mut wire, &command), "SECRET=1\ny\nlook.sh\nreach.py\n");
    drop((unix, tcp));
    // Files that the daemon puts there for commands to read stay readable.
    let state = daemon.state().display().to_string();
    assert_eq!(run(&mut wire, &format!("test -r {state} && echo seen")), "seen\n");
}

#[test]
fn a_guarded_command_is_asked_for_as_ever() {
    if !machine_can() {
        return;
    }
    let daemon = Setup::new().config(&format!("[sandbox]\n{GUARD}\n")).start();
    let result = daemon.connect().tool("bash", json!({"command": "touch f"}));
    assert_eq!(result["metadata"]["permission"]["category"], "shell", "{result}");
    assert!(!daemon.work().join("f").exists());
}

#[test]
fn doctor_recommends_guard_mode_where_it_works() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let trial = wire.result("daemon.status", json!({}))["guard"].take();
    let sandbox_finding = |findings: &Value| {
        let all = findings.as_array().unwrap();
        all.iter().find(|finding| finding["about"] == "sandbox").unwrap().to_string()
    };
    let doctor = || serde_json::from_slice(&daemon.toolctl(&["doctor", "--json"]).stdout).unwrap();
    if machine_can() {
        assert_eq!(trial, json!({"works": true}));
        assert!(sandbox_finding(&doctor()).contains("guard mode works here"));
    } else {
        assert_eq!(trial["works"], false, "{trial}");
        assert!(sandbox_finding(&doctor()).contains("does not work here"));
        return;
    }
    std::fs::write(daemon.setup.path("config/toold/config.toml"), format!("[sandbox]\n{GUARD}\n")).unwrap();
    wire.result("daemon.reload", json!({}));
    let status = wire.result("daemon.status", json!({}));
    assert_eq!((&status["sandbox"], &status["guard"]), (&json!("guard"), &Value::Null));
}
