//! Failures of plugins' functions, and warnings, as their author sees them.

use serde_json::{Map, json};
use toold_engine::events::EventSelection;
use toold_engine::execute::execute_tool;
use toold_engine::hooks::HookEvent;
use toold_engine::offers::{read, render};
use toold_proto::event::EventBody;

use crate::world::TestPlugins;

/// The failures that were reported, as `handler: message`, and their tracebacks.
fn failures(world: &TestPlugins) -> Vec<(String, Option<String>)> {
    let held = world.engine.events.subscribe_from_start(EventSelection::NoCalls).replay;
    let failures = held.iter().filter_map(|event| match &event.body {
        EventBody::PluginHandlerFailed { handler, error, .. } => {
            Some((format!("{handler}: {}", error.message), error.traceback.clone()))
        }
        _ => None,
    });
    failures.collect()
}

#[track_caller]
fn check_last(world: &TestPlugins, expected: &str) {
    let failures = failures(world);
    let (last, _) = failures.last().expect("a failure is reported");
    assert!(last.contains(expected), "{failures:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_calls_of_all_kinds_are_reported() {
    let world = TestPlugins::of(
        "local function fail() error('boom') end
hygge.register_tool{name = 'broken', execute = function() fail() end}
hygge.register_tool{name = 'slow', timeout = '1s', execute = function() hygge.sleep('1h') end}
hygge.register_tool{name = 'odd', execute = function() return {content = 'x', is_error = 'yes'} end}
hygge.register_tool{name = 'says_no', execute = function() return {content = 'no', is_error = true} end}
hygge.register_tool{name = 'secret', permission = function() fail() end, execute = fail}
hygge.register_command{name = 'hi', execute = fail}
hygge.register_resource{uri = 'r://a', name = 'r', read = fail}
hygge.register_prompt{name = 'p', render = function() return print end}",
    )
    .await;
    world.call("says_no", json!({})).await;
    assert_eq!(failures(&world), [], "a tool that says that it failed has no fault");
    world.call("broken", json!({})).await;
    let (words, traceback) = failures(&world).pop().unwrap();
    assert_eq!(words, "tool broken: p.lua:1: boom");
    assert!(traceback.unwrap().contains("p.lua:2"), "the traceback shows who called");
    world.call("slow", json!({})).await;
    check_last(&world, "tool slow: ");
    world.call("odd", json!({})).await;
    check_last(&world, "tool odd: the result of odd is not valid: field 'is_error'");
    world.call("secret", json!({})).await;
    check_last(&world, "permission of secret: p.lua:1: boom");
    let command = world.host.commands()[0].tool.clone();
    execute_tool(&world.engine, command, world.call_of("hi", json!({"input": ""}))).await.unwrap();
    check_last(&world, "command hi: p.lua:1: boom");
    read(&world.engine, "r://a", world.call_of("", json!({}))).await.unwrap_err();
    check_last(&world, "resource r: p.lua:1: boom");
    render(&world.engine, "p", Map::new(), world.call_of("", json!({}))).await.unwrap_err();
    check_last(&world, "prompt p: the result of p is not valid");
    assert_eq!(failures(&world).len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_hooks_are_reported() {
    let world = TestPlugins::of(
        "hygge.register_hook('pre_tool', {name = 'raises', tools = 'a'}, function() error('boom') end)
hygge.register_hook('pre_tool', {name = 'waits', tools = 'b', timeout = '20ms'}, function() hygge.sleep('1h') end)
hygge.register_hook('pre_tool', {name = 'spins', tools = 'c', timeout = '20ms'}, function() while true do end end)
hygge.register_hook('pre_tool', {name = 'rambles', tools = 'd'}, function() return 'yes' end)
hygge.register_hook('pre_message', {name = 'message'}, function() error('boom') end)
for _, name in ipairs{'a', 'b', 'c', 'd'} do
  hygge.register_tool{name = name, execute = function() return 'ran' end}
end",
    )
    .await;
    let expected = [
        ("a", "hook raises: p.lua:1: boom"),
        ("b", "hook waits: "),
        ("c", "hook spins: "),
        ("d", "hook rambles: its answer is not valid: expected a table or nil, got \"yes\""),
    ];
    for (count, (tool, words)) in (1..).zip(expected) {
        assert_eq!(world.text(tool, json!({})).await, "ran");
        check_last(&world, words);
        assert_eq!(failures(&world).len(), count, "once each");
    }
    let (hooks, tasks) = (&world.engine.hooks, &world.engine.tasks);
    hooks.message(HookEvent::PreMessage, &world.session, json!("hello"), tasks).await;
    check_last(&world, "hook message: p.lua:5: boom");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_failing_calls_leaves_room_for_other_events() {
    let world =
        TestPlugins::of("hygge.register_tool{name = 't', parallelizable = true, execute = function() error('x') end}")
            .await;
    for _ in 0..100 {
        world.call("t", json!({})).await;
    }
    assert_eq!(failures(&world).len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_plugins_with_one_name_the_later_one_is_warned() {
    let script = "hygge.register_command{name = 'go', execute = print}
        hygge.register_subagent{name = 'helper', description = 'x', system_prompt = 'x'}
        hygge.register_resource{uri = 'r://a', name = 'r', read = print}
        hygge.register_prompt{name = 'plan', render = print}";
    let world = TestPlugins::new(&[("a.lua", script), ("b.lua", script)]).await;
    assert_eq!(world.plugin("a").warnings, Vec::<String>::new());
    let first = world.plugins.join("a.lua").display().to_string();
    let warning = |what: &str| {
        format!(
            "its {what} is not used: plugin a ({first}) has one of the same name and comes first; rename one of them"
        )
    };
    let expected: Vec<String> =
        ["command go", "sub-agent helper", "resource r://a", "prompt plan"].map(warning).to_vec();
    assert_eq!(world.plugin("b").warnings, expected);
    let logged = |world: &TestPlugins| -> Vec<String> {
        let held = world.engine.events.subscribe_from_start(EventSelection::NoCalls).replay;
        let logged = held.iter().filter_map(|event| match &event.body {
            EventBody::Log { plugin, level, message, .. } if plugin == "b" && level == "warn" => Some(message.clone()),
            _ => None,
        });
        logged.collect()
    };
    assert_eq!(logged(&world), expected);
    // Still so after the next change, and reported once.
    world.write("b.lua", &format!("{script}\nhygge.register_tool{{name = 'more', execute = print}}"));
    world.until(|world| world.plugin("b").tools == ["more"]).await;
    assert_eq!(world.plugin("b").warnings, expected);
    assert_eq!(logged(&world).len(), 4);
    std::fs::remove_file(world.plugins.join("a.lua")).unwrap();
    let has_command = |world: &TestPlugins| world.host.commands().first().is_some_and(|command| command.plugin == "b");
    world.until(|world| world.plugin("b").warnings.is_empty() && has_command(world)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_members_are_named_where_they_are_used() {
    let world = TestPlugins::of(
        "local h = hygge
hygge.register_tool{name = 'a', execute = function(ctx) ctx.progres('x') end}
hygge.register_tool{name = 'b', execute = function(ctx) hygge.fs.raed('x') end}
hygge.register_tool{name = 'c', execute = function(ctx)
  return hygge.htp.get('http://x')
end}
hygge.register_tool{name = 'd', execute = function(ctx) ctx:cancel() end}
hygge.register_tool{name = 'e', execute = function(ctx) h.slep(1) end}
hygge.register_tool{name = 'f', execute = function(ctx) local mine = nil mine() end}
hygge.register_tool{name = 'g', execute = function(ctx) return tostring(hygge.future) .. tostring(ctx.future) end}",
    )
    .await;
    for (tool, expected) in [
        ("a", "p.lua:2: ctx has no progres; progress was meant"),
        ("b", "p.lua:3: hygge.fs has no raed; read was meant"),
        ("c", "p.lua:5: hygge has no htp; http was meant"),
        ("d", "p.lua:7: ctx has no cancel; cancelled was meant"),
        ("e", "p.lua:8: h has no slep; sleep was meant"),
        ("f", "p.lua:9: attempt to call a nil value"),
        // Programs test for features.
        ("g", "nilnil"),
    ] {
        assert_eq!(world.call(tool, json!({})).await.text(), expected);
    }
    world.write("q.lua", "local x = 1\nhygge.register_tol{name = 'x'}");
    let error = world.until_failed("q").await.error.unwrap();
    assert_eq!(error.message, "q.lua:2: hygge has no register_tol; register_tool was meant");
    assert_eq!(error.source_line.as_deref(), Some("hygge.register_tol{name = 'x'}"));
}
