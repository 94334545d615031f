//! Asks reach the person wherever they sit.

use std::time::Duration;

use serde_json::{Value, json};
use toold_fleet::keys::{KeyOwner, SigningKey};
use toold_fleet::names::FleetName;
use toold_fleet::signed::{self, SignedKind};
use toold_tests::{Bus, FleetPlan, NatsServer, Setup, TestDaemon, Wire, until};

/// The laptop asks nobody about calls on other machines.
const RULES: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"fleet:build/*\"\naction = \"allow\"\n";

/// Anna uses `laptop` and `desk`, nobody uses `build`.
struct AskScene {
    laptop: TestDaemon,
    desk: TestDaemon,
    build: TestDaemon,
    bus: Bus,
    nats: NatsServer,
    plan: FleetPlan,
}

impl AskScene {
    fn start() -> Option<Self> {
        let nats = NatsServer::start()?;
        let plan = FleetPlan::new(&["laptop", "desk", "build"], &["anna", "bert"]);
        let bus = Bus::connect(&nats.url());
        let start = |name: &str, person: Option<&str>| {
            let config = plan.config(name, &nats.url(), person, "");
            let config = config.replace("[fleet.people.bert]\n", "[fleet.people.bert]\ndecides = false\n");
            Setup::new().config(&format!("{config}\n{RULES}")).start()
        };
        let (build, desk) = (start("build", None), start("desk", Some("anna")));
        let laptop = start("laptop", Some("anna"));
        Some(Self { laptop, desk, build, bus, nats, plan })
    }

    /// A frontend of a person that answers asks.
    fn frontend(&self, daemon: &TestDaemon) -> Wire {
        let mut wire = daemon.connect();
        wire.result("permissions.subscribe", json!({}));
        wire
    }

    /// A frontend on `laptop` or `desk`, of which `build` knows.
    fn known_frontend(&self, daemon: &TestDaemon, name: &str) -> Wire {
        let wire = self.frontend(daemon);
        self.wait_for_people(name, json!(["anna"]));
        wire
    }

    fn wait_for_people(&self, name: &str, people: Value) {
        let mut build = self.build.connect();
        until("build knows who can be asked there", || {
            let status = build.result("fleet.status", json!({}));
            let daemon = status["daemons"].as_array()?.iter().find(|daemon| daemon["name"] == name)?;
            (daemon["state"] == "online" && daemon["people"] == people).then_some(())
        });
    }

    /// A client of the laptop that can call `build_bash`.
    fn client(&self) -> Wire {
        let mut wire = self.laptop.connect();
        until("the laptop lists the tools of build", || {
            let tools = wire.result("tools.list", json!({"names": ["build_bash"]}))["tools"].take();
            (tools.as_array()?.len() == 1).then_some(())
        });
        wire
    }

    fn refused(&self, reason: &str) -> u64 {
        let status = self.build.connect().result("fleet.status", json!({}));
        status["refused"][reason].as_u64().unwrap_or(0)
    }

    /// The grants for commands that a daemon has stored.
    fn grants(daemon: &TestDaemon) -> Vec<Value> {
        let list = daemon.connect().result("permissions.list", json!({}));
        list["grants"].as_array().unwrap().iter().filter(|grant| grant["category"] == "shell").cloned().collect()
    }

    /// An answer to the ask on the bus, with a change, signed by this key.
    fn sign_answer(&self, ask: &Value, person: &str, key: &SigningKey, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut body = json!({
            "ask_id": ask["ask_id"], "challenge": ask["challenge"], "at_daemon": "desk", "decision": "allow",
            "scope": "once",
        });
        change(&mut body);
        let to = format!("toold.answer.{}", ask["ask_id"].as_str().unwrap());
        signed::sign(key, SignedKind::Answer, &FleetName::parse(person).unwrap(), &to, body)
    }

    fn person_key(&self, person: &str) -> SigningKey {
        SigningKey::load(&self.plan.person_key(person), KeyOwner::Person).unwrap()
    }
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "arguments": {"command": command}})
}

