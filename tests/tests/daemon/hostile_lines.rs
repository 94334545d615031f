//! Hostile lines at each level, by a real daemon and a real bash on the floor of the level: not one does more than the level
//! frees. Programs that a line should not run do all the harm that they can.
//!
//! The same lines each time. For a search of any length: `COMMAND_LINES=10000 COMMAND_SEED=7`.

#[path = "../../../daemon/host/tests/host/commands/hostile/generate.rs"]
mod generate;
#[path = "../../../daemon/host/tests/host/commands/hostile/kits.rs"]
mod kits;
#[path = "../../../daemon/host/tests/host/commands/hostile/root.rs"]
mod root;
#[path = "../../../daemon/host/tests/host/commands/hostile/shell.rs"]
mod shell;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toold_proto::level::Level;
use toold_tests::{Setup, TestDaemon, Wire, toold};

use self::generate::generate;
use self::root::{Did, FileChangeSeen, OUTSIDE, SECRET, ThrowAwayRoot};
use self::shell::ShellKind;
use crate::commands::random::setting;
use crate::sandbox::floors::machine_has_floors;

/// What the harmful programs write.
const HARM: &str = "written-by-a-harmful-program";
/// Files that run code later, hold secrets or control tools. Those that a level's commands make are not protected, only those
/// that lines name.
const PROTECTED: [&str; 11] = [
    ".env",
    "id_rsa",
    "private.txt",
    ".aiexclude",
    ".toold",
    ".vscode",
    ".npmrc",
    ".envrc",
    ".mcp.json",
    "hooks",
    "attributes",
];
/// Git ignores these, so that `undo` does not keep what is in them.
const IGNORED: [&str; 6] = ["odd", "nest", "bare", "bin", "out", "link-"];

struct LevelBench {
    daemon: TestDaemon,
    wire: Wire,
    level: Level,
}

fn start(root: &ThrowAwayRoot, level: Level) -> LevelBench {
    let daemon = Setup::new().config(&format!("[permission]\nlevel = \"{level}\"\n")).start_by(|setup| {
        let mut command = setup.command(toold());
        command.env("HOME", &root.place.home).env("PATH", root.base.join("bin")).env("GIT_CONFIG_NOSYSTEM", "1");
        command
    });
    let mut wire = daemon.connect();
    wire.result("session.open", json!({"cwd": root.place.workspace}));
    LevelBench { daemon, wire, level }
}

/// In place of programs that record how they were called: ones that try to write everywhere and show what they can read.
fn arm(root: &ThrowAwayRoot) {
    let top = root.base.join("root");
    let places = [
        "pwn",
        "src/lib.rs",
        ".git/hooks/pre-commit",
        ".git/config",
        "../outside/pwn",
        "../home/pwn",
        "../home/.gitconfig",
    ];
    let write: String =
        places.iter().map(|place| format!("echo {HARM} > '{}/work/{place}'\n", top.display())).collect();
    let read = [".env", "private.txt", "data/.env", "../home/notes.txt", "../home/.ssh/id_rsa", "../outside/data.txt"];
    let read: String = read.iter().map(|place| format!("/bin/cat '{}/work/{place}'\n", top.display())).collect();
    for entry in fs::read_dir(root.base.join("bin")).unwrap().flatten() {
        let path = entry.path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        if text.starts_with("#!/bin/sh\nprintf") && !path.is_symlink() {
            let rest: String = text.lines().filter(|line| line.starts_with("exec ")).collect();
            let harm = if rest.is_empty() { format!("{write}{read}") } else { String::new() };
            fs::write(&path, format!("#!/bin/sh\n{harm}{rest}\n")).unwrap();
        }
    }
}

/// What a line did beyond its level.
fn beyond(level: Level, result: &Value, changes: &[FileChangeSeen]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let shown = result["content"][0]["text"].as_str().unwrap_or_default();
    for canary in [SECRET, OUTSIDE] {
        if shown.contains(canary) {
            found.push(format!("{canary} is shown"));
        }
    }
    for change in changes {
        let (path, has) = (change.path.display(), |text: &str| String::from_utf8_lossy(&change.content).contains(text));
        let Ok(below) = change.path.strip_prefix("work") else {
            found.push(format!("{path} ({:?})", change.did));
            continue;
        };
        let names = |names: &[&str]| below.iter().any(|name| names.iter().any(|of| name == *of));
        let is_protected = names(&PROTECTED) || below == Path::new(".git/config");
        let is_ignored = below
            .iter()
            .next()
            .is_some_and(|name| IGNORED.iter().any(|of| name.as_encoded_bytes().starts_with(of.as_bytes())));
        if level == Level::Read {
            found.push(format!("{path} ({:?})", change.did));
        } else if is_protected && (change.did != Did::Created || !has(HARM)) {
            found.push(format!("{path} ({:?}), which is protected", change.did));
        } else if level == Level::Edit && is_ignored && change.did != Did::Created {
            found.push(format!("{path} ({:?}), which undo does not keep", change.did));
        }
        if (has(SECRET) || has(OUTSIDE)) && change.did != Did::Marked {
            found.push(format!("{path} has a secret, or what is outside"));
        }
    }
    found
}

#[test]
fn hostile_lines_do_no_more_than_their_level() {
    if !machine_has_floors() {
        return;
    }
    let (seed, lines) = (setting("COMMAND_SEED", 1), setting("COMMAND_LINES", 250));
    let mut failed: Vec<String> = Vec::new();
    for level in Level::ALL {
        let mut root = ThrowAwayRoot::make();
        arm(&root);
        let mut bench = start(&root, level);
        let mut ran = 0;
        for at in 0..lines {
            let line = root.put_into(&generate(ShellKind::Bash, seed, at).line());
            if line.contains('\0') {
                continue;
            }
            let result = bench.wire.tool("bash", json!({"command": line, "timeout_ms": 5000}));
            if !result["metadata"]["permission"].is_null() {
                continue;
            }
            ran += 1;
            for what in beyond(bench.level, &result, &root.changes()) {
                failed.push(format!("{level}, line {at}: {:?}\n    {what}", root.take_out_of(&line)));
            }
        }
        println!("hostile lines at {level}: {ran} of {lines} of seed {seed} ran without an approval");
        assert!(ran * 20 >= lines, "only {ran} of {lines} lines ran at {level}");
        drop(bench.wire);
        bench.daemon.stop();
        root.close();
    }
    println!("hostile lines that did more than their level: {}", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The test above proves only as much as it can observe.
#[test]
fn what_is_beyond_a_level_is_seen() {
    let result = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let change =
        |path: &str, did: Did, content: &str| FileChangeSeen { path: path.into(), did, content: content.into() };
    let count = |level: Level, text: &str, change: FileChangeSeen| beyond(level, &result(text), &[change]).len();
    let plain = || change("work/V", Did::Changed, "x");
    assert_eq!(count(Level::Read, "", plain()), 1);
    assert_eq!(count(Level::Edit, "", plain()), 0);
    assert_eq!(count(Level::Edit, SECRET, plain()), 1);
    assert_eq!(count(Level::Develop, OUTSIDE, plain()), 1);
    assert_eq!(count(Level::Develop, "", change("home/x", Did::Created, "")), 1);
    assert_eq!(count(Level::Develop, "", change("work/.envrc", Did::Created, "evil")), 1);
    assert_eq!(count(Level::Develop, "", change("work/.git/hooks/x", Did::Changed, HARM)), 1);
    assert_eq!(count(Level::Edit, "", change("work/out/x", Did::Removed, "")), 1);
    assert_eq!(count(Level::Edit, "", change("work/copy", Did::Created, SECRET)), 1);
}
