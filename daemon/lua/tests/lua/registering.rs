//! Registrations that `register_tool` and its siblings accept and refuse.

use serde_json::json;
use toold_proto::plugin::PluginStatus;

use crate::world::TestPlugins;

/// Loads a plugin that must fail, and gives its error.
async fn error_of(script: &str) -> toold_proto::plugin::PluginError {
    let world = TestPlugins::new(&[("p.lua", script)]).await;
    let plugin = world.plugin("p");
    assert_eq!(plugin.status, PluginStatus::Failed, "{script}");
    assert_eq!(world.tools(), [""; 0], "a failed load leaves nothing behind");
    plugin.error.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_arrives() {
    let world = TestPlugins::of(
        "hygge.register_tool{
           name = 'weather', label = 'Weather', description = 'Tells the weather',
           input_schema = {type = 'object', properties = {city = {type = 'string', enum = {}}}, required = {}},
           output_schema = {type = 'object'}, parallelizable = true, timeout = '30s', cacheable = true, cache_ttl = '2m',
           annotations = {read_only = true, idempotent = true}, permission = false,
           execute = function() end}",
    )
    .await;
    let snapshot = world.engine.registry.snapshot();
    let tool = serde_json::to_value(snapshot.global().find("weather").unwrap().spec().describe()).unwrap();
    let path = world.plugins.join("p.lua").display().to_string();
    assert_eq!(
        tool,
        json!({
            "name": "weather", "label": "Weather", "description": "Tells the weather",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string", "enum": []}}, "required": []},
            "output_schema": {"type": "object"},
            "source": {"kind": "plugin", "name": "p", "path": path},
            "parallelizable": true, "permissions": [], "cacheable": true, "timeout_ms": 30_000,
            "annotations": {"read_only": true, "idempotent": true}
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_may_have_a_grammar_and_need_not_have_hints() {
    let world = TestPlugins::of(
        "hygge.register_tool{
           name = 'sum', grammar = {syntax = 'regex', definition = '[0-9+]+'}, permission = false,
           input_schema = {properties = {expression = {type = 'string'}}, required = {'expression'}},
           execute = function() end}",
    )
    .await;
    let snapshot = world.engine.registry.snapshot();
    let tool = serde_json::to_value(snapshot.global().find("sum").unwrap().spec().describe()).unwrap();
    assert_eq!(tool["grammar"], json!({"syntax": "regex", "definition": "[0-9+]+"}));
    assert_eq!(tool["annotations"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_the_field_and_the_expected_type() {
    let with = |field: &str| format!("\nhygge.register_tool{{name = 't', execute = function() end, {field}}}");
    for (script, words) in [
        ("\nhygge.register_tool('t')".to_owned(), "argument 1 'spec': expected a table, got \"t\""),
        ("\nhygge.register_tool{execute = print}".to_owned(), "field 'name': expected a name of the form [a-z]"),
        ("\nhygge.register_tool{name = 'Bad-Name', execute = print}".to_owned(), "got \"Bad-Name\""),
        ("\nhygge.register_tool{name = 't'}".to_owned(), "field 'execute': expected a function, got nothing"),
        ("\nhygge.register_tool{name = 't', execut = print}".to_owned(), "got nothing; there is a field 'execut'"),
        ("\nhygge.register_command{nam = 't', execute = print}".to_owned(), "got nothing; there is a field 'nam'"),
        (with("description = {}"), "field 'description': expected a string, got a table"),
        (with("input_schema = 'x'"), "field 'input_schema': expected a table with a JSON Schema"),
        (with("input_schema = {type = 'array'}"), "field 'input_schema': an input schema must describe an object"),
        (with("input_schema = {properties = {a = {type = 'strng'}}}"), "field 'input_schema': at /properties/a/type"),
        (with("timeout = 'soon'"), "field 'timeout': expected a duration such as \"30s\""),
        (with("permission = true"), "field 'permission': expected false or a function"),
        (with("grammar = {syntax = 'bnf', definition = 'x'}"), "field 'syntax': expected lark or regex, got bnf"),
        (with("grammar = {syntax = 'lark', definition = 'x'}"), "field 'grammar': needs an input_schema with one"),
        (with("annotations = {read_only = 1}"), "field 'read_only': expected true or false, got the number 1"),
        ("\nhygge.register_hook('pre_tol', print)".to_owned(), "argument 1 'event': expected pre_tool"),
        ("\nhygge.register_hook('pre_tool', {mode = 'x'}, print)".to_owned(), "field 'mode': expected \"sync\""),
    ] {
        let error = error_of(&script).await;
        assert!(error.message.contains(words), "{script}: {}", error.message);
        assert_eq!(error.line, Some(2), "{script}");
        assert_eq!(error.source_line.as_deref(), script.lines().nth(1), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_tool_of_one_name_raises_and_can_be_caught() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 't', execute = function() return 1 end}
         local ok, message = pcall(hygge.register_tool, {name = 't', execute = function() return 2 end})
         hygge.register_tool{name = 'said', execute = function() return tostring(ok) .. ' ' .. message end}",
    )
    .await;
    let said = world.text("said", json!({})).await;
    assert!(said.contains("false") && said.contains("registered the tool t already"), "{said}");
    assert_eq!(world.text("t", json!({})).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_another_plugin_keeps_its_name() {
    let world =
        TestPlugins::new(&[("a.lua", "hygge.register_tool{name = 't', execute = function() return 'a' end}")]).await;
    world.write("b.lua", "hygge.register_tool{name = 't', execute = function() return 'b' end}");
    let failed = world.until_failed("b").await;
    let message = failed.error.unwrap().message;
    assert!(message.contains("taken by plugin a"), "{message}");
    assert_eq!(world.text("t", json!({})).await, "a");
    // The name is free, and the plugin that was refused gets it.
    std::fs::remove_file(world.plugins.join("a.lua")).unwrap();
    world.until(|world| world.plugin("b").status == PluginStatus::Loaded).await;
    assert_eq!(world.text("t", json!({})).await, "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_load_registers_nothing() {
    let error = error_of("hygge.register_tool{name = 't', execute = print}\nlocal x = nil\nx.y = 1\n").await;
    assert_eq!(error.line, Some(3));
    assert_eq!(error.source_line.as_deref(), Some("x.y = 1"));
    let syntax = error_of("local a = 1\nlocal b = = 2\n").await;
    assert_eq!((syntax.line, syntax.source_line.as_deref()), (Some(2), Some("local b = = 2")));
    let goto_ = error_of("for i = 1, 2 do\n  goto out\nend\n::out::\n").await;
    assert!(goto_.message.contains("goto") && goto_.line == Some(2), "{goto_:?}");
    let bytecode = error_of("\u{1b}Lua").await;
    assert!(bytecode.message.contains("bytecode") && bytecode.line == Some(1), "{bytecode:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_world_is_out_of_reach_while_a_plugin_loads() {
    let error = error_of("\nhygge.call_tool('t')").await;
    assert!(error.message.contains("can only be called from a handler"), "{}", error.message);
    let world = TestPlugins::of(
        "hygge.register_tool{name = 't', execute = function() hygge.register_tool{name = 'u', execute = print} end}",
    )
    .await;
    let late = world.call("t", json!({})).await;
    assert!(late.text().contains("can only be called while the plugin loads"), "{}", late.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_have_manifests() {
    let world = TestPlugins::new(&[
        ("git/plugin.toml", "name = 'git-tools'\nversion = '1.2'\ndescription = 'Git'\nentrypoint = 'main.lua'\n"),
        (
            "git/main.lua",
            "hygge.register_tool{name = 'g', execute = function() return hygge.plugin.version .. hygge.plugin.dir end}",
        ),
        ("plain/plugin.lua", "hygge.register_tool{name = 'p', execute = function() return hygge.plugin.name end}"),
        ("broken/plugin.toml", "name = 'broken'\nversion = 1 2\n"),
        ("broken/plugin.lua", ""),
        ("out/plugin.toml", "entrypoint = '../plain/plugin.lua'"),
        ("held/plugin.toml", "api = 'toold'\n[capabilities]\nhooks = true\n"),
        ("held/plugin.lua", "hygge.register_tool{name = 'h', execute = print}"),
        ("old/plugin.toml", "[capabilities]\nshell = ['git']\n"),
        ("old/plugin.lua", "hygge.register_tool{name = 'o', execute = print}"),
        ("Bad Name.lua", ""),
        ("notes.txt", "not a plugin"),
        ("p_test.lua", "error('tests are not loaded')"),
        ("data/readme.md", "no plugin either"),
    ])
    .await;
    assert_eq!(world.tools(), ["g", "o", "p"]);
    let dir = world.plugins.join("git").display().to_string();
    assert_eq!(world.text("g", json!({})).await, format!("1.2{dir}"));
    assert_eq!(world.plugin("git-tools").description.as_deref(), Some("Git"));
    let broken = world.plugin("broken").error.unwrap();
    assert_eq!((broken.line, broken.source_line.as_deref()), (Some(2), Some("version = 1 2")));
    assert!(world.plugin("out").error.unwrap().message.contains("is outside the plugin's folder"));
    assert!(world.plugin("held").error.unwrap().message.contains("capability tools"));
    assert!(world.plugin("Bad Name").error.unwrap().message.contains("[a-z][a-z0-9_-]*"));
    assert_eq!(world.host.list().len(), 7);
}
