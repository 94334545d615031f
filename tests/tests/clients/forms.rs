//! toolctl's forms, its watch and its search, at a terminal.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, toolctl, until};

const TOOLS: &str = r#"
hygge.register_tool{
  name = "paint", description = "Paints a file", label = "Paint",
  input_schema = {
    type = "object", additionalProperties = false,
    properties = {
      path = {type = "string", description = "what to paint"},
      colour = {enum = {"red", "green", "blue"}},
      coats = {type = "integer", minimum = 1, maximum = 3},
      even = {type = "integer", multipleOf = 2},
    },
    required = {"path", "colour"},
  },
  execute = function(ctx, input)
    return "painted " .. input.path .. " " .. input.colour .. " " .. tostring(input.coats) .. " " .. tostring(input.even)
  end,
}
hygge.register_tool{
  name = "hold", description = "Holds on", parallelizable = true, input_schema = {type = "object"},
  execute = function(ctx)
    ctx.progress{message = "holding on", progress = 1, total = 4}
    while not hygge.store.get("release") do hygge.sleep("5ms") end
    return "held"
  end,
}
hygge.register_tool{
  name = "go", description = "Lets it go", parallelizable = true, input_schema = {type = "object"},
  execute = function() hygge.store.set("release", true) return "gone" end,
}
"#;

fn daemon() -> TestDaemon {
    Setup::new().plugin("paint.lua", TOOLS).file("picture.txt", "").start()
}

fn command(daemon: &TestDaemon, arguments: &[&str]) -> Command {
    let mut command = daemon.setup.command(toolctl());
    command.args(arguments);
    command
}

#[test]
fn form_asks_for_the_fields_of_the_schema() {
    let daemon = daemon();
    let mut terminal = Terminal::run(&mut command(&daemon, &["call", "paint", "--form"]));
    terminal.wait_for("what to paint");
    // A part of the name, completed by Tab.
    terminal.press("pic");
    terminal.wait_for("picture.txt");
    terminal.press("\t\r");
    terminal.wait_for("colour:");
    terminal.press("gre");
    terminal.press("\r");
    terminal.wait_for("Set optional arguments?");
    terminal.press(" \r");
    terminal.wait_for("coats:");
    terminal.press("7\r");
    terminal.wait_for("at most 3");
    terminal.press("\u{7f}2\r");
    terminal.wait_for("Call paint");
    terminal.press("\r");
    let (status, written) = terminal.end();
    assert!(status.success(), "{written}");
    assert!(written.contains("painted picture.txt green 2 nil"), "{written}");
}

#[test]
fn field_that_the_daemon_refuses_is_asked_for_again() {
    let daemon = daemon();
    let given = ["call", "paint", "--form", "path=a", "colour=red", "coats=1", "even=3"];
    let mut terminal = Terminal::run(&mut command(&daemon, &given));
    terminal.wait_for("Call paint");
    terminal.press("\r");
    terminal.wait_for("invalid: ");
    terminal.press("\u{7f}4\r");
    until("it asks whether to call it again", || {
        let written = terminal.written();
        let (_, since) = written.rsplit_once("invalid: ")?;
        since.contains("Call paint").then_some(())
    });
    terminal.press("\r");
    let (status, written) = terminal.end();
    assert!(status.success(), "{written}");
    assert!(written.contains("painted a red 1 4"), "{written}");
}

#[test]
fn a_form_that_is_left_calls_nothing() {
    let daemon = daemon();
    let mut terminal = Terminal::run(&mut command(&daemon, &["call", "paint", "--form"]));
    terminal.wait_for("what to paint");
    terminal.press("\u{1b}");
    let (status, written) = terminal.end();
    assert_eq!(status.code(), Some(130), "{written}");
    assert!(written.contains("nothing was called"), "{written}");
    let audit = daemon.connect().result("audit.query", json!({}));
    assert_eq!(audit["entries"], json!([]));
    let no_terminal = command(&daemon, &["call", "paint", "--form"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(no_terminal.status.code(), Some(2));
}

#[test]
fn watch_shows_each_call_while_it_runs_and_how_it_ended() {
    let daemon = daemon();
    let terminal = Terminal::run(&mut command(&daemon, &["watch"]));
    terminal.wait_for("watching");
    let mut wire = daemon.connect();
    // The subscription may begin a moment after the first line.
    wire.tool("go", json!({}));
    terminal_sees(&mut wire, &terminal);
    terminal.signal(Signal::INT);
    let (_, written) = terminal.end();
    assert!(written.contains("hold"), "{written}");
}

/// Calls `hold` until the watch has shown it from beginning to end.
fn terminal_sees(wire: &mut toold_tests::Wire, terminal: &Terminal) {
    until("a call on the screen", || {
        wire.tool("hold", json!({}));
        let written = terminal.written();
        (written.contains("hold") && written.contains("ok")).then_some(())
    });
}

#[test]
fn search_ranks_matching_tools() {
    let daemon = daemon();
    let found = command(&daemon, &["tools", "search", "paint", "--json"]).stdin(Stdio::null()).output().unwrap();
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["tools"][0]["name"], "paint");
    let none = command(&daemon, &["tools", "search", "zebra"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
}
