//! One daemon hands its socket to the next.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use toold_client::{Client, ClientError};
use toold_proto::call::Execute;
use toold_proto::daemon::NoParams;
use toold_proto::method::{DaemonGetStatus, SessionOpen};
use toold_proto::session::OpenSession;
use toold_proto::tool::SessionId;
use toold_tests::{Setup, Wire, toolctl, toold, until};

use crate::operation::serving::{
    ALLOW_ALL, Manager, ServingProcess, Stopped, activated, listener, private, run, serve, socket, text,
};

/// `toolctl restart`, which must succeed.
#[track_caller]
fn restart(setup: &Setup, arguments: &[&str]) -> Value {
    let toold = toold().display().to_string();
    let all = [&["restart", "--json", "--program", &toold], arguments].concat();
    serde_json::from_str(&text(&run(setup, &all))).unwrap()
}

fn log(setup: &Setup) -> String {
    fs::read_to_string(setup.path("log")).unwrap()
}

#[test]
fn a_client_that_calls_in_a_loop_loses_no_call_by_restarts() {
    let setup = Setup::new().file("f", "there\n");
    private(&setup);
    let mut first = serve(&setup);
    let _stopped = Stopped(&setup);
    let (over, served_by) = (AtomicBool::new(false), Mutex::default());
    let pids = std::thread::scope(|scope| {
        // New connections: none is refused, and each gets its answer, or an error that another daemon serves.
        let newcomers = scope.spawn(|| {
            let mut count = 0;
            while !over.load(Ordering::Relaxed) {
                let mut wire = Wire::connect(&socket(&setup));
                // An old daemon may have said farewell and closed the connection before this is sent.
                let id = wire.try_request("daemon.ping", json!({}));
                let message = wire.next_message().expect("an answer or a farewell");
                if message["method"] == "daemon.closing" {
                    count += 1;
                } else {
                    assert_eq!((&message["id"], &message["result"]), (&json!(id), &json!({})), "{message}");
                }
            }
            count
        });
        let looping = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(call_in_a_loop(&setup, &over, &served_by));
        });
        let ends = SetWhenOver(&over);
        let mut pids = BTreeSet::from([first.0.id()]);
        for n in 1..=3 {
            until("the client is served by the newest daemon", || (*served_by.lock().unwrap() == pids).then_some(()));
            let restarted = restart(&setup, &[]);
            assert!(pids.contains(&u32::try_from(restarted["previous_pid"].as_u64().unwrap()).unwrap()));
            assert!(pids.insert(u32::try_from(restarted["pid"].as_u64().unwrap()).unwrap()), "it is another process");
            // Until then another restart is refused.
            until("the new daemon knows that the old one is gone", || {
                log(&setup).matches("the previous daemon is gone").count().ge(&n).then_some(())
            });
        }
        until("the client is served by the last daemon", || (*served_by.lock().unwrap() == pids).then_some(()));
        drop(ends);
        newcomers.join().unwrap();
        looping.join().unwrap();
        pids
    });
    assert!(first.ended().success());
    assert_eq!(pids.len(), 4);
}

/// Stops the threads, also when the test fails.
struct SetWhenOver<'a>(&'a AtomicBool);

impl Drop for SetWhenOver<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls a tool until the flag is set; returns the process ids of the daemons that served it.
async fn call_in_a_loop(setup: &Setup, over: &AtomicBool, served_by: &Mutex<BTreeSet<u32>>) {
    let mut client = Client::connect(&socket(setup)).await.unwrap();
    loop {
        let opened = client.call::<SessionOpen>(OpenSession {
            session_id: Some(SessionId::parse("kept").unwrap()),
            cwd: Some(setup.path("work").display().to_string()),
            ..OpenSession::default()
        });
        let replaced = match opened.await {
            Ok(_) => loop {
                match client.call::<DaemonGetStatus>(NoParams {}).await {
                    Ok(status) => drop(served_by.lock().unwrap().insert(status.pid)),
                    Err(ClientError::Replaced) => break true,
                    Err(error) => panic!("{error}"),
                }
                let read = Execute { name: "read".to_owned(), arguments: json!({"path": "f"}), ..Execute::default() };
                match client.execute(read).unwrap().answer().await {
                    Ok(result) => assert!(!result.is_error, "{result:?}"),
                    Err(ClientError::Replaced) => break true,
                    Err(error) => panic!("{error}"),
                }
                if over.load(Ordering::Relaxed) {
                    break false;
                }
            },
            Err(ClientError::Replaced) => true,
            Err(error) => panic!("{error}"),
        };
        if !replaced {
            return;
        }
        client = client.successor().await.unwrap();
    }
}

