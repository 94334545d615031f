//! A version is a save that is whole, and runs with the files that it was loaded with.

use std::fs;
use std::io::Write;
use std::time::Duration;

use serde_json::json;
use toold_lua::reload::options::{DirKind, PluginDir, SavePatience};
use toold_proto::plugin::PluginStatus;
use toold_test_kit::git;

use crate::world::{TestPlugins, write};

/// Longer than any test: what it delays does not happen.
const NEVER: Duration = Duration::from_secs(3_600);
/// Whatever it delays still happens within a moment.
const SOON: Duration = Duration::from_millis(20);

async fn world_with(patience: SavePatience, files: &[(&str, &str)]) -> TestPlugins {
    TestPlugins::with(files, |options| options.patience = patience).await
}

fn tool(name: &str, version: &str) -> String {
    format!(
        "hygge.register_tool{{name = '{name}', description = '{version}', execute = function() return '{version}' end}}\n"
    )
}

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

#[tokio::test(flavor = "multi_thread")]
async fn half_of_a_save_takes_no_tools_away() {
    let patience = SavePatience { lesser: NEVER, lesser_at_most: NEVER, ..SavePatience::default() };
    let both = |version: &str| tool("a", version) + &tool("b", version);
    let world = world_with(
        patience,
        &[
            ("g.lua", &both("v0")),
            ("f/plugin.lua", "require('tools')"),
            ("f/tools.lua", &both("v0").replace("'a'", "'c'").replace("'b'", "'d'")),
            ("other.lua", &tool("other", "v0")),
        ],
    )
    .await;
    type Save = fn(&std::path::Path, &str, &str);
    let whole: fn(&std::path::Path, &str) = |path, text| {
        let beside = path.with_extension("tmp");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, path).unwrap();
    };
    // Each writes the first half, and then the second one.
    let ways: [(Save, Save); 4] = [
        (
            |path, first, _| fs::write(path, first).unwrap(),
            |path, _, second| {
                fs::File::options().append(true).open(path).unwrap().write_all(second.as_bytes()).unwrap();
            },
        ),
        (
            |path, first, _| {
                fs::remove_file(path).unwrap();
                fs::write(path, first).unwrap();
            },
            |path, first, second| fs::write(path, first.to_owned() + second).unwrap(),
        ),
        (
            |path, first, _| {
                fs::rename(path, path.with_extension("lua~")).unwrap();
                fs::write(path, first).unwrap();
            },
            |path, _, second| {
                fs::File::options().append(true).open(path).unwrap().write_all(second.as_bytes()).unwrap();
                fs::remove_file(path.with_extension("lua~")).unwrap();
            },
        ),
        // An empty file that was closed is a version too.
        (
            |path, _, _| fs::write(path, "hygge.log('info', 'half 4')").unwrap(),
            |path, first, second| {
                fs::write(path, first.to_owned() + second).unwrap();
            },
        ),
    ];
    for (n, (first_half, second_half)) in ways.into_iter().enumerate() {
        let n = n + 1;
        let version = format!("v{n}");
        for (file, names) in [("g.lua", ["a", "b"]), ("f/tools.lua", ["c", "d"])] {
            let path = world.plugins.join(file);
            let first = format!("hygge.log('info', 'half {n}')\n{}", tool(names[0], &version));
            let second = tool(names[1], &version);
            let logged = world.logs().len();
            first_half(&path, &first, &second);
            world.until(|world| world.logs().len() > logged).await;
            // Something that was saved later serves, and nothing was taken away.
            whole(&world.plugins.join("other.lua"), &tool("other", &format!("{version} {file}")));
            world.until_described("other", &format!("{version} {file}")).await;
            assert_eq!(world.tools(), ["a", "b", "c", "d", "other"], "{file} {version}");
            assert_eq!(world.text(names[1], json!({})).await, format!("v{}", n - 1));
            second_half(&path, &first, &second);
            world.until_described(names[1], &version).await;
            assert_eq!(world.text(names[0], json!({})).await, version);
        }
    }
    assert!(world.host.list().iter().all(|plugin| plugin.status == PluginStatus::Loaded && plugin.error.is_none()));
}

