//! Calls, heartbeats, cancels and replies.

use serde_json::{Value, json};
use toold_tests::until;

use super::forgeries::{fresh, signed_again};
use super::scene::{TrustScene, expect_refusal, status, text};

const INBOX: &str = "_INBOX.mallory.1";

#[test]
fn a_call_runs_once_however_often_it_is_sent() {
    let Some(mut scene) = TrustScene::start() else { return };
    let mut client = scene.laptop.connect();
    assert_eq!(text(&client.tool("build_mark", json!({"id": "one"}))), "marked one");
    let call = scene.bus.of_kind("call", "toold.build.call");
    let alive = scene.bus.of_kind("alive", "toold.build.alive.");
    let send = |bytes: &[u8]| scene.bus.send("toold.build.call", Some(INBOX), bytes);
    scene.expect_refusals(&scene.build, &call.payload, &scene.key("laptop"), send);
    expect_refusal(&scene.build, "misdirected", "a call for build sent to its label", || {
        scene.bus.send("toold.any.gpu.call", Some(INBOX), &fresh(&call.payload, &scene.key("laptop"), |_| ()));
    });
    // Signed as if a person called.
    expect_refusal(&scene.build, "unknown_sender", "a call by a person", || {
        send(&fresh(&call.payload, &scene.person_key("anna"), |call| call["from"] = "anna".into()));
    });
    expect_refusal(&scene.build, "not_permitted", "a call by a daemon that may not call", || {
        send(&fresh(&call.payload, &scene.key("guest"), |call| {
            call["from"] = "guest".into();
            call["call_id"] = "by-guest".into();
            call["origin"] = json!({"daemon": "guest"});
        }));
    });
    assert_eq!(refusal(&scene, "by-guest"), "not_permitted");
    // In the name of another daemon.
    expect_refusal(&scene.build, "not_permitted", "a call whose origin is another daemon", || {
        send(&fresh(&call.payload, &scene.key("ghost"), |call| {
            call["from"] = "ghost".into();
            call["call_id"] = "by-ghost".into();
        }));
    });

    // Nobody signs the challenge, so it does not run.
    for (call_id, name, reason, sender) in [
        ("by-nobody", "a heartbeat with another challenge", "misdirected", "laptop"),
        ("by-another", "a heartbeat of another daemon", "not_permitted", "ghost"),
    ] {
        send(&fresh(&call.payload, &scene.key("laptop"), |call| call["call_id"] = call_id.into()));
        let challenge = reply(&scene, call_id)["accepted"]["challenge"].take();
        assert!(challenge.is_string());
        let heartbeat = fresh(&alive.payload, &scene.key(sender), |alive| {
            alive["from"] = sender.into();
            alive["call_id"] = call_id.into();
            if sender == "ghost" {
                alive["challenge"] = challenge;
            }
        });
        let subject = format!("toold.build.alive.{call_id}");
        expect_refusal(&scene.build, reason, name, || scene.bus.send(&subject, None, &heartbeat));
    }
    // A tool that has changed since.
    send(&fresh(&call.payload, &scene.key("laptop"), |call| {
        call["call_id"] = "changed".into();
        call["fingerprint"] = "0".into();
    }));
    assert_eq!(refusal(&scene, "changed"), "changed_tool");
    send(&fresh(&call.payload, &scene.key("laptop"), |call| {
        call["call_id"] = "missing".into();
        call["tool"] = "nothing".into();
    }));
    assert_eq!(refusal(&scene, "missing"), "unknown_tool");

    // It has forgotten all messages, and asks for a new signature.
    scene.build.restart("KILL");
    until("build is there again", || (status(&scene.build)["connected"] == true).then_some(()));
    scene.wait_until_listed();
    scene.bus.forget();
    until("the call is accepted again", || {
        scene.bus.send("toold.build.call", Some(INBOX), &call.payload);
        scene.bus.send(&alive.subject, None, &alive.payload);
        let id = call.json()["call_id"].as_str()?.to_owned();
        scene.bus.seen(|message| message.subject == INBOX && message.json()["call_id"] == id).first().cloned()
    });
    scene.bus.send(&alive.subject, None, &alive.payload);
    scene.mark("two");
    assert_eq!(scene.marks(), ["one", "two"]);
}

/// The first reply of `build` to a call.
fn reply(scene: &TrustScene, call_id: &str) -> Value {
    let found = scene.bus.wait_for(&format!("a reply to {call_id}"), |message| {
        message.subject == INBOX && message.json()["call_id"] == call_id && message.json()["kind"] == "reply"
    });
    found.json()
}

