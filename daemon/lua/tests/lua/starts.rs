//! Cached registrations, and how a later start uses them.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use toold_engine::events::EventSelection;
use toold_lua::plugin::registration_cache::RegistrationCache;
use toold_proto::plugin::PluginStatus;

use crate::world::{TestPlugins, soon, write};

/// A folder that outlives the worlds that keep registrations there.
struct CacheDir(TempDir);

impl CacheDir {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("registrations")
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.dir()).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// A start of the daemon; all starts use the same plugin folder.
    async fn start(&self, build: &str) -> TestPlugins {
        self.start_with(build, Value::Null).await
    }

    async fn start_with(&self, build: &str, config: Value) -> TestPlugins {
        let plugins = self.0.path().join("plugins");
        std::fs::create_dir_all(&plugins).unwrap();
        TestPlugins::with(&[], |options| {
            options.dirs[0].path = plugins;
            options.registrations = Some(RegistrationCache { dir: self.dir(), build: build.to_owned() });
            if !config.is_null() {
                options.config.insert("p".into(), config);
            }
        })
        .await
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.0.path().join("plugins").join(name), text);
    }
}

/// Registers one of each kind; a load after the first one fails, so that it shows.
const ALL: &str = r#"
hygge.register_tool{name = "t", label = "T", description = "does", parallelizable = true, timeout = "30s", cache_ttl = "2m",
  input_schema = {type = "object", properties = {a = {type = "string"}}}, output_schema = {type = "object"},
  annotations = {read_only = true}, permission = false, execute = function(ctx, input) return {structured = input} end}
hygge.register_tool{name = "asks", permission = function(input) return {category = "network", target = "x:1"} end,
  execute = function() end}
hygge.register_hook("pre_tool", {name = "h", tools = {"as*"}, priority = 3, timeout = "1s"}, function(event)
  return {decision = "deny", reason = "hooked " .. event.tool_name} end)
hygge.register_command{name = "c", description = "says", execute = function(ctx, input) return "c " .. input end}
hygge.register_subagent{name = "s", description = "d", system_prompt = "p", tools = {"read"}}
hygge.register_resource{uri = "x:y", name = "r", read = function() return "read" end}
hygge.register_resource{uri_template = "x:{a}/z", name = "r2", complete = {a = {"1"}}, read = function() return "read" end}
hygge.register_prompt{name = "pr", arguments = {{name = "a", required = true}}, render = function(ctx, a) return a.a end}
"#;

