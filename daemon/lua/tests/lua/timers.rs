//! Timers that live with a plugin: `hygge.every`.

use std::fs;

use serde_json::json;
use toold_engine::events::EventSelection;
use toold_lua::plugin::registration_cache::RegistrationCache;
use toold_lua::reload::check::check;
use toold_lua::reload::options::StandaloneOptions;
use toold_proto::event::EventBody;
use toold_proto::plugin::PluginTimer;

use crate::world::{TestPlugins, soon, write};

/// The texts of the next `count` log lines of plugins, while `run` goes on.
async fn logged(world: &TestPlugins, run: impl Future<Output = ()>, count: usize) -> Vec<String> {
    let mut events = world.engine.events.subscribe(EventSelection::NoCalls, None).receiver;
    run.await;
    let mut lines = Vec::new();
    while lines.len() < count {
        if let EventBody::Log { message, .. } = &soon(events.recv()).await.unwrap().body {
            lines.push(message.clone());
        }
    }
    lines
}

fn timers(world: &TestPlugins, name: &str) -> Vec<PluginTimer> {
    world.host.timers(&world.plugin(name).path)
}

/// Loads a plugin, and returns its first log lines.
async fn lines_of(script: &str, count: usize) -> (TestPlugins, Vec<String>) {
    let world = TestPlugins::new(&[]).await;
    let lines = logged(&world, async { world.write("p.lua", script) }, count).await;
    (world, lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_runs_again_and_again_in_the_plugins_state() {
    let (world, lines) = lines_of(
        "count = 0
         hygge.every('1s', function() count = count + 1 hygge.log('info', 'run ' .. count) end, {name = 'poll', immediately = true})
         hygge.register_tool{name = 't', execute = function() return count end}",
        2,
    )
    .await;
    assert_eq!(lines, ["run 1", "run 2"]);
    assert!(world.text("t", json!({})).await.parse::<u32>().unwrap() >= 2);
    let timer = &timers(&world, "p")[0];
    assert_eq!((timer.name.as_str(), timer.interval_ms, timer.stopped), ("poll", 1_000, false));
    assert!(timer.runs >= 1 && timer.last_run.is_some() && timer.last_error.is_none(), "{timer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_stops_its_timers() {
    let (world, lines) = lines_of(
        "local never = hygge.every('1s', function() hygge.log('info', 'never') end, {immediately = true})
         never:stop()
         local once
         once = hygge.every('1s', function() once:stop() hygge.sleep(1) hygge.log('info', 'once') end, {immediately = true})
         hygge.every('1s', function() hygge.log('info', 'other') end)
         hygge.every('1s', function() hygge.log('info', 'more') end)",
        5,
    )
    .await;
    assert_eq!(lines[0], "once");
    assert!(lines[1..].iter().all(|line| line == "other" || line == "more"), "{lines:?}");
    let stopped: Vec<_> = timers(&world, "p").into_iter().map(|timer| (timer.name, timer.stopped)).collect();
    assert_eq!(stopped, [("1", true), ("2", true), ("3", false), ("4", false)].map(|(name, is)| (name.to_owned(), is)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_logged_and_shown() {
    let script = "hygge.every('1s', function()\n error('boom') end, {name = 'poll', immediately = true})
                  hygge.every('1s', function() while true do pcall(hygge.sleep, '1h') end end, {name = 'slow', immediately = true})";
    let (world, mut lines) = lines_of(script, 2).await;
    lines.sort();
    assert_eq!(lines[0], "the timer poll failed: p.lua:2: boom");
    assert!(lines[1].starts_with("the timer slow failed: the timer's time limit is exceeded"), "{lines:?}");
    let timers = timers(&world, "p");
    assert!(timers[0].last_error.as_deref() == Some("p.lua:2: boom") && timers[0].last_run.is_some(), "{timers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_end_with_their_version() {
    let script = |version: &str| {
        format!(
            "hygge.every('1s', function()
               hygge.log('info', '{version}') hygge.sleep('900ms') hygge.log('info', '{version} ends') end, {{immediately = true}})
             hygge.register_tool{{name = 't', description = '{version}', execute = print}}"
        )
    };
    let (world, lines) = lines_of(&script("old"), 1).await;
    assert_eq!(lines, ["old"]);
    let replaced = async {
        world.write("p.lua", &script("new"));
        world.until_described("t", "new").await;
    };
    // The run of the old version does not end.
    let lines = logged(&world, replaced, 3).await;
    let new = lines.iter().position(|line| line == "new").unwrap();
    assert!(lines[new..].iter().all(|line| line.starts_with("new")), "{lines:?}");
    fs::remove_file(world.plugins.join("p.lua")).unwrap();
    world.until(|world| world.host.list().is_empty()).await;
    soon(async {
        while world.host.lua_usage().machines > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_version_leaves_the_timers_alone() {
    let old = "hygge.every('1s', function() hygge.log('info', 'old') end)";
    let (world, _) = lines_of(old, 1).await;
    world.write("p.lua", "hygge.every('1s', function() hygge.log('info', 'new') end) error('late')");
    world.until_failed("p").await;
    assert_eq!(logged(&world, async {}, 1).await, ["old"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_registrations_start_timers_too() {
    let cache = tempfile::TempDir::new().unwrap();
    let script = "count = 0 hygge.every('1s', function() count = count + 1 hygge.log('info', 'run ' .. count) end)";
    let (plugins, kept) = (cache.path().join("plugins"), cache.path().join("registrations"));
    write(&plugins.join("p.lua"), script);
    for _ in 0..2 {
        let cache = RegistrationCache { dir: kept.clone(), build: "test".to_owned() };
        let world = TestPlugins::with(&[], |options| {
            options.dirs[0].path = plugins.clone();
            options.registrations = Some(cache);
            options.release_after = Some(std::time::Duration::from_millis(1));
        })
        .await;
        // The Lua state is not released between two runs.
        assert_eq!(logged(&world, async {}, 2).await, ["run 1", "run 2"]);
        world.host.stop().await;
    }
    assert_eq!(fs::read_dir(kept).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_has_no_session_and_may_do_nothing_that_nobody_allowed() {
    let (_world, lines) = lines_of(
        "hygge.every('1s', function()
           hygge.log('info', tostring(hygge.session.id))
           local ran, result = pcall(hygge.exec, 'touch', {'x'})
           hygge.log('info', tostring(ran and result.code == 0))
           hygge.log('info', tostring(pcall(hygge.fs.write, '/tmp/x', 'y')))
           hygge.log('info', tostring(pcall(hygge.fs.read, hygge.plugin.dir .. '/p.lua')))
         end, {immediately = true})",
        4,
    )
    .await;
    assert_eq!(lines, ["", "false", "false", "true"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named() {
    for (script, words) in [
        ("hygge.every('500ms', print)", "hygge.every: argument 1 'interval': expected at least one second"),
        ("hygge.every('1s')", "argument 2 'function': expected a function"),
        ("hygge.every('1s', print, {name = ''})", "field 'name': expected 1 to 64 bytes"),
        ("for i = 1, 17 do hygge.every('1h', print) end", "a plugin may have at most 16 timers"),
    ] {
        let world = TestPlugins::new(&[("p.lua", script)]).await;
        let message = world.plugin("p").error.unwrap().message;
        assert!(message.contains(words), "{script}: {message}");
    }
    let world =
        TestPlugins::of("hygge.register_tool{name = 't', execute = function() hygge.every('1s', print) end}").await;
    let late = world.call("t", json!({})).await.text();
    assert!(late.contains("hygge.every: can only be called while the plugin loads"), "{late}");
    let script = world.root.path().join("checked.lua");
    write(&script, "hygge.every('1s', 1):stop() hygge.every('2m', print, {name = 'poll'})");
    let report = check(&script, StandaloneOptions::default()).await.unwrap();
    assert_eq!((report.problems.len(), report.timers), (1, vec!["poll every 120s".to_owned()]));
}