fn refusal(scene: &TrustScene, call_id: &str) -> String {
    let reply = reply(scene, call_id);
    reply["refused"]["reason"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

#[test]
fn a_running_call_is_ended_by_its_caller_alone() {
    let Some(scene) = TrustScene::start() else { return };
    let mut client = scene.laptop.connect();
    let first = scene.begin_waiting(&mut client, "first");
    client.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": first}}));
    assert_eq!(client.answer(first)["error"]["code"], -32800);
    let cancel = scene.bus.of_kind("cancel", "toold.build.cancel.");

    scene.bus.forget();
    let second = scene.begin_waiting(&mut client, "second");
    let call = scene.bus.of_kind("call", "toold.build.call").json();
    let alive = scene.bus.of_kind("alive", "toold.build.alive.");
    let call_id = call["call_id"].as_str().unwrap();
    let subject = format!("toold.build.cancel.{call_id}");
    let recorded = fresh(&cancel.payload, &scene.key("laptop"), |cancel| cancel["call_id"] = call_id.into());
    expect_refusal(&scene.build, "replayed", "a cancel that was obeyed", || {
        scene.bus.send(&cancel.subject, Some(INBOX), &cancel.payload);
    });
    for forgery in super::forgeries::forgeries(&recorded, &scene.key("laptop")) {
        if forgery.reason != "replayed" {
            expect_refusal(&scene.build, forgery.reason, forgery.name, || {
                scene.bus.send(&subject, Some(INBOX), &forgery.bytes)
            });
        }
    }
    expect_refusal(&scene.build, "not_permitted", "a cancel by another daemon", || {
        let bytes = fresh(&recorded, &scene.key("ghost"), |cancel| cancel["from"] = "ghost".into());
        scene.bus.send(&subject, Some(INBOX), &bytes);
    });
    let send = |bytes: &[u8]| scene.bus.send(&alive.subject, None, bytes);
    scene.expect_refusals(&scene.build, &alive.payload, &scene.key("laptop"), send);
    expect_refusal(&scene.build, "replayed", "a heartbeat that was received before", || send(&alive.payload));
    // Acknowledges what has not been sent, so that it would be dropped.
    let acknowledgement = signed_again(&alive.payload, &scene.key("ghost"), |alive| {
        alive["from"] = "ghost".into();
        alive["seen"] = 1_000_000.into();
        alive["number"] = 1_000_000.into();
    });
    expect_refusal(&scene.build, "not_permitted", "a heartbeat of another daemon", || send(&acknowledgement));
    assert_eq!(status(&scene.build)["running"], 1);
    scene.go();
    let result = client.answer(second)["result"].take();
    assert_eq!(text(&result), "waited for second");
    assert_eq!(scene.marks(), ["first", "second"]);
}

#[test]
fn a_result_comes_from_the_daemon_that_ran_the_call_alone() {
    let Some(scene) = TrustScene::start() else { return };
    let mut client = scene.laptop.connect();
    let done = client.tool("build_mark", json!({"id": "before"}));
    assert_eq!(text(&done), "marked before");
    let result = scene
        .bus
        .wait_for("the result", |message| !message.json()["result"].is_null() && message.json()["kind"] == "reply");

    scene.bus.forget();
    let request = scene.begin_waiting(&mut client, "real");
    let call = scene.bus.of_kind("call", "toold.build.call");
    let (inbox, call_id) = (call.reply.clone().unwrap(), call.json()["call_id"].clone());
    let genuine = scene.bus.of_kind("reply", &inbox);
    let send = |bytes: &[u8]| scene.bus.send(&inbox, None, bytes);
    // The result of another call.
    expect_refusal(&scene.laptop, "misdirected", "the result of another call", || send(&result.payload));
    // A member that does not run it.
    let forged = fresh(&result.payload, &scene.key("ghost"), |reply| {
        reply["from"] = "ghost".into();
        reply["to"] = call_id.clone();
        reply["call_id"] = call_id.clone();
    });
    expect_refusal(&scene.laptop, "not_permitted", "the result of another daemon", || send(&forged));
    scene.expect_refusals(&scene.laptop, &genuine.payload, &scene.key("build"), send);
    scene.go();
    let answer = client.answer(request)["result"].take();
    assert_eq!(text(&answer), "waited for real");
    assert_eq!(scene.marks(), ["before", "real"]);
}
