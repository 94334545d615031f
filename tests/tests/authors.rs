//! Commands for plugin authors: a new plugin works, and is checked and tested apart from any daemon.

use std::fs;

use serde_json::json;
use toold_tests::{Setup, TestDaemon, toolctl, toold};

fn run(setup: &Setup, arguments: &[&str]) -> (i32, String, String) {
    // `toolctl` finds `toold` beside itself, so it must be built.
    toold();
    let output = setup.command(toolctl()).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_new_plugin_passes_its_check_and_its_test_and_serves() {
    let daemon = TestDaemon::start();
    let (code, out, err) = run(&daemon.setup, &["plugins", "new", "my-greeter"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("my-greeter"));
    let (code, out, err) = run(&daemon.setup, &["plugins", "check", "my-greeter"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("plugin my-greeter 0.1.0") && out.contains("my_greeter"), "{out}");
    assert!(!out.contains("warning"), "{out}");
    let (code, out, err) = run(&daemon.setup, &["plugins", "test", "my-greeter"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("1 passed, 0 failed"), "{out}");

    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["plugin.loaded"]}));
    fs::rename(daemon.work().join("my-greeter"), daemon.plugins().join("my-greeter")).unwrap();
    wire.notification("events.event");
    assert_eq!(wire.tool("my_greeter", json!({"name": "you"}))["content"][0]["text"], "hello you");

    assert_ne!(run(&daemon.setup, &["plugins", "new", "Bad Name"]).0, 0);
}

#[test]
fn a_broken_plugin_is_reported_with_its_line() {
    let setup = Setup::new().file("broken.lua", "local x = 1\nlocal = 2\n").file("failing.lua", "hygge.register_tool{name = \"f\", description = \"F\", execute = function() return \"a\" end}\n").file(
        "failing_test.lua",
        "describe(\"f\", function() it(\"gives b\", function() expect(call(\"f\").content).to_be(\"b\") end) end)\n",
    );
    let (code, out, _) = run(&setup, &["plugins", "check", "broken.lua"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("broken.lua:2") && out.contains("local = 2"), "{out}");
    let (code, out, _) = run(&setup, &["plugins", "test", "failing.lua"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("FAILED") && out.contains("0 passed, 1 failed"), "{out}");
}

#[test]
fn the_stubs_are_printed() {
    let (code, out, _) = run(&Setup::new(), &["plugins", "types"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("---") && out.contains("register_tool"), "{}", &out[..200]);
}

#[test]
fn coverage_is_shown_and_written() {
    let setup = Setup::new()
        .file(
            "say.lua",
            "hygge.register_tool{name = \"say\", description = \"S\", execute = function(ctx, input)\n\
             if input.loud then\n  return \"A\"\nend\nreturn \"a\"\nend}\n",
        )
        .file("say_test.lua", "it(\"says\", function() expect(call(\"say\").content).to_be(\"a\") end)\n");
    let (code, out, err) = run(&setup, &["plugins", "test", "say.lua", "--coverage", "--lcov", "say.info"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("1 passed, 0 failed\ncoverage\n  say.lua   75.0 %  3 of 4 lines  not run: 3\n"), "{out}");
    let lcov = fs::read_to_string(setup.path("work/say.info")).unwrap();
    assert!(lcov.contains("say.lua\nDA:1,1\nDA:2,1\nDA:3,0\nDA:5,1\nLF:4\nLH:3\n"), "{lcov}");
    let (code, out, err) = run(&setup, &["plugins", "test", "say.lua", "--coverage", "--json"]);
    assert_eq!(code, 0, "{out}{err}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["passed"], 1);
    assert_eq!(report["coverage"][0]["uncovered"], json!(["3"]), "{out}");
}
