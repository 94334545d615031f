//! Paths chosen by a repository or a user that are not files, or have no end.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, Wire, until};

use crate::faults::{peak, threads};

/// The most memory that a repository may cost.
const COST: u64 = 200 << 20;
const SPARSE: u64 = 8 << 30;

/// Things that can take the place of a file.
const TRAPS: [&str; 6] = ["link to /dev/zero", "sparse", "pipe", "link to a pipe", "folder", "many patterns"];

fn trap(kind: &str, path: &Path) {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).unwrap();
    }
    match kind {
        "link to /dev/zero" => symlink("/dev/zero", path).unwrap(),
        "sparse" => std::fs::File::create(path).unwrap().set_len(SPARSE).unwrap(),
        "pipe" => pipe(path),
        "link to a pipe" => {
            pipe(&path.with_extension("target"));
            symlink(path.with_extension("target"), path).unwrap();
        }
        "folder" => std::fs::create_dir(path).unwrap(),
        "many patterns" => std::fs::write(path, "*a?b[c-d]*\n".repeat(90_000)).unwrap(),
        other => unreachable!("{other}"),
    }
}

fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

fn status(wire: &mut Wire) -> Value {
    wire.result("daemon.status", json!({}))
}

#[test]
fn ignore_files_that_are_traps_cost_neither_memory_nor_threads() {
    let mut expected = None;
    for kind in TRAPS {
        let setup = Setup::new().file("src/a.txt", "needle").file("b.txt", "needle");
        let work = setup.path("work");
        std::fs::create_dir_all(work.join(".git/info")).unwrap();
        for name in [".gitignore", ".ignore", "src/.gitignore", "src/.ignore", ".git/info/exclude"] {
            trap(kind, &work.join(name));
        }
        // Above the folder, in place of the user's own list, and as the file of a work tree.
        trap(kind, &setup.path(".gitignore"));
        trap(kind, &setup.path("config/git/ignore"));
        std::fs::create_dir_all(work.join("tree")).unwrap();
        trap(kind, &work.join("tree/.git"));
        let mut daemon = setup.start();
        let mut wire = daemon.connect();
        let mut answers = Vec::new();
        let (before, mut most_threads) = (threads(&daemon), 0);
        for _ in 0..4 {
            let grep = wire.tool("grep", json!({"pattern": "needle", "output_mode": "files"}));
            assert_eq!(grep["is_error"], false, "{kind}: {grep}");
            answers.push(grep["metadata"]["files"].clone());
            for (tool, arguments) in [("glob", json!({"pattern": "*.txt"})), ("list", json!({}))] {
                let result = wire.tool(tool, arguments);
                assert_eq!(result["is_error"], false, "{kind}: {result}");
            }
            most_threads = most_threads.max(threads(&daemon));
        }
        assert_eq!(*expected.get_or_insert(answers.clone()), answers, "{kind}");
        assert!(peak(&daemon) < COST + (150 << 20), "{kind}: {} MiB", peak(&daemon) >> 20);
        assert!(most_threads < before + 24, "{kind}: {before} threads became {most_threads}");
        daemon.signal("TERM");
        assert!(daemon.wait().success(), "{kind}");
    }
}

#[test]
fn an_ignore_file_that_is_not_used_is_named() {
    let setup = Setup::new().file("a.txt", "needle");
    trap("sparse", &setup.path("work/.ignore"));
    let daemon = setup.start();
    let mut wire = daemon.connect();
    let grep = wire.tool("grep", json!({"pattern": "needle"}));
    let text = grep["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(".ignore: it is not used") && text.contains("1048576 bytes"), "{text}");
    // A link to a file that the caller may not read is ignored, because its effect would reveal its lines.
    std::fs::remove_file(daemon.work().join(".ignore")).unwrap();
    let secret = daemon.setup.path("secret");
    std::fs::write(&secret, "a.txt\n").unwrap();
    symlink(&secret, daemon.work().join(".ignore")).unwrap();
    assert_eq!(wire.tool("glob", json!({"pattern": "*.txt"}))["metadata"]["files"], 1);
    // One within the folder counts.
    std::fs::write(daemon.work().join("rules"), "a.txt\n").unwrap();
    std::fs::remove_file(daemon.work().join(".ignore")).unwrap();
    symlink("rules", daemon.work().join(".ignore")).unwrap();
    assert_eq!(wire.tool("glob", json!({"pattern": "*.txt"}))["metadata"]["files"], 0);
}

#[test]
fn rules_that_keep_files_from_tools_are_bounded_and_exclude_all_when_they_are_traps() {
    for kind in TRAPS {
        let setup = Setup::new().file("a.txt", "needle");
        trap(kind, &setup.path("work/.aiexclude"));
        let daemon = setup.start();
        let mut wire = daemon.connect();
        let read = wire.call("tools.execute", json!({"name": "read", "arguments": {"path": "a.txt"}}));
        assert_eq!(read.pointer("/result/is_error"), Some(&json!(true)), "{kind}: {read}");
        assert!(read.to_string().contains(".aiexclude"), "{kind}: {read}");
        assert!(peak(&daemon) < COST + (100 << 20), "{kind}: {} MiB", peak(&daemon) >> 20);
    }
}

#[test]
fn a_configuration_that_is_a_trap_is_refused_in_words_at_the_start_and_later() {
    for kind in TRAPS {
        let setup = Setup::new().file("a.txt", "here");
        let file = setup.path("config/toold/config.toml");
        let _ = std::fs::remove_file(&file);
        trap(kind, &file);
        // In the project, too.
        trap(kind, &setup.path("work/.toold/config.toml"));
        let daemon = setup.start();
        let mut wire = daemon.connect();
        let problems = |wire: &mut Wire| status(wire)["problems"].to_string();
        let words = problems(&mut wire);
        assert!(words.contains("config.toml"), "{kind}: {words}");
        assert!(peak(&daemon) < COST, "{kind}: {} MiB", peak(&daemon) >> 20);
        // A repaired file is read, and one that becomes a trap again is reported.
        if kind == "folder" {
            std::fs::remove_dir(&file).unwrap();
        } else {
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::write(&file, "").unwrap();
        wire.result("daemon.reload", json!({}));
        until("the configuration is read", || {
            (!problems(&mut wire).contains("config/toold/config.toml")).then_some(())
        });
        std::fs::remove_file(&file).unwrap();
        let _ = std::fs::remove_file(file.with_extension("target"));
        trap(kind, &file);
        wire.result("daemon.reload", json!({}));
        until("the trap is said", || problems(&mut wire).contains("config/toold/config.toml").then_some(()));
    }
}
