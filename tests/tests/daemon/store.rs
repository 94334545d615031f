//! Data that outlives the daemon, and the daemon without a database.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::SystemTime;

use serde_json::{Value, json};
use toold_engine::policy::grants::{Grant, GrantScope};
use toold_engine::policy::pattern::Pattern;
use toold_proto::permission::Action;
use toold_proto::tool::Category;
use toold_store::Store;
use toold_tests::{Setup, TestDaemon, Wire, toolctl, toold, until};

const COUNTER: &str = r#"
hygge.register_tool{
  name = "count", description = "Counts its calls", input_schema = {type = "object"},
  execute = function()
    local n = (hygge.store.get("n") or 0) + 1
    hygge.store.set("n", n)
    return tostring(n)
  end,
}
"#;

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn audit(wire: &mut Wire, query: Value) -> Vec<Value> {
    wire.result("audit.query", query)["entries"].as_array().unwrap().clone()
}

fn problems(wire: &mut Wire) -> Value {
    wire.result("daemon.status", json!({}))["problems"].take()
}

/// The state folder of a daemon that has not started, and a file outside its clients' folders.
fn with_outside_file(setup: &Setup) -> (std::path::PathBuf, std::path::PathBuf) {
    let daemon_home = setup.path("state/toold");
    fs::create_dir_all(&daemon_home).unwrap();
    let outside = setup.path("outside.txt");
    fs::write(&outside, "from outside").unwrap();
    (daemon_home.join("toold.db"), outside)
}

fn allow_reading(database: &std::path::Path, target: &std::path::Path) {
    let store = Store::open(database);
    let grant = Grant {
        id: "g1".into(),
        category: Category::FileRead,
        pattern: Pattern::parse(Category::FileRead, target.to_str().unwrap()).unwrap(),
        action: Action::Allow,
        scope: GrantScope::Always,
        tools: None,
        chain: Vec::new(),
        by: None,
        granted_at: SystemTime::now(),
        expires_at: None,
        asked: None,
        fleet: None,
    };
    store.save_grant(&grant).unwrap();
}

#[test]
fn a_session_is_resumed_after_a_restart_and_after_a_crash() {
    let mut daemon = TestDaemon::start();
    let params = json!({"cwd": daemon.work(), "session_id": "conv", "model": "m", "tools": {"enable": ["read"]}});
    let opened = Wire::connect(&daemon.socket()).result("session.open", params);
    assert_eq!(opened["resumed"], false);
    for signal in ["TERM", "KILL"] {
        daemon.restart(signal);
        let mut wire = Wire::connect(&daemon.socket());
        let elsewhere = wire.error("session.open", json!({"session_id": "conv", "cwd": "/"}));
        assert!(elsewhere["message"].as_str().unwrap().contains("conv works in"), "{elsewhere}");
        let opened = wire.result("session.open", json!({"session_id": "conv"}));
        assert_eq!((&opened["resumed"], &opened["cwd"]), (&json!(true), &json!(daemon.work())));
        let names = wire.result("tools.list", json!({}))["tools"].as_array().unwrap().len();
        assert_eq!(names, 1, "its filter is kept");
    }
}

#[test]
fn a_closed_session_is_not_resumed() {
    let mut daemon = TestDaemon::start();
    for id in ["a", "b"] {
        Wire::connect(&daemon.socket()).result("session.open", json!({"cwd": daemon.work(), "session_id": id}));
    }
    daemon.connect().result("session.close", json!({"session_id": "a"}));
    daemon.restart("TERM");
    let mut wire = daemon.connect();
    // A session that nobody resumed can be closed too, once.
    wire.result("session.close", json!({"session_id": "b"}));
    wire.error("session.close", json!({"session_id": "b"}));
    for id in ["a", "b"] {
        let opened = wire.result("session.open", json!({"cwd": daemon.work(), "session_id": id}));
        assert_eq!(opened["resumed"], false, "{id}");
    }
}

