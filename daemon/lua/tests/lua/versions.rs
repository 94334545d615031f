//! A version is a save that is whole, and runs with the files that it was loaded with.

use std::fs;

use serde_json::json;
use toold_proto::plugin::PluginStatus;

use crate::world::TestPlugins;

#[tokio::test(flavor = "multi_thread")]
async fn a_version_keeps_its_modules_when_they_are_deleted_or_changed() {
    let world = TestPlugins::new(&[
        (
            "f/plugin.lua",
            "local first = require('first')
             hygge.register_tool{name = 't', parallelizable = true, execute = function()
               return first .. ' ' .. require('later') .. ' ' .. require('changed') end}",
        ),
        ("f/first.lua", "return 'first'"),
        ("f/lib/later.lua", "return 'later'"),
        ("f/changed.lua", "return 'as it was'"),
    ])
    .await;
    // Without this module, nothing that follows is a version.
    fs::remove_file(world.plugins.join("f/first.lua")).unwrap();
    fs::remove_dir_all(world.plugins.join("f/lib")).unwrap();
    world.write("f/changed.lua", "return 'other'");
    let failed = world.until_failed("f").await;
    assert!(failed.error.unwrap().message.contains("no module 'first'"));
    // This is the first call, and makes the first Lua state.
    assert_eq!(world.text("t", json!({})).await, "first later as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_found_in_a_folder_that_is_a_link_within_the_plugin() {
    let world = TestPlugins::new(&[("f/v2/m.lua", "return 'two'"), ("o/m.lua", "return 'outside'")]).await;
    for (name, target) in [("inside", "v2"), ("outside", "../o")] {
        std::os::unix::fs::symlink(target, world.plugins.join("f").join(name)).unwrap();
    }
    world.write(
        "f/plugin.lua",
        "hygge.register_tool{name = 't', execute = function(ctx, input) return require(input.module) end}",
    );
    world.until(|world| world.tools() == ["t"]).await;
    assert_eq!(world.text("t", json!({"module": "inside.m"})).await, "two");
    let refused = world.call("t", json!({"module": "outside.m"})).await;
    assert!(refused.text().contains("lies outside of the plugin's folder"), "{}", refused.text());
    assert_eq!(world.plugin("f").status, PluginStatus::Loaded);
}
