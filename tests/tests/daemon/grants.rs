//! What a person sees of an ask and of a grant: the agent, the parts of a line, ends, uses, and the review.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toold_engine::policy::grants::{Grant, GrantScope};
use toold_engine::policy::pattern::Pattern;
use toold_proto::permission::Action;
use toold_proto::tool::Category;
use toold_store::Store;
use toold_tests::{Setup, TestDaemon, Wire, until};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn asked(wire: &mut Wire) -> Value {
    let mut event = wire.notification("permissions.event")["result"].take();
    assert_eq!(event["type"], "asked", "{event}");
    event["request"].take()
}

/// The next event is the end of an ask.
fn resolved(wire: &mut Wire) {
    let event = wire.notification("permissions.event")["result"].take();
    assert_eq!(event["type"], "resolved", "{event}");
}

fn subscribed(daemon: &TestDaemon) -> Wire {
    let mut wire = daemon.connect();
    wire.result("permissions.subscribe", json!({}));
    wire
}

fn run(wire: &mut Wire, command: &str) -> u64 {
    wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}))
}

fn targets(ask: &Value) -> Vec<&str> {
    ask["parts"].as_array().into_iter().flatten().map(|part| part["target"].as_str().unwrap()).collect()
}

fn grants(wire: &mut Wire) -> Vec<Value> {
    wire.result("permissions.list", json!({}))["grants"].as_array().unwrap().clone()
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// A grant to run exactly this command, given so long ago.
fn grant(id: &str, command: &str, age: Duration) -> Grant {
    Grant {
        id: id.to_owned(),
        category: Category::Shell,
        pattern: Pattern::parse(Category::Shell, command).unwrap(),
        action: Action::Allow,
        scope: GrantScope::Always,
        tools: None,
        chain: Vec::new(),
        by: Some("test".to_owned()),
        granted_at: SystemTime::now() - age,
        expires_at: None,
        asked: None,
        fleet: None,
    }
}

/// A daemon whose database has these grants.
fn with_grants(grants: &[Grant]) -> TestDaemon {
    let setup = Setup::new().asking();
    let folder = setup.path("state/toold");
    std::fs::create_dir_all(&folder).unwrap();
    let store = Store::open(&folder.join("toold.db"));
    grants.iter().for_each(|grant| store.save_grant(grant).unwrap());
    drop(store);
    setup.start()
}

#[test]
fn an_ask_says_who_asks_and_which_part_of_the_line_it_is() {
    let daemon = TestDaemon::asking();
    let mut person = subscribed(&daemon);
    let mut agent = Wire::connect(&daemon.socket());
    let opened = json!({"cwd": daemon.work(), "session_id": "s", "client": {"name": "an agent"}});
    agent.result("session.open", opened);
    let id = run(&mut agent, "printf one; printf two && printf three");
    for (number, target) in [(1, "printf one"), (2, "printf two"), (3, "printf three")] {
        let ask = asked(&mut person);
        assert_eq!(
            (&ask["agent"], &ask["session_id"], &ask["cwd"]),
            (&json!("an agent"), &json!("s"), &json!(daemon.work()))
        );
        assert_eq!((&ask["target"], &ask["part"]), (&json!(target), &json!(number)));
        assert_eq!(targets(&ask), ["printf one", "printf two", "printf three"]);
        person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
        resolved(&mut person);
    }
    assert_eq!(agent.answer(id)["result"]["is_error"], false);

    // A single command has no parts.
    let id = run(&mut agent, "printf four");
    let ask = asked(&mut person);
    assert_eq!((&ask["parts"], &ask["part"]), (&Value::Null, &Value::Null), "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    assert_eq!(agent.answer(id)["result"]["is_error"], true);
}

#[test]
fn a_grant_that_is_given_again_is_renewed_and_keeps_its_uses() {
    let mut daemon = TestDaemon::asking();
    let give = |wire: &mut Wire, ends: Value| {
        let grant = json!({"category": "shell", "pattern": "printf one", "scope": "always", "expires_in": ends});
        wire.result("permissions.grant", grant)
    };
    let mut wire = daemon.connect();
    let first = give(&mut wire, json!(60));
    let id = run(&mut wire, "printf one");
    assert_eq!(wire.answer(id)["result"]["is_error"], false);
    let again = give(&mut wire, Value::Null);
    assert_eq!((&again["id"], &again["expires_at"]), (&first["id"], &Value::Null));
    let check = |wire: &mut Wire| {
        let listed = grants(wire);
        let [one] = listed.as_slice() else { panic!("expected one grant, got {listed:?}") };
        assert_eq!((&one["id"], &one["uses"]), (&first["id"], &json!(1)), "{one}");
    };
    check(&mut wire);
    daemon.restart("TERM");
    check(&mut daemon.connect());
}

#[test]
fn one_answer_allows_a_whole_line_and_no_more_than_it_shows() {
    let daemon = TestDaemon::asking();
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = run(&mut agent, "printf one; printf two; printf three");
    let ask = asked(&mut person);
    let all = json!({"request_id": ask["request_id"], "action": "allow", "all_parts": true});
    let mut wide = all.clone();
    wide["pattern"] = json!("printf *");
    assert_eq!(person.error("permissions.reply", wide)["code"], -32602);
    person.result("permissions.reply", all);
    resolved(&mut person);
    assert_eq!(agent.answer(id)["result"]["content"][0]["text"], "onetwothree");
    let log = person.result("audit.query", json!({"tool": "bash"}))["entries"].take();
    let decisions = log[0]["decisions"].as_array().unwrap();
    assert_eq!(decisions.len(), 3, "each part has its decision: {log}");
    assert!(grants(&mut person).is_empty());

    // It was for that call alone, and another line asks again.
    let id = run(&mut agent, "printf one; printf four");
    let ask = asked(&mut person);
    assert_eq!(targets(&ask), ["printf one", "printf four"]);
    let kept = json!({"request_id": ask["request_id"], "action": "allow", "all_parts": true, "scope": "session"});
    person.result("permissions.reply", kept);
    resolved(&mut person);
    assert_eq!(agent.answer(id)["result"]["is_error"], false);
    let patterns: Vec<Value> = grants(&mut person).iter().map(|grant| grant["pattern"].clone()).collect();
    assert_eq!(patterns, ["printf one", "printf four"]);
    assert_eq!(agent.tool("bash", json!({"command": "printf four; printf one"}))["is_error"], false);
}

#[test]
fn nobody_is_asked_about_a_line_with_a_denied_command() {
    let config = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"rm *\"\naction = \"deny\"\n";
    let daemon = Setup::new().asking().config(config).file("kept.txt", "").start();
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let denied = agent.tool("bash", json!({"command": "printf one; printf two; rm kept.txt"}));
    assert_eq!(denied["is_error"], true);
    assert!(daemon.work().join("kept.txt").exists());
    assert_eq!(person.result("permissions.pending", json!({}))["asks"], json!([]));
}

#[test]
fn a_write_that_runs_code_later_is_not_allowed_with_its_line() {
    let daemon = Setup::new().asking().file(".git/hooks/x", "").start();
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = run(&mut agent, "printf one; printf two; printf x > .git/hooks/pre-commit");
    let ask = asked(&mut person);
    assert!(targets(&ask).iter().all(|target| !target.contains("pre-commit")), "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow", "all_parts": true}));
    resolved(&mut person);
    let ask = asked(&mut person);
    assert!(ask["target"].as_str().unwrap().ends_with(".git/hooks/pre-commit"), "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    assert_eq!(agent.answer(id)["result"]["is_error"], true);
}

#[test]
fn a_grant_shows_its_ask_and_its_uses() {
    let mut daemon = TestDaemon::asking();
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = run(&mut agent, "printf one");
    let ask = asked(&mut person);
    let hour = json!({"request_id": ask["request_id"], "action": "allow", "scope": "project", "expires_in": 3600});
    person.result("permissions.reply", hour);
    assert_eq!(agent.answer(id)["result"]["is_error"], false);
    let [grant] = &grants(&mut person)[..] else { panic!("one grant") };
    assert_eq!(grant["asked"], json!({"agent": "test", "tool": "bash", "cwd": daemon.work()}));
    assert_eq!(grant["uses"], 1, "by the call that asked");
    assert!(grant["expires_at"].is_string(), "{grant}");
    for _ in 0..2 {
        assert_eq!(agent.tool("bash", json!({"command": "printf one"}))["is_error"], false);
    }
    for _ in 0..2 {
        let list = daemon.connect().result("permissions.list", json!({}))["grants"].take();
        assert_eq!((&list[0]["uses"], list[0]["used_at"].is_string()), (&json!(3), true), "{list}");
        daemon.restart("TERM");
    }
}

#[test]
fn review_proposes_to_drop_what_is_unused_and_to_merge_what_is_narrow() {
    let daemon = with_grants(&[
        grant("old", "make install", 40 * DAY),
        grant("a", "cargo test --lib", DAY),
        grant("b", "cargo test --doc", DAY),
        grant("c", "cargo test --bins", DAY),
        grant("d", "cargo build --release", DAY),
        Grant { action: Action::Deny, ..grant("no", "rm -rf x", 400 * DAY) },
    ]);
    let mut wire = daemon.connect();
    let review = wire.result("permissions.review", json!({}));
    assert_eq!(review["grants"][0]["id"], "no", "the least recently used first");
    let expected = json!([
        {"type": "merge", "ids": ["a", "b", "c"], "pattern": "cargo test *"},
        {"type": "drop", "id": "old", "days": 40}
    ]);
    assert_eq!(review["proposals"], expected);

    // Without a terminal, nothing changes unless that is confirmed in advance.
    let shown = daemon.toolctl(&["permissions", "review"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    assert!(text(&shown.stdout).contains("cargo test *"), "{}", text(&shown.stdout));
    assert_eq!(grants(&mut wire).len(), 6);
    let done = daemon.toolctl(&["permissions", "review", "--yes"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let mut patterns: Vec<String> =
        grants(&mut wire).iter().map(|grant| grant["pattern"].as_str().unwrap().to_owned()).collect();
    patterns.sort();
    assert_eq!(patterns, ["cargo build --release", "cargo test *", "rm -rf x"]);
    assert_eq!(wire.result("permissions.review", json!({}))["proposals"], json!([]));
}

#[test]
fn a_used_grant_is_not_proposed_for_dropping() {
    let daemon = with_grants(&[grant("old", "printf old", 400 * DAY)]);
    let mut wire = daemon.connect();
    assert_eq!(wire.result("permissions.review", json!({}))["proposals"][0]["id"], "old");
    assert_eq!(wire.tool("bash", json!({"command": "printf old"}))["is_error"], false);
    until("its use is counted", || {
        let review = wire.result("permissions.review", json!({}));
        (review["proposals"] == json!([]) && review["grants"][0]["uses"] == 1).then_some(())
    });
}