/// As editors save that remove the file first, and as a checkout does with a folder.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_away_for_a_moment_take_no_tools_away() {
    let patience = SavePatience { lesser: NEVER, lesser_at_most: NEVER, ..SavePatience::default() };
    let files = [("g.lua", tool("a", "v0")), ("f/plugin.lua", tool("b", "v0")), ("other.lua", tool("other", "v0"))];
    let world = world_with(patience, &files.each_ref().map(|(name, text)| (*name, text.as_str()))).await;
    for n in 1..=3 {
        fs::remove_file(world.plugins.join("g.lua")).unwrap();
        fs::remove_dir_all(world.plugins.join("f")).unwrap();
        // Each revision waits a moment for others, so what is away is noticed before the last of these serves.
        for save in 0..6 {
            let version = format!("v{n}.{save}");
            world.write("other.lua", &tool("other", &version));
            world.until_described("other", &version).await;
            assert_eq!(world.tools(), ["a", "b", "other"], "{version}");
        }
        world.write("g.lua", &tool("a", &format!("v{n}")));
        world.write("f/plugin.lua", &tool("b", &format!("v{n}")));
        world.until_described("a", &format!("v{n}")).await;
        world.until_described("b", &format!("v{n}")).await;
    }
    assert!(world.host.list().iter().all(|plugin| plugin.status == PluginStatus::Loaded && plugin.error.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_a_save_removes_goes() {
    let patience = SavePatience { lesser: SOON, ..SavePatience::default() };
    let both = tool("a", "v1") + &tool("b", "v1");
    let world = world_with(patience, &[("g.lua", &both)]).await;
    world.write("g.lua", &tool("a", "v2"));
    world.until(|world| world.tools() == ["a"]).await;
    world.write("g.lua", "");
    world.until(|world| world.tools().is_empty()).await;
    assert_eq!(world.plugin("g").status, PluginStatus::Loaded);
    world.write("g.lua", &both);
    world.until(|world| world.tools() == ["a", "b"]).await;
    world.write("g.lua", &tool("b", "v3"));
    assert_eq!(world.host.reload(Some("g")).await.unwrap()[0].tools, ["b"]);
    fs::remove_file(world.plugins.join("g.lua")).unwrap();
    world.until(|world| world.tools().is_empty() && world.host.list().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_keeps_changing_is_not_waited_for_without_end() {
    let patience = SavePatience { lesser: NEVER, lesser_at_most: SOON, ..SavePatience::default() };
    let world = world_with(patience, &[("g.lua", &(tool("a", "v1") + &tool("b", "v1")))]).await;
    world.write("g.lua", &tool("a", "v2"));
    world.until(|world| world.tools() == ["a"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_of_a_manifest_lifts_no_restriction() {
    let patience = SavePatience { lesser: NEVER, lesser_at_most: NEVER, ..SavePatience::default() };
    let manifest = "name = 'f'\napi = 'toold'\n[capabilities]\ntools = true\n";
    let script = "hygge.register_tool{name = 't', execute = function() return hygge.exec('true').stderr end}";
    let world = world_with(patience, &[("f/plugin.toml", manifest), ("f/plugin.lua", script)]).await;
    world.allow_all();
    world.write("f/plugin.toml", "name = 'f'\n");
    world.write("other.lua", &tool("other", "v1"));
    world.until_described("other", "v1").await;
    let refused = world.call("t", json!({})).await;
    assert!(refused.text().contains("capability exec"), "{}", refused.text());
}

/// A folder of plugins, which is a repository or lies in one, and another folder elsewhere.
async fn repository(git: Duration) -> TestPlugins {
    let patience = SavePatience { git, ..SavePatience::default() };
    let files = [("g.lua", tool("g", "v1")), ("gone.lua", tool("gone", "v1")), ("f/plugin.lua", tool("f", "v1"))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let world = TestPlugins::with(&files, |options| {
        options.patience = patience;
        let plugins = options.dirs[0].path.clone();
        fs::create_dir(plugins.join(".git")).unwrap();
        let path = plugins.with_file_name("elsewhere");
        write(&path.join("other.lua"), &tool("other", "v1"));
        options.dirs.push(PluginDir { path, kind: DirKind::Configured });
    });
    world.await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_loaded_while_git_holds_its_lock_and_then_all_at_once() {
    let world = repository(NEVER).await;
    let lock = world.plugins.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    world.write("g.lua", &tool("g", "v2"));
    world.write("f/plugin.lua", &tool("f", "v2"));
    world.write("new.lua", &tool("new", "v2"));
    fs::remove_file(world.plugins.join("gone.lua")).unwrap();
    write(&world.plugins.with_file_name("elsewhere/other.lua"), &tool("other", "v2"));
    world.until_described("other", "v2").await;
    // A second time, since the first one may have been seen before the others.
    write(&world.plugins.with_file_name("elsewhere/other.lua"), &tool("other", "v3"));
    world.until_described("other", "v3").await;
    assert_eq!(world.tools(), ["f", "g", "gone", "other"]);
    assert_eq!(world.text("g", json!({})).await, "v1");
    let before = world.revision();
    fs::remove_file(&lock).unwrap();
    world.until(|world| world.tools() == ["f", "g", "new", "other"]).await;
    assert_eq!((world.text("g", json!({})).await, world.text("f", json!({})).await), ("v2".into(), "v2".into()));
    assert_eq!(world.revision(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_git_left_behind_is_not_waited_for_without_end() {
    let world = repository(SOON).await;
    fs::write(world.plugins.join(".git/index.lock"), "").unwrap();
    for version in ["v2", "v3"] {
        world.write("g.lua", &tool("g", version));
        world.until_described("g", version).await;
    }
}

/// The plugin says which branch each of its files is of.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_of_two_hundred_modules_is_one_whole_version() {
    let world = TestPlugins::new(&[]).await;
    let repository = world.root.path().canonicalize().unwrap();
    let git = |args: &[&str]| git(&repository, args);
    let script = "local seen, branches = {}, {}
        for n = 1, 200 do local branch = require('m' .. n) if not seen[branch] then seen[branch] = true table.insert(branches, branch) end end
        hygge.log('info', table.concat(branches, ' and '))
        hygge.register_tool{name = 't', description = table.concat(branches, ' and '), execute = print}";
    git(&["init", "--quiet", "--initial-branch", "one"]);
    for branch in ["one", "two"] {
        for n in 1..=200 {
            world.write(&format!("f/m{n}.lua"), &format!("return '{branch}'"));
        }
        if branch == "one" {
            write(&repository.join("plugin.lua"), script);
            fs::rename(repository.join("plugin.lua"), world.plugins.join("f/plugin.lua")).unwrap();
        } else {
            git(&["checkout", "--quiet", "-b", branch]);
        }
        git(&["add", "plugins"]);
        git(&["commit", "--quiet", "--message", branch]);
    }
    world.until_described("t", "two").await;
    for branch in ["one", "two", "one", "two"] {
        let (logged, revision) = (world.logs().len(), world.revision());
        git(&["checkout", "--quiet", branch]);
        world.until_described("t", branch).await;
        // A load whose files changed again may have been repeated.
        assert!(world.logs()[logged..].iter().all(|seen| seen == branch), "{:?}", &world.logs()[logged..]);
        assert_eq!(world.revision(), revision + 1);
    }
}
