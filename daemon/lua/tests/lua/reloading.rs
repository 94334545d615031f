//! Plugins follow their files.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use toold_proto::plugin::PluginStatus;
use toold_test_kit::git;

use crate::world::TestPlugins;

fn greet(version: &str) -> String {
    format!(
        "hygge.register_tool{{name = 'greet', description = '{version}', execute = function() return '{version}' end}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_saving_is_one_reload() {
    let world = TestPlugins::new(&[("g.lua", &greet("v0"))]).await;
    let path = world.plugins.join("g.lua");
    let beside = world.plugins.join(".g.lua.tmp");
    let backup = world.plugins.join("g.lua~");
    let in_place = |text: &str| fs::write(&path, text).unwrap();
    let atomic = |text: &str| {
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, &path).unwrap();
    };
    let pieces = |text: &str| {
        let mut file = fs::File::create(&path).unwrap();
        for piece in text.as_bytes().chunks(7) {
            file.write_all(piece).unwrap();
        }
    };
    let with_backup = |text: &str| {
        fs::rename(&path, &backup).unwrap();
        fs::write(&path, text).unwrap();
        fs::remove_file(&backup).unwrap();
    };
    let delete_first = |text: &str| {
        fs::remove_file(&path).unwrap();
        fs::write(&path, text).unwrap();
    };
    let ways: [&dyn Fn(&str); 5] = [&in_place, &atomic, &pieces, &with_backup, &delete_first];
    for (n, save) in ways.into_iter().enumerate() {
        // A file that is away for longer than 50 ms counts as removed: after such a save, another one is tried.
        let version = loop {
            let before = world.revision();
            let version = format!("v{}", before + 1);
            let began = Instant::now();
            save(&greet(&version));
            let was_brief = began.elapsed() < Duration::from_millis(25);
            world.until_described("greet", &version).await;
            if was_brief {
                assert_eq!(world.revision(), before + 1, "way {n}");
                break version;
            }
        };
        assert_eq!(world.text("greet", json!({})).await, version);
        assert_eq!(world.plugin("g").status, PluginStatus::Loaded);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_move_and_go() {
    let world = TestPlugins::new(&[]).await;
    assert_eq!(world.tools(), [""; 0]);
    world.write("g.lua", &greet("v1"));
    world.until(|world| world.tools() == ["greet"]).await;
    fs::rename(world.plugins.join("g.lua"), world.plugins.join("h.lua")).unwrap();
    world
        .until(|world| world.host.list().iter().map(|p| p.name.as_str()).eq(["h"]) && world.tools() == ["greet"])
        .await;
    fs::remove_file(world.plugins.join("h.lua")).unwrap();
    world.until(|world| world.tools().is_empty() && world.host.list().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_save_keeps_the_last_good_version() {
    let world = TestPlugins::new(&[("g.lua", &greet("v1"))]).await;
    world.write("g.lua", "local x = 1\nlocal y = )\n");
    let failed = world.until_failed("g").await;
    let error = failed.error.unwrap();
    assert_eq!(error.file, Some(world.plugins.join("g.lua").display().to_string()));
    assert_eq!((error.line, error.source_line.as_deref()), (Some(2), Some("local y = )")));
    assert_eq!(failed.tools, ["greet"]);
    assert_eq!(world.text("greet", json!({})).await, "v1");
    world.write("g.lua", &greet("v2"));
    world.until_described("greet", "v2").await;
    world.until(|world| world.plugin("g").status == PluginStatus::Loaded).await;
    assert_eq!(world.plugin("g").error, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_end_on_the_version_that_they_began_on() {
    let script = |version: &str| {
        format!(
            "go = false
             hygge.register_tool{{name = 'wait', parallelizable = true, description = '{version}', execute = function(ctx)
               ctx.progress('in') while hygge.call_tool('still').content == 'yes' do hygge.sleep(1) end return '{version}' end}}"
        )
    };
    let still = |answer: &str| {
        format!(
            "hygge.register_tool{{name = 'still', description = '{answer}', parallelizable = true, execute = function() return '{answer}' end}}"
        )
    };
    let world = TestPlugins::new(&[("g.lua", &script("old")), ("s.lua", &still("yes"))]).await;
    let change = async {
        world.write("g.lua", &script("new"));
        world.until_described("wait", "new").await;
        world.write("s.lua", &still("no"));
        world.until_described("still", "no").await;
    };
    let (answer, ()) = tokio::join!(world.text("wait", json!({})), change);
    assert_eq!(answer, "old");
    assert_eq!(world.text("wait", json!({})).await, "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_files_are_not_loaded_again() {
    let world = TestPlugins::new(&[
        ("g.lua", &greet("v1")),
        ("h.lua", "hygge.register_tool{name = 'h', description = '1', execute = print}"),
    ])
    .await;
    let before = world.plugin("g").loaded_at;
    world.write("g.lua", &greet("v1"));
    world.write("h.lua", "hygge.register_tool{name = 'h', description = '2', execute = print}");
    world.until_described("h", "2").await;
    assert_eq!(world.plugin("g").loaded_at, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_changes_at_once_are_few_revisions() {
    let world = TestPlugins::new(&[]).await;
    let aside = world.root.path().join("aside");
    fs::rename(&world.plugins, &aside).unwrap();
    for n in 0..100 {
        fs::write(aside.join(format!("p{n}.lua")), format!("hygge.register_tool{{name = 't{n}', execute = print}}"))
            .unwrap();
    }
    let before = world.revision();
    let start = Instant::now();
    fs::rename(&aside, &world.plugins).unwrap();
    world.until(|world| world.tools().len() == 100).await;
    // One in 20 ms, however slow the computer is, and the last one.
    let most = start.elapsed().as_millis() / 20 + 1;
    let revisions = u128::from(world.revision() - before);
    assert!(revisions <= most, "{revisions} revisions; at most {most} were expected");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_itself_may_come_and_go() {
    let world = TestPlugins::new(&[("g.lua", &greet("v1"))]).await;
    fs::remove_dir_all(&world.plugins).unwrap();
    world.until(|world| world.tools().is_empty()).await;
    fs::create_dir(&world.plugins).unwrap();
    world.write("g.lua", &greet("v2"));
    world.until_described("greet", "v2").await;
    world.write("g.lua", &greet("v3"));
    world.until_described("greet", "v3").await;
    // Removed as a whole, and restored.
    let aside = world.root.path().join("aside");
    fs::rename(&world.plugins, &aside).unwrap();
    world.until(|world| world.tools().is_empty()).await;
    fs::rename(&aside, &world.plugins).unwrap();
    world.until_described("greet", "v3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_file_of_a_folder_counts() {
    let world = TestPlugins::new(&[
        ("f/plugin.lua", "hygge.register_tool{name = 'f', description = '1', execute = print}"),
        ("f/lib/x.lua", "return 1"),
    ])
    .await;
    let before = world.plugin("f").loaded_at;
    world.write("f/lib/x.lua", "return 2");
    world.until(|world| world.plugin("f").loaded_at != before).await;
    // A folder that is made while it is watched.
    world.write("new/plugin.lua", "hygge.register_tool{name = 'n', execute = print}");
    world.until(|world| world.tools() == ["f", "n"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_plugins_of_one_name_the_first_serves() {
    let world = TestPlugins::new(&[
        ("a/plugin.toml", "name = 'same'"),
        ("a/plugin.lua", "hygge.register_tool{name = 'a', execute = print}"),
        ("b/plugin.toml", "name = 'same'"),
        ("b/plugin.lua", "hygge.register_tool{name = 'b', execute = print}"),
    ])
    .await;
    assert_eq!(world.tools(), ["a"]);
    assert_eq!(world.host.list()[1].status, PluginStatus::Shadowed);
    fs::remove_dir_all(world.plugins.join("a")).unwrap();
    world.until(|world| world.tools() == ["b"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_also_loads_unchanged_plugins() {
    let world = TestPlugins::new(&[("g.lua", &greet("v1"))]).await;
    let before = world.revision();
    let list = world.host.reload(Some("g")).await.unwrap();
    assert_eq!(list[0].status, PluginStatus::Loaded);
    assert_eq!(world.revision(), before + 1);
    assert!(world.host.reload(Some("nothing")).await.is_err());
    assert_eq!(world.host.reload(None).await.unwrap().len(), 1);
}

/// Many saves of many plugins while they are called: no call is lost, none sees half a plugin, and
/// in the end the versions in the files serve.
#[tokio::test(flavor = "multi_thread")]
async fn calls_and_saves_at_once() {
    // The full minute is for finding rare failures: a thousand saves over fifty plugins.
    let seconds: u64 = std::env::var("TOOLD_FIRE_SECONDS").map_or(0, |seconds| seconds.parse().unwrap());
    let (plugins, rounds, calls) = if seconds == 0 { (20, 10, 200) } else { (50, 20, usize::MAX) };
    let pause = std::time::Duration::from_secs(seconds) / (plugins * rounds) as u32;
    let saved = std::sync::atomic::AtomicBool::new(false);
    // Whole only if the first line and the last are of one save.
    let script = |plugin: usize, version: usize| {
        let filler = "-- what makes it longer than one write\n".repeat(200);
        format!(
            "local first = {version}
             {filler}
             hygge.register_tool{{name = 'p{plugin}', description = 'v{version}', parallelizable = {}, execute = function()
               hygge.sleep(0)
               return first .. ' ' .. last end}}
             last = {version}",
            plugin.is_multiple_of(2)
        )
    };
    let files: Vec<(String, String)> = (0..plugins).map(|n| (format!("p{n}.lua"), script(n, 0))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let world = TestPlugins::new(&files).await;
    let saving = async {
        for version in 1..=rounds {
            for plugin in 0..plugins {
                let (path, text) = (world.plugins.join(format!("p{plugin}.lua")), script(plugin, version));
                match version % 3 {
                    0 => fs::write(&path, text).unwrap(),
                    1 => {
                        let beside = world.plugins.join(format!(".p{plugin}.tmp"));
                        fs::write(&beside, text).unwrap();
                        fs::rename(&beside, &path).unwrap();
                    }
                    _ => {
                        let mut file = fs::File::create(&path).unwrap();
                        for piece in text.as_bytes().chunks(1_000) {
                            file.write_all(piece).unwrap();
                        }
                    }
                }
                match pause.is_zero() {
                    true => tokio::task::yield_now().await,
                    false => tokio::time::sleep(pause).await,
                }
            }
        }
        saved.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let calling = async |client: usize| {
        for n in 0..calls {
            if calls == usize::MAX && saved.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            let answer = world.text(&format!("p{}", (client * 7 + n) % plugins), json!({})).await;
            let (first, last) = answer.split_once(' ').unwrap();
            assert_eq!(first, last, "a call saw half of a plugin");
        }
    };
    tokio::join!(saving, futures_util::future::join_all((0..8).map(calling)));
    for plugin in 0..plugins {
        world.until_described(&format!("p{plugin}"), &format!("v{rounds}")).await;
        assert_eq!(world.text(&format!("p{plugin}"), json!({})).await, format!("{rounds} {rounds}"));
    }
    assert!(world.host.list().iter().all(|plugin| plugin.status == PluginStatus::Loaded && plugin.error.is_none()));
}

/// The limit for two hundred files that arrive in this time. If writing takes long, on a busy machine, the first files
/// already serve meanwhile.
fn assert_few(revisions: u64, took: Duration) {
    assert!(revisions <= 40.max(took.as_millis() as u64 / 4), "{revisions} revisions in {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_of_two_hundred_is_few_revisions() {
    let world = TestPlugins::new(&[]).await;
    let tool = |n: usize, version: &str| {
        format!("hygge.register_tool{{name = 't{n}', description = '{version}', execute = print}}")
    };
    for version in ["one", "two"] {
        let (before, began) = (world.revision(), Instant::now());
        for n in 0..200 {
            world.write(&format!("p{n}.lua"), &tool(n, version));
        }
        let described = |world: &TestPlugins, version: &str| {
            let snapshot = world.engine.registry.snapshot();
            snapshot.global().iter().filter(|tool| tool.spec().description == version).count()
        };
        world.until(|world| described(world, version) == 200).await;
        assert_few(world.revision() - before, began.elapsed());
    }
}

/// Git writes each file in place, and removes those that the other branch does not have.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_by_git_is_few_revisions_and_ends_as_the_branch_is() {
    let world = TestPlugins::new(&[]).await;
    let git = |args: &[&str]| git(&world.plugins, args);
    let tool = |n: usize, version: &str| {
        format!("hygge.register_tool{{name = 't{n}', description = '{version}', execute = print}}")
    };
    git(&["init", "--quiet", "--initial-branch", "one"]);
    for (branch, numbers) in [("one", 0..200), ("two", 100..300)] {
        if branch != "one" {
            git(&["checkout", "--quiet", "--orphan", branch]);
            git(&["rm", "-r", "--quiet", "--force", "."]);
        }
        for n in numbers {
            world.write(&format!("p{n}.lua"), &tool(n, branch));
        }
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", branch]);
    }
    let is_at = |world: &TestPlugins, branch: &str, first: usize| {
        let snapshot = world.engine.registry.snapshot();
        let mut names: Vec<String> = (first..first + 200).map(|n| format!("t{n}")).collect();
        names.sort();
        let tools = snapshot.global();
        tools.iter().all(|tool| tool.spec().description == branch)
            && tools.iter().map(|tool| tool.spec().name.as_str()).eq(names.iter().map(String::as_str))
    };
    world.until(|world| is_at(world, "two", 100)).await;
    for (branch, first) in [("one", 0), ("two", 100), ("one", 0)] {
        let (before, began) = (world.revision(), Instant::now());
        git(&["checkout", "--quiet", branch]);
        world.until(|world| is_at(world, branch, first)).await;
        assert_few(world.revision() - before, began.elapsed());
        println!("{} revisions to {branch}", world.revision() - before);
    }
    assert!(world.host.list().iter().all(|plugin| plugin.status == PluginStatus::Loaded && plugin.error.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn linked_plugins_load_and_follow_their_files() {
    let world = TestPlugins::new(&[]).await;
    let elsewhere = world.root.path().canonicalize().unwrap().join("elsewhere");
    crate::world::write(&elsewhere.join("g.lua"), &greet("v1"));
    crate::world::write(
        &elsewhere.join("f/plugin.lua"),
        "hygge.register_tool{name = 'f', description = 'v1', execute = print}",
    );
    std::os::unix::fs::symlink(elsewhere.join("g.lua"), world.plugins.join("g.lua")).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("f"), world.plugins.join("f")).unwrap();
    world.until(|world| world.tools() == ["f", "greet"]).await;
    crate::world::write(&elsewhere.join("g.lua"), &greet("v2"));
    world.until_described("greet", "v2").await;
    crate::world::write(
        &elsewhere.join("f/plugin.lua"),
        "hygge.register_tool{name = 'f', description = 'v2', execute = print}",
    );
    world.until_described("f", "v2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_host_leaves_nothing_behind() {
    let files = [("g.lua", &*greet("v1")), ("l.lua", "while true do end")];
    let world = TestPlugins::with(&files, |options| options.settle_patience = Duration::from_millis(10)).await;
    world.until(|world| world.tools() == ["greet"]).await;
    world.host.stop().await;
    assert_eq!(world.tools(), [""; 0]);
    assert!(world.host.list().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn file_system_without_events_is_polled() {
    let poll = std::time::Duration::from_millis(10);
    let world = TestPlugins::with(&[("p.lua", &greet("one"))], |options| options.poll = Some(poll)).await;
    world.write("p.lua", &greet("two, which is longer"));
    world.until_described("greet", "two, which is longer").await;
    world.write("q/plugin.lua", "hygge.register_tool{name = 'other', description = require('text'), execute = print}");
    world.write("q/text.lua", "return 'a'");
    world.until_described("other", "a").await;
    world.write("q/text.lua", "return 'b'");
    world.until_described("other", "b").await;
    fs::remove_file(world.plugins.join("p.lua")).unwrap();
    world.until(|world| world.tools() == ["other"]).await;
    fs::remove_dir_all(&world.plugins).unwrap();
    world.until(|world| world.tools().is_empty()).await;
    world.write("p.lua", &greet("back"));
    world.until_described("greet", "back").await;
}
