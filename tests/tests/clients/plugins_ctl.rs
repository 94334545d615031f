//! `toolctl plugins` for users of plugins: show, logs, install, update, remove.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use toold_test_kit::git;
use toold_tests::{Setup, Terminal, TestDaemon, toolctl, until};

const WEATHER: &str = "hygge.register_tool{name = \"weather\", description = \"Tells it\", execute = function(ctx)\n\
    hygge.log(\"warn\", \"clouds\") return \"VERSION\" end}\n\
    hygge.register_command{name = \"rain\", execute = function() return \"\" end}\n\
    hygge.register_prompt{name = \"plan\", render = function() return \"\" end}\n\
    hygge.register_resource{uri = \"weather://now\", name = \"now\", read = function() return \"\" end}\n";

fn run(daemon: &TestDaemon, arguments: &[&str]) -> (i32, String, String) {
    let mut command = daemon.setup.command(toolctl());
    command.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// A repository with a plugin, as a third party would publish it.
fn repository(daemon: &TestDaemon) -> std::path::PathBuf {
    let dir = daemon.work().join("upstream/Weather");
    fs::create_dir_all(&dir).unwrap();
    git(&dir, &["init", "--quiet", "--initial-branch", "main"]);
    fs::write(
        dir.join("plugin.toml"),
        "name = \"weather\"\nversion = \"1.0\"\napi = \"toold\"\n[capabilities]\ntools = true\ncommands = true\n",
    )
    .unwrap();
    release(&dir, "one");
    dir
}

fn release(dir: &Path, version: &str) {
    fs::write(dir.join("plugin.lua"), WEATHER.replace("VERSION", version)).unwrap();
    git(dir, &["add", "."]);
    git(dir, &["commit", "--quiet", "--message", &format!("version {version}")]);
    git(dir, &["tag", version]);
}

fn weather(daemon: &TestDaemon) -> String {
    let answer = daemon.connect().result("tools.execute", json!({"name": "weather"}));
    answer["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_plugin_is_cloned_shown_updated_and_removed() {
    let daemon = TestDaemon::start();
    let upstream = repository(&daemon);
    let source = format!("local:{}", upstream.display());
    let (code, _, err) = run(&daemon, &["plugins", "install", &source]);
    assert_ne!(code, 0, "nobody said yes");
    assert!(err.contains("--yes"), "{err}");
    assert_eq!(fs::read_dir(daemon.plugins()).unwrap().count(), 0);

    let (code, out, err) = run(&daemon, &["plugins", "install", "--yes", &source]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("may use   tools commands") && err.contains("resource  weather://now"), "{err}");
    assert!(err.contains("version one"), "{err}");
    assert_eq!(out.trim_end(), daemon.plugins().join("weather").display().to_string());
    assert!(daemon.plugins().join("weather/plugin.lua").exists());
    until("the plugin serves", || run(&daemon, &["plugins", "show", "weather"]).1.contains("loaded").then_some(()));
    let (_, shown, _) = run(&daemon, &["plugins", "show", "weather"]);
    for part in [
        "weather 1.0",
        "may use    tools commands",
        "weather  Tells it",
        "/rain",
        "weather://now",
        "prompt     plan",
        "plugin.toml",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(weather(&daemon), "one");
    let (code, _, err) = run(&daemon, &["plugins", "install", "--yes", &source]);
    assert_ne!(code, 0);
    assert!(err.contains("already exists"), "{err}");

    let (_, out, _) = run(&daemon, &["plugins", "update"]);
    assert!(out.contains("up to date"), "{out}");
    release(&upstream, "two");
    let (code, _, err) = run(&daemon, &["plugins", "update", "weather", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("version two"), "{err}");
    until("the new version serves", || (weather(&daemon) == "two").then_some(()));

    let (code, _, err) = run(&daemon, &["plugins", "remove", "weather", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(folders(&daemon), 0);
    until("the tool is gone", || {
        let listed = daemon.connect().result("tools.list", json!({"names": ["weather"]}));
        (listed["tools"] == json!([])).then_some(())
    });
    assert_ne!(run(&daemon, &["plugins", "remove", "../state", "--yes"]).0, 0);
}

#[test]
fn a_version_that_was_asked_for_stays() {
    let daemon = TestDaemon::start();
    let upstream = repository(&daemon);
    release(&upstream, "two");
    let source = format!("local:{}@one", upstream.display());
    let (code, _, err) = run(&daemon, &["plugins", "install", "--yes", &source]);
    assert_eq!(code, 0, "{err}");
    let text = fs::read_to_string(daemon.plugins().join("weather/plugin.lua")).unwrap();
    assert!(text.contains("one"), "{text}");
    let (code, out, err) = run(&daemon, &["plugins", "update", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("pinned") && out.contains("installed at one"), "{out}");
    let empty = daemon.work().join("empty");
    fs::create_dir(&empty).unwrap();
    git(&empty, &["init", "--quiet"]);
    fs::write(empty.join("README"), "").unwrap();
    git(&empty, &["add", "."]);
    git(&empty, &["commit", "--quiet", "--message", "x"]);
    let (code, _, err) = run(&daemon, &["plugins", "install", "--yes", &format!("local:{}", empty.display())]);
    assert_ne!(code, 0);
    assert!(err.contains("is not a plugin"), "{err}");
    assert_eq!(folders(&daemon), 1, "nothing is left of what was not installed");
}

/// How many folders the plugin folder has, hidden ones too.
fn folders(daemon: &TestDaemon) -> usize {
    fs::read_dir(daemon.plugins()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
}

fn lock(daemon: &TestDaemon) -> String {
    fs::read_to_string(daemon.plugins().join("plugins.lock")).unwrap()
}

fn revision(dir: &Path) -> String {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(dir).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_lock_installs_the_same_revision_on_another_machine() {
    let first = TestDaemon::start();
    let upstream = repository(&first);
    let source = format!("local:{}#main", upstream.display());
    assert_eq!(run(&first, &["plugins", "install", "--yes", &source]).0, 0);
    let written = lock(&first);
    assert!(written.contains(&source) && written.contains(&revision(&upstream)), "{written}");
    release(&upstream, "two");

    let second = TestDaemon::start();
    fs::write(second.plugins().join("plugins.lock"), &written).unwrap();
    let (code, out, err) = run(&second, &["plugins", "install", "--yes", "--json"]);
    assert_eq!(code, 0, "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["plugins"][0]["result"], "installed");
    until("the plugin serves", || run(&second, &["plugins", "show", "weather"]).1.contains("loaded").then_some(()));
    assert_eq!(weather(&second), "one");
    assert_eq!(lock(&second), written);
    let (code, out, _) = run(&second, &["plugins", "install", "--yes"]);
    assert_eq!(code, 0);
    assert!(out.contains("up to date"), "{out}");

    // Other files than those that were locked are not installed, whatever the revision says.
    let third = TestDaemon::start();
    let digest = written.lines().find(|line| line.starts_with("digest")).unwrap();
    let other = written.replace(digest, &format!("digest = \"{}\"", "0".repeat(64)));
    fs::write(third.plugins().join("plugins.lock"), other).unwrap();
    let (code, out, _) = run(&third, &["plugins", "install", "--yes"]);
    assert_eq!(code, 3);
    assert!(out.contains("another digest"), "{out}");
    assert_eq!(folders(&third), 0);
}

#[test]
fn an_update_goes_on_after_a_failure_and_replaces_nothing_that_was_changed_here() {
    let daemon = TestDaemon::start();
    let upstream = repository(&daemon);
    let other = daemon.work().join("upstream/rain");
    fs::create_dir_all(&other).unwrap();
    git(&other, &["init", "--quiet", "--initial-branch", "main"]);
    fs::write(other.join("plugin.lua"), "hygge.register_command{name = \"r\", execute = function() end}\n").unwrap();
    git(&other, &["add", "."]);
    git(&other, &["commit", "--quiet", "--message", "x"]);
    for dir in [&upstream, &other] {
        let (code, _, err) = run(&daemon, &["plugins", "install", "--yes", &format!("local:{}", dir.display())]);
        assert_eq!(code, 0, "{err}");
    }
    fs::remove_dir_all(&other).unwrap();
    release(&upstream, "two");
    let (code, out, _) = run(&daemon, &["plugins", "update", "--yes"]);
    assert_eq!(code, 3, "one failed");
    assert!(out.contains("rain") && out.contains("failed") && out.contains("updated"), "{out}");
    until("the new version serves", || (weather(&daemon) == "two").then_some(()));

    // A plugin that was changed here is listed as such, and kept.
    let script = daemon.plugins().join("weather/plugin.lua");
    fs::write(&script, WEATHER.replace("VERSION", "mine")).unwrap();
    let (_, listed, _) = run(&daemon, &["plugins", "list"]);
    assert!(listed.contains("loaded (changed here)"), "{listed}");
    let (_, shown, _) = run(&daemon, &["plugins", "show", "weather"]);
    assert!(shown.contains("but its files were changed here"), "{shown}");
    let (code, out, _) = run(&daemon, &["plugins", "update", "weather", "--yes"]);
    assert_eq!(code, 0);
    assert!(out.contains("up to date") && out.contains("changed here"), "{out}");
    release(&upstream, "three");
    let (code, out, _) = run(&daemon, &["plugins", "update", "weather", "--yes"]);
    assert_eq!(code, 3);
    assert!(out.contains("--discard-changes"), "{out}");
    assert!(fs::read_to_string(&script).unwrap().contains("mine"));
    assert_eq!(run(&daemon, &["plugins", "update", "weather", "--yes", "--discard-changes"]).0, 0);
    assert!(fs::read_to_string(&script).unwrap().contains("three"));
    assert_eq!(folders(&daemon), 2);
}

#[test]
fn a_branch_is_followed_and_a_rewritten_one_is_not_taken_unseen() {
    let daemon = TestDaemon::start();
    let upstream = repository(&daemon);
    git(&upstream, &["checkout", "--quiet", "-b", "fix/wind"]);
    release(&upstream, "windy");
    git(&upstream, &["checkout", "--quiet", "main"]);
    let source = format!("local:{}#fix/wind", upstream.display());
    let (code, _, err) = run(&daemon, &["plugins", "install", "--yes", &source]);
    assert_eq!(code, 0, "{err}");
    let script = daemon.plugins().join("weather/plugin.lua");
    assert!(fs::read_to_string(&script).unwrap().contains("windy"));
    git(&upstream, &["checkout", "--quiet", "fix/wind"]);
    release(&upstream, "calm");
    assert_eq!(run(&daemon, &["plugins", "update", "--yes"]).0, 0);
    assert!(fs::read_to_string(&script).unwrap().contains("calm"));

    git(&upstream, &["reset", "--quiet", "--hard", "one"]);
    release(&upstream, "other");
    let (code, out, err) = run(&daemon, &["plugins", "update", "--yes"]);
    assert_eq!(code, 3);
    assert!(out.contains("history was rewritten") && err.contains("history was rewritten"), "{out}{err}");
    assert!(fs::read_to_string(&script).unwrap().contains("calm"));
    assert!(lock(&daemon).contains("fix/wind"), "{}", lock(&daemon));
    assert_eq!(run(&daemon, &["plugins", "remove", "weather", "--yes"]).0, 0);
    assert!(!lock(&daemon).contains("weather"), "{}", lock(&daemon));
}

#[test]
fn the_configuration_of_an_installed_clone_is_not_read() {
    let daemon = TestDaemon::start();
    let upstream = repository(&daemon);
    let source = format!("local:{}", upstream.display());
    assert_eq!(run(&daemon, &["plugins", "install", "--yes", &source]).0, 0);
    // As a plugin could write it, if it may write its own folder.
    let clone = daemon.plugins().join("weather");
    let ran = daemon.work().join("ran");
    let program = daemon.work().join("program");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "diff.external",
        "filter.x.clean",
        "core.pager",
        "remote.origin.uploadpack",
    ] {
        git(&clone, &["config", key, program.to_str().unwrap()]);
    }
    fs::write(clone.join(".git/info/attributes"), "* filter=x\n").unwrap();
    release(&upstream, "two");
    let (code, _, err) = run(&daemon, &["plugins", "update", "--yes"]);
    assert_eq!(code, 0, "{err}");
    run(&daemon, &["plugins", "list"]);
    assert!(!ran.exists());
    assert!(fs::read_to_string(clone.join("plugin.lua")).unwrap().contains("two"));
}

/// Reads its configuration, and a file elsewhere, while it loads.
const CURIOUS: &str = r#"
local file = io.open(hygge.profile.dir .. "/curious.json")
local units = file and hygge.json.decode(file:read("*a")).units or "none"
local elsewhere, why = io.open(PATH)
hygge.register_tool { name = "told", description = units .. " " .. (elsewhere and elsewhere:read("*a") or "refused"), execute = print }
"#;

#[test]
fn a_plugin_reads_its_configuration_while_it_loads_and_shows_what_it_was_refused() {
    let setup = Setup::new().file("note.txt", "a note");
    let note = setup.path("work/note.txt").display().to_string();
    let setup = setup.plugin("curious.lua", &CURIOUS.replace("PATH", &format!("{note:?}")));
    fs::write(setup.path("config/toold/curious.json"), r#"{"units": "kelvin"}"#).unwrap();
    let daemon = setup.start();
    let described = |text: &str| {
        let tools = daemon.connect().result("tools.list", json!({}));
        let told = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "told");
        told.is_some_and(|told| told["description"] == text).then_some(())
    };
    until("the plugin loads", || described("kelvin refused"));
    let (_, shown, _) = run(&daemon, &["plugins", "show", "curious"]);
    assert!(shown.contains(&format!("refused    file.read {note}  while it loaded")), "{shown}");
    let (_, logs, _) = run(&daemon, &["plugins", "logs", "curious"]);
    let line = logs.lines().find(|line| line.contains("plugin.refused")).unwrap_or_default();
    assert!(line.contains(&note) && line.contains("--chain curious"), "{logs}");
    let (code, _, err) = run(&daemon, &["permissions", "grant", "file.read", &note, "--chain", "curious"]);
    assert_eq!(code, 0, "{err}");
    until("the plugin loads again", || described("kelvin a note"));
    let (_, shown, _) = run(&daemon, &["plugins", "show", "curious"]);
    assert!(!shown.contains("refused "), "{shown}");
}

/// Waits, and uses its surroundings, while it loads.
const BUSY: &str = r#"
hygge.sleep("1ms")
hygge.store.set("loads", (hygge.store.get("loads") or 0) + 1)
assert(hygge.fs.read("data.txt") == "data")
assert(io.open(hygge.profile.dir .. "/busy.json"):read("*a") == "{}")
assert(not io.open(hygge.profile.dir .. "/config.toml"))
assert(hygge.exec("sh", { "build.sh" }).code == 1)
hygge.register_tool { name = "greet", description = hygge.config.greeting, execute = print }
hygge.register_hook("pre_tool", { name = "watch" }, print)
hygge.register_hook("post_tool", { name = "some", tools = { "gre*", "bash" } }, print)
"#;

#[test]
fn a_check_loads_a_plugin_as_the_daemon_does() {
    let config = "[plugins.busy]\ngreeting = \"hello\"\n\
        [[permission.rules]]\ncategory = \"shell\"\npattern = \"true\"\naction = \"allow\"\n";
    let setup = Setup::new().config(config).file("busy/data.txt", "data");
    let daemon = setup.file("busy/plugin.lua", BUSY).file("busy/build.sh", "exit 1").start();
    fs::write(daemon.setup.path("config/toold/busy.json"), "{}").unwrap();
    let path = daemon.setup.path("work/busy").display().to_string();
    let (code, out, err) = run(&daemon, &["plugins", "check", &path]);
    assert_eq!(code, 0, "{out}{err}");
    for part in [
        "tool      greet",
        "hook      watch  pre_tool: sees all calls of all tools and can change or refuse them",
        "hook      some  post_tool: sees the results of the calls of gre*, bash and can change them",
        "refused   shell sh build.sh",
        "refused   file.read ",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    fs::create_dir_all(daemon.plugins().join("busy")).unwrap();
    for name in ["data.txt", "build.sh", "plugin.lua"] {
        fs::copy(format!("{path}/{name}"), daemon.plugins().join("busy").join(name)).unwrap();
    }
    until("the daemon loads it", || {
        run(&daemon, &["plugins", "show", "busy"]).1.contains("greet  hello").then_some(())
    });
}

#[test]
fn plugin_logs_can_be_read_later() {
    let daemon = Setup::new()
        .plugin("weather.lua", WEATHER)
        .plugin("other.lua", "print(\"hello\")\n")
        .plugin("broken.lua", "local x = nil\nx()\n")
        .start();
    weather(&daemon);
    let (code, out, err) = run(&daemon, &["plugins", "logs"]);
    assert_eq!(code, 0, "{err}");
    for part in ["weather: warn: clouds", "other: info: hello", "broken: "] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (_, out, _) = run(&daemon, &["plugins", "logs", "weather"]);
    assert!(out.contains("clouds") && !out.contains("hello"), "{out}");
    let (_, json, _) = run(&daemon, &["plugins", "logs", "other", "--json"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["kind"], &first["message"]), (&json!("log"), &json!("hello")));
}

#[test]
fn timers_are_shown_with_their_last_run_and_error() {
    let script = "hygge.every(\"1h\", function() hygge.log(\"info\", \"polled\") end, {name = \"poll\", immediately = true})\n\
        hygge.every(\"2m\", function() error(\"boom\") end, {name = \"broken\", immediately = true})\n\
        hygge.every(\"1h\", print):stop()\n";
    let daemon = Setup::new().plugin("timers.lua", script).start();
    let shown = until("both have run", || {
        let (code, shown, err) = run(&daemon, &["plugins", "show", "timers"]);
        assert_eq!(code, 0, "{err}");
        (shown.matches("1 run, the last at").count() == 2).then_some(shown)
    });
    let timers: Vec<&str> = shown.lines().filter(|line| line.starts_with("  timer ")).collect();
    assert!(timers[0].contains("poll  every 3600s, 1 run, the last at 20") && !timers[0].contains("failed"), "{shown}");
    assert!(
        timers[1].contains("broken  every 120s, 1 run") && timers[1].ends_with("failed: timers.lua:2: boom"),
        "{shown}"
    );
    assert!(timers[2].ends_with("3  every 3600s, has not run yet, stopped"), "{shown}");
    let (_, logs, _) = run(&daemon, &["plugins", "logs", "timers"]);
    assert!(logs.contains("the timer broken failed: timers.lua:2: boom") && logs.contains("polled"), "{logs}");
}

#[test]
fn a_profile_is_a_flame_graph() {
    let script = "local function spin() local x = 0 for i = 1, 100000 do x = x + i end return x end\n\
        hygge.every(\"1s\", spin)\n\
        hygge.register_tool{name = \"spin\", execute = function() return spin() end}\n";
    let daemon = Setup::new().plugin("busy.lua", script).plugin("idle.lua", "").start();
    let profiled = std::thread::scope(|scope| {
        let profiling = scope.spawn(|| run(&daemon, &["plugins", "profile", "busy", "--seconds", "2"]));
        let mut wire = daemon.connect();
        while !profiling.is_finished() {
            wire.tool("spin", json!({}));
        }
        profiling.join().unwrap()
    });
    let (code, out, err) = profiled;
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains(" %  ") && out.contains("spin (busy.lua:1)") && out.trim_end().ends_with("busy.svg"), "{out}");
    let svg = fs::read_to_string(daemon.work().join("busy.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("<title>spin (busy.lua:1): "), "{svg}");
    let (code, out, err) = run(&daemon, &["plugins", "profile", "idle", "--seconds", "1"]);
    assert!(code == 0 && out.is_empty() && err.contains("no Lua of idle ran"), "{out}{err}");
    let (code, out, _) = run(&daemon, &["plugins", "profile", "idle", "--seconds", "1", "--json"]);
    assert_eq!(
        (code, serde_json::from_str::<serde_json::Value>(&out).unwrap()),
        (0, json!({"total_us": 0, "stacks": []}))
    );
}

/// A plugin whose parts wait for clients: hooks of messages, a command, a sub-agent.
const PARTS: &str = r#"
hygge.register_hook("pre_message", {name = "advice"}, function(e)
  return {decision = "modify", modified_message = e.message .. "!", system_prompt_append = "be brief"} end)
hygge.register_hook("post_message", function(e) hygge.log("info", "answered " .. e.message) end)
hygge.register_command{name = "wave", description = "Waves.", execute = function(_, input) return {message = "waving " .. input} end}
hygge.register_subagent{name = "host", description = "Receives guests.", system_prompt = "You receive guests."}
"#;

#[test]
fn hooks_of_messages_run_at_an_agent_s_prompt_and_commands_by_their_name() {
    let daemon = TestDaemon::start();
    fs::write(daemon.plugins().join("parts.lua"), PARTS).unwrap();
    until("the command", || run(&daemon, &["do"]).1.contains("wave").then_some(()));
    assert_eq!(run(&daemon, &["do", "wave", "to", "you"]), (0, "waving to you\n".into(), String::new()));
    let hook = |input: serde_json::Value| {
        let path = daemon.work().join("input.json");
        fs::write(&path, input.to_string()).unwrap();
        let mut command = daemon.setup.command(toolctl());
        let output = command.args(["hook", "claude-code"]).stdin(fs::File::open(path).unwrap()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let cwd = daemon.work();
    let said = hook(json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "hello", "cwd": cwd}));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let context = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("hello!") && context.ends_with("be brief"), "{context}");
    let stop = json!({"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "bye", "cwd": cwd});
    assert_eq!(hook(stop), "");
    until("the log", || run(&daemon, &["plugins", "logs", "parts"]).1.contains("answered bye").then_some(()));
    let (_, shown, _) = run(&daemon, &["plugins", "show", "parts"]);
    assert!(shown.contains("used by: nobody yet") && shown.contains("used by: `toolctl do wave`"), "{shown}");
    let (code, installed, err) = run(&daemon, &["agents", "install", "claude-code", "--hooks", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(installed.contains("run for the prompts of Claude Code too: advice"), "{installed}");
    assert!(run(&daemon, &["plugins", "show", "parts"]).1.contains("used by: Claude Code"));
}

#[test]
fn a_check_refuses_what_the_daemon_refuses() {
    let daemon = Setup::new().config("[tools.rename]\nread = \"read_file\"\n").start();
    let check = |name: &str, text: &str| {
        let path = daemon.work().join(name);
        fs::write(&path, text).unwrap();
        let (code, out, err) = run(&daemon, &["plugins", "check", path.to_str().unwrap()]);
        (code, out + &err)
    };
    let tool = |name: &str| format!("hygge.register_tool{{name = \"{name}\", execute = function() return \"\" end}}\n");
    let (code, told) = check("p.lua", &tool("bash"));
    assert!(code != 0 && told.contains("the tool name bash is taken by builtin toold"), "{told}");
    let (code, told) = check("p.lua", &tool("read"));
    assert_eq!(code, 0, "the configuration gives it another name: {told}");
    let (code, told) = check("p.lua", "");
    assert!(code == 0 && told.contains("it registers nothing"), "{told}");
    let (_, told) = check("My Plugin.lua", "");
    assert!(told.contains("rename it to my-plugin.lua") && !told.contains("plugin.toml"), "{told}");
    let long = tool("long") + &"\n".repeat(9 << 20);
    let (code, told) = check("long.lua", &long);
    assert!(code != 0 && told.contains("it has 9 MiB, and a plugin's file may have at most 4 MiB"), "{told}");
    fs::write(daemon.plugins().join("long.lua"), long).unwrap();
    until("the daemon says the same", || {
        let (_, out, err) = run(&daemon, &["plugins"]);
        (out + &err).contains("it has 9 MiB, and a plugin's file may have at most 4 MiB").then_some(())
    });
}

#[test]
fn a_list_and_a_call_say_that_the_newest_version_was_rejected() {
    let daemon = Setup::new().plugin("weather.lua", WEATHER).start();
    assert_eq!(weather(&daemon), "VERSION");
    let file = daemon.plugins().join("weather.lua");
    fs::write(&file, format!("{WEATHER}x =\n")).unwrap();
    until("the plugin fails", || run(&daemon, &["plugins"]).1.contains("failed").then_some(()));
    let (code, out, err) = run(&daemon, &["list", "--source", "plugin"]);
    assert!(code == 0 && out.contains("Tells it"), "{out}{err}");
    assert!(err.contains("failed weather: ") && err.contains("weather.lua:"), "{err}");
    assert!(err.contains("the version that was loaded at 20") && err.lines().count() == 1, "{err}");
    let mut call = daemon.setup.command(toolctl());
    let (status, text) = Terminal::run(call.args(["call", "weather"]).current_dir(daemon.work())).end();
    assert!(status.success() && text.contains("warning:") && text.contains("weather.lua:"), "{text}");
    // A plugin that never loaded has no tools, and a reason.
    fs::write(daemon.plugins().join("other.lua"), "x =\n").unwrap();
    until("it fails, too", || {
        let (_, out, err) = run(&daemon, &["list", "--source", "other"]);
        (out.is_empty() && err.contains("failed other: ")).then_some(())
    });
    // A list that is asked for right after a removal does not have the tool any more.
    fs::write(&file, WEATHER).unwrap();
    until("the plugin serves", || run(&daemon, &["plugins"]).1.contains("weather  loaded").then_some(()));
    fs::remove_file(&file).unwrap();
    let (_, out, err) = run(&daemon, &["list", "--source", "plugin"]);
    assert!(out.is_empty() && err.contains("no matching tools"), "{out}{err}");
}

#[test]
fn a_plugin_that_is_not_used_is_named_with_the_one_that_is() {
    let daemon = Setup::new().plugin("weather.lua", WEATHER).start();
    let folder = daemon.plugins().join("weather");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("plugin.lua"), WEATHER).unwrap();
    until("one is not used", || {
        let (_, out, _) = run(&daemon, &["plugins"]);
        out.contains("shadowed").then(|| assert!(out.contains("comes first; rename one of them"), "{out}"))
    });
}
