//! Grants and revocations that are valid in the whole fleet.

use std::time::Duration;

use serde_json::{Value, json};
use toold_tests::{Bus, FleetPlan, NatsServer, PATIENCE, Setup, TestDaemon, Wire, until};

/// `laptop`, where anna sits, and `build`, where bob does.
struct GrantScene {
    laptop: TestDaemon,
    build: TestDaemon,
    nats: NatsServer,
    /// Has the keys, which a daemon reads when it starts.
    _plan: FleetPlan,
}

impl GrantScene {
    /// `None` when the server is not installed, which is reported.
    fn start() -> Option<Self> {
        let nats = NatsServer::start()?;
        let plan = FleetPlan::new(&["laptop", "build"], &["anna", "bob"]);
        let start = |name: &str, person: &str| {
            Setup::new().config(&plan.config(name, &nats.url(), Some(person), "lease_ms = 300")).start()
        };
        let (laptop, build) = (start("laptop", "anna"), start("build", "bob"));
        let scene = Self { laptop, build, nats, _plan: plan };
        scene.wait_until_read(&scene.laptop);
        scene.wait_until_read(&scene.build);
        Some(scene)
    }

    /// Waits until a daemon can make grants, and so knows all that there are.
    fn wait_until_read(&self, daemon: &TestDaemon) {
        let probe = json!({"action": "deny", "category": "shell", "pattern": "probe", "expires_in": 1});
        let mut wire = daemon.connect();
        until("the daemon is in the fleet", || wire.call("fleet.grant", probe.clone()).get("result").map(drop));
    }

    /// Makes a grant at the laptop; its id.
    fn grant(&self, action: &str, pattern: &str) -> String {
        let made = self.laptop.connect().result("fleet.grant", grant(action, pattern));
        let made = &made["grants"][0];
        assert_eq!(
            (&made["valid"], &made["person"], &made["made_on"]),
            (&json!(true), &json!("anna"), &json!("laptop"))
        );
        made["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn wait_for(&self, command: &str, expected: &str) {
        until(&format!("{command} on build: {expected}"), || (verdict(&self.build, command) == expected).then_some(()));
    }
}

fn grant(action: &str, pattern: &str) -> Value {
    json!({"action": action, "category": "shell", "pattern": pattern})
}

/// The decision of a daemon about a command.
fn verdict(daemon: &TestDaemon, command: &str) -> Value {
    let params = json!({"category": "shell", "target": command});
    daemon.connect().result("permissions.check", params)["verdict"].take()
}

fn refused(daemon: &TestDaemon, reason: &str) -> u64 {
    daemon.connect().result("fleet.status", json!({}))["refused"][reason].as_u64().unwrap()
}

fn bash(wire: &mut Wire, command: &str) -> u64 {
    wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}))
}

fn asked(person: &mut Wire) -> Value {
    loop {
        let mut event = person.notification("permissions.event")["result"].take();
        if event["type"] == "asked" {
            return event["request"].take();
        }
    }
}