fn build_bash(command: &str) -> Value {
    json!({"name": "build_bash", "arguments": {"command": command}})
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[track_caller]
fn asked(wire: &mut Wire) -> Value {
    loop {
        let mut event = wire.notification("permissions.event")["result"].take();
        if event["type"] == "asked" {
            return event["request"].take();
        }
    }
}

/// The end of an ask.
#[track_caller]
fn resolved(wire: &mut Wire, ask: &Value) -> Value {
    loop {
        let event = wire.notification("permissions.event")["result"].take();
        if event["type"] == "resolved" && event["request_id"] == ask["request_id"] {
            return event;
        }
    }
}

fn pending(wire: &mut Wire) -> Vec<Value> {
    wire.result("permissions.pending", json!({}))["asks"].as_array().unwrap().clone()
}

#[test]
fn the_first_answer_counts_everywhere_and_is_stored_where_it_was_asked() {
    let Some(scene) = AskScene::start() else { return };
    let mut at_desk = scene.known_frontend(&scene.desk, "desk");
    let mut at_laptop = scene.known_frontend(&scene.laptop, "laptop");
    let mut client = scene.client();
    let call = client.request("tools.execute", build_bash("touch made"));
    let (desk, laptop) = (asked(&mut at_desk), asked(&mut at_laptop));
    for ask in [&desk, &laptop] {
        assert_eq!((&ask["category"], &ask["target"]), (&json!("shell"), &json!("touch made")), "{ask}");
        assert!(ask["reason"].as_str().unwrap().starts_with("on build"), "{ask}");
        assert_eq!(ask["agent"], "test on laptop", "{ask}");
    }
    // At the laptop it belongs to the session that calls.
    assert_eq!(laptop["tool"], "build_bash", "{laptop}");
    assert_eq!(desk["source"], json!({"kind": "fleet", "name": "build"}), "{desk}");
    let reply = json!({"request_id": desk["request_id"], "action": "allow", "scope": "always"});
    at_desk.result("permissions.reply", reply.clone());
    let result = client.answer(call)["result"].take();
    assert_eq!(result["is_error"], false, "{result}");
    assert!(scene.build.setup.path("home/made").exists());
    let end = resolved(&mut at_laptop, &laptop);
    assert_eq!((&end["action"], &end["by"]["client"]), (&json!("allow"), &json!("anna at desk (fleet)")), "{end}");

    let grants = AskScene::grants(&scene.build);
    assert_eq!(grants.len(), 1, "{grants:?}");
    assert_eq!((&grants[0]["scope"], &grants[0]["by"]), (&json!("always"), &json!("anna at desk (fleet)")));
    assert!(AskScene::grants(&scene.laptop).is_empty() && AskScene::grants(&scene.desk).is_empty());
    assert_eq!(client.result("tools.execute", build_bash("touch made"))["is_error"], false);

    // A second answer comes too late, at a frontend and on the wire.
    at_desk.error("permissions.reply", reply);
    at_laptop.error("permissions.reply", json!({"request_id": laptop["request_id"], "action": "deny"}));
    let open = scene.bus.wait_for("the ask", |message| {
        message.subject.starts_with("toold.ask.anna.build.") && message.json()["ask"].is_object()
    });
    let late = scene.sign_answer(&open.json(), "anna", &scene.person_key("anna"), |answer| {
        answer["decision"] = "deny".into();
    });
    let subject = format!("toold.answer.{}", open.json()["ask_id"].as_str().unwrap());
    let reply = scene.bus.request(&subject, &late, Duration::from_secs(60)).unwrap().json();
    assert_eq!((&reply["pending"], reply["error"].is_string()), (&json!(false), true), "{reply}");
    assert!(pending(&mut at_desk).is_empty() && pending(&mut at_laptop).is_empty());
}

#[test]
fn a_machine_without_people_asks_those_who_sit_elsewhere() {
    let Some(scene) = AskScene::start() else { return };
    let mut at_laptop = scene.known_frontend(&scene.laptop, "laptop");
    let mut agent = Wire::connect(&scene.laptop.socket());
    agent.result("session.open", json!({"cwd": scene.laptop.work(), "role": "agent"}));
    let mut local = scene.build.connect();
    let call = local.request("tools.execute", bash("touch made"));
    let ask = asked(&mut at_laptop);
    assert_eq!((&ask["tool"], &ask["agent"]), (&json!("bash"), &json!("test")), "{ask}");
    // Neither agents nor tools answer for a person, and they do not see what is asked elsewhere.
    let allow = json!({"request_id": ask["request_id"], "action": "allow"});
    assert_eq!(agent.error("permissions.reply", allow)["message"].as_str().map(str::is_empty), Some(false));
    assert!(pending(&mut agent).is_empty());
    let reply = json!({"request_id": ask["request_id"], "action": "deny", "message": "use make"});
    at_laptop.result("permissions.reply", reply);
    let result = local.answer(call)["result"].take();
    assert!(result["is_error"] == true && text(&result).contains("use make"), "{result}");
    // An answer that cannot be remembered is asked again, with the reason.
    let call = local.request("tools.execute", bash("touch $(date +%s)"));
    let ask = asked(&mut at_laptop);
    let always = json!({"request_id": ask["request_id"], "action": "allow", "scope": "always"});
    if at_laptop.call("permissions.reply", always).get("error").is_none() {
        let again = asked(&mut at_laptop);
        assert!(again["reason"].as_str().unwrap().contains("your answer does not count"), "{again}");
    }
    let ask = pending(&mut at_laptop).pop().unwrap();
    at_laptop.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(local.answer(call)["result"]["is_error"], false);
}

#[test]
fn with_nobody_online_a_call_fails_at_once() {
    let Some(scene) = AskScene::start() else { return };
    let mut client = scene.client();
    for result in [
        scene.build.connect().result("tools.execute", bash("touch made")),
        client.result("tools.execute", build_bash("touch made")),
    ] {
        assert!(result["is_error"] == true && text(&result).contains("no connected client can ask you"), "{result}");
    }
    // Questions are asked on the machine of the call alone, even while permissions could be asked elsewhere.
    let _at_desk = scene.known_frontend(&scene.desk, "desk");
    let question = json!({"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]});
    let params = json!({"name": "build_question", "arguments": question});
    let result = client.result("tools.execute", params);
    assert_eq!(result["is_error"], true, "{result}");
}

#[test]
fn only_the_person_who_was_asked_answers() {
    let Some(scene) = AskScene::start() else { return };
    let _at_desk = scene.known_frontend(&scene.desk, "desk");
    let mut local = scene.build.connect();
    let call = local.request("tools.execute", bash("touch made"));
    let open = scene.bus.wait_for("the ask", |message| message.subject.starts_with("toold.ask.anna.build.")).json();
    let subject = format!("toold.answer.{}", open["ask_id"].as_str().unwrap());
    let anna = scene.person_key("anna");
    let stranger = SigningKey::generate(KeyOwner::Person);
    let ordinary = scene.sign_answer(&open, "anna", &anna, |_| ());
    let altered = String::from_utf8(ordinary.clone()).unwrap().replacen("\"once\"", "\"always\"", 1);
    let of_build = |change: fn(&mut Value)| scene.sign_answer(&open, "anna", &anna, change);
    let refused = [
        ("malformed", b"{}".to_vec()),
        ("unknown_sender", scene.sign_answer(&open, "mallory", &stranger, |_| ())),
        ("bad_signature", scene.sign_answer(&open, "anna", &stranger, |_| ())),
        ("bad_signature", altered.into_bytes()),
        // Bert is known, but does not decide here.
        ("not_permitted", scene.sign_answer(&open, "bert", &scene.person_key("bert"), |_| ())),
        ("replayed", of_build(|answer| answer["challenge"] = "0".repeat(32).into())),
        ("misdirected", of_build(|answer| answer["ask_id"] = "build.ask_other_1".into())),
        ("malformed", of_build(|answer| answer["message"] = "x".repeat(100_000).into())),
    ];
    for (reason, bytes) in refused {
        let before = scene.refused(reason);
        let reply = scene.bus.request(&subject, &bytes, Duration::from_secs(60)).unwrap().json();
        assert!(reply["error"].is_string() && reply["pending"] == true, "{reason}: {reply}");
        assert_eq!(scene.refused(reason), before + 1, "{reason}");
    }
    // Answers to asks of others are none of build's business.
    scene.bus.send("toold.answer.desk.ask_1_1", None, b"{}");
    assert_eq!(scene.refused("malformed"), 2);
    let reply = scene.bus.request(&subject, &ordinary, Duration::from_secs(60)).unwrap().json();
    assert!(reply.get("error").is_none() && reply["pending"] == false, "{reply}");
    assert_eq!(local.answer(call)["result"]["is_error"], false);
    let reply = scene.bus.request(&subject, &ordinary, Duration::from_secs(60)).unwrap().json();
    assert!(reply["error"].is_string(), "{reply}");
    assert_eq!(scene.refused("replayed"), 2);
}

#[test]
fn only_a_daemon_itself_asks_in_its_name() {
    let Some(scene) = AskScene::start() else { return };
    let mut at_desk = scene.known_frontend(&scene.desk, "desk");
    let mut local = scene.build.connect();
    let first = local.request("tools.execute", bash("touch first"));
    let ask = asked(&mut at_desk);
    let open = scene.bus.wait_for("the ask", |message| message.subject.starts_with("toold.ask.anna.build."));
    at_desk.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(local.answer(first)["result"]["is_error"], false);
    resolved(&mut at_desk, &ask);
    scene.bus.wait_for("its end", |message| message.subject == open.subject && message.json()["ended"].is_object());
    let refused = |reason: &str| {
        let status = scene.desk.connect().result("fleet.status", json!({}));
        status["refused"][reason].as_u64().unwrap_or(0)
    };
    let laptop = SigningKey::load(&scene.plan.daemon_key("laptop"), KeyOwner::Daemon).unwrap();
    let by_laptop = |subject: &str| {
        let mut body = open.json();
        let header = ["kind", "from", "to", "at", "nonce", "signature"];
        body.as_object_mut().unwrap().retain(|member, _| !header.contains(&member.as_str()));
        signed::sign(&laptop, SignedKind::Ask, &FleetName::parse("laptop").unwrap(), subject, body)
    };
    let other = "toold.ask.anna.laptop.ask_00000000_1";
    for (reason, subject, bytes) in [
        ("replayed", open.subject.as_str(), open.payload.clone()),
        ("misdirected", other, open.payload.clone()),
        ("not_permitted", open.subject.as_str(), by_laptop(&open.subject)),
        ("not_permitted", other, by_laptop(other)),
    ] {
        let before = refused(reason);
        scene.bus.send(subject, None, &bytes);
        until(reason, || (refused(reason) == before + 1).then_some(()));
    }
    assert!(pending(&mut at_desk).is_empty());
}

#[test]
fn a_machine_that_was_asleep_sees_what_still_waits_in_order() {
    let Some(mut scene) = AskScene::start() else { return };
    let mut at_desk = scene.known_frontend(&scene.desk, "desk");
    let mut at_laptop = scene.known_frontend(&scene.laptop, "laptop");
    scene.laptop.signal("STOP");
    let mut locals: Vec<Wire> = (0..3).map(|_| scene.build.connect()).collect();
    let mut calls = Vec::new();
    let mut asks = Vec::new();
    for (local, file) in locals.iter_mut().zip(["one", "two", "three"]) {
        calls.push(local.request("tools.execute", bash(&format!("touch {file}"))));
        asks.push(asked(&mut at_desk));
    }
    at_desk.result("permissions.reply", json!({"request_id": asks[1]["request_id"], "action": "allow"}));
    assert_eq!(locals[1].answer(calls[1])["result"]["is_error"], false);
    scene.bus.wait_for("its end", |message| {
        message.subject.starts_with("toold.ask.anna.build.") && message.json()["ended"].is_object()
    });
    scene.laptop.signal("CONT");
    // One that ended meanwhile may be shown for a moment, until its end has arrived too.
    while asked(&mut at_laptop)["target"] != "touch three" {}
    until("what still waits is shown in order", || {
        let targets: Vec<Value> = pending(&mut at_laptop).into_iter().map(|mut ask| ask["target"].take()).collect();
        (targets == ["touch one", "touch three"]).then_some(())
    });
    // The same for one that starts.
    drop(at_laptop);
    scene.laptop.restart("TERM");
    let mut at_laptop = scene.frontend(&scene.laptop);
    let first = asked(&mut at_laptop);
    assert_eq!([first["target"].clone(), asked(&mut at_laptop)["target"].take()], ["touch one", "touch three"]);
    at_laptop.result("permissions.reply", json!({"request_id": first["request_id"], "action": "allow"}));
    assert_eq!(locals[0].answer(calls[0])["result"]["is_error"], false);
    assert_eq!(resolved(&mut at_desk, &asks[0])["by"]["client"], "anna at laptop (fleet)");
}

#[test]
fn an_answer_arrives_when_the_broker_is_back() {
    let Some(mut scene) = AskScene::start() else { return };
    // It keeps the ask open while nobody elsewhere can be reached.
    let mut at_build = scene.frontend(&scene.build);
    let mut at_desk = scene.known_frontend(&scene.desk, "desk");
    let mut local = scene.build.connect();
    let call = local.request("tools.execute", bash("touch made"));
    let ask = asked(&mut at_desk);
    let theirs = asked(&mut at_build);
    scene.nats.kill();
    at_desk.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    scene.nats.start_again();
    assert_eq!(local.answer(call)["result"]["is_error"], false);
    assert_eq!(resolved(&mut at_build, &theirs)["by"]["client"], "anna at desk (fleet)");
}

#[test]
fn the_asks_of_a_daemon_end_with_it() {
    let Some(mut scene) = AskScene::start() else { return };
    let mut at_desk = scene.known_frontend(&scene.desk, "desk");
    let mut local = scene.build.connect();
    local.request("tools.execute", bash("touch made"));
    let ask = asked(&mut at_desk);
    drop(local);
    scene.build.restart("KILL");
    assert_eq!(resolved(&mut at_desk, &ask)["action"], "cancelled");
    assert!(pending(&mut at_desk).is_empty());
    // What the next one asks is shown.
    scene.wait_for_people("desk", json!(["anna"]));
    let mut local = scene.build.connect();
    let call = local.request("tools.execute", bash("touch made"));
    let ask = asked(&mut at_desk);
    at_desk.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(local.answer(call)["result"]["is_error"], false);
    until("all asks on the broker have ended", || {
        let stored = scene.bus.stored("TOOLD_ASKS");
        (stored.len() >= 2 && stored.iter().all(|message| message.json()["ended"].is_object())).then_some(())
    });
}
