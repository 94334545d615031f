//! Files that somebody outside replaces while a confined command runs: what was kept from the command stays kept from it.

use std::path::Path;

use serde_json::json;
use toold_tests::{Setup, TestDaemon, until};

use crate::sandbox::confined;
use crate::sandbox::floors::{at, git, machine_has_floors};

/// Says when it runs. When files were replaced, waits until each that is named is kept from it, and says of each what it is.
/// The first argument is what an unreadable file is: refused, or empty.
const WATCHES: &str = r#"import os, sys, time
def reads(path):
    try:
        return open(path).read().strip() or "empty"
    except OSError as error:
        return error.strerror
def writes(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
        return "writable"
    except OSError as error:
        return error.strerror
kept = lambda path: (writes if path.endswith("config") or path.startswith(".toolignore") else reads)(path)
hidden, names = sys.argv[1], sys.argv[2:]
wanted = [hidden, "Read-only file system", "Permission denied", "shown"]
until = time.monotonic() + 60
print("before", [kept(name) for name in names])
open("ready", "w").close()
while not os.path.exists("go") and time.monotonic() < until:
    time.sleep(0.005)
while not all(kept(name) in wanted for name in names) and time.monotonic() < until:
    time.sleep(0.005)
print("after", [kept(name) for name in names])
"#;

/// The output of the script around `replace`.
fn replaced(daemon: &TestDaemon, line: &str, replace: impl FnOnce(&Path)) -> String {
    let mut wire = daemon.connect();
    let call = wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": line}, "call_id": "c"}));
    until("the command runs", || daemon.work().join("ready").exists().then_some(()));
    replace(&daemon.work());
    std::fs::write(daemon.work().join("go"), "").unwrap();
    let answer = wire.answer(call);
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// As editors save a file.
fn save(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn a_file_that_is_saved_while_a_build_runs_stays_hidden_and_read_only() {
    if !machine_has_floors() {
        return;
    }
    let mise = "../home/.config/mise/config.toml";
    let setup = Setup::new()
        .file("watches.py", WATCHES)
        .file(".env", "KEY=secret-1\n")
        .file("deep/er/.env", "KEY=secret-2\n")
        .file(mise, "token = \"secret-3\"\nshown\n");
    let work = setup.path("work");
    git(&work, &["init", "-q"]);
    let names = format!(".env deep/er/.env .git/config {mise}");
    let setup = setup.file("build.sh", format!("python3 watches.py 'Permission denied' {names}\n"));
    let daemon = at("develop", setup);
    let said = replaced(&daemon, "sh build.sh", |work| {
        save(&work.join(".env"), "KEY=secret-4\n");
        save(&work.join(mise), "token = \"secret-5\"\n");
        // A folder with all that is in it, as when another branch is checked out.
        std::fs::remove_dir_all(work.join("deep")).unwrap();
        std::fs::create_dir_all(work.join("deep/er")).unwrap();
        std::fs::write(work.join("deep/er/.env"), "KEY=secret-6\n").unwrap();
        git(work, &["config", "user.name", "n"]);
    });
    let lines: Vec<&str> = said.lines().collect();
    let refused = "'Permission denied'";
    assert_eq!(lines[0], format!("before [{refused}, {refused}, 'Read-only file system', 'shown']"), "{said}");
    assert_eq!(lines[1], format!("after [{refused}, {refused}, 'Read-only file system', {refused}]"), "{said}");
    // They are as they were saved, and nothing is left of what covered them.
    let is_there = |name: &str, text: &str| std::fs::read_to_string(work.join(name)).unwrap().contains(text);
    assert!(
        is_there(".env", "secret-4") && is_there("deep/er/.env", "secret-6") && is_there(".git/config", "name = n")
    );
}

#[test]
fn a_file_that_is_saved_stays_hidden_in_the_modes_too() {
    let setup = Setup::new().file("watches.py", WATCHES).file(".env", "KEY=secret-1\n").file(".toolignore", "x\n");
    let Some(daemon) = confined("mode = \"workspace-write\"", setup) else { return };
    let said = replaced(&daemon, "python3 watches.py empty .env .toolignore", |work| {
        save(&work.join(".env"), "KEY=secret-2\n");
        save(&work.join(".toolignore"), "y\n");
    });
    let lines: Vec<&str> = said.lines().take(2).collect();
    let expected = "['empty', 'Read-only file system']";
    assert_eq!(lines, [format!("before {expected}"), format!("after {expected}")], "{said}");
}