#[test]
fn every_call_is_in_the_audit_log_and_stays_there() {
    let mut daemon = Setup::new().file("a.txt", "here").start();
    let mut wire = daemon.connect();
    wire.tool("read", json!({"path": "a.txt"}));
    let denied = wire.tool("read", json!({"path": "/etc/hostname"}));
    assert_eq!(denied["is_error"], true);
    wire.error("tools.execute", json!({"name": "read", "arguments": {"path": true}}));
    let entries = audit(&mut wire, json!({}));
    let outcomes: Vec<&str> = entries.iter().map(|entry| entry["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "denied", "invalid_args"]);
    let (ok, denied) = (&entries[0], &entries[1]);
    assert_eq!((&ok["tool"], &ok["client"], &ok["source"]), (&json!("read"), &json!("test"), &json!("builtin:toold")));
    assert_eq!(ok["decisions"][0]["target"], json!(daemon.work().join("a.txt")));
    assert_eq!(denied["decisions"][0]["verdict"], "deny");
    // A query writes its rows to the disk first, so that not even a crash loses one.
    daemon.restart("KILL");
    let mut wire = daemon.connect();
    assert_eq!(audit(&mut wire, json!({})), entries);
    wire.tool("read", json!({"path": "a.txt"}));
    daemon.restart("TERM");
    let mut wire = daemon.connect();
    let last = entries[2]["id"].clone();
    assert_eq!(audit(&mut wire, json!({"after": last})).len(), 1);
    assert_eq!(audit(&mut wire, json!({"outcome": "denied"})).len(), 1);
    assert_eq!(audit(&mut wire, json!({"since": "1h", "tool": "read", "limit": 2})).len(), 2);
    let error = wire.error("audit.query", json!({"since": "soon"}));
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32602), &json!("invalid_params")));
}

#[test]
fn an_agent_sees_its_own_session_only() {
    let daemon = Setup::new().file("a.txt", "here").start();
    let mut person = daemon.connect();
    person.tool("read", json!({"path": "a.txt"}));
    let other = audit(&mut person, json!({}))[0]["session_id"].clone();
    let mut agent = Wire::connect(&daemon.socket());
    let own = agent.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}))["session_id"].clone();
    agent.tool("read", json!({"path": "a.txt"}));
    let seen = audit(&mut agent, json!({}));
    assert_eq!((seen.len(), &seen[0]["session_id"]), (1, &own));
    assert_eq!(audit(&mut agent, json!({"session_id": own})).len(), 1);
    let error = agent.error("audit.query", json!({"session_id": other}));
    assert_eq!(error["data"]["kind"], "unknown_session");
    assert_eq!(audit(&mut person, json!({})).len(), 2);
}

#[test]
fn a_grant_of_an_earlier_daemon_counts() {
    let setup = Setup::new();
    let (database, outside) = with_outside_file(&setup);
    allow_reading(&database, &outside);
    let daemon = setup.start();
    let mut wire = daemon.connect();
    let read = wire.tool("read", json!({"path": outside}));
    assert!(text(&read).contains("from outside"), "{read}");
    assert!(audit(&mut wire, json!({}))[0]["decisions"][0]["rule"].as_str().unwrap().starts_with("grant g1 "));
}

#[test]
fn plugin_store_survives_a_restart() {
    let mut daemon = Setup::new().plugin("count.lua", COUNTER).start();
    assert_eq!(text(&daemon.connect().tool("count", json!({}))), "1");
    assert_eq!(text(&daemon.connect().tool("count", json!({}))), "2");
    daemon.restart("KILL");
    assert_eq!(text(&daemon.connect().tool("count", json!({}))), "3");
}

#[test]
fn no_tool_reads_the_database() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    for name in ["toold.db", "toold.db-wal"] {
        let read = wire.tool("read", json!({"path": daemon.state().join(name)}));
        let rule = read["metadata"]["permission"]["rule"].as_str().unwrap_or_default();
        assert!(rule.contains("the daemon's own files"), "{read}");
    }
}

