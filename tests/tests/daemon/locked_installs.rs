//! Installations of what a lock file names, with the real npm and a registry.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, skip, skip_uninstalled, until};

use crate::levels::machine_confines;

const REGISTRY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/daemon/registry.py");
/// The daemon has a network of its own, with the registry in it, and names for it.
const AROUND: &str = "mount --bind \"$0\" /etc/hosts || exit; python3 \"$1\" serve \"$2\" & shift 2; exec \"$@\"";

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("HOME", folder);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {done:?}");
}

fn make(folder: &Path, version: &str) {
    run(folder, "python3", &[REGISTRY, "make", &folder.display().to_string(), version]);
}

fn commit(folder: &Path, message: &str) {
    let who = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
    run(folder, "git", &["add", "-A"]);
    run(folder, "git", &[who.as_slice(), &["commit", "-q", "-m", message]].concat());
}

/// A daemon at the level `develop` in a project whose lock file is committed; `None` where this machine cannot have one.
fn daemon_with_registry() -> Option<TestDaemon> {
    for program in ["/usr/bin/npm", "/usr/bin/python3"] {
        if !Path::new(program).exists() {
            skip_uninstalled(program);
            return None;
        }
    }
    let in_namespaces = ["--user", "--map-root-user", "--mount", "--net", "sh", "-c"];
    let probe = Command::new("unshare").args(in_namespaces).arg("mount --bind /etc/hosts /etc/hosts").output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip("this machine allows no mounts in user namespaces");
        return None;
    }
    if !machine_confines() {
        return None;
    }
    let setup = Setup::new().config("[permission]\nlevel = \"develop\"\n");
    // npm would look for a newer npm at another host.
    let setup = setup.file(".gitignore", "node_modules/\nbuilt\n").file(".npmrc", "update-notifier=false\n");
    let work = setup.path("work");
    make(&work, "1.0.0");
    run(&work, "git", &["init", "-q"]);
    commit(&work, "first");
    let (hosts, ready) = (setup.path("hosts"), setup.path("ready"));
    let names = "127.0.0.1 localhost\n93.184.215.14 registry.example other.example\n";
    std::fs::write(&hosts, names).unwrap();
    let (hosts, ready) = (hosts.display().to_string(), ready.display().to_string());
    let around = [&["unshare"], in_namespaces.as_slice(), &[AROUND, &hosts, REGISTRY, &ready]].concat();
    let daemon = setup.through(&around).start();
    until("the registry is there", || Path::new(&ready).exists().then_some(()));
    Some(daemon)
}

fn install(wire: &mut Wire, line: &str) -> Value {
    wire.tool("bash", json!({"command": line}))
}

#[track_caller]
fn installed(daemon: &TestDaemon, result: &Value, version: &str) {
    assert_eq!(result["is_error"], json!(false), "{result}");
    let package = std::fs::read_to_string(daemon.work().join("node_modules/a/package.json")).unwrap();
    assert!(package.contains(version), "{package}");
}

#[track_caller]
fn asked(person: &mut Wire) -> Value {
    let mut event = person.notification("permissions.event")["result"].take();
    assert_eq!(event["type"], "asked", "{event}");
    event["request"].take()
}

fn answer(person: &mut Wire, ask: &Value, action: &str) {
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": action}));
    assert_eq!(person.notification("permissions.event")["result"]["type"], "resolved");
}