#[test]
fn a_grant_made_at_one_machine_allows_commands_on_another_until_it_is_revoked() {
    let Some(scene) = GrantScene::start() else { return };
    let mut agent = scene.build.connect();
    let mut person = scene.build.connect();
    person.result("permissions.subscribe", json!({}));
    // A call that waits for a person goes on as soon as the grant arrives.
    let waiting = bash(&mut agent, "touch granted-1");
    asked(&mut person);
    let id = scene.grant("allow", "touch *");
    assert_eq!(agent.answer(waiting)["result"]["is_error"], false);
    assert_eq!(agent.tool("bash", json!({"command": "touch granted-2"}))["is_error"], false);
    let listed = person.result("permissions.list", json!({}))["grants"].take();
    let listed = listed.as_array().unwrap().iter().find(|grant| grant["id"] == id.as_str()).unwrap();
    assert_eq!((&listed["by"], &listed["scope"]), (&json!("anna (fleet)"), &json!("always")));
    assert!(listed["expires_at"].is_string(), "{listed}");

    // A call was allowed by it in part, waits for a person, and is decided again before it runs.
    let waiting = bash(&mut agent, "touch revoked && mkdir made");
    let ask = asked(&mut person);
    assert_eq!(ask["target"], "mkdir made", "{ask}");
    let revoked = scene.laptop.connect().result("fleet.revoke", json!({"id": id}))["grants"][0].take();
    assert_eq!((&revoked["valid"], &revoked["why_not"]), (&json!(false), &json!("it is revoked")));
    scene.wait_for("touch granted-3", "ask");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow", "scope": "once"}));
    let ask = asked(&mut person);
    assert_eq!(ask["target"], "touch revoked", "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    assert_eq!(agent.answer(waiting)["result"]["is_error"], true);
    assert!(!scene.build.work().join("revoked").exists() && scene.build.work().join("granted-2").exists());
    // It is revoked everywhere, and revoking it again is no mistake.
    let again = scene.laptop.connect().result("fleet.revoke", json!({"id": id}));
    assert_eq!(again["grants"][0]["why_not"], "it is revoked");
    for daemon in [&scene.laptop, &scene.build] {
        let grants = daemon.connect().result("fleet.grants", json!({}))["grants"].take();
        assert!(grants.as_array().unwrap().iter().all(|grant| grant["id"] != id.as_str()), "{grants}");
    }
}

#[test]
fn without_the_server_allowing_grants_end_with_their_lease_and_denying_ones_hold() {
    let Some(mut scene) = GrantScene::start() else { return };
    scene.grant("allow", "touch *");
    scene.grant("deny", "touch never");
    scene.wait_for("touch a", "allow");
    scene.wait_for("touch never", "deny");
    scene.nats.kill();
    scene.wait_for("touch a", "ask");
    assert_eq!(verdict(&scene.build, "touch never"), "deny");
    // Each daemon has a lease of its own.
    let mut laptop = scene.laptop.connect();
    until("the lease of the laptop is over", || {
        let listed = laptop.result("fleet.grants", json!({}))["grants"].take();
        listed.to_string().contains("its lease is over").then_some(())
    });
    let error = laptop.error("fleet.grant", grant("allow", "touch *"));
    assert!(error["message"].as_str().unwrap().contains("is away"), "{error}");

    scene.build.restart("KILL");
    let refused = scene.build.connect().tool("bash", json!({"command": "touch never"}));
    assert_eq!(refused["is_error"], true, "{refused}");
    assert_eq!(verdict(&scene.build, "touch never"), "deny");
    assert_eq!(verdict(&scene.build, "touch a"), "ask");

    scene.nats.start_again();
    scene.wait_for("touch a", "allow");
    assert_eq!(verdict(&scene.build, "touch never"), "deny");
}

#[test]
fn grants_that_the_server_loses_end_and_revoked_ones_do_not_come_back() {
    let Some(scene) = GrantScene::start() else { return };
    let bus = Bus::connect(&scene.nats.url());
    let key = |id: &str| format!("anna.{id}");
    let (kept, revoked, denied) =
        (scene.grant("allow", "touch *"), scene.grant("allow", "mkdir *"), scene.grant("deny", "touch never"));
    let recorded = |id: &str| bus.value("toold_grants", &key(id)).unwrap();
    let (kept_text, revoked_text) = (recorded(&kept), recorded(&revoked));
    scene.laptop.connect().result("fleet.revoke", json!({"id": revoked}));
    for (wipe, api) in [("purged", "PURGE"), ("deleted", "DELETE")] {
        scene.wait_for("touch a", "allow");
        scene.wait_for("mkdir a", "ask");
        let before = refused(&scene.build, "not_permitted");
        bus.request(&format!("$JS.API.STREAM.{api}.KV_toold_grants"), b"", PATIENCE).unwrap();
        scene.wait_for("touch a", "ask");
        until("it is noticed that the denying grant is gone", || {
            (refused(&scene.build, "not_permitted") > before).then_some(())
        });
        assert_eq!(verdict(&scene.build, "touch never"), "deny", "{wipe}");
        let before = refused(&scene.build, "replayed");
        let put =
            |id: &str, text: &[u8], limit: Duration| bus.request(&format!("$KV.toold_grants.{}", key(id)), text, limit);
        // Nobody answers before there is a bucket again.
        until("the old grants are put again", || {
            put(&kept, &kept_text, Duration::from_secs(1))?.json().get("seq").map(drop)
        });
        put(&revoked, &revoked_text, PATIENCE).unwrap();
        until("the revoked grant is refused", || (refused(&scene.build, "replayed") > before).then_some(()));
    }
    scene.wait_for("touch a", "allow");
    assert_eq!(verdict(&scene.build, "mkdir a"), "ask");
    // The person revokes it although the server had lost it.
    scene.laptop.connect().result("fleet.revoke", json!({"id": denied}));
    scene.wait_for("touch never", "allow");
}

/// Nothing but the state of the bucket tells that: no entry arrives.
#[test]
fn a_bucket_that_is_emptied_while_nothing_else_happens_allows_nothing_more() {
    let Some(mut scene) = GrantScene::start() else { return };
    scene.grant("allow", "touch *");
    scene.wait_for("touch a", "allow");
    // It reads all grants when it starts, and sees no change afterwards.
    scene.build.restart("TERM");
    scene.wait_for("touch a", "allow");
    let bus = Bus::connect(&scene.nats.url());
    bus.request("$JS.API.STREAM.PURGE.KV_toold_grants", b"", PATIENCE).unwrap();
    scene.wait_for("touch a", "ask");
}

#[test]
fn only_the_person_who_made_a_grant_revokes_it_and_others_may_deny() {
    let Some(scene) = GrantScene::start() else { return };
    let id = scene.grant("allow", "touch *");
    scene.wait_for("touch a", "allow");
    let mut bob = scene.build.connect();
    for method in ["fleet.revoke", "permissions.revoke"] {
        let error = bob.error(method, json!({"id": id}));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("only anna can revoke it") && message.contains("--deny"), "{error}");
    }
    let denial = bob.result("fleet.grant", grant("deny", "touch *"))["grants"][0]["id"].take();
    assert_eq!(verdict(&scene.build, "touch a"), "deny");
    until("it is denied at the laptop", || (verdict(&scene.laptop, "touch a") == "deny").then_some(()));
    bob.result("permissions.revoke", json!({"id": denial}));
    assert_eq!(verdict(&scene.build, "touch a"), "allow");
    // Revoked like a grant of this daemon, everywhere.
    scene.laptop.connect().result("permissions.revoke", json!({"id": id}));
    scene.wait_for("touch a", "ask");
}

