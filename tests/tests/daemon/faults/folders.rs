//! Folders and files that become unreadable or change their type.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

use crate::faults::is_root;

fn tool(answer: &str) -> String {
    format!(
        "hygge.register_tool{{name = \"say\", description = \"Says\", parallelizable = true,\n\
         input_schema = {{type = \"object\"}}, execute = function() return \"{answer}\" end}}\n"
    )
}

fn say(wire: &mut Wire) -> Value {
    // Without the tool, there is no result.
    wire.call("tools.execute", json!({"name": "say"})).pointer("/result/content/0/text").cloned().unwrap_or_default()
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A daemon that file modes apply to, even if root runs the tests.
fn held_by_modes(setup: Setup) -> Setup {
    if !is_root() {
        return setup;
    }
    let less = "-dac_override,-dac_read_search";
    setup.through(&["/usr/bin/setpriv", "--bounding-set", less, "--inh-caps", less])
}

#[track_caller]
fn serves(daemon: &TestDaemon, wire: &mut Wire) {
    assert_eq!(wire.tool("read", json!({"path": "a.txt"}))["is_error"], false);
    assert_eq!(daemon.connect().result("daemon.ping", json!({})), json!({}));
}

#[test]
fn a_plugin_folder_that_may_not_be_read_comes_back_whole() {
    let setup = Setup::new().file("a.txt", "here").plugin("say.lua", &tool("one"));
    let daemon = held_by_modes(setup).start();
    let mut wire = daemon.connect();
    assert_eq!(say(&mut wire), "one");
    let plugins = daemon.plugins();
    mode(&plugins, 0);
    wire.result("plugins.reload", json!({}));
    serves(&daemon, &mut wire);
    mode(&plugins, 0o755);
    std::fs::write(plugins.join("say.lua"), tool("two")).unwrap();
    until("the new version is seen", || (say(&mut wire) == "two").then_some(()));
    // The file alone.
    mode(&plugins.join("say.lua"), 0);
    wire.result("plugins.reload", json!({}));
    serves(&daemon, &mut wire);
    mode(&plugins.join("say.lua"), 0o644);
    std::fs::write(plugins.join("say.lua"), tool("three")).unwrap();
    until("the new version is seen", || (say(&mut wire) == "three").then_some(()));
}

#[test]
fn a_plugin_folder_that_is_replaced_is_seen() {
    let daemon = Setup::new().file("a.txt", "here").plugin("say.lua", &tool("one")).start();
    let mut wire = daemon.connect();
    assert_eq!(say(&mut wire), "one");
    let (plugins, away) = (daemon.plugins(), daemon.setup.path("config/toold/away"));
    std::fs::rename(&plugins, &away).unwrap();
    std::fs::write(&plugins, "no folder").unwrap();
    serves(&daemon, &mut wire);
    std::fs::remove_file(&plugins).unwrap();
    std::fs::create_dir(&plugins).unwrap();
    std::fs::write(plugins.join("say.lua"), tool("two")).unwrap();
    until("the new folder is read", || (say(&mut wire) == "two").then_some(()));
    std::fs::write(plugins.join("say.lua"), tool("three")).unwrap();
    until("and followed", || (say(&mut wire) == "three").then_some(()));
}

#[test]
fn a_configuration_that_may_not_be_read_denies_and_is_reported() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"ls\"\naction = \"allow\"\n";
    let setup = Setup::new().file("a.txt", "here").config(rule);
    let config = setup.path("config/toold/config.toml");
    mode(&config, 0);
    let mut daemon = held_by_modes(setup).start();
    let mut wire = daemon.connect();
    let verdict = |wire: &mut Wire| {
        wire.result("permissions.check", json!({"category": "shell", "target": "ls"}))["verdict"].take()
    };
    assert_eq!(verdict(&mut wire), "deny");
    let problems = wire.result("daemon.status", json!({}))["problems"].take().to_string();
    assert!(problems.contains("config.toml"), "{problems}");
    assert_eq!(daemon.connect().result("daemon.ping", json!({})), json!({}));
    mode(&config, 0o644);
    std::fs::write(&config, rule).unwrap();
    until("it is read", || (verdict(&mut wire) == "allow").then_some(()));
    // The last version that was read stays active.
    mode(&config, 0);
    wire.result("daemon.reload", json!({}));
    assert_eq!(verdict(&mut wire), "allow");
    serves(&daemon, &mut wire);
    mode(&config, 0o644);
    std::fs::remove_file(&config).unwrap();
    std::fs::create_dir(&config).unwrap();
    wire.result("daemon.reload", json!({}));
    serves(&daemon, &mut wire);
    daemon.restart("TERM");
    assert_eq!(verdict(&mut daemon.connect()), "deny");
}

#[test]
fn a_log_whose_folder_is_removed_is_made_again() {
    let daemon = Setup::new().file("a.txt", "here").start();
    let log = daemon.state().join("log");
    // Its name is derived from that of the socket.
    let file = || std::fs::read_dir(&log).ok()?.next()?.ok().map(|entry| entry.path());
    until("there is a log", file);
    std::fs::remove_dir_all(&log).unwrap();
    let mut wire = daemon.connect();
    until("there is a log again", || {
        wire.result("daemon.reload", json!({}));
        let text = std::fs::read_to_string(file()?).ok()?;
        text.contains("configuration").then_some(())
    });
}
