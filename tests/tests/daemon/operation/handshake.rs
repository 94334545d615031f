//! Daemons of other versions: the error says which one is older, and what to do.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, toold};

use crate::operation::serving::{Stopped, private, run, socket, text};

/// Answers like a daemon of another version, one client after another, until it is shut down.
fn stand_in(setup: &Setup, version: &'static str, protocol: u32) -> JoinHandle<()> {
    private(setup);
    let path = socket(setup);
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            if serve(stream.unwrap(), version, protocol) {
                fs::remove_file(path).unwrap();
                return;
            }
        }
    })
}

/// The members of every status.
fn status_of_today() -> Value {
    json!({
        "epoch": "e", "instance": "i", "uptime_s": 1.0, "plugin_dirs": [], "sessions": 0, "connections": 1, "tools": 0,
        "revision": 1, "calls": {"started": 0, "finished": 0, "in_flight": 0, "outcomes": {}},
        "plugins": {"loaded": 0, "failed": 0, "other": 0},
    })
}

/// True when it must stop.
fn serve(stream: UnixStream, version: &str, protocol: u32) -> bool {
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return false };
        let request: Value = serde_json::from_str(&line).unwrap();
        let error = |code: i32, kind: &str| json!({"error": {"code": code, "message": "no", "data": {"kind": kind}}});
        let mut answer = match request["method"].as_str().unwrap() {
            "daemon.ping" | "daemon.shutdown" => json!({"result": {}}),
            "daemon.status" => {
                let mut status = json!({"version": version, "protocol": protocol, "pid": 7, "calls": {"in_flight": 0}});
                // An old daemon sends few of today's members.
                if version == "9.0.0" {
                    let all = status_of_today();
                    for (key, value) in all.as_object().unwrap() {
                        status.as_object_mut().unwrap().entry(key).or_insert(value.clone());
                    }
                    status["calls"] = all["calls"].clone();
                }
                json!({"result": status})
            }
            "session.open" if request["params"]["protocol"] != protocol => error(-32600, "unsupported_protocol"),
            _ => error(-32601, ""),
        };
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        // A client without further requests may be gone.
        let _ = writeln!(writer, "{answer}");
        if request["method"] == "daemon.shutdown" {
            return true;
        }
    }
    false
}

#[track_caller]
fn check(version: &'static str, protocol: u32, arguments: &[&str], words: &[&str]) {
    let setup = Setup::new();
    let daemon = stand_in(&setup, version, protocol);
    let output = run(&setup, &[&["--no-start"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && words.iter().all(|word| said.contains(word)), "{said}");
    end(&setup);
    daemon.join().unwrap();
}

fn end(setup: &Setup) {
    let mut stream = UnixStream::connect(socket(setup)).unwrap();
    writeln!(stream, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.shutdown"})).unwrap();
}

#[test]
fn protocol_mismatch_is_reported_with_a_remedy() {
    let own = env!("CARGO_PKG_VERSION");
    let speaks = format!("toolctl {own} speaks 2; ");
    check(
        "9.0.0",
        3,
        &["call", "read", "path=f"],
        &[&speaks, "protocol mismatch: daemon 9.0.0 at ", "(pid 7) speaks protocol 3", "use toolctl 9.0.0"],
    );
    check(
        "0.0.1",
        1,
        &["call", "read", "path=f"],
        &[&speaks, "daemon 0.0.1 at ", "(pid 7) speaks protocol 1", "`toolctl restart`"],
    );
}

#[test]
fn a_method_that_an_older_daemon_does_not_have_is_reported() {
    check("0.0.1", 2, &["list"], &["version mismatch: daemon 0.0.1 at ", "(pid 7), toolctl ", "`toolctl restart`"]);
    // The same with an answer that lacks the expected members.
    check("0.0.1", 2, &["status"], &["daemon 0.0.1 at ", "(pid 7)", "`toolctl restart`"]);
}

#[test]
fn a_daemon_that_fits_and_is_of_another_version_is_shown_with_a_note() {
    let setup = Setup::new();
    let daemon = stand_in(&setup, "9.0.0", 2);
    let output = run(&setup, &["--no-start", "status"]);
    assert!(text(&output).contains("toold 9.0.0"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("version mismatch: daemon 9.0.0 (pid 7), toolctl"), "{said}");
    end(&setup);
    daemon.join().unwrap();
}

#[test]
fn an_older_daemon_that_hands_nothing_over_is_stopped_and_another_one_started() {
    let setup = Setup::new();
    let old = stand_in(&setup, "0.0.1", 1);
    let program = toold().display().to_string();
    let output = run(&setup, &["restart", "--json", "--when-idle", "--program", &program]);
    let restarted: Value = serde_json::from_str(&text(&output)).unwrap();
    let _stopped = Stopped(&setup);
    assert_eq!((&restarted["previous_version"], &restarted["previous_pid"]), (&json!("0.0.1"), &json!(7)));
    old.join().unwrap();
    let status: Value = serde_json::from_str(&text(&run(&setup, &["status", "--json"]))).unwrap();
    assert_eq!(status["pid"], restarted["pid"]);
}

#[test]
fn a_client_of_another_protocol_hears_which_daemon_this_is() {
    let daemon = TestDaemon::start();
    let mut wire = toold_tests::Wire::connect(&daemon.socket());
    for protocol in [1, 3] {
        let error = wire.error("session.open", json!({"cwd": daemon.work(), "protocol": protocol}));
        assert_eq!(
            (&error["data"]["kind"], &error["data"]["supported"]),
            (&json!("unsupported_protocol"), &json!([2]))
        );
        let words = error["message"].as_str().unwrap();
        assert!(words.contains(&format!("pid {}", daemon.pid())) && words.contains("toolctl restart"), "{words}");
    }
}