#[test]
fn a_call_that_comes_before_the_frontends_of_the_old_daemon_waits_for_them() {
    for frontends in [true, false] {
        let setup = Setup::new().asking();
        private(&setup);
        let mut first = serve(&setup);
        let _stopped = Stopped(&setup);
        let subscribed = || {
            let mut person = Wire::connect(&socket(&setup));
            person.result("permissions.subscribe", json!({}));
            person
        };
        let before = frontends.then(subscribed);
        restart(&setup, &[]);
        drop(before);
        let mut caller = Wire::connect(&socket(&setup));
        caller.result("session.open", json!({"cwd": setup.path("work")}));
        let call = caller.request("tools.execute", json!({"name": "bash", "arguments": {"command": "touch made"}}));
        if frontends {
            let pending = || Wire::connect(&socket(&setup)).result("permissions.pending", json!({}))["asks"].take();
            until("the question", || (pending().as_array()?.len() == 1).then_some(()));
            let mut person = subscribed();
            let event = person.notification("permissions.event");
            let id = &event["result"]["request"]["request_id"];
            person.result("permissions.reply", json!({"request_id": id, "action": "allow"}));
        }
        let answer = caller.answer(call);
        assert_eq!(answer["result"]["is_error"], !frontends, "{answer}");
        assert!(first.ended().success());
    }
}

#[test]
fn a_call_in_flight_ends_before_a_restart_that_waits() {
    let setup = Setup::new().config(ALLOW_ALL);
    private(&setup);
    let mut first = serve(&setup);
    let _stopped = Stopped(&setup);
    let mut wire = Wire::connect(&socket(&setup));
    wire.result("session.open", json!({"cwd": setup.path("work")}));
    let command = "until test -e go; do sleep 0.02; done; echo fine";
    let call = wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}));
    until("the call runs", || {
        (Wire::connect(&socket(&setup)).result("daemon.status", json!({}))["calls"]["in_flight"] == 1).then_some(())
    });
    // It gives up when that takes too long, and nothing changes.
    let toold = toold().display().to_string();
    let late = run(&setup, &["restart", "--program", &toold, "--when-idle", "--timeout", "50ms"]);
    let words = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(!late.status.success() && words.contains("calls 1,"), "{words}");
    assert_eq!(Wire::connect(&socket(&setup)).result("daemon.status", json!({}))["pid"], first.0.id());

    let waiting = {
        let mut command = setup.command(toolctl());
        command.args(["restart", "--json", "--program", &toold, "--when-idle"]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    until("the next daemons were ready", || {
        log(&setup).matches("the next daemon is ready").count().ge(&2).then_some(())
    });
    // Others are served meanwhile.
    assert_eq!(Wire::connect(&socket(&setup)).result("daemon.ping", json!({})), json!({}));
    fs::write(setup.path("work/go"), "").unwrap();
    let answer = wire.answer(call);
    assert!(answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("fine")), "{answer}");
    assert!(waiting.wait_with_output().unwrap().status.success());
    assert!(first.ended().success());
    // The last message on the old connection.
    let last = until("the connection ends", || {
        let message = wire.next_message()?;
        wire.next_message().is_none().then_some(message)
    });
    assert_eq!((&last["method"], &last["params"]["reason"]), (&json!("daemon.closing"), &json!("restart")));
}

