//! The behaviour of hygge's plugin host, as its own tests state it. `plugins/COMPATIBILITY.md` lists which test of ours
//! stands for which of hygge's.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;
use toold_engine::events::EventSelection;
use toold_engine::execute::execute_tool;
use toold_engine::hooks::HookEvent;
use toold_engine::session::Session;
use toold_proto::event::EventBody;
use toold_proto::hook::HookDecision;
use toold_proto::plugin::PluginStatus;
use toold_test_kit::new_session;

use crate::world::{TestPlugins, soon};

/// One of everything that a plugin can register.
const GREETER: &str = r#"
hygge.register_tool {
  name = "salute",
  description = "Salutes somebody",
  input_schema = { type = "object", properties = { name = { type = "string" } } },
  execute = function(ctx, input)
    return { content = "Good day, " .. (input and input.name or "all"), is_error = false }
  end,
}
hygge.register_hook("pre_tool", { mode = "sync", timeout = "2s" }, function(event)
  if event.tool_name == "barred" then return { decision = "deny", reason = "barred by the greeter" } end
  return { decision = "allow" }
end)
hygge.register_tool { name = "barred", description = "Never runs", execute = function() return { content = "ran" } end }
hygge.register_command {
  name = "wave",
  description = "Waves",
  execute = function(ctx, input) return { message = "waving: " .. input } end,
}
hygge.register_subagent {
  name = "host",
  description = "Receives guests",
  system_prompt = "You receive guests.",
  tools = { "read", "glob" },
}
"#;

async fn greeter() -> TestPlugins {
    TestPlugins::new(&[("greeter/plugin.lua", GREETER)]).await
}

