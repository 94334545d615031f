//! `toolctl plugins logs --follow`: the logs of plugins as they are written.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, toolctl, until};

const WEATHER: &str = "hygge.register_tool{name = 'weather', permission = false, execute = function(ctx, input)\n\
    hygge.log('warn', 'clouds over ' .. input.city, {wind = 3})\n\
    hygge.notify('rain in ' .. input.city)\n\
    print('printed') return '' end}\n";
const OTHER: &str =
    "hygge.register_tool{name = 'other', permission = false, execute = function() print('hello') end}\n";

/// A running `toolctl`, and the file that it writes to.
struct Following {
    child: Child,
    written: PathBuf,
}

impl Following {
    fn start(daemon: &TestDaemon, name: &str, arguments: &[&str]) -> Self {
        let written = daemon.setup.path(name);
        let out = fs::File::create(&written).unwrap();
        let mut command = daemon.setup.command(toolctl());
        command.args(["plugins", "logs", "--follow"]).args(arguments).stdin(Stdio::null());
        let child = command.stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
        Self { child, written }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.written).unwrap()
    }

    #[track_caller]
    fn until(&self, words: &str) {
        until(words, || self.text().contains(words).then_some(()));
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(status.success());
    }

    fn end_after_term(self) -> (std::process::ExitStatus, String) {
        self.signal("TERM");
        self.end()
    }

    /// How it ended, and everything that it wrote.
    fn end(mut self) -> (std::process::ExitStatus, String) {
        let status = until("toolctl ends", || self.child.try_wait().unwrap());
        (status, self.text())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Needed only after a failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn earlier_log_lines_are_shown_before_new_ones() {
    let daemon = Setup::new().plugin("weather.lua", WEATHER).plugin("other.lua", OTHER).start();
    let mut wire = daemon.connect();
    wire.tool("weather", json!({"city": "Bonn"}));
    let all = Following::start(&daemon, "all", &[]);
    let one = Following::start(&daemon, "one", &["weather"]);
    for following in [&all, &one] {
        following.until("clouds over Bonn");
    }
    wire.tool("other", json!({}));
    wire.tool("weather", json!({"city": "Kyoto"}));
    for words in ["clouds over Kyoto", "wind", "rain in Kyoto", "printed"] {
        all.until(words);
        one.until(words);
    }
    all.until("hello");
    // A save that does not load, and one that does.
    let path = daemon.plugins().join("weather.lua");
    fs::write(&path, "local sky = nil\nsky.blue = true\n").unwrap();
    all.until("weather.lua:2");
    one.until("weather.lua:2");
    fs::write(&path, WEATHER.replace("clouds", "stars")).unwrap();
    wait_until_it_says(&mut wire, "stars over Delhi", &one);
    // A plugin that did not exist when the command started.
    fs::write(daemon.plugins().join("late.lua"), "print('better than never')").unwrap();
    all.until("better than never");
    daemon.toolctl(&["plugins", "disable", "other"]);
    all.until("plugin.unloaded");
    let text = one.text();
    for of_others in ["hello", "better than never", "other"] {
        assert!(!text.contains(of_others), "{text}");
    }
    assert_eq!(text.matches("clouds over Bonn").count(), 1, "{text}");
    // Not SIGINT, which is ignored when tests run in the background.
    all.signal("TERM");
    one.signal("TERM");
    for following in [all, one] {
        let (status, text) = following.end();
        assert!(!status.success(), "it was interrupted: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

fn wait_until_it_says(wire: &mut toold_tests::Wire, words: &str, following: &Following) {
    until(words, || {
        wire.call("tools.execute", json!({"name": "weather", "arguments": {"city": "Delhi"}}));
        following.text().contains(words).then_some(())
    });
}

#[test]
fn failed_calls_are_shown_with_their_traceback() {
    let script = "local function sky(city) return city.name.sky end\n\
        hygge.register_tool{name = 'sky', permission = false, execute = function(ctx, input)\n\
        local seen = sky(input) return seen end}\n\
        hygge.register_command{name = 'go', execute = print}\n";
    let daemon = Setup::new()
        .plugin("sky.lua", script)
        .plugin("other.lua", "hygge.register_command{name = 'go', execute = print}")
        .start();
    let following = Following::start(&daemon, "follow", &["sky"]);
    following.until("plugin.loaded");
    let mut wire = daemon.connect();
    let failed = wire.tool("sky", json!({}));
    assert_eq!(failed["is_error"], json!(true), "{failed}");
    following.until("sky.lua:1: in function 'sky'");
    let (_, followed) = following.end_after_term();
    let output = |arguments: &[&str]| String::from_utf8(daemon.toolctl(arguments).stdout).unwrap();
    let logs = output(&["plugins", "logs", "sky"]);
    for text in [&followed, &logs] {
        let error = "plugin.error        sky: tool sky: sky.lua:1: attempt to index nil with 'sky'\n    sky.lua:1: in function 'sky'\n    sky.lua:3: in function 'execute'";
        assert!(text.contains(error), "{text}");
        assert!(text.contains("warn: its command go is not used: plugin other ("), "{text}");
    }
    let shown = output(&["plugins", "show", "sky"]);
    assert!(shown.contains("warning    its command go is not used"), "{shown}");
    let listed = output(&["plugins", "list"]);
    assert!(listed.contains("sky: its command go is not used"), "{listed}");
}

#[test]
fn with_json_each_line_is_an_event_and_the_end_of_the_daemon_ends_it() {
    let mut daemon = Setup::new().plugin("weather.lua", WEATHER).start();
    let following = Following::start(&daemon, "out", &["--json", "weather"]);
    following.until("plugin.loaded");
    daemon.connect().tool("weather", json!({"city": "Bonn"}));
    following.until("printed");
    daemon.signal("TERM");
    daemon.wait();
    let (status, text) = following.end();
    assert!(!status.success(), "{text}");
    let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let logs: Vec<&Value> = events.iter().filter(|event| event["kind"] == "log").collect();
    assert_eq!(logs.len(), 2, "{text}");
    assert_eq!((&logs[0]["level"], &logs[0]["fields"]), (&json!("warn"), &json!({"wind": 3})));
    let seqs: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let (other, in_words): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| serde_json::from_str::<Value>(line).is_ok());
    assert!(!other.is_empty() && in_words.len() == 1, "one line says why it ended: {text}");
}