/// The verdict of the daemon that serves now about reading a file outside all folders.
fn verdict(setup: &Setup, target: &str) -> Value {
    let mut wire = Wire::connect(&socket(setup));
    wire.result("session.open", json!({"cwd": setup.path("work")}));
    wire.result("permissions.check", json!({"category": "file.read", "target": target}))["verdict"].take()
}

fn grant(wire: &mut Wire, target: &str, action: &str) -> Value {
    let params = json!({"category": "file.read", "pattern": target, "action": action, "scope": "always"});
    wire.result("permissions.grant", params)["id"].take()
}

#[test]
fn decisions_made_after_the_next_daemon_was_ready_count_in_it() {
    let setup = Setup::new().config(ALLOW_ALL);
    private(&setup);
    let mut first = serve(&setup);
    let _stopped = Stopped(&setup);
    let mut person = Wire::connect(&socket(&setup));
    person.result("session.open", json!({"cwd": setup.path("work")}));
    let revoked = grant(&mut person, "/revoked", "allow");
    grant(&mut person, "/refused", "allow");
    assert_eq!(["/revoked", "/refused", "/granted"].map(|path| verdict(&setup, path)), ["allow", "allow", "ask"]);
    let workspaces = |setup: &Setup| -> Vec<Value> {
        let listed = Wire::connect(&socket(setup)).result("workspaces.list", json!({}))["workspaces"].take();
        listed.as_array().unwrap().iter().map(|workspace| workspace["path"].clone()).collect()
    };
    let (opened, allowed) = (json!(setup.path("work")), json!(setup.path("home/allowed")));
    fs::create_dir(setup.path("home/allowed")).unwrap();
    assert_eq!(workspaces(&setup), std::slice::from_ref(&opened));

    let mut busy = Wire::connect(&socket(&setup));
    busy.result("session.open", json!({"cwd": setup.path("work")}));
    let command = "until test -e go; do sleep 0.02; done";
    let call = busy.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}));
    until("the call runs", || {
        (Wire::connect(&socket(&setup)).result("daemon.status", json!({}))["calls"]["in_flight"] == 1).then_some(())
    });
    let waiting = {
        let mut command = setup.command(toolctl());
        command.args(["restart", "--json", "--when-idle", "--program", &toold().display().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    until("the next daemon is ready", || log(&setup).contains("the next daemon is ready").then_some(()));
    person.result("permissions.revoke", json!({"id": revoked}));
    grant(&mut person, "/refused", "deny");
    grant(&mut person, "/granted", "allow");
    person.result("workspaces.forget", json!({"path": opened}));
    person.result("workspaces.allow", json!({"path": allowed}));
    fs::write(setup.path("work/go"), "").unwrap();
    busy.answer(call);
    assert!(waiting.wait_with_output().unwrap().status.success());
    assert!(first.ended().success());
    // It opens no session, so that it opens no folder.
    assert_eq!(workspaces(&setup), [allowed]);
    assert_eq!(["/revoked", "/refused", "/granted"].map(|path| verdict(&setup, path)), ["ask", "deny", "allow"]);
}

#[test]
fn old_daemon_keeps_serving_when_its_successor_fails() {
    let setup = Setup::new();
    private(&setup);
    let first = serve(&setup);
    let mut wire = Wire::connect(&socket(&setup));
    let mut check = |program: &str, words: &str| {
        let output = run(&setup, &["restart", "--program", program]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("the daemon keeps serving") && said.contains(words),
            "{said}"
        );
        assert_eq!(wire.result("daemon.status", json!({}))["pid"], first.0.id());
        Wire::connect(&socket(&setup)).result("daemon.ping", json!({}));
    };
    check("/nowhere/toold", "can't start /nowhere/toold");
    check("/bin/false", "/bin/false ended with exit status: 1");
    check("/bin/cat", "/bin/cat ended");
    fs::write(setup.path("config/toold/config.toml"), "[limits]\ncals = 1\n").unwrap();
    check(&toold().display().to_string(), "unknown key cals");
    first.stop();
}

#[test]
fn subscriptions_continue_after_a_restart() {
    let setup = Setup::new().file("f", "there\n");
    private(&setup);
    let mut first = serve(&setup);
    let _stopped = Stopped(&setup);
    let mut command = setup.command(toolctl());
    command.args(["events", "--json", "--kinds", "call.finished,session.opened"]);
    let mut events =
        ServingProcess(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let (lines, (heard, hear)) = (BufReader::new(events.0.stdout.take().unwrap()).lines(), mpsc::channel());
    let reading = std::thread::spawn(move || {
        for line in lines {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if heard.send(event["epoch"].clone()).is_err() {
                return;
            }
        }
    });
    let read = |call_id: &str| {
        let mut wire = Wire::connect(&socket(&setup));
        wire.result("session.open", json!({"cwd": setup.path("work")}));
        let arguments = json!({"name": "read", "arguments": {"path": "f"}, "call_id": call_id});
        wire.result("tools.execute", arguments);
    };
    // Its subscription is there when it hears of one of these.
    let mut n = 0;
    let mut until_heard_from = |epoch: Option<&Value>| {
        until("events come", || {
            n += 1;
            read(&format!("read-{n}"));
            let from = hear.recv_timeout(Duration::from_millis(100)).ok()?;
            epoch.is_none_or(|epoch| from == *epoch).then_some(())
        });
    };
    until_heard_from(None);
    let restarted = restart(&setup, &[]);
    until_heard_from(Some(&restarted["epoch"]));
    assert!(first.ended().success());
    // Not SIGINT, which is ignored when tests run in the background.
    events.signal("TERM");
    events.0.wait().unwrap();
    reading.join().unwrap();
}

#[test]
fn a_service_manager_hears_of_the_new_process_and_keeps_its_socket() {
    let setup = Setup::new();
    let (listener, manager) = (listener(&setup), Manager::new(&setup));
    let mut command = activated(&setup, listener);
    let mut first = ServingProcess(command.env("NOTIFY_SOCKET", setup.path("notify")).spawn().unwrap());
    manager.hear("READY=1");
    let restarted = restart(&setup, &[]);
    assert_eq!(manager.hear("MAINPID="), [format!("MAINPID={}", restarted["pid"])]);
    manager.hear("READY=1");
    assert!(first.ended().success());
    text(&run(&setup, &["stop"]));
    manager.hear("STOPPING=1");
    until("the new daemon is gone", || log(&setup).matches("stopped").count().ge(&2).then_some(()));
    assert!(socket(&setup).exists(), "the service manager's socket was removed");
}

#[test]
fn tool_of_the_old_daemon_is_still_a_tool_for_the_new_one() {
    let setup = Setup::new().config(ALLOW_ALL);
    private(&setup);
    let mut first = serve(&setup);
    let _stopped = Stopped(&setup);
    // Another program, as after an upgrade.
    let newer = setup.path("toold-newer");
    fs::copy(toold(), &newer).unwrap();
    let mut wire = Wire::connect(&socket(&setup));
    wire.result("session.open", json!({"cwd": setup.path("work")}));
    let command = format!("until test -e go; do sleep 0.02; done; {} stop 2>&1", toolctl().display());
    let call = wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}));
    until("the call runs", || {
        (Wire::connect(&socket(&setup)).result("daemon.status", json!({}))["calls"]["in_flight"] == 1).then_some(())
    });
    let newer = newer.display().to_string();
    let output = run(&setup, &["restart", "--json", "--drain-ms", "60000", "--program", &newer]);
    let restarted: Value = serde_json::from_str(&text(&output)).unwrap();
    fs::write(setup.path("work/go"), "").unwrap();
    let answer = wire.answer(call);
    assert_eq!(answer["result"]["is_error"], true, "{answer}");
    assert!(
        answer["result"]["content"][0]["text"].as_str().unwrap().contains("daemon.shutdown is for a person"),
        "{answer}"
    );
    assert!(first.ended().success());
    assert_eq!(Wire::connect(&socket(&setup)).result("daemon.status", json!({}))["pid"], restarted["pid"]);
}

