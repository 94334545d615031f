//! Values between a plugin and the rest: bytes, lists, defaults, the order of members, large files, secrets, names.

use std::sync::Arc;

use futures_util::future::join;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;
use toold_engine::hooks::HookEvent;
use toold_engine::offers::render;
use toold_engine::tool_settings::{ToolPattern, ToolRename, ToolSettings};
use toold_proto::hook::HookDecision;
use toold_proto::plugin::PluginStatus;
use toold_proto::tool::ToolName;

use crate::world::{TestPlugins, TestStore, soon};

fn tool(body: &str) -> String {
    format!("hygge.register_tool{{name = 't', execute = function(ctx, input)\n{body}\nend}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_get_and_give_what_hygge_s_do() {
    let world = TestPlugins::of(
        "hygge.register_hook('post_tool', {name = 'seen', tools = 't'}, function(e)
           return {decision = 'modify', modified_tool_result = {content = e.hook_name .. ' ' .. e.tool_input.x .. '[' .. e.mode_name .. ']'}}
         end)
         hygge.register_hook('post_tool', {tools = 't', priority = 1}, function() return {modified_tool_result = {content = 'lost'}} end)
         hygge.register_hook('pre_message', {name = 'empty'}, function(e) return {decision = 'modify', modified_message = ''} end)
         hygge.register_hook('pre_message', function(e) return {modified_message = 'lost', system_prompt_append = e.hook_name} end)
         hygge.register_hook('pre_tool', {mode = 'async'}, function() hygge.notify('ran') end)
         hygge.register_tool{name = 't', execute = function(_, input) return input.x end}",
    )
    .await;
    assert_eq!(world.text("t", json!({"x": 5})).await, "post_tool 5[]");
    let tasks = TaskTracker::new();
    let action = world.engine.hooks.message(HookEvent::PreMessage, &world.session, json!("hi"), &tasks).await;
    assert_eq!((action.decision, action.modified_message), (HookDecision::Allow, None));
    assert_eq!(action.system_prompt_append.as_deref(), Some("pre_message"));
    let skipped = world.logs().into_iter().any(|line| line.contains("never runs"));
    assert!(skipped && !world.engine.hooks.snapshot().iter().any(|hook| hook.spec().asynchronous));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_stay_as_they_are() {
    let world = TestPlugins::with(
        &[(
            "p.lua",
            &tool(
                "local raw = '\\0\\255\\137PNG'
                 local result = hygge.exec('cat', {}, {stdin = raw})
                 local pieces = {}
                 hygge.exec('printf', {[[\\303\\251\\377]]}, {on_output = function(_, piece) pieces[#pieces + 1] = piece end})
                 hygge.store.set('k', {deep = {raw}, text = 'x'})
                 local kept = hygge.store.get('k')
                 local popen = io.popen('cat /dev/stdin </dev/null; printf \"\\\\377\"'):read('*a')
                 return tostring(result.stdout == raw) .. ' ' .. table.concat(pieces):byte(3) .. ' '
                   .. tostring(kept.deep[1] == raw) .. kept.text .. ' ' .. popen:byte(1)",
            ),
        )],
        |options| options.store = Some(Arc::<TestStore>::default()),
    )
    .await;
    world.allow_all();
    assert_eq!(world.text("t", json!({})).await, "true 255 truex 255");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_take_bytes_and_refuse_what_is_not_base64() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 'good', execute = function(ctx)
           return {content = {ctx.image{bytes = '\\137PNG'}, {type = 'image', bytes = '\\255', mime_type = 'image/png'}, 'text\\255'}} end}
         hygge.register_tool{name = 'bad', execute = function() return {content = {{type = 'image', data = '\\137PNG', mime_type = 'image/png'}}} end}",
    )
    .await;
    let good = serde_json::to_value(world.call("good", json!({})).await.content).unwrap();
    assert_eq!(
        (&good[0]["data"], &good[1]["data"], &good[2]["text"]),
        (&json!("iVBORw=="), &json!("/w=="), &json!("text\u{fffd}"))
    );
    let bad = world.call("bad", json!({})).await;
    assert!(bad.is_error && bad.text().contains("content[1]") && bad.text().contains("not Base64"), "{}", bad.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_are_there_and_empty_tables_are_lists_where_the_schema_has_one() {
    let world = TestPlugins::of(
        "local list = {type = 'object', properties = {items = {type = 'array'}, n = {type = 'integer', default = 7}}}
         hygge.register_tool{name = 'inner', input_schema = list, execute = function(_, input)
           return hygge.json.encode(input.items) .. input.n end}
         hygge.register_tool{name = 'outer', parallelizable = true, execute = function() return hygge.call_tool('inner', {items = {}}).content end}
         hygge.register_hook('pre_tool', {tools = 'inner'}, function(e)
           if e.tool_input.items then return {decision = 'modify', modified_tool_input = {items = {}}} end end)
         hygge.register_tool{name = 'made', output_schema = list, execute = function() return {content = 'x', structured = {items = {}}} end}",
    )
    .await;
    assert_eq!(world.text("outer", json!({})).await, "[]7");
    assert_eq!(world.text("inner", json!({"items": [1]})).await, "[]7");
    assert_eq!(world.call("made", json!({})).await.structured, Some(json!({"items": []})));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_files_are_read_in_pieces() {
    let world = TestPlugins::of(&tool(
        "local count, last = 0
         for line in hygge.fs.lines('big') do count, last = count + 1, line end
         local file = io.open('big')
         local first = file:read('*l')
         local lines = 0
         for _ in file:lines() do lines = lines + 1 end
         return count .. ' ' .. last .. ' ' .. first .. ' ' .. lines .. ' ' .. #hygge.fs.read_at('big', 100, 10)",
    ))
    .await;
    let line = "x".repeat(1_000_000);
    std::fs::write(world.work().join("big"), format!("a\n{}end", format!("{line}\n").repeat(18))).unwrap();
    assert_eq!(world.text("t", json!({})).await, "20 end a 19 10");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_needs_a_declaration_and_a_grant() {
    let world = TestPlugins::new(&[("p.lua", &tool("return hygge.secret('TOKEN')"))]).await;
    world.allow_all();
    let undeclared = world.call("t", json!({})).await;
    assert!(undeclared.is_error && undeclared.text().contains("secrets = [\"TOKEN\"]"), "{}", undeclared.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_or_renamed_built_in_leaves_its_name() {
    let world = TestPlugins::of("hygge.register_tool{name = 'mine', execute = function() return 'plugin' end}").await;
    let name = |text: &str| ToolName::parse(text).unwrap();
    let builtin: Arc<dyn toold_engine::callable::Callable> = Arc::new(toold_test_kit::SampleTool::new("taken"));
    let key = toold_engine::registry::SourceKey {
        kind: toold_proto::tool::SourceKind::Builtin,
        name: "toold".into(),
        scope: toold_engine::registry::SourceScope::Global,
    };
    world.engine.registry.put(key, toold_engine::tool::Origin::Builtin, vec![builtin]).unwrap();
    world.write("q.lua", "hygge.register_tool{name = 'taken', execute = function() return 'plugin' end}");
    let failed = world.until_failed("q").await;
    let words = failed.error.unwrap().message;
    assert!(words.contains("[tools.rename]") && words.contains("override = true"), "{words}");
    let loaded =
        |world: &TestPlugins| world.host.list().iter().any(|p| p.name == "q" && p.status == PluginStatus::Loaded);
    let disabled = vec![ToolPattern::new("taken", "config.toml:1").unwrap()];
    world.engine.registry.set_tool_settings(ToolSettings { disabled, ..ToolSettings::default() });
    world.until(loaded).await;
    assert_eq!(world.text("taken", json!({})).await, "plugin");
    let rename = ToolRename { to: name("other"), origin: "config.toml:1".into() };
    let renamed = [(name("taken"), rename)].into();
    world.engine.registry.set_tool_settings(ToolSettings { renamed, ..ToolSettings::default() });
    assert_eq!(world.text("taken", json!({})).await, "plugin");
    assert!(world.engine.registry.snapshot().global().find("other").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_sub_agents_are_prompts_too() {
    let world = TestPlugins::of(
        "hygge.register_command{name = 'wave', description = 'Waves', execute = function(_, input) return {message = 'waving ' .. input} end}
         hygge.register_subagent{name = 'host', description = 'Receives', system_prompt = 'You receive guests.'}",
    )
    .await;
    let text = async |name: &str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap();
        let rendered = render(&world.engine, name, arguments, world.call_of("", json!({}))).await.unwrap();
        rendered.messages[0].content.as_text().unwrap().to_owned()
    };
    assert_eq!(text("wave", json!({"input": "to you"})).await, "waving to you");
    assert_eq!(text("host", json!({"task": "Open the door."})).await, "You receive guests.\n\nOpen the door.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_another_session_does_not_wait_for_one_that_waits() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 'waits', execute = function() while not done do hygge.sleep(1) end return 'saw it' end}
         hygge.register_tool{name = 'ends', execute = function() done = true return 'done' end}",
    )
    .await;
    let mut other = world.call_of("ends", json!({}));
    other.session = world.another_session();
    let both = join(world.call("waits", json!({})), world.execute(other));
    let (waited, ended) = soon(both).await;
    assert_eq!((waited.text().as_str(), ended.unwrap().text().as_str()), ("saw it", "done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_whose_plugin_was_deleted_is_gone_at_once() {
    let world = TestPlugins::of("hygge.register_tool{name = 'x', execute = function() return 'x' end}").await;
    assert_eq!(world.text("x", json!({})).await, "x");
    std::fs::remove_file(world.plugins.join("p.lua")).unwrap();
    let gone = world.execute(world.call_of("x", json!({}))).await;
    assert!(gone.is_err() || gone.unwrap().is_error);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_of_schemas_and_folders_say_what_is_meant() {
    let world = TestPlugins::new(&[
        (
            "s.lua",
            "hygge.register_tool{name = 's', input_schema = {properties = {n = {type = 'int'}}}, execute = print}",
        ),
        ("MyPlugin/plugin.lua", ""),
        ("my.plugin/plugin.lua", ""),
        ("init/init.lua", ""),
    ])
    .await;
    let error = |name: &str| world.plugin(name).error.unwrap().message;
    assert!(error("s").contains("integer is meant"), "{}", error("s"));
    assert!(error("MyPlugin").contains("myplugin") && error("my.plugin").contains("my-plugin"));
    assert!(error("init").contains("entrypoint = \"init.lua\""), "{}", error("init"));
}

/// Each capability, by all ways to it: without it the way is closed, and the error names it.
#[tokio::test(flavor = "multi_thread")]
async fn declared_capabilities_hold_on_every_way() {
    let ways = [
        ("exec", "hygge.exec('true')"),
        ("exec", "io.popen('true')"),
        ("exec", "os.execute('true')"),
        ("network", "hygge.http.get('http://127.0.0.1:1/')"),
        ("network", "hygge.http.post('http://127.0.0.1:1/', 'x')"),
        ("network", "hygge.http.request{url = 'http://127.0.0.1:1/'}"),
        ("fs_read", "hygge.fs.read('a')"),
        ("fs_read", "hygge.fs.read_at('a')"),
        ("fs_read", "hygge.fs.open('a')"),
        ("fs_read", "hygge.fs.lines('a')"),
        ("fs_read", "hygge.fs.list('.')"),
        ("fs_read", "hygge.fs.stat('a')"),
        ("fs_read", "hygge.fs.exists('a')"),
        ("fs_read", "hygge.fs.glob('*')"),
        ("fs_read", "assert(io.open('a'))"),
        ("fs_read", "io.lines('a')"),
        ("fs_write", "hygge.fs.write('a', 'b')"),
        ("fs_write", "hygge.fs.append('a', 'b')"),
        ("fs_write", "hygge.fs.mkdir('a')"),
        ("fs_write", "hygge.fs.remove('a')"),
        ("fs_write", "assert(io.open('a', 'w'))"),
        ("fs_write", "assert(os.remove('a'))"),
        ("fs_write", "assert(os.rename('a', 'b'))"),
        ("messages", "hygge.send_message('s', 'user', 'x')"),
    ];
    let mut script = String::new();
    for (number, (_, way)) in ways.iter().enumerate() {
        script += &format!("hygge.register_tool{{name = 't{number}', execute = function() {way} return 'open' end}}\n");
    }
    let manifest = "api = \"toold\"\nname = \"p\"\n[capabilities]\ntools = true\n";
    let world = TestPlugins::new(&[("p/plugin.toml", manifest), ("p/plugin.lua", &script)]).await;
    world.allow_all();
    for (number, (capability, way)) in ways.iter().enumerate() {
        let result = world.call(&format!("t{number}"), json!({})).await;
        assert!(result.is_error && result.text().contains(capability), "{way}: {}", result.text());
    }
}
