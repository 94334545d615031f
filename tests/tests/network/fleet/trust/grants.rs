//! Grants and revocations.

use serde_json::{Value, json};
use toold_tests::until;

use super::forgeries::{fresh, signed_again};
use super::scene::{TrustScene, expect_refusal};

fn verdict(scene: &TrustScene, target: &str) -> Value {
    let params = json!({"category": "shell", "target": target});
    scene.build.connect().result("permissions.check", params)["verdict"].take()
}

fn is_known_as(scene: &TrustScene, id: &Value, valid: bool) -> Option<()> {
    let grants = scene.build.connect().result("fleet.grants", json!({}));
    let grant = grants["grants"].as_array()?.iter().find(|grant| grant["id"] == *id).cloned();
    (grant.is_some_and(|grant| grant["valid"] == true) == valid).then_some(())
}

fn grant(scene: &TrustScene, pattern: &str) -> Value {
    let params = json!({"action": "allow", "category": "shell", "pattern": pattern});
    let made = scene.laptop.connect().result("fleet.grant", params);
    let id = made["grants"].as_array().unwrap().last().unwrap()["id"].clone();
    until("the grant arrives", || is_known_as(scene, &id, true));
    id
}

#[test]
fn grants_are_made_and_revoked_by_persons_alone_and_a_revocation_is_final() {
    let Some(mut scene) = TrustScene::start() else { return };
    let id = grant(&scene, "touch granted-**");
    let key = format!("anna.{}", id.as_str().unwrap());
    let recorded = scene.bus.value("toold_grants", &key).unwrap();
    let anna = scene.person_key("anna");
    let put = |bytes: &[u8]| scene.bus.put("toold_grants", &key, bytes);
    scene.expect_refusals(&scene.build, &recorded, &anna, put);
    // A daemon's key is no person's, whoever it says that it is.
    for (name, from, reason) in [
        ("laptop", "anna", "bad_signature"),
        ("laptop", "laptop", "unknown_sender"),
        ("ghost", "anna", "bad_signature"),
    ] {
        expect_refusal(&scene.build, reason, "a grant that a daemon signs", || {
            put(&fresh(&recorded, &scene.key(name), |grant| {
                grant["from"] = from.into();
                grant["rule"]["pattern"] = "rm **".into();
            }));
        });
    }
    // Whatever takes its place in the bucket ends it; it counts again when it is back.
    put(&recorded);
    until("the grant is back", || is_known_as(&scene, &id, true));
    assert_eq!(verdict(&scene, "touch granted-1"), "allow");
    assert_eq!(verdict(&scene, "rm -rf /"), "ask");
    // Another grant in the place of this one.
    let other = grant(&scene, "touch other-**");
    expect_refusal(&scene.build, "misdirected", "a grant in the place of another", || {
        put(&scene.bus.value("toold_grants", &format!("anna.{}", other.as_str().unwrap())).unwrap());
    });

    scene.laptop.connect().result("fleet.revoke", json!({"id": id}));
    until("the revocation arrives", || is_known_as(&scene, &id, false));
    assert_eq!(verdict(&scene, "touch granted-1"), "ask");
    // The grant again: as it was, and as if it were newer.
    expect_refusal(&scene.build, "replayed", "the grant that was revoked", || put(&recorded));
    assert_eq!(verdict(&scene, "touch granted-1"), "ask");
    expect_refusal(&scene.build, "replayed", "a newer grant of the same name", || {
        put(&fresh(&recorded, &anna, |_| ()));
    });
    assert_eq!(verdict(&scene, "touch granted-1"), "ask");
    // Also for a daemon that has been restarted meanwhile, and when the broker has forgotten the revocation.
    scene.bus.delete("toold_grants", &key);
    scene.bus.put("toold_grants", &key, &recorded);
    scene.build.restart("KILL");
    until("the other grant is valid again", || is_known_as(&scene, &other, true));
    assert_eq!(verdict(&scene, "touch other-1"), "allow");
    assert_eq!(verdict(&scene, "touch granted-1"), "ask");

    // A grant that the broker deletes: it may end, and nothing else.
    let denied = json!({"action": "deny", "category": "shell", "pattern": "touch never-**"});
    let made = scene.laptop.connect().result("fleet.grant", denied);
    let deny = made["grants"].as_array().unwrap().last().unwrap()["id"].clone();
    until("the denying grant arrives", || (verdict(&scene, "touch never-1") == "deny").then_some(()));
    scene.bus.delete("toold_grants", &format!("anna.{}", deny.as_str().unwrap()));
    let last = grant(&scene, "touch last-**");
    until("later grants have arrived", || is_known_as(&scene, &last, true));
    assert_eq!(verdict(&scene, "touch never-1"), "deny");
    scene.build.restart("TERM");
    until("it is a member again", || is_known_as(&scene, &last, true));
    assert_eq!(verdict(&scene, "touch never-1"), "deny");
    // An allowing grant without an end.
    let endless = grant(&scene, "touch short-**");
    let endless_key = format!("anna.{}", endless.as_str().unwrap());
    let bytes = scene.bus.value("toold_grants", &endless_key).unwrap();
    let endless = signed_again(&bytes, &anna, |grant| {
        grant["id"] = "endless".into();
        grant["to"] = grant["to"].as_str().unwrap().replace(endless.as_str().unwrap(), "endless").into();
        grant.as_object_mut().unwrap().remove("expiry");
        grant["rule"]["pattern"] = "touch endless-**".into();
    });
    expect_refusal(&scene.build, "not_permitted", "an allowing grant without an end", || {
        scene.bus.put("toold_grants", "anna.endless", &endless);
    });
    assert_eq!(verdict(&scene, "touch endless-1"), "ask");
}