#[test]
fn calls_of_a_session_wait_for_one_that_the_old_daemon_still_runs() {
    let setup = Setup::new().config(ALLOW_ALL).file("A", "zero\n").file("B", "zero\n");
    private(&setup);
    let mut first = serve(&setup);
    let _stopped = Stopped(&setup);
    let work = |name: &str| setup.path("work").join(name);
    let open = |id: &str| {
        let mut wire = Wire::connect(&socket(&setup));
        wire.result("session.open", json!({"session_id": id, "cwd": setup.path("work")}));
        wire
    };
    let bash = |line: &str| json!({"name": "bash", "arguments": {"command": line}});
    // The others that may have made the last change of a file; `None` if there is no such change.
    let others = |name: &str| {
        let changes = Wire::connect(&socket(&setup)).result("files.history", json!({"all": true}))["changes"].take();
        let of_file = |change: &&Value| change["path"] == work(name).display().to_string();
        let last = changes.as_array().unwrap().iter().rfind(of_file)?;
        Some(last["shared_with"].as_array().map_or(0, Vec::len))
    };
    // The first commands in a folder may come before its index.
    let recorded = |wire: &mut Wire, name: &str| {
        let mut n = 0;
        until("a command is recorded", || {
            n += 1;
            wire.result("tools.execute", bash(&format!("echo {n} > {name}")));
            others(name)
        })
    };
    let mut old = open("s");
    assert_eq!(recorded(&mut old, "C"), 0);
    let line = "touch begun; until test -e go; do sleep 0.02; done; echo one > A; echo first >> log";
    let call = old.request("tools.execute", bash(line));
    until("the call runs", || work("begun").exists().then_some(()));
    restart(&setup, &["--drain-ms", "60000"]);

    let mut new = open("s");
    let next = new.request("tools.execute", bash("echo two > B; echo second >> log"));
    // Calls of another session do not wait, but may have made what the old daemon's call seems to have made.
    assert_eq!(recorded(&mut open("t"), "D"), 1);
    assert_eq!(fs::read_to_string(work("B")).unwrap(), "zero\n");
    fs::write(work("go"), "").unwrap();
    assert_eq!(old.answer(call)["result"]["is_error"], false);
    assert_eq!(new.answer(next)["result"]["is_error"], false);
    assert!(first.ended().success());
    assert_eq!(fs::read_to_string(work("log")).unwrap(), "first\nsecond\n");
    assert_eq!((others("A"), others("B")), (Some(1), Some(0)));
}

