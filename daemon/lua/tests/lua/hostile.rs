//! Programs that try to run forever, exhaust memory, or break out. Each ends only its own call; the next call works.
//!
//! The tests check only the outcome. An endless program that ends at all has met its limit.

mod programs;

use std::time::Duration;

use serde_json::json;

use crate::hostile::programs::BODIES;
use crate::hostile::programs::ProgramEnding::{self, AtLimit, Somehow, Well, With};
use crate::world::TestPlugins;

impl ProgramEnding {
    /// Programs that must not reach their limit get enough time on the slowest computer.
    fn limit_ms(self) -> u64 {
        match self {
            AtLimit | Somehow => 150,
            With(_) | Well => 30_000,
        }
    }
}

/// Memory that may be in use at the end, of the 64 MiB that a Lua state may use; an idle one uses a quarter of a MiB.
const MEMORY_BACK: u64 = 4 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_programs_end_their_own_call_only() {
    assert!(BODIES.len() >= 25);
    // Four worlds at a time: each program has one of its own, as if it were the only plugin.
    let tests = BODIES.iter().map(|(what, body, ends)| tokio::spawn(run(what, body, *ends)));
    let mut tests: Vec<_> = tests.collect();
    let mut wrong = Vec::new();
    for test in tests.drain(..) {
        wrong.extend(test.await.unwrap());
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), BODIES.len(), wrong.join("\n"));
}

async fn run(what: &'static str, body: &'static str, ends: ProgramEnding) -> Option<String> {
    static PLACES: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(4);
    let _place = PLACES.acquire().await.unwrap();
    let world = TestPlugins::of(&format!(
        "hygge.register_tool{{name = 'hostile', timeout = {}, execute = function(ctx, input) {body} end}}
         hygge.register_tool{{name = 'next', execute = function() local t = {{}} for i = 1, 1000 do t[i] = ('x'):rep(i) end return 'works' end}}",
        ends.limit_ms()
    ))
    .await;
    let result = world.call("hostile", json!({})).await;
    let text = result.text();
    let timed_out = result.metadata.get("timed_out").is_some();
    let fits = match ends {
        AtLimit => result.is_error && timed_out && text.contains("time limit"),
        With(words) => result.is_error && !timed_out && text.contains(words),
        Somehow => true,
        Well => !result.is_error,
    };
    let shown: String = text.chars().take(200).collect();
    if !fits {
        return Some(format!("{what}: expected {ends:?}, got error={} timed_out={timed_out} {shown}", result.is_error));
    }
    let next = world.call("next", json!({})).await;
    if next.text() != "works" {
        return Some(format!("{what}: the next call gave {}", next.text()));
    }
    // A program that was stopped because of its memory or time keeps only what it put into globals.
    let left = world.host.lua_usage().memory_bytes;
    let is_state = what.contains("globals");
    if (timed_out || text.contains("not enough memory")) && !is_state && left > MEMORY_BACK {
        return Some(format!("{what}: {left} bytes are left of it"));
    }
    world.host.stop().await;
    world.engine.tasks.close();
    // A stopped program has really ended, not only been answered.
    if tokio::time::timeout(Duration::from_secs(60), world.engine.tasks.wait()).await.is_err() {
        return Some(format!("{what}: its work did not end"));
    }
    None
}

/// Programs that do it while they load.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_loads_end_their_own_load_only() {
    let scripts: &[(&str, &str, &str)] = &[
        ("rep", "local s = ('x'):rep(1e9)", "memory"),
        ("tools", "for i = 1, 1e6 do hygge.register_tool{name = 't' .. i, execute = print} end", "at most 1000"),
        (
            "schema",
            "local s = {} for i = 1, 50 do s = {type = 'object', properties = {a = s}} end hygge.register_tool{name = 't', execute = print, input_schema = s}",
            "deeper than 64",
        ),
        (
            "wide",
            "local p = {} for i = 1, 50000 do p['p' .. i] = {type = 'string'} end hygge.register_tool{name = 't', execute = print, input_schema = {properties = p}}",
            "bytes",
        ),
        (
            "cyclic",
            "local s = {} s.properties = {a = s} hygge.register_tool{name = 't', execute = print, input_schema = s}",
            "contains itself",
        ),
        ("message", "error(('x'):rep(1e6))", "bytes cut"),
        ("nested", &format!("return {}1{}", "(".repeat(3000), ")".repeat(3000)), "Exceeded allowed recursion depth"),
    ];
    // Programs that are refused get enough time for that, however busy the computer is.
    check_loads(scripts, Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_without_end_are_stopped() {
    let scripts = [
        ("loop", "while true do end", "time limit for loading"),
        ("caught", "while true do pcall(function() while true do end end) end", "time limit for loading"),
        ("sleeps", "hygge.sleep('1h')", "time limit for loading"),
    ];
    check_loads(&scripts, Duration::from_secs(3)).await;
}

/// Each script fails with these words, while a valid plugin in the same folder serves.
async fn check_loads(scripts: &[(&str, &str, &str)], limit: Duration) {
    let mut files: Vec<(String, &str)> =
        scripts.iter().map(|(name, script, _)| (format!("{name}.lua"), *script)).collect();
    files.push(("good.lua".into(), "hygge.register_tool{name = 'good', execute = function() return 'works' end}"));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, script)| (name.as_str(), *script)).collect();
    let world = TestPlugins::with(&files, |options| {
        options.load_limit = limit;
    })
    .await;
    assert_eq!(world.text("good", json!({})).await, "works");
    for (name, _, words) in scripts {
        let error = world.until_failed(name).await.error.unwrap();
        assert!(error.message.contains(words), "{name}: {}", error.message);
    }
    assert_eq!(world.tools(), ["good"]);
}
