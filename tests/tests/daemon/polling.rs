//! Plugins follow their files where the system reports no changes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, skip, skip_uninstalled, toold, until};

fn greet(version: &str) -> String {
    format!("hygge.register_tool{{name = 'greet', permission = false, execute = function() return '{version}' end}}\n")
}

/// Saves as an editor does, with another time than now: no timestamp shows that the file is newer.
fn save_at(path: &Path, text: &str, time: SystemTime) {
    fs::write(path, text).unwrap();
    fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

#[track_caller]
fn until_greeted(wire: &mut Wire, version: &str) {
    until(version, || {
        let answer = wire.call("tools.execute", json!({"name": "greet", "arguments": {}}));
        (answer["result"]["content"][0]["text"] == version).then_some(())
    });
}

/// Saves in the same second and in others, a new plugin, a removed one.
fn check_changes_count(daemon: &TestDaemon) {
    let mut wire = daemon.connect();
    let path = daemon.plugins().join("greet.lua");
    until_greeted(&mut wire, "one");
    fs::write(&path, greet("two")).unwrap();
    until_greeted(&mut wire, "two");
    save_at(&path, &greet("three"), SystemTime::now() + Duration::from_secs(3600));
    until_greeted(&mut wire, "three");
    save_at(&path, &greet("four"), SystemTime::now() - Duration::from_secs(3600));
    until_greeted(&mut wire, "four");
    let other = daemon.plugins().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("text.lua"), "return 'here'").unwrap();
    fs::write(
        other.join("plugin.lua"),
        "hygge.register_tool{name = 'other', permission = false, execute = function() return require('text') end}",
    )
    .unwrap();
    until("the other", || (wire.call("tools.execute", json!({"name": "other"}))["error"].is_null()).then_some(()));
    fs::remove_dir_all(other).unwrap();
    until("no other", || wire.call("tools.execute", json!({"name": "other"}))["error"].is_object().then_some(()));
}

fn problems(daemon: &TestDaemon) -> String {
    let status: Value = daemon.connect().result("daemon.status", json!({}));
    status["problems"].to_string()
}

#[test]
fn plugin_folders_are_polled_at_the_configured_interval() {
    let setup = Setup::new().config("[plugins]\npoll_ms = 20\n").plugin("greet.lua", &greet("one"));
    let daemon = setup.start();
    check_changes_count(&daemon);
    // No problem is reported, because polling was configured.
    assert_eq!(problems(&daemon), "null");
}

#[test]
fn target_of_a_linked_plugin_is_polled() {
    let setup = Setup::new().config("[plugins]\npoll_ms = 20\n");
    let elsewhere = setup.path("home/greet.lua");
    fs::write(&elsewhere, greet("one")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, setup.path("config/toold/plugins/greet.lua")).unwrap();
    let daemon = setup.start();
    let mut wire = daemon.connect();
    until_greeted(&mut wire, "one");
    save_at(&elsewhere, &greet("two"), SystemTime::now() + Duration::from_secs(3600));
    until_greeted(&mut wire, "two");
}

/// The number of watches of a user can be limited in a user namespace, which not every system lets one
/// create; there, only the unit tests cover polling.
#[test]
fn folders_are_polled_and_a_warning_is_shown_where_nothing_can_be_watched() {
    for (limit, words) in [("max_inotify_watches", "max_user_watches"), ("max_inotify_instances", "max_user_instances")]
    {
        let within = |command: &mut Command, program: &str| {
            let script = format!("echo 0 > /proc/sys/user/{limit} && exec \"$@\"");
            command.args(["-Ur", "sh", "-c", &script, "sh", program]);
        };
        let mut probe = Command::new("unshare");
        within(&mut probe, "true");
        let Ok(probed) = probe.stdin(Stdio::null()).stderr(Stdio::null()).status() else {
            return skip_uninstalled("unshare");
        };
        if !probed.success() {
            return skip("this user may not make a user namespace, or its limits cannot be set");
        }
        let setup = Setup::new().plugin("greet.lua", &greet("one"));
        let daemon = setup.start_by(|setup| {
            let mut command = setup.command(Path::new("unshare"));
            within(&mut command, toold().to_str().unwrap());
            command
        });
        check_changes_count(&daemon);
        let reported = problems(&daemon);
        let folder = daemon.plugins().display().to_string();
        for word in ["checked for changes every 1s", words, folder.as_str()] {
            assert!(reported.contains(word), "{reported}");
        }
        let doctor = daemon.toolctl(&["doctor"]);
        let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert!(said.contains("checked for changes every 1s"), "{said}");
        assert!(daemon.log().contains("checked for changes every 1s"));
    }
}