#[test]
fn what_waits_for_a_client_ends_with_its_connection() {
    let plugin = "hygge.register_tool{name = \"t\", description = \"d\", execute = function() return \"x\" end}";
    let setup = Setup::new().config(ALLOW_ALL).plugin("st.lua", plugin);
    private(&setup);
    let first = serve(&setup);
    let _stopped = Stopped(&setup);
    let open = || {
        let mut wire = Wire::connect(&socket(&setup));
        wire.result("session.open", json!({"cwd": setup.path("work")}));
        wire
    };
    let mut person = open();
    until("the plugin is loaded", || {
        (person.result("plugins.list", json!({}))["plugins"][0]["status"] == "loaded").then_some(())
    });
    let call = json!({"name": "bash", "arguments": {"command": "until test -e go; do sleep 0.02; done"}});
    let call = person.request("tools.execute", call);
    let mut gone = open();
    let toold = toold().display().to_string();
    gone.request("daemon.restart", json!({"when_idle": true, "program": toold}));
    until("the next daemon is ready", || log(&setup).contains("the next daemon is ready").then_some(()));
    drop(gone);
    let mut gone = open();
    gone.request("plugins.profile", json!({"name": "st", "seconds": 600}));
    let mut other = open();
    let profile = json!({"name": "st", "seconds": 1});
    until("it is profiled", || other.call("plugins.profile", profile.clone()).get("error").is_some().then_some(()));
    drop(gone);
    until("nobody else profiles it", || other.call("plugins.profile", profile.clone()).get("result").cloned());
    fs::write(setup.path("work/go"), "").unwrap();
    assert_eq!(person.answer(call)["result"]["is_error"], false);
    let status = other.result("daemon.status", json!({}));
    assert_eq!((&status["pid"], &status["connections"]), (&json!(first.0.id()), &json!(2)), "{status}");
}

