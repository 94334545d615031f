//! Tables whose content the next version of a plugin takes over: `hygge.state`.

use std::fs;

use serde_json::json;
use toold_engine::events::EventSelection;
use toold_lua::plugin::registration_cache::RegistrationCache;
use toold_proto::event::EventBody;

use crate::world::{TestPlugins, soon};

/// A tool that counts in a table, with `before` in front.
fn counter(version: &str, before: &str) -> String {
    format!(
        "{before}
         local state = hygge.state{{count = 0, v = '{version}', {version} = '{version}'}}
         local of_version = 0
         hygge.register_tool{{name = 't', description = '{version}', execute = function()
           state.count = state.count + 1
           state[state.count] = 'x'
           state.deep = state.deep or {{}}
           state.deep[state.count % 3 == 0] = {{'\\255'}}
           of_version = of_version + 1
           local keys = {{}}
           for key in pairs(state) do keys[#keys + 1] = type(key) == 'string' and key or nil end
           table.sort(keys)
           return '{version} ' .. state.count .. ' ' .. of_version .. ' ' .. #state .. ' ' .. table.concat(keys, ',') end}}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_version_continues_with_the_content() {
    // The second script is not run again for the first call; the first one is.
    for before in ["", "print('loads')"] {
        let world = TestPlugins::of(&counter("a", before)).await;
        assert_eq!(world.text("t", json!({})).await, "a 1 1 1 a,count,deep,v");
        assert_eq!(world.text("t", json!({})).await, "a 2 2 2 a,count,deep,v");
        world.write("p.lua", &counter("b", before));
        world.until_described("t", "b").await;
        assert_eq!(world.text("t", json!({})).await, "b 3 1 3 a,b,count,deep,v");
        // Also through versions that nobody calls.
        for version in ["c", "d", "e"] {
            world.write("p.lua", &counter(version, before));
            world.until_described("t", version).await;
        }
        assert_eq!(world.text("t", json!({})).await, "e 4 1 4 a,b,count,deep,e,v");
        world.host.reload(Some("p")).await.unwrap();
        assert_eq!(world.text("t", json!({})).await, "e 5 1 5 a,b,count,deep,e,v");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_does_not_load_leaves_the_content_alone() {
    let world = TestPlugins::of(&counter("a", "")).await;
    world.text("t", json!({})).await;
    world.write("p.lua", &(counter("b", "") + "\nerror('late')"));
    world.until_failed("p").await;
    assert_eq!(world.text("t", json!({})).await, "a 2 2 2 a,count,deep,v");
    world.write("p.lua", &counter("c", ""));
    world.until_described("t", "c").await;
    assert!(world.text("t", json!({})).await.starts_with("c 3 1 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_was_removed_begins_anew() {
    let world = TestPlugins::of(&counter("a", "")).await;
    world.text("t", json!({})).await;
    fs::remove_file(world.plugins.join("p.lua")).unwrap();
    world.until(|world| world.host.list().is_empty()).await;
    world.write("p.lua", &counter("a", ""));
    world.until_described("t", "a").await;
    assert!(world.text("t", json!({})).await.starts_with("a 1 1 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_flight_change_the_content_until_the_next_version_is_called() {
    let script = |version: &str| {
        format!(
            "local state = hygge.state{{seen = ''}}
             hygge.register_tool{{name = 'wait', description = '{version}', parallelizable = true, execute = function(ctx)
               state.seen = state.seen .. 'begun '
               while hygge.call_tool('still').content == 'yes' do hygge.sleep(1) end
               state.seen = state.seen .. 'ended '
               return state.seen end}}
             hygge.register_tool{{name = 'seen', parallelizable = true, execute = function() return state.seen end}}"
        )
    };
    let still = |answer: &str| {
        format!(
            "hygge.register_tool{{name = 'still', description = '{answer}', parallelizable = true, execute = function() return '{answer}' end}}"
        )
    };
    for called_early in [false, true] {
        let world = TestPlugins::new(&[("p.lua", &script("old")), ("s.lua", &still("yes"))]).await;
        let change = async {
            world.until(|world| world.engine.counts.read().started > 1).await;
            world.write("p.lua", &script("new"));
            world.until_described("wait", "new").await;
            if called_early {
                assert_eq!(world.text("seen", json!({})).await, "begun ");
            }
            world.write("s.lua", &still("no"));
            world.until_described("still", "no").await;
        };
        let (answer, ()) = tokio::join!(world.text("wait", json!({})), change);
        assert_eq!(answer, "begun ended ");
        let expected = if called_early { "begun " } else { "begun ended " };
        assert_eq!(world.text("seen", json!({})).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_data_is_carried_over() {
    let script = |version: &str| {
        format!(
            "local state, other = hygge.state('jobs', {{n = 1}}), hygge.state('other')
             hygge.register_tool{{name = 't', description = '{version}', execute = function(ctx, input)
               other.n = (other.n or 0) + 1
               if input.change then state.n = 2 state.list = {{a = {{print}}}} end
               return state.n .. ' ' .. other.n end}}"
        )
    };
    let world = TestPlugins::of(&script("a")).await;
    assert_eq!(world.text("t", json!({"change": true})).await, "2 1");
    let mut events = world.engine.events.subscribe(EventSelection::NoCalls, None).receiver;
    world.write("p.lua", &script("b"));
    world.until_described("t", "b").await;
    assert_eq!(world.text("t", json!({})).await, "1 2");
    let said = loop {
        if let EventBody::Log { message, .. } = &soon(events.recv()).await.unwrap().body {
            break message.clone();
        }
    };
    assert_eq!(said, "hygge.state jobs is not carried over: a function cannot be kept (at list.a.1)");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named() {
    for (script, words) in [
        ("hygge.state{f = print}", "hygge.state: argument 1 'initial': a function cannot be kept (at f)"),
        ("hygge.state('x', {[{}] = 1})", "argument 2 'initial': a table cannot be kept as a key"),
        ("local t = {} t.t = t hygge.state(t)", "it contains itself, or nests deeper than 100 levels"),
        ("hygge.state{s = ('x'):rep(2e6)}", "the tables of hygge.state hold more than 1 MiB"),
        ("hygge.state() hygge.state{}", "this plugin has a table without a name already"),
        ("hygge.state('x') hygge.state('x')", "this plugin has a table named x already"),
        ("hygge.state('x', 1)", "argument 2 'initial': expected a table, got the number 1"),
        ("for i = 1, 17 do hygge.state('x' .. i) end", "a plugin may have at most 16 tables"),
    ] {
        let world = TestPlugins::new(&[("p.lua", script)]).await;
        let message = world.plugin("p").error.unwrap().message;
        assert!(message.contains(words), "{script}: {message}");
    }
    let world = TestPlugins::of("hygge.register_tool{name = 't', execute = function() hygge.state() end}").await;
    let late = world.call("t", json!({})).await.text();
    assert!(late.contains("hygge.state: can only be called while the plugin loads"), "{late}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_calls_share_the_table() {
    let world = TestPlugins::with(
        &[(
            "p.lua",
            "local state = hygge.state{n = 0}
             hygge.register_tool{name = 't', parallelizable = true, execute = function()
               state.n = state.n + 1 hygge.sleep(5) return state.n end}",
        )],
        |options| options.lua_states = 4,
    )
    .await;
    let calls = (0..20).map(|_| world.call("t", json!({})));
    futures_util::future::join_all(calls).await;
    assert_eq!(world.text("t", json!({})).await, "21");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_memory_keeps_the_content() {
    let world = TestPlugins::of(
        "local state = hygge.state{n = 0}
         hygge.register_tool{name = 'hoard', timeout = 5000, execute = function()
           state.n = state.n + 1 keep = {} for i = 1, 1e9 do keep[i] = table.create(1000, i) end end}
         hygge.register_tool{name = 't', execute = function() return tostring(keep) .. ' ' .. state.n end}",
    )
    .await;
    assert!(world.call("hoard", json!({})).await.is_error);
    assert_eq!(world.text("t", json!({})).await, "nil 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_registrations_and_released_states_keep_it_too() {
    let cache = tempfile::TempDir::new().unwrap();
    let cache = RegistrationCache { dir: cache.path().to_owned(), build: "test".to_owned() };
    let world = TestPlugins::with(&[("p.lua", &counter("a", "")), ("q.lua", "print(1)")], |options| {
        options.registrations = Some(cache);
        options.release_after = Some(std::time::Duration::from_millis(1));
    })
    .await;
    for n in 1..4 {
        assert!(world.text("t", json!({})).await.starts_with(&format!("a {n} 1 ")));
        // That of `q` stays.
        while world.host.lua_usage().machines > 1 {
            tokio::task::yield_now().await;
        }
    }
}