#[test]
fn a_grant_is_for_the_daemons_that_it_names() {
    let Some(scene) = GrantScene::start() else { return };
    let mut params = grant("allow", "touch *");
    params["daemons"] = json!(["build"]);
    let made = scene.laptop.connect().result("fleet.grant", params)["grants"][0].take();
    assert_eq!((&made["valid"], &made["why_not"]), (&json!(false), &json!("it is for other daemons")));
    scene.wait_for("touch a", "allow");
    assert_eq!(verdict(&scene.laptop, "touch a"), "ask");
}

#[test]
fn mistakes_in_a_grant_are_explained() {
    let Some(scene) = GrantScene::start() else { return };
    let mut wire = scene.laptop.connect();
    for (member, value, expected) in [
        ("pattern", json!(""), "pattern: "),
        ("tools", json!(["no tool"]), "tools: "),
        ("tools", json!([]), "leave it out for all"),
        ("daemons", json!(["Build"]), "daemons: "),
        ("expires_in", json!(31 * 24 * 3600), "at most 30 days"),
        ("expires_in", json!(0), "expires_in: "),
    ] {
        let mut params = grant("allow", "touch *");
        params[member] = value;
        let error = wire.error("fleet.grant", params);
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
        assert_eq!(error["code"], -32602, "{error}");
    }
    assert_eq!(wire.error("fleet.revoke", json!({"id": "none"}))["code"], -32004);
    let alone = TestDaemon::start();
    let error = alone.connect().error("fleet.grant", grant("allow", "touch *"));
    assert!(error["message"].as_str().unwrap().contains("in no fleet"), "{error}");
    let plan = FleetPlan::new(&["nobody"], &["anna"]);
    let nobody = Setup::new().config(&plan.config("nobody", &scene.nats.url(), None, "")).start();
    let error = until("it is a member", || {
        let error = nobody.connect().error("fleet.grant", grant("allow", "touch *"));
        (!error["message"].as_str()?.contains("in no fleet")).then_some(error)
    });
    assert!(error["message"].as_str().unwrap().contains("set `person`"), "{error}");
}
