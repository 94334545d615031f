//! A process that a tool left behind stays a tool's: while its daemon lives, when the next one serves, and when
//! daemon and reaper were killed.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, has_ended, toold, until};

use crate::principals::peers::{ALLOW, GRANT, RequestScript, grant_everything, is_refused, nothing_is_granted};

/// A process that a command leaves behind, as detached as possible: no parents, session, or variables. It connects
/// once the file `go` is there.
fn leave_behind(daemon: &TestDaemon, requests: &Value) -> RequestScript {
    let speaker = RequestScript::new(daemon, "requests", requests);
    let started = daemon.setup.path("started");
    let line = format!(
        "env -i PATH=\"$PATH\" setsid -f bash -c 'touch {started}; while [ ! -e {go} ]; do sleep 0.02; done; {speak}' \
         >/dev/null 2>&1; until [ -e {started} ]; do sleep 0.02; done",
        started = started.display(),
        go = daemon.setup.path("go").display(),
        speak = speaker.line(),
    );
    let ran = daemon.connect().tool("bash", json!({"command": line}));
    assert_eq!(ran["is_error"], false, "{ran}");
    speaker
}

fn go(daemon: &TestDaemon) {
    std::fs::write(daemon.setup.path("go"), "").unwrap();
}

fn grants() -> Value {
    json!([[GRANT, grant_everything()], ["tools.execute", {"name": "bash", "arguments": {"command": "touch done"}}]])
}

#[track_caller]
fn granted_nothing(daemon: &TestDaemon, speaker: &RequestScript) {
    go(daemon);
    let answers = speaker.answers();
    is_refused(&answers[0]);
    assert!(answers[1]["result"]["metadata"]["permission"].is_object(), "{}", answers[1]);
    nothing_is_granted(daemon);
}

#[test]
fn it_grants_nothing_while_its_daemon_lives() {
    let daemon = Setup::new().config(ALLOW).start();
    let speaker = leave_behind(&daemon, &json!([[GRANT, grant_everything()]]));
    go(&daemon);
    is_refused(&speaker.answers()[0]);
    nothing_is_granted(&daemon);
}

#[test]
fn it_grants_nothing_when_daemon_and_reaper_were_killed() {
    let mut daemon = Setup::new().config(ALLOW).start();
    let speaker = leave_behind(&daemon, &grants());
    let reaper = daemon.reaper().to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &reaper]).status().unwrap().success());
    daemon.restart("KILL");
    granted_nothing(&daemon, &speaker);
}

#[test]
fn it_starts_no_daemon_of_its_own_when_its_own_was_killed() {
    let mut daemon = Setup::new().config(ALLOW).start();
    let (started, said) = (daemon.setup.path("started"), daemon.setup.path("said"));
    let line = format!(
        "env -i PATH=\"$PATH\" HOME={home} setsid -f bash -c 'touch {started}; while [ ! -e {go} ]; do sleep 0.02; done; \
         {toold} serve --socket {other} > {said}.part 2>&1; mv {said}.part {said}' >/dev/null 2>&1; \
         until [ -e {started} ]; do sleep 0.02; done",
        home = daemon.setup.path("home").display(),
        started = started.display(),
        go = daemon.setup.path("go").display(),
        toold = toold().display(),
        other = daemon.setup.path("home/other.sock").display(),
        said = said.display(),
    );
    daemon.connect().tool("bash", json!({"command": line}));
    let reaper = daemon.reaper().to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &reaper]).status().unwrap().success());
    daemon.restart("KILL");
    go(&daemon);
    let said = until("it has ended", || std::fs::read_to_string(&said).ok());
    assert!(said.contains("a process that a tool started can't start a daemon"), "{said}");
}

#[test]
fn it_ends_with_its_daemon() {
    for signal in ["TERM", "KILL"] {
        let mut daemon = Setup::new().config(ALLOW).start();
        leave_behind(&daemon, &json!([]));
        assert!(!daemon.processes().is_empty(), "it works in this test's folders");
        daemon.signal(signal);
        daemon.wait();
        until("it is ended", || daemon.processes().is_empty().then_some(()));
        daemon.start_again();
    }
}

#[test]
fn a_restart_hands_it_on_and_it_ends_with_the_next_daemon() {
    let setup = Setup::new().config(ALLOW);
    let daemon = setup.start();
    let speaker = leave_behind(&daemon, &grants());
    let program = toold().display().to_string();
    let restarted = daemon.toolctl(&["restart", "--json", "--program", &program]);
    assert!(restarted.status.success(), "{restarted:?}");
    let next: Value = serde_json::from_slice(&restarted.stdout).unwrap();
    let next = u32::try_from(next["pid"].as_u64().unwrap()).unwrap();
    until("the first daemon is gone", || has_ended(daemon.pid()).then_some(()));
    assert!(daemon.processes().iter().any(|process| process.contains("bash -c")), "it was handed on");
    granted_nothing(&daemon, &speaker);
    leave_behind(&daemon, &json!([["wait", daemon.setup.path("never")]]));
    assert!(std::process::Command::new("kill").arg(next.to_string()).status().unwrap().success());
    until("all of it is ended", || daemon.processes().is_empty().then_some(()));
    until("the next daemon is gone", || has_ended(next).then_some(()));
}