#[test]
fn what_a_committed_lock_file_names_is_installed_and_another_one_is_asked_about_once() {
    let Some(daemon) = daemon_with_registry() else { return };
    let (mut person, mut agent) = (daemon.connect(), daemon.connect());
    person.result("permissions.subscribe", json!({}));
    // Nobody is asked, and the scripts of the packages run on the floor of a build.
    let result = install(&mut agent, "npm ci --no-audit --no-fund");
    installed(&daemon, &result, "1.0.0");
    let sandbox = result["metadata"]["sandbox"].as_str().unwrap_or_default();
    assert!(sandbox.contains("network by host, because of level develop"), "{result}");
    assert!(daemon.work().join("built").exists() && !daemon.setup.path("outside").exists());
    let audit = daemon.connect().result("audit.query", json!({"tool": "bash", "limit": 1}))["entries"][0].to_string();
    assert!(
        audit.contains("registry.example:4873") && audit.contains("the lock file of the command names it"),
        "{audit}"
    );
    // A commit of the agent is not what was committed when the session began.
    make(&daemon.work(), "1.0.1");
    commit(&daemon.work(), "second");
    let line = json!({"name": "bash", "arguments": {"command": "npm ci --no-audit"}, "call_id": "c"});
    let id = agent.request("tools.execute", line);
    let ask = asked(&mut person);
    let reason = ask["reason"].as_str().unwrap();
    assert!(
        reason.contains("package-lock.json has changed since the session began: it has a 1.0.1 instead of 1.0.0"),
        "{ask}"
    );
    answer(&mut person, &ask, "allow");
    installed(&daemon, &agent.answer(id)["result"], "1.0.1");
    // The person has seen this one.
    let result = install(&mut agent, "npm ci --no-audit");
    installed(&daemon, &result, "1.0.1");
    assert!(result["metadata"]["sandbox"].as_str().unwrap_or_default().contains("level develop"), "{result}");
    // Another session has a person's word about nothing, and begins with what is committed now.
    installed(&daemon, &install(&mut daemon.connect(), "npm ci --no-audit"), "1.0.1");
    make(&daemon.work(), "1.0.2");
    let id =
        agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "npm ci"}, "call_id": "d"}));
    let ask = asked(&mut person);
    assert!(ask["reason"].as_str().unwrap().contains("it has a 1.0.2 instead of 1.0.1"), "{ask}");
    answer(&mut person, &ask, "deny");
    assert_eq!(agent.answer(id)["result"]["is_error"], json!(true));
}

#[test]
fn no_host_follows_from_the_settings_of_the_project() {
    let Some(daemon) = daemon_with_registry() else { return };
    // Where the lock file names no host, npm takes the one of its settings.
    let file = daemon.work().join("package-lock.json");
    let lock = std::fs::read_to_string(&file).unwrap();
    let unresolved = lock.replace("\"resolved\": \"http://registry.example:4873/a/-/a-1.0.0.tgz\",", "");
    assert_ne!(unresolved, lock);
    std::fs::write(&file, unresolved).unwrap();
    let settings = "update-notifier=false\nregistry=http://other.example:4873/\n";
    std::fs::write(daemon.work().join(".npmrc"), settings).unwrap();
    commit(&daemon.work(), "without hosts");
    let (mut person, mut agent) = (daemon.connect(), daemon.connect());
    person.result("permissions.subscribe", json!({}));
    let call = json!({"name": "bash", "arguments": {"command": "npm ci --no-audit"}, "call_id": "c"});
    let id = agent.request("tools.execute", call);
    let ask = asked(&mut person);
    assert_eq!((&ask["category"], &ask["target"]), (&json!("network"), &json!("other.example:4873")), "{ask}");
    answer(&mut person, &ask, "deny");
    assert_eq!(agent.answer(id)["result"]["is_error"], json!(true));
    assert!(!daemon.work().join("node_modules/a").exists());
}

#[test]
fn installations_that_no_lock_file_settles_are_asked_about() {
    let Some(daemon) = daemon_with_registry() else { return };
    let mut agent = daemon.connect();
    for line in [
        "npm install",
        "npm install a@1.0.0",
        "npm ci --prefix other",
        "npm ci -g",
        "sh change.sh && npm ci",
        "cp other.json package-lock.json; npm ci",
        "cargo fetch --locked",
        "uv sync --locked",
    ] {
        let result = install(&mut agent, line);
        assert!(!result["metadata"]["permission"].is_null(), "{line}: {result}");
    }
    // In a folder of the project it is the lock file there that counts.
    std::fs::create_dir(daemon.work().join("web")).unwrap();
    make(&daemon.work().join("web"), "1.0.0");
    let result = install(&mut agent, "cd web && npm ci");
    assert!(!result["metadata"]["permission"].is_null(), "{result}");
    assert!(!daemon.work().join("web/node_modules").exists() && !daemon.work().join("node_modules").exists());
}