#[test]
fn a_daemon_with_a_broken_database_serves_on_and_says_so() {
    let setup = Setup::new().file("a.txt", "here").plugin("count.lua", COUNTER);
    let (database, outside) = with_outside_file(&setup);
    // A daemon that has run before knows its denials without the database.
    let setup = setup.start().into_setup();
    let bytes = b"this is no database ".repeat(1_000);
    fs::write(&database, &bytes).unwrap();
    let mut daemon = setup.start();
    for _ in 0..2 {
        let mut wire = Wire::connect(&daemon.socket());
        let opened = wire.result("session.open", json!({"cwd": daemon.work(), "session_id": "conv"}));
        assert_eq!(opened["resumed"], false);
        assert!(text(&wire.tool("read", json!({"path": "a.txt"}))).contains("here"));
        assert_eq!(wire.tool("read", json!({"path": outside}))["is_error"], true);
        let reported = problems(&mut wire);
        assert!(reported[0].as_str().unwrap().contains(database.to_str().unwrap()), "{reported}");
        let error = wire.error("audit.query", json!({}));
        assert!(error["message"].as_str().unwrap().contains("damaged"), "{error}");
        let count = wire.tool("count", json!({}));
        assert!(count["is_error"] == true && text(&count).contains("damaged"), "{count}");
        let status = daemon.toolctl(&["status"]);
        assert!(String::from_utf8_lossy(&status.stdout).contains("move the file away"));
        daemon.restart("TERM");
    }
    assert_eq!(fs::read(&database).unwrap(), bytes);
}

#[test]
fn a_database_that_is_overwritten_or_cut_while_it_is_open_is_reported() {
    for cut in [false, true] {
        let mut daemon = TestDaemon::start();
        // The last one leaves no write-ahead log, from which the database could be read.
        daemon.restart("TERM");
        let mut wire = daemon.connect();
        assert_eq!(problems(&mut wire), json!(null));
        let path = daemon.state().join("toold.db");
        let file = fs::File::options().write(true).open(path).unwrap();
        match cut {
            true => file.set_len(0).unwrap(),
            false => {
                let length = file.metadata().unwrap().len() as usize;
                std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; length], 0).unwrap();
            }
        }
        until("the daemon reports it", || problems(&mut wire).to_string().contains("is damaged").then_some(()));
        assert_eq!(daemon.toolctl(&["doctor"]).status.code(), Some(3));
    }
}

#[test]
fn a_private_daemon_shares_grants_and_no_sessions() {
    let setup = Setup::new();
    let (database, outside) = with_outside_file(&setup);
    allow_reading(&database, &outside);
    let daemon = setup.start();
    let params = json!({"cwd": daemon.work(), "session_id": "conv"});
    Wire::connect(&daemon.socket()).result("session.open", params.clone());
    let mut command = daemon.setup.command(toold());
    let mut private =
        command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = private.stdin.take().unwrap();
    let mut output = BufReader::new(private.stdout.take().unwrap()).lines();
    let mut ask = |method: &str, params: Value| -> Value {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).unwrap();
        serde_json::from_str(&output.next().unwrap().unwrap()).unwrap()
    };
    assert_eq!(ask("session.open", params)["result"]["resumed"], false);
    let read = ask("tools.execute", json!({"name": "read", "arguments": {"path": outside}}));
    assert!(text(&read["result"]).contains("from outside"), "{read}");
    drop(input);
    assert!(private.wait().unwrap().success());
    // Both write to one log.
    assert_eq!(audit(&mut daemon.connect(), json!({})).len(), 1);
}

#[test]
fn toolctl_shows_and_follows_the_log() {
    let daemon = Setup::new().file("a.txt", "here").start();
    let mut wire = daemon.connect();
    wire.tool("read", json!({"path": "a.txt"}));
    wire.tool("read", json!({"path": "/etc/hostname"}));
    let shown = daemon.toolctl(&["audit", "--outcome", "denied", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["entries"].as_array().unwrap().len(), 1);

    let mut command = daemon.setup.command(toolctl());
    command.args(["audit", "--follow", "--json", "--tool", "read", "--limit", "1"]);
    let mut follower = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["outcome"], "denied");
    // It has shown past calls, so it is subscribed.
    let mut ids = Vec::new();
    for _ in 0..3 {
        wire.tool("list", json!({"path": "."}));
        wire.tool("read", json!({"path": "a.txt"}));
        let entry = next();
        assert_eq!((&entry["tool"], &entry["outcome"]), (&json!("read"), &json!("ok")));
        ids.push(entry["id"].as_u64().unwrap());
    }
    assert!(ids.is_sorted(), "{ids:?}");
    follower.kill().unwrap();
    follower.wait().unwrap();
}