fn schema(world: &TestPlugins, tool: &str) -> Value {
    let snapshot = world.engine.registry.snapshot();
    snapshot.global().find(tool).unwrap().spec().input.as_value().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_answers() {
    let world = greeter().await;
    assert_eq!(world.text("salute", json!({"name": "Ada"})).await, "Good day, Ada");
    assert_eq!(world.text("salute", json!({})).await, "Good day, all");
    assert_eq!(schema(&world, "salute")["properties"]["name"]["type"], "string");
    assert_eq!(schema(&world, "barred")["type"], "object", "a tool without a schema has one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_refuses_one_tool_and_lets_others_pass() {
    let world = greeter().await;
    let refused = world.call("barred", json!({})).await;
    assert!(refused.is_error && refused.text().contains("barred by the greeter"), "{}", refused.text());
    assert!(!world.call("salute", json!({})).await.is_error);
    let hooks = world.engine.hooks.snapshot();
    let spec = hooks[0].spec();
    assert_eq!((spec.event, spec.asynchronous, spec.timeout.as_secs()), (HookEvent::PreTool, false, 2));
    assert!(spec.name.contains("greeter") && spec.source.name == "greeter", "{spec:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_answers_with_its_message() {
    let world = greeter().await;
    let commands = world.host.commands();
    let command = &commands[0];
    assert_eq!((&*command.name, &*command.description, &*command.plugin), ("wave", "Waves", "greeter"));
    let call = world.call_of("wave", json!({"input": "to you"}));
    let answer = soon(execute_tool(&world.engine, command.tool.clone(), call)).await.unwrap();
    assert_eq!(answer.text(), "waving: to you");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_is_listed_and_needs_its_texts() {
    let world = greeter().await;
    let subagents = world.host.subagents();
    let host = &subagents[0];
    assert_eq!((&*host.name, &*host.description, &*host.plugin), ("host", "Receives guests", "greeter"));
    assert_eq!(host.tools.as_deref(), Some(&["read".to_owned(), "glob".to_owned()][..]));
    for (fields, missing) in [
        ("name = 'a', system_prompt = 'x'", "description"),
        ("name = 'a', description = '', system_prompt = 'x'", "description"),
        ("name = 'a', description = 'x'", "system_prompt"),
        ("description = 'x', system_prompt = 'x'", "name"),
    ] {
        let world = TestPlugins::new(&[("p.lua", &format!("hygge.register_subagent{{{fields}}}"))]).await;
        let error = world.plugin("p").error.expect(fields);
        assert!(error.message.contains(&format!("field '{missing}'")), "{}", error.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_a_tool_is_a_result() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 'fails', description = 'Fails', execute = function(ctx, input) error('on purpose') end}",
    )
    .await;
    let result = world.call("fails", json!({})).await;
    assert!(result.is_error && result.text().contains("on purpose"), "{}", result.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_calls_at_once_all_answer() {
    let world = greeter().await;
    let calls = (0..20).map(|_| world.call("salute", json!({"name": "all of you"})));
    for result in soon(join_all(calls)).await {
        assert_eq!((result.is_error, result.text().as_str()), (false, "Good day, all of you"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_fails_leaves_the_others_alone() {
    let world = TestPlugins::new(&[
        ("greeter/plugin.lua", GREETER),
        ("nameless/plugin.lua", "hygge.register_tool{description = 'No name', execute = function() end}"),
        ("unhooked/plugin.lua", "hygge.register_hook('pre_tool', 'no function')"),
        ("empty/plugin.toml", "name = 'empty'"),
        ("other/plugin.toml", "name = 'other'\nentrypoint = 'main.py'"),
        (
            "quiet/plugin.lua",
            "hygge.notify('ready', 'info') hygge.notify('look', 'warn')
          hygge.log('debug', 'started', {plugin = 'quiet'}) hygge.log('trace', 'no such level', {f = print})",
        ),
    ])
    .await;
    assert_eq!(world.text("salute", json!({})).await, "Good day, all");
    assert_eq!(world.plugin("quiet").error, None);
    for (name, words) in [
        ("nameless", "field 'name'"),
        ("unhooked", "argument 2 'opts'"),
        ("empty", "plugin.lua does not exist"),
        ("other", "main.py does not exist"),
    ] {
        let plugin = world.plugin(name);
        assert_eq!(plugin.status, PluginStatus::Failed);
        assert!(plugin.error.as_ref().unwrap().message.contains(words), "{plugin:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_reaches_its_session() {
    let world = TestPlugins::of(
        "hygge.send_message('nobody-yet', 'user', 'at load')
         hygge.send_message(hygge.session.id, 'user', 'to no session')
         hygge.register_tool{name = 'say', execute = function(ctx, input) hygge.send_message(input.to, 'user', 'hello from a plugin') end}",
    )
    .await;
    world.engine.sessions.open(Session::new(new_session("s", &world.session.cwd)));
    let mut events = world.engine.events.subscribe(EventSelection::All, None).receiver;
    assert!(!world.call("say", json!({"to": "s"})).await.is_error);
    let message = soon(async {
        loop {
            if let EventBody::Message { session_id, plugin, role, content } = events.recv().await.unwrap().body.clone()
            {
                return (session_id.to_string(), plugin, role, content);
            }
        }
    })
    .await;
    assert_eq!(message, ("s".into(), "p".into(), "user".into(), "hello from a plugin".into()));
    let unknown = world.call("say", json!({"to": "nobody"})).await;
    assert!(unknown.is_error && unknown.text().contains("there is no session nobody"), "{}", unknown.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_and_profile_are_there() {
    let read = "hygge.register_tool{name = 'read_it', execute = function() return hygge.config.key or 'nothing' end}
        hygge.register_tool{name = 'profile', execute = function() return {content = hygge.profile.dir} end}";
    let with = |profile: &'static str, tables: Value| {
        let read = read.to_owned();
        async move {
            TestPlugins::with(&[("p/plugin.lua", &read), ("p/plugin.toml", "name = 'configured'")], |options| {
                options.profile_dir = profile.into();
                options.config = serde_json::from_value(tables).unwrap();
            })
            .await
        }
    };
    let world = with("/some/profile", json!({"configured": {"key": "value"}})).await;
    assert_eq!(world.text("read_it", json!({})).await, "value");
    assert_eq!(world.text("profile", json!({})).await, "/some/profile");
    let world = with("", json!({})).await;
    assert_eq!(world.text("read_it", json!({})).await, "nothing");
    assert_eq!(world.text("profile", json!({})).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_read_or_made_up() {
    let world = TestPlugins::new(&[
        ("a/plugin.toml", "name = 'my-plugin'\nversion = '2.0.0'\ndescription = 'D'\nentrypoint = 'init.lua'\n[capabilities]\nhooks = true\n"),
        ("a/init.lua", "-- nothing"),
        ("single/plugin.lua", "-- nothing"),
        ("nameless/plugin.toml", "version = '1'"),
        ("nameless/plugin.lua", ""),
        ("digit/plugin.toml", "name = '123bad'"),
        ("digit/plugin.lua", ""),
        ("upper/plugin.toml", "name = 'UPPER'"),
        ("upper/plugin.lua", ""),
        ("blank/plugin.toml", "name = ''"),
        ("blank/plugin.lua", ""),
    ])
    .await;
    let named = world.plugin("my-plugin");
    assert_eq!((named.version.as_deref(), named.description.as_deref()), (Some("2.0.0"), Some("D")));
    assert_eq!(named.path, world.plugins.join("a").display().to_string());
    assert_eq!((world.plugin("single").error, world.plugin("single").version), (None, None));
    assert_eq!(world.plugin("nameless").version.as_deref(), Some("1"), "the folder gives the name");
    for name in ["digit", "upper", "blank"] {
        let plugin = world.plugin(name);
        assert!(
            plugin.error.as_ref().is_some_and(|error| error.message.contains("is not a plugin name")),
            "{plugin:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_loaded_again_and_goes_without_a_trace() {
    let world = greeter().await;
    assert_eq!(world.plugin("greeter").tools, ["salute", "barred"]);
    soon(world.host.reload(Some("greeter"))).await.unwrap();
    assert_eq!(world.tools(), ["barred", "salute"]);
    assert!(soon(world.host.reload(Some("nobody"))).await.unwrap_err().to_string().contains("no plugin nobody"));
    std::fs::remove_dir_all(world.plugins.join("greeter")).unwrap();
    world.until(|world| world.host.list().is_empty()).await;
    assert_eq!(world.tools(), [""; 0]);
    assert!(world.engine.hooks.is_empty());
    assert!(world.host.commands().is_empty() && world.host.subagents().is_empty());
    world.host.stop().await;
    world.host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_plugin_of_a_name_is_shadowed() {
    let manifest = "name = 'greeter'";
    let world = TestPlugins::new(&[
        ("one/plugin.lua", GREETER),
        ("one/plugin.toml", manifest),
        ("two/plugin.lua", "hygge.register_tool{name = 'second', execute = print}"),
        ("two/plugin.toml", manifest),
    ])
    .await;
    assert_eq!(world.tools(), ["barred", "salute"]);
    let list = world.host.list();
    let states: Vec<_> = list.iter().map(|plugin| plugin.status).collect();
    assert_eq!(states, [PluginStatus::Loaded, PluginStatus::Shadowed]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_argument_arrives() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 'kinds', description = 'Kinds', execute = function(ctx, input)
           local parts = {}
           for key, value in pairs(input or {}) do
             if type(value) == 'table' then value = value.key or table.concat(value, '+') end
             parts[#parts + 1] = key .. '=' .. tostring(value)
           end
           assert(ctx.input == input)
           return {content = table.concat(parts, ',')}
         end}",
    )
    .await;
    for (input, expected) in [
        (json!({"text": "hello"}), "text=hello"),
        (json!({"number": 42}), "number=42"),
        (json!({"flag": true}), "flag=true"),
        (json!({"list": [1, 2, 3]}), "list=1+2+3"),
        (json!({"nested": {"key": "value"}}), "nested=value"),
        (json!({"null": null}), ""),
        (json!({}), ""),
        (Value::Null, ""),
    ] {
        assert_eq!(world.text("kinds", input.clone()).await, expected, "{input}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_in_schemas_stay_lists() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 'full', description = 'F', execute = print, input_schema = {
           type = 'object', required = {'title', 'mode'}, additionalProperties = false,
           properties = {title = {type = 'string'}, mode = {type = 'string', enum = {'approve', 'comment'}}}}}
         hygge.register_tool{name = 'bare', description = 'B', execute = print, input_schema = {
           type = 'object', properties = {}, required = {}, additionalProperties = false}}",
    )
    .await;
    let full = schema(&world, "full");
    assert_eq!(full["required"], json!(["title", "mode"]));
    assert_eq!(full["properties"]["mode"]["enum"], json!(["approve", "comment"]));
    let bare = schema(&world, "bare");
    assert_eq!((&bare["required"], &bare["properties"]), (&json!([]), &json!({})));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_knows_its_folder_and_its_script() {
    let world = TestPlugins::new(&[(
        "p/plugin.lua",
        "hygge.register_tool{name = 'where', execute = function(ctx, input)
           local pwd = hygge.exec('pwd', {}, {dir = hygge.plugin.dir})
           return {content = hygge.plugin.dir .. '\\n' .. hygge.plugin.path .. '\\n' .. pwd.stdout}
         end}
         hygge.register_tool{name = 'echo', execute = function(ctx, input)
           return {content = hygge.exec('echo', {'hello from a program'}, {}).stdout}
         end}
         hygge.register_tool{name = 'refused', execute = function(ctx, input)
           local result = hygge.exec('touch', {'/no/such/place'}, {timeout = '1m30s'})
           return {content = result.code .. result.stdout .. type(result.stderr)}
         end}",
    )])
    .await;
    let refused = world.text("refused", json!({})).await;
    assert_eq!(refused, "1string", "a refusal is a result");
    world.allow_all();
    let folder = world.plugins.join("p").display().to_string();
    assert_eq!(world.text("where", json!({})).await, format!("{folder}\n{folder}/plugin.lua\n{folder}\n"));
    assert_eq!(world.text("echo", json!({})).await, "hello from a program\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn parallelizable_is_false_unless_it_is_true() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 'side_by_side', parallelizable = true, execute = print}
         hygge.register_tool{name = 'in_turn', execute = print}",
    )
    .await;
    let snapshot = world.engine.registry.snapshot();
    let parallelizable = |name: &str| snapshot.global().find(name).unwrap().spec().parallelizable;
    assert!(parallelizable("side_by_side") && !parallelizable("in_turn"));
}

#[tokio::test(flavor = "multi_thread")]
async fn message_hooks_change_messages_and_prompts() {
    let world = TestPlugins::of(
        "hygge.register_hook('post_tool', {mode = 'async', timeout = '1s'}, function(event) end)
         hygge.register_hook('pre_message', function(event)
           if event.tool_name ~= '' or event.tool_input ~= nil then error('not a call') end
           return {decision = 'modify', modified_message = 'modified: ' .. event.message}
         end)
         hygge.register_hook('pre_message', {name = 'second'}, function(event)
           return {decision = 'allow', system_prompt_append = 'mode=' .. event.mode_name .. '; message=' .. event.message}
         end)
         hygge.register_hook('post_message', function(event) return {decision = 'deny', reason = 404} end)",
    )
    .await;
    let tasks = TaskTracker::new();
    let message = json!("original");
    let action = world.engine.hooks.message(HookEvent::PreMessage, &world.session, message, &tasks).await;
    assert_eq!(action.failed, [""; 0]);
    assert_eq!((action.decision, action.modified_message), (HookDecision::Modify, Some(json!("modified: original"))));
    let appended = action.system_prompt_append.unwrap();
    assert!(appended.starts_with("mode=") && appended.ends_with("; message=modified: original"), "{appended}");
    let denied = world.engine.hooks.message(HookEvent::PostMessage, &world.session, json!("x"), &tasks).await;
    assert_eq!((denied.decision, denied.reason.as_deref()), (HookDecision::Deny, Some("404")));
    let hooks = world.engine.hooks.snapshot();
    assert!(hooks.iter().any(|hook| hook.spec().event == HookEvent::PostTool && hook.spec().asynchronous));
}

/// Plugins of the kinds that people have published: a shell tool with advice for the model, and a hook that logs.
#[tokio::test(flavor = "multi_thread")]
async fn published_plugins_work_unchanged() {
    let world = TestPlugins::new(&[
        (
            "shell/plugin.lua",
            r#"
            local ADVICE = [=[
## A shell
Use `$(cmd)` to capture output.
]=]
            local function show(command, result)
              local lines = {}
              lines[#lines + 1] = "$ " .. command
              lines[#lines + 1] = "exit: " .. tostring(result.code)
              if result.stdout and result.stdout ~= "" then lines[#lines + 1] = result.stdout end
              if result.stderr and result.stderr ~= "" then lines[#lines + 1] = result.stderr end
              return table.concat(lines, "\n")
            end
            hygge.register_hook("pre_message", { name = "shell_advice" }, function(_event)
              return { decision = "allow", system_prompt_append = ADVICE }
            end)
            hygge.register_tool({
              name = "shell",
              description = "Runs a command",
              input_schema = {
                type = "object",
                properties = { command = { type = "string" }, dir = { type = "string" }, timeout = { type = "string" } },
                required = { "command" },
                additionalProperties = false,
              },
              execute = function(_ctx, input)
                if not input or type(input.command) ~= "string" or input.command == "" then
                  return { content = "`command` is required", is_error = true }
                end
                local options = { timeout = input.timeout or "30s" }
                if input.dir and input.dir ~= "" then options.dir = input.dir end
                local probe = hygge.exec("sh", { "-c", "command -v sh" }, { timeout = "5s" })
                if probe.code ~= 0 then return { content = "there is no sh", is_error = true } end
                local result = hygge.exec("sh", { "-c", input.command }, options)
                return { content = show(input.command, result), is_error = result.code ~= 0 }
              end,
            })"#,
        ),
        ("shell/plugin.toml", "name = \"shell\"\nversion = \"0.1.0\"\ndescription = \"A plugin\"\nentrypoint = \"plugin.lua\"\n"),
        (
            "logs/plugin.lua",
            r#"
            hygge.register_hook("pre_message", { name = "logs:pre_message", mode = "sync", timeout = "2s" }, function(event)
              if event.session_id ~= "" then
                hygge.log("info", "a turn starts", { session_id = event.session_id })
              end
              return { decision = "allow" }
            end)"#,
        ),
        ("logs/plugin.toml", "name        = \"logs\"\nversion     = \"0.1.0\"\ndescription = \"Logs turns.\"\n\n[capabilities]\nhooks = true\n"),
    ])
    .await;
    world.allow_all();
    assert_eq!(world.text("shell", json!({"command": "echo out"})).await, "$ echo out\nexit: 0\nout\n");
    let failed = world.call("shell", json!({"command": "exit 3", "timeout": "10s"})).await;
    assert!(failed.is_error && failed.text().contains("exit: 3"), "{}", failed.text());
    let empty = world.call("shell", json!({"command": ""})).await;
    assert_eq!((empty.is_error, empty.text().as_str()), (true, "`command` is required"));
    let tasks = TaskTracker::new();
    let action = world.engine.hooks.message(HookEvent::PreMessage, &world.session, json!("hi"), &tasks).await;
    assert_eq!((action.decision, action.failed.len()), (HookDecision::Allow, 0));
    assert!(action.system_prompt_append.unwrap().starts_with("## A shell"));
}

#[test]
fn the_page_names_tests_that_there_are() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("plugins/COMPATIBILITY.md")).unwrap();
    let table = page.split_once("## The tests of hygge").expect("the page has the table").1;
    let mut count = 0;
    for row in table.lines().filter(|line| line.starts_with("| `Test")) {
        count += row.split('|').nth(1).unwrap().matches("`Test").count();
        for test in row.split('`').filter(|word| word.contains(".rs::")) {
            let (file, name) = test.split_once("::").unwrap();
            let source = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(source.contains(&format!("fn {name}(")), "{test}");
        }
    }
    assert_eq!(count, 66, "each of hygge's tests stands in the table");
}
