//! Records of daemons and tools in the buckets.

use serde_json::json;
use toold_tests::until;

use super::forgeries::{fresh, signed_again};
use super::scene::{TrustScene, expect_refusal, status};

/// How the laptop lists a tool.
fn description(scene: &TrustScene, tool: &str) -> String {
    let list = scene.laptop.connect().result("tools.list", json!({"names": [tool]}));
    list["tools"][0]["description"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn tools_and_daemons_are_described_by_themselves_alone() {
    let Some(scene) = TrustScene::start() else { return };
    let key = scene.key("build");
    let before = description(&scene, "build_mark");
    assert!(before.contains("Appends a line"), "{before}");

    let tool = scene.bus.value("toold_tools", "build.mark").unwrap();
    let put = |bytes: &[u8]| scene.bus.put("toold_tools", "build.mark", bytes);
    scene.expect_refusals(&scene.laptop, &tool, &key, put);
    expect_refusal(&scene.laptop, "misdirected", "the record of another tool", || {
        put(&scene.bus.value("toold_tools", "build.wait").unwrap());
    });
    expect_refusal(&scene.laptop, "not_permitted", "a tool that another daemon describes", || {
        put(&fresh(&tool, &scene.key("ghost"), |tool| {
            tool["from"] = "ghost".into();
            tool["description"] = "Harmless".into();
        }));
    });
    // One that was true once.
    expect_refusal(&scene.laptop, "replayed", "an older record", || {
        put(&signed_again(&tool, &key, |tool| {
            tool["at"] = (tool["at"].as_u64().unwrap() - 60_000).into();
            tool["description"] = "Did something else in the past".into();
        }));
    });
    assert_eq!(description(&scene, "build_mark"), before);
    // The broker hides a tool: it cannot be prevented, and is not fatal; the daemon announces it again when it joins.
    let daemon = scene.bus.value("toold_daemons", "build").unwrap();
    let put = |bytes: &[u8]| scene.bus.put("toold_daemons", "build", bytes);
    scene.expect_refusals(&scene.laptop, &daemon, &key, put);
    expect_refusal(&scene.laptop, "not_permitted", "another daemon's record of this one", || {
        put(&fresh(&daemon, &scene.key("ghost"), |daemon| daemon["from"] = "ghost".into()));
    });
    expect_refusal(&scene.laptop, "replayed", "an older record of the daemon", || {
        put(&signed_again(&daemon, &key, |daemon| {
            daemon["at"] = (daemon["at"].as_u64().unwrap() - 60_000).into();
            daemon["max_calls"] = 1_000.into();
        }));
    });
    let found = status(&scene.laptop)["daemons"].as_array().unwrap().iter().find(|of| of["name"] == "build").cloned();
    assert_ne!(found.unwrap()["max_calls"], 1_000);
    until("the daemon is online", || {
        let status = status(&scene.laptop);
        let build = status["daemons"].as_array()?.iter().find(|of| of["name"] == "build")?;
        (build["state"] == "online").then_some(())
    });
}