/// Everything that clients see of the plugins.
fn seen(world: &TestPlugins) -> Value {
    let snapshot = world.engine.registry.snapshot();
    let tools: Vec<_> = snapshot.global().iter().map(|tool| json!(tool.spec().describe())).collect();
    let hooks = world.engine.hooks.snapshot();
    let hooks: Vec<_> = hooks.iter().map(|hook| format!("{:?}", hook.spec())).collect();
    let commands = world.host.commands();
    let commands: Vec<_> = commands.iter().map(|command| json!([command.name, command.description])).collect();
    let resources = world.engine.offers.resources(Path::new("/"));
    let resources: Vec<_> =
        resources.iter().map(|r| json!([r.address.as_str(), r.name, r.completer.is_some()])).collect();
    let prompts = world.engine.offers.prompts(Path::new("/"));
    let prompts: Vec<_> = prompts.iter().map(|prompt| json!([prompt.name, prompt.arguments])).collect();
    let subagents = format!("{:?}", world.host.subagents());
    json!([tools, hooks, commands, resources, prompts, subagents])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_start_shows_the_same_without_running_the_script() {
    let kept = CacheDir::new();
    kept.write("p.lua", ALL);
    let first = kept.start("1").await;
    let all = seen(&first);
    first.host.stop().await;
    assert_eq!(kept.files().len(), 1);
    // The script does not run again: the cached registrations are used, which the test has changed by hand.
    let file = &kept.files()[0];
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, text.replace("\"does\"", "\"kept\"")).unwrap();
    let second = kept.start("1").await;
    let changed = seen(&second);
    assert_eq!(changed.to_string().replace("\"kept\"", "\"does\""), all.to_string());
    assert!(changed.to_string().contains("\"kept\""));
    // Its functions are there at the first call of each kind.
    assert_eq!(second.call("t", json!({"a": "b"})).await.structured, Some(json!({"a": "b"})));
    assert!(second.call("asks", json!({})).await.text().contains("hooked asks"));
    let call = || second.call_of("", json!({"input": "x"}));
    let command = second.host.commands()[0].tool.clone();
    let said = toold_engine::execute::execute_tool(&second.engine, command, call()).await.unwrap();
    assert_eq!(said.text(), "c x");
    let contents = soon(toold_engine::offers::read(&second.engine, "x:1/z", call())).await.unwrap();
    assert_eq!(contents[0].text.as_deref(), Some("read"));
    // When it is requested by name, the script runs.
    second.host.reload(Some("p")).await.unwrap();
    assert_eq!(seen(&second), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_file_build_or_configuration_is_reloaded() {
    let kept = CacheDir::new();
    let script = |word: &str| {
        format!(
            "hygge.register_tool{{name = 't', description = '{word} ' .. tostring(hygge.config.word), execute = print}}"
        )
    };
    let described = async |world: TestPlugins| {
        let text = world.engine.registry.snapshot().global().find("t").unwrap().spec().description.clone();
        world.host.stop().await;
        text
    };
    kept.write("p.lua", &script("one"));
    assert_eq!(described(kept.start("1").await).await, "one nil");
    kept.write("p.lua", &script("two"));
    assert_eq!(described(kept.start("1").await).await, "two nil");
    assert_eq!(described(kept.start_with("1", json!({"word": "w"})).await).await, "two w");
    kept.files().iter().for_each(|file| std::fs::write(file, "{broken").unwrap());
    assert_eq!(described(kept.start("1").await).await, "two nil");
    assert_eq!(described(kept.start("2").await).await, "two nil");
    assert_eq!(kept.files().len(), 4);
    kept.write(
        "q/plugin.lua",
        "local text = require('text') hygge.register_tool{name = 'u', description = text, execute = print}",
    );
    kept.write("q/text.lua", "return 'a'");
    kept.start("1").await.host.stop().await;
    kept.write("q/text.lua", "return 'b'");
    let world = kept.start("1").await;
    assert_eq!(world.engine.registry.snapshot().global().find("u").unwrap().spec().description, "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_does_more_than_register_runs_at_each_start() {
    let tool = "hygge.register_tool{name = 't', execute = function() end}";
    for more in [
        "hygge.log('info', 'x')",
        "print('x')",
        "hygge.notify('x')",
        "local now = hygge.now()",
        "local now = os.time()",
        "local now = os.date()",
        "local now = os.clock()",
        "local n = math.random(5)",
        "math.randomseed(5)",
        "local home = os.getenv('HOME')",
        "local name = os.tmpname()",
        "pcall(hygge.store.get, 'x')",
        "local file = io.open(hygge.plugin.path)",
        "pcall(hygge.fs.exists, hygge.plugin.path)",
        "pcall(hygge.exec, 'true')",
        "hygge.sleep('0ms')",
        "coroutine.wrap(function() hygge.now() end)()",
        "pcall(hygge.register_tool, {name = 'taken', execute = print})",
    ] {
        let kept = CacheDir::new();
        kept.write(
            "a.lua",
            "hygge.register_tool{name = 'taken', description = tostring(math.random()), execute = print}",
        );
        kept.write("p.lua", &format!("{more}\n{tool}"));
        let world = kept.start("1").await;
        // Only after `a` has its tool.
        world.host.reload(Some("p")).await.unwrap();
        assert_eq!(world.plugin("p").error, None, "{more}");
        let count = if more.contains("taken") { 1 } else { 0 };
        assert_eq!(kept.files().len(), count, "{more}");
    }
    let kept = CacheDir::new();
    kept.write("p.lua", &format!("local f = os.time\n{tool}\nlocal t = {{os.time == f, math.random == math.random}}"));
    kept.start("1").await;
    assert_eq!(kept.files().len(), 1, "to look at a function is not to call it");
}

#[tokio::test(flavor = "multi_thread")]
async fn name_taken_meanwhile_is_reported_with_its_line() {
    let kept = CacheDir::new();
    kept.write("p.lua", "\nhygge.register_tool{name = 't', execute = print}");
    kept.start("1").await.host.stop().await;
    kept.write("a.lua", "hygge.register_tool{name = 't', execute = print}");
    let world = kept.start("1").await;
    let failed: Vec<_> =
        world.host.list().iter().filter(|plugin| plugin.status == PluginStatus::Failed).cloned().collect();
    assert_eq!(failed.len(), 1);
    let words = &failed[0].error.as_ref().unwrap().message;
    assert!(words.contains("the tool name t is taken"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_that_of_its_version() {
    let kept = CacheDir::new();
    kept.write(
        "p/plugin.lua",
        "local m = require('m') hygge.register_tool{name = 't', execute = function() return m end}",
    );
    kept.write("p/m.lua", "return 'old'");
    let world = kept.start("1").await;
    assert_eq!(world.text("t", json!({})).await, "old");
    kept.write("p/m.lua", "return 'new'");
    world
        .until(|world| {
            let events = world.engine.events.subscribe_from_start(EventSelection::All).replay;
            events.iter().filter(|event| event.body.kind() == "plugin.loaded").count() == 2
        })
        .await;
    assert_eq!(world.text("t", json!({})).await, "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_cache_entries_are_removed() {
    let kept = CacheDir::new();
    kept.write("p.lua", "hygge.register_tool{name = 't', execute = print}");
    kept.start("1").await.host.stop().await;
    let old = kept.dir().join("0123.json");
    write(&old, "{}");
    let long_ago = SystemTime::now() - Duration::from_secs(40 * 24 * 3_600);
    for file in kept.files() {
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
    }
    let world = kept.start("1").await;
    world.host.stop().await;
    assert_eq!(kept.files().len(), 1);
    assert!(!old.exists());
}
