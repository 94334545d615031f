//! A plugin cannot harm other plugins and calls.

use std::time::Duration;

use serde_json::json;

use crate::world::TestPlugins;

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_ends_with_its_time() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 't', timeout = 50, execute = function() while true do pcall(function() while true do end end) end end}
         hygge.register_tool{name = 'ok', execute = function() return 'fine' end}",
    )
    .await;
    let result = world.call("t", json!({})).await;
    assert!(result.is_error);
    assert_eq!(result.metadata["timed_out"], true);
    assert_eq!(world.text("ok", json!({})).await, "fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_use_ends_its_own_call_only() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 't', timeout = 5000, execute = function() return #('a'):rep(1e9) end}
         hygge.register_tool{name = 'hoard', timeout = 5000, execute = function() keep = {} for i = 1, 1e9 do keep[i] = table.create(1000, i) end end}
         hygge.register_tool{name = 'ok', execute = function() return tostring(keep) end}",
    )
    .await;
    for name in ["t", "hoard"] {
        let result = world.call(name, json!({})).await;
        assert!(result.is_error && result.text().contains("not enough memory"), "{}", result.text());
        assert_eq!(world.text("ok", json!({})).await, "nil");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_never_loads_delays_no_other() {
    let world = TestPlugins::with(
        &[
            ("a.lua", "while true do pcall(function() while true do end end) end"),
            ("b.lua", "local s = ('a'):rep(1e9)"),
            ("c.lua", "hygge.register_tool{name = 't', execute = function() return 'c' end}"),
        ],
        |options| {
            options.load_limit = Duration::from_secs(3);
            options.settle_patience = Duration::from_millis(100);
        },
    )
    .await;
    world.until(|world| world.tools() == ["t"]).await;
    assert_eq!(world.text("t", json!({})).await, "c");
    let failed = world.until_failed("a").await;
    assert!(failed.error.unwrap().message.contains("time limit for loading"));
    let hungry = world.until_failed("b").await;
    assert!(hungry.error.unwrap().message.contains("memory"));
}

/// As when all plugins are new on a busy computer, where each load is slow.
#[tokio::test(flavor = "multi_thread")]
async fn plugins_that_load_slowly_keep_little_memory_together() {
    let plugins: Vec<(String, String)> = (0..12)
        .map(|number| {
            let script = format!(
                "held = ('x'):rep(12e6) local sum = 0 for i = 1, 2e6 do sum = sum + i end
                 hygge.register_tool{{name = 't{number}', execute = function() return tostring(#held) end}}"
            );
            (format!("p{number}.lua"), script)
        })
        .collect();
    let plugins: Vec<(&str, &str)> = plugins.iter().map(|(name, script)| (name.as_str(), script.as_str())).collect();
    let world = TestPlugins::with(&plugins, |options| options.load_limit = Duration::from_secs(60)).await;
    let memory = world.host.lua_usage().memory_bytes;
    assert!(memory < 100 << 20, "12 plugins that are loaded use {memory} bytes");
    for number in 0..12 {
        assert_eq!(world.text(&format!("t{number}"), json!({})).await, "12000000");
    }
}
