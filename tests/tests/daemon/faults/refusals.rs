//! A denial by a person is never lifted without a prompt, whatever happens to the files that store it.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

use crate::faults::SHELL;

/// Damage to the database in a state folder.
type Damage = (&'static str, fn(&Path));

fn overwrite(path: &Path, from: f64, bytes: usize) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let at = (file.metadata().unwrap().len() as f64 * from) as u64;
    let noise: Vec<u8> = (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    file.write_all_at(&noise, at).unwrap();
}

fn truncate(path: &Path, to: f64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let length = (file.metadata().unwrap().len() as f64 * to) as u64;
    file.set_len(length).unwrap();
}

fn database(state: &Path) -> std::path::PathBuf {
    state.join("toold.db")
}

fn remove_all(state: &Path) {
    for name in ["toold.db", "toold.db-wal", "toold.db-shm"] {
        let _ = fs::remove_file(state.join(name));
    }
}

const DAMAGES: [Damage; 15] = [
    ("truncated to nothing", |state| truncate(&database(state), 0.0)),
    ("truncated to half", |state| truncate(&database(state), 0.5)),
    ("noise in the header", |state| overwrite(&database(state), 0.0, 100)),
    ("noise in its tables", |state| {
        let length = fs::metadata(database(state)).unwrap().len() as usize;
        overwrite(&database(state), 4096.0 / length as f64, length - 4096);
    }),
    ("the page of the grants is noise", |state| {
        let other = rusqlite::Connection::open(database(state)).unwrap();
        // The log has the page, too.
        let _ = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let page = "SELECT rootpage FROM sqlite_schema WHERE name = 'grants'";
        let page: u32 = other.query_row(page, [], |row| row.get(0)).unwrap();
        drop(other);
        let length = fs::metadata(database(state)).unwrap().len();
        overwrite(&database(state), f64::from((page - 1) * 4096) / length as f64, 4096);
    }),
    ("deleted", |state| fs::remove_file(database(state)).unwrap()),
    ("deleted with its log", remove_all),
    ("another program's", |state| {
        remove_all(state);
        rusqlite::Connection::open(database(state)).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    }),
    ("another daemon's", |state| {
        remove_all(state);
        let fresh = TestDaemon::start();
        fresh.connect().result("permissions.grant", json!({"category": "shell", "pattern": "ls", "scope": "always"}));
        let path = fresh.state().join("toold.db");
        let _setup = fresh.into_setup();
        fs::copy(path, database(state)).unwrap();
    }),
    ("a folder in its place", |state| {
        remove_all(state);
        fs::create_dir(database(state)).unwrap();
    }),
    ("a FIFO in its place", |state| {
        remove_all(state);
        rustix::fs::mknodat(rustix::fs::CWD, database(state), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }),
    ("unreadable", |state| fs::set_permissions(database(state), fs::Permissions::from_mode(0o000)).unwrap()),
    ("its log deleted", |state| _ = fs::remove_file(state.join("toold.db-wal"))),
    ("its log noise", |state| {
        let log = state.join("toold.db-wal");
        if log.exists() {
            overwrite(&log, 0.0, fs::metadata(&log).unwrap().len() as usize);
        }
    }),
    ("its log cut", |state| {
        let log = state.join("toold.db-wal");
        if log.exists() {
            truncate(&log, 0.4);
        }
    }),
];

/// A daemon that has denials for a command and for reading a file in the working folder; by default it allows both.
fn refusing() -> TestDaemon {
    let daemon = Setup::new().file("refused.txt", "not for tools").file("free.txt", "for all").start();
    let mut wire = daemon.connect();
    allows(&mut wire, "shell", "ls");
    allows(&mut wire, "file.read", "refused.txt");
    refuse(&mut wire, "shell", "ls");
    refuse(&mut wire, "file.read", daemon.work().join("refused.txt").to_str().unwrap());
    refuses(&mut wire, "as it begins");
    drop(wire);
    daemon
}

fn refuse(wire: &mut Wire, category: &str, pattern: &str) {
    let refusal = json!({"category": category, "pattern": pattern, "action": "deny", "scope": "always"});
    wire.result("permissions.grant", refusal);
}

#[track_caller]
fn allows(wire: &mut Wire, category: &str, target: &str) {
    let checked = wire.result("permissions.check", json!({"category": category, "target": target}));
    assert_eq!(checked["verdict"], "allow", "{checked}");
}

#[track_caller]
fn refuses(wire: &mut Wire, when: &str) {
    for (category, target) in [("shell", "ls"), ("file.read", "refused.txt")] {
        let checked = wire.result("permissions.check", json!({"category": category, "target": target}));
        assert_eq!(checked["verdict"], "deny", "{when}: {category} {target}: {checked}");
    }
    // Without a client that can answer, a prompt would be a denial too.
    let read = wire.tool("read", json!({"path": "refused.txt"}));
    assert_eq!(read["is_error"], true, "{when}: {read}");
    assert!(!read.to_string().contains("not for tools"), "{when}: {read}");
}

#[test]
fn a_refusal_outlives_each_kind_of_damage_before_the_start() {
    for (name, damage) in DAMAGES {
        let mut daemon = refusing();
        // Killed, so that there is a log beside the database.
        daemon.signal("KILL");
        daemon.wait();
        damage(&daemon.state());
        daemon.start_again();
        refuses(&mut daemon.connect(), name);
        // And once more, after the daemon had time to damage what was left.
        daemon.restart("TERM");
        refuses(&mut daemon.connect(), name);
    }
}

#[test]
fn a_refusal_outlives_each_kind_of_damage_while_the_daemon_runs() {
    for (name, damage) in DAMAGES {
        let mut daemon = refusing();
        damage(&daemon.state());
        let mut wire = daemon.connect();
        refuses(&mut wire, name);
        // A denial from this time is stored, too; nothing else needs to be.
        refuse(&mut wire, "shell", "pwd");
        let _ = wire.call("permissions.grant", json!({"category": "shell", "pattern": "ls", "scope": "always"}));
        refuses(&mut wire, name);
        drop(wire);
        daemon.restart("TERM");
        let mut wire = daemon.connect();
        refuses(&mut wire, name);
        let checked = wire.result("permissions.check", json!({"category": "shell", "target": "pwd"}));
        assert_eq!(checked["verdict"], "deny", "{name}: {checked}");
    }
}

#[test]
fn a_refusal_outlives_a_disk_that_takes_nothing() {
    for damage in [|_: &Path| {}, |state: &Path| remove_all(state)] {
        let setup = refusing().into_setup();
        damage(&setup.path("state/toold"));
        // No file can grow.
        let daemon = setup.through(&[SHELL[0], SHELL[1], "ulimit -f 0; exec \"$@\"", "sh"]).start();
        let mut wire = daemon.connect();
        refuses(&mut wire, "while the disk takes nothing");
        assert_eq!(wire.tool("read", json!({"path": "free.txt"}))["is_error"], false);
        let kept = wire.error("permissions.grant", json!({"category": "shell", "pattern": "ls", "scope": "always"}));
        assert_eq!(kept["data"]["kind"], "not_kept", "{kept}");
        check_doctor(&daemon, Some(3), "store");
        drop(wire);
        let daemon = daemon.into_setup().through(&["/usr/bin/env"]).start();
        refuses(&mut daemon.connect(), "once the disk takes something again");
    }
}

#[test]
fn a_refusal_that_is_revoked_is_revoked_for_good() {
    let mut daemon = refusing();
    let mut wire = daemon.connect();
    for grant in wire.result("permissions.list", json!({}))["grants"].as_array().unwrap() {
        wire.result("permissions.revoke", json!({"id": grant["id"]}));
    }
    allows(&mut wire, "shell", "ls");
    drop(wire);
    remove_all(&daemon.state());
    daemon.restart("TERM");
    let mut wire = daemon.connect();
    allows(&mut wire, "shell", "ls");
    allows(&mut wire, "file.read", "refused.txt");
}

#[test]
fn lost_denials_are_reported_everywhere_and_prompt() {
    let mut daemon = refusing();
    // Stopped cleanly, so that the log cannot restore the database.
    daemon.signal("TERM");
    daemon.wait();
    let file = daemon.state().join("refusals.jsonl");
    overwrite(&database(&daemon.state()), 0.0, 4096);
    overwrite(&file, 0.0, 4096);
    daemon.start_again();
    let mut wire = daemon.connect();
    for (category, target) in [("shell", "ls"), ("file.read", "refused.txt"), ("file.read", "free.txt")] {
        let checked = wire.result("permissions.check", json!({"category": category, "target": target}));
        assert_eq!(checked["verdict"], "ask", "{checked}");
    }
    let status = wire.result("daemon.status", json!({}));
    let store = &status["store"];
    assert_eq!(
        (&store["damaged"], &store["refusals_lost"], &store["takes_writes"]),
        (&json!(true), &json!(true), &json!(false))
    );
    assert!(store["problems"].to_string().contains("add missing refusals again"), "{store}");
    let shown = daemon.toolctl(&["status"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("add missing refusals again"));
    check_doctor(&daemon, Some(3), "store");
    drop(wire);
    // A person has reviewed it.
    remove_all(&daemon.state());
    fs::remove_file(file).unwrap();
    daemon.restart("TERM");
    allows(&mut daemon.connect(), "file.read", "free.txt");
    check_doctor(&daemon, Some(0), "ok");
}

#[track_caller]
fn check_doctor(daemon: &TestDaemon, status: Option<i32>, words: &str) {
    // This test does not check where toolctl is found.
    let doctor = daemon.toolctl(&["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), status, "{text}");
    assert!(text.contains(words), "{text}");
    let found: Value = serde_json::from_slice(&daemon.toolctl(&["doctor", "--json"]).stdout).unwrap();
    let is_bad = found.as_array().unwrap().iter().any(|finding| finding["health"] == "bad");
    assert_eq!(is_bad, status == Some(3), "{found}");
}

#[test]
fn a_damaged_database_is_no_success_for_the_doctor() {
    let mut daemon = refusing();
    check_doctor(&daemon, Some(0), "ok");
    daemon.signal("TERM");
    daemon.wait();
    overwrite(&database(&daemon.state()), 0.0, 4096);
    daemon.start_again();
    check_doctor(&daemon, Some(3), "is damaged");
}

const DENIES: &str =
    "[[permission.rules]]\ncategory = \"file.read\"\npattern = \"**/refused.txt\"\naction = \"deny\"\n";

/// Ways in which a configuration cannot be read.
const BREAKS: [Damage; 5] = [
    ("no TOML", |file| fs::write(file, "[permission\n").unwrap()),
    ("no text", |file| fs::write(file, [0xff, 0xfe, 0x00]).unwrap()),
    ("an unknown key", |file| fs::write(file, "nothing = 1\n").unwrap()),
    ("a rule that cannot be read", |file| {
        let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"[\"\naction = \"alow\"\n";
        fs::write(file, rule).unwrap();
    }),
    ("a folder in its place", |file| {
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
    }),
];

#[track_caller]
fn denies_reading(wire: &mut Wire, when: &str) {
    let checked = wire.result("permissions.check", json!({"category": "file.read", "target": "refused.txt"}));
    assert_eq!(checked["verdict"], "deny", "{when}: {checked}");
}

#[test]
fn denials_stay_while_the_configuration_is_unreadable() {
    for of_project in [false, true] {
        for (name, damage) in BREAKS {
            let setup = Setup::new().file("refused.txt", "not for tools").file("free.txt", "for all");
            let setup = if of_project { setup.file(".toold/config.toml", DENIES) } else { setup.config(DENIES) };
            let mut daemon = setup.start();
            let mut wire = daemon.connect();
            let when = format!("{name}, of a project: {of_project}");
            denies_reading(&mut wire, &when);
            let file = match of_project {
                true => daemon.work().join(".toold/config.toml"),
                false => daemon.setup.path("config/toold/config.toml"),
            };
            damage(&file);
            // Either the system reports the change first, or the reload finds it.
            wire.result("daemon.reload", json!({}));
            denies_reading(&mut wire, &when);
            drop(wire);
            for _ in 0..2 {
                daemon.restart("KILL");
                let mut wire = daemon.connect();
                denies_reading(&mut wire, &when);
                allows(&mut wire, "file.read", "free.txt");
            }
            // With a readable file that lacks the rule, it is allowed.
            if file.is_dir() {
                fs::remove_dir(&file).unwrap();
            }
            fs::write(&file, "").unwrap();
            let mut wire = daemon.connect();
            wire.result("daemon.reload", json!({}));
            until("the new file counts", || {
                let checked =
                    wire.result("permissions.check", json!({"category": "file.read", "target": "refused.txt"}));
                (checked["verdict"] == "allow").then_some(())
            });
        }
    }
}

#[test]
fn calls_prompt_while_the_configuration_of_hooks_is_unreadable() {
    const HOOK: &str = "[[hooks]]\nevent = \"pre_tool\"\ncommand = [\"true\"]\n";
    for (name, damage) in BREAKS {
        let mut daemon = Setup::new().file("free.txt", "for all").config(HOOK).start();
        allows(&mut daemon.connect(), "file.read", "free.txt");
        let file = daemon.setup.path("config/toold/config.toml");
        damage(&file);
        for _ in 0..2 {
            daemon.restart("KILL");
            let checked = json!({"category": "file.read", "target": "free.txt"});
            let checked = daemon.connect().result("permissions.check", checked);
            assert_eq!(checked["verdict"], "ask", "{name}: {checked}");
        }
        if file.is_dir() {
            fs::remove_dir(&file).unwrap();
        }
        fs::write(&file, "").unwrap();
        daemon.restart("KILL");
        allows(&mut daemon.connect(), "file.read", "free.txt");
    }
}