#[test]
fn a_pause_reaches_the_calls_that_the_old_daemon_still_runs() {
    let setup = Setup::new().config(ALLOW_ALL);
    private(&setup);
    let mut first = serve(&setup);
    let _stopped = Stopped(&setup);
    let work = |name: &str| setup.path("work").join(name);
    let open = || {
        let mut wire = Wire::connect(&socket(&setup));
        wire.result("session.open", json!({"cwd": setup.path("work")}));
        wire
    };
    let mut old = open();
    let line = "until test -e go; do echo x >> ticks; sleep 0.02; done";
    let call = old.request("tools.execute", json!({"name": "bash", "arguments": {"command": line}}));
    let count = || fs::metadata(work("ticks")).map_or(0, |found| found.len());
    let goes_on = |what: &str| {
        let before = count();
        until(what, || (count() > before + 2).then_some(()));
    };
    goes_on("the call runs");
    // The first pause comes from the old daemon, the second from the new one.
    let mut person = open();
    assert!(person.result("daemon.pause", json!({}))["processes"].as_u64().unwrap() >= 1);
    restart(&setup, &["--drain-ms", "60000"]);
    let mut person = open();
    let resumed = person.result("daemon.resume", json!({}));
    assert!(resumed["processes"].as_u64().unwrap() >= 1, "{resumed}");
    goes_on("the call goes on");
    let paused = person.result("daemon.pause", json!({}));
    assert!(paused["processes"].as_u64().unwrap() >= 1, "{paused}");
    let before = count();
    // What was stopped wrote nothing meanwhile.
    person.result("daemon.status", json!({}));
    assert_eq!(count(), before);
    person.result("daemon.resume", json!({}));
    goes_on("the call goes on again");
    fs::write(work("go"), "").unwrap();
    assert_eq!(old.answer(call)["result"]["is_error"], false);
    assert!(first.ended().success());
}

#[test]
fn nobody_but_a_daemon_hands_a_socket_over() {
    let script = r#"
import json, os, socket, subprocess, sys
one, other = socket.socketpair()
listener = socket.socket(socket.AF_UNIX); listener.bind("own.sock"); listener.listen()
lock = os.open("own.sock.lock", os.O_CREAT | os.O_RDWR)
offer = json.dumps({"word": "offer", "socket": os.path.abspath("own.sock"), "bound_by_daemon": True}) + "\n"
socket.send_fds(one, [offer.encode()], [listener.fileno(), lock])
daemon = subprocess.Popen([sys.argv[1], "serve", "--take-over"], stdin=other, stderr=subprocess.PIPE)
other.close()
print(daemon.stderr.read().decode(), daemon.wait())
"#;
    let setup = Setup::new().config(ALLOW_ALL).file("try.py", script);
    private(&setup);
    let first = serve(&setup);
    let mut wire = Wire::connect(&socket(&setup));
    wire.result("session.open", json!({"cwd": setup.path("work")}));
    let result = wire.tool("bash", json!({"command": format!("python3 try.py {}", toold().display())}));
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("a process that a tool started can't hand over a socket"), "{said}");
    first.stop();
    let mut command = setup.command(toold());
    let output = command.args(["serve", "--take-over"]).stdin(Stdio::null()).output().unwrap();
    assert!(
        !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("stdin is not a daemon's socket")
    );
}
