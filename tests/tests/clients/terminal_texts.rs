//! Texts of tools, servers, plugins, files and clients cannot steer the terminal that toolctl shows them on.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, Wire, toolctl, until};

/// Sets the title, clears the screen, sets the clipboard, and turns the writing direction; U+009B is `ESC [` in one
/// character.
const HOSTILE: &str = "A\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{202e}\u{9b}2JB";

/// Where it would be a control sequence, a terminal would obey these.
const SEQUENCES: &[&str] = &["\u{1b}]", "\u{7}", "\u{1b}[2J", "\u{202e}", "\u{9b}"];

/// An MCP server whose every text is hostile.
const SERVER: &str = r#"
import json, sys
evil = "A\x1b]0;PWNED\x07\x1b[2J\x1b]52;c;aGk=\x07\u202e\u009b2JB"
print(evil, file=sys.stderr, flush=True)
schema = {"type": "object", "properties": {evil: {"type": "string", "description": evil, "enum": [evil], "default": evil}}}
tool = lambda name: {"name": name, "title": evil, "description": evil, "inputSchema": schema}
uri = {"uri": "note://a", "name": evil, "title": evil, "description": evil, "mimeType": evil}
content = {
    "text": [{"type": "text", "text": evil}],
    "resource": [{"type": "resource", "resource": {"uri": "note://" + evil, "text": evil + "\n" + evil}}],
    "link": [{"type": "resource_link", **uri}],
    "image": [{"type": "image", "data": "AAEC", "mimeType": evil}],
    "error": [{"type": "text", "text": evil}],
}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params, answer = asked["method"], asked.get("params") or {}, {}
    if method == "initialize":
        answer = {"result": {"protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}}, "serverInfo": {"name": evil, "version": evil}}}
    elif method == "tools/list":
        answer = {"result": {"tools": [tool(name) for name in [*content, "refused"]]}}
    elif method == "resources/list":
        answer = {"result": {"resources": [uri]}}
    elif method == "prompts/list":
        answer = {"result": {"prompts": [{"name": "p", "description": evil}]}}
    elif method == "tools/call" and params["name"] in content:
        name = params["name"]
        answer = {"result": {"content": content[name], "isError": name == "error"}}
    else:
        answer = {"error": {"code": -32000, "message": evil}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"#;

const PLUGIN: &str = r#"
local evil = "A\27]0;PWNED\7\27[2J\27]52;c;aGk=\7\u{202e}\u{9b}2JB"
hygge.register_tool{
  name = "evil", label = evil, description = evil, permission = false,
  input_schema = {type = "object", properties = {[evil] = {description = evil, default = evil}, fail = {type = "boolean"}}},
  execute = function(ctx, input)
    ctx.progress(evil)
    ctx.progress{message = evil, progress = 1, total = 2}
    ctx.output(evil .. "\n" .. evil)
    hygge.log("warn", evil)
    if input.fail then error(evil) end
    return evil
  end,
}
"#;

fn config(setup: &Setup) -> String {
    format!(
        "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"s/*\"\naction = \"allow\"\n\
         [[permission.rules]]\ncategory = \"shell\"\npattern = \"printf *\"\naction = \"allow\"\n\
         [[permission.rules]]\ncategory = \"file.read\"\npattern = {}\naction = \"deny\"\n\
         [mcp.servers.s]\ncommand = \"python3\"\nargs = [{}]\n\
         [mcp.servers.gone]\ncommand = {}\nargs = [{}]\n",
        json!(format!("/nonexistent/{}", "A\u{202e}B")),
        json!(setup.path("work/server.py")),
        json!("/nonexistent/A\u{202e}PWNEDB"),
        json!("A\u{202e}PWNEDB"),
    )
}

/// A daemon whose tables, history and log are full of hostile texts, and a project that has them, too.
fn hostile() -> TestDaemon {
    let setup = Setup::new().file("server.py", SERVER).plugin("evil.lua", PLUGIN);
    let config = config(&setup);
    let setup = setup
        .config(&config)
        .plugin("broken.lua", &format!("error({:?})\n", "A\u{202e}PWNEDB"))
        .file("bad/.toold/config.toml", format!("[permission]\n{} = 1\n", json!(HOSTILE)))
        .file(
            ".toold/skills/evil/SKILL.md",
            format!("---\nname: evil\ndescription: \"A\\e]0;PWNED\\a\\e[2JB\"\n---\n{HOSTILE}\n"),
        );
    fs::create_dir(hostile_folder(&setup)).unwrap();
    let daemon = setup.start();
    let mut wire = daemon.connect();
    until("the tools are listed", || {
        let known = |name: &str, wire: &mut Wire| wire.call("tools.schema", json!({"name": name}));
        ["s_text", "evil"].iter().all(|name| known(name, &mut wire).get("result").is_some()).then_some(())
    });
    let mut other = Wire::connect(&daemon.socket());
    other.result(
        "session.open",
        json!({"cwd": hostile_folder(&daemon.setup), "client": {"name": HOSTILE, "version": HOSTILE}}),
    );
    for (name, arguments) in [
        ("evil", json!({HOSTILE: HOSTILE})),
        ("evil", json!({"fail": true})),
        ("s_error", json!({})),
        ("bash", json!({"command": format!("printf '%s' '{HOSTILE}'"), "description": HOSTILE})),
        ("bash", json!({"command": format!("printf '%s' '{HOSTILE}'"), "background": true})),
        ("write", json!({"path": format!("{HOSTILE}.txt"), "content": HOSTILE})),
        ("read", json!({"path": format!("/nonexistent/{HOSTILE}")})),
    ] {
        other.call("tools.execute", json!({"name": name, "arguments": arguments, "timeout_ms": 5000}));
    }
    // Stays open, and so does its session.
    std::mem::forget(other);
    daemon
}

fn hostile_folder(setup: &Setup) -> PathBuf {
    setup.path("work").join(HOSTILE)
}

/// The commands, and whether each of them certainly shows a hostile text.
const COMMANDS: &[(&[&str], bool)] = &[
    (&["list"], true),
    (&["list", "--json"], true),
    (&["schema", "evil"], true),
    (&["schema", "s_text"], true),
    (&["schema", "s_text", "--json"], true),
    (&["call", "evil"], true),
    (&["call", "evil", "fail=true"], true),
    (&["call", "evil", "-o", "json"], true),
    (&["call", "s_text"], true),
    (&["call", "s_resource"], true),
    (&["call", "s_resource", "-o", "json"], true),
    (&["call", "s_link"], true),
    (&["call", "s_image"], true),
    (&["call", "s_error"], true),
    (&["call", "s_refused"], true),
    (&["call", "s_refused", "-o", "json"], true),
    (&["call", "A\u{202e}B"], false),
    (&["call", "evil", "A\u{202e}B=1"], false),
    (&["status"], false),
    (&["events", "--since", "0"], true),
    (&["events", "--since", "0", "--json"], true),
    (&["logs"], true),
    (&["logs", "--json"], true),
    (&["plugins"], false),
    (&["plugins", "show", "evil"], false),
    (&["plugins", "show", "broken"], true),
    (&["plugins", "logs", "evil"], true),
    (&["sessions"], true),
    (&["shells"], false),
    (&["permissions", "list"], false),
    (&["permissions", "check", "--explain", "printf 'A\u{202e}B'"], false),
    (&["workspaces"], false),
    (&["audit"], true),
    (&["audit", "--decisions"], false),
    (&["audit", "--json"], true),
    (&["tools", "search", "evil"], true),
    (&["tools", "cost"], false),
    (&["undo", "--list", "--all"], false),
    (&["skills"], true),
    (&["skills", "show", "evil"], true),
    (&["prompt"], true),
    (&["prompt", "--json"], true),
    (&["config", "show", "--origin"], false),
    (&["config", "check"], false),
    (&["config", "check", "bad/.toold/config.toml"], true),
    (&["config", "check", "--json", "bad/.toold/config.toml"], true),
    (&["doctor"], true),
    (&["doctor", "--json"], true),
    (&["mcp", "servers"], true),
    (&["mcp", "doctor"], false),
    (&["mcp", "status"], false),
    (&["plugins", "check", "A\u{202e}B"], false),
];

#[test]
fn no_text_of_others_steers_the_terminal() {
    let daemon = hostile();
    let mut wrong = Vec::new();
    for (arguments, shows_it) in COMMANDS {
        for plain in [&[] as &[&str], &["--plain"]] {
            let mut command = daemon.setup.command(toolctl());
            command.args(plain).args(*arguments).env_remove("NO_COLOR");
            let (_, written) = Terminal::run(&mut command).end();
            if let Some(found) = SEQUENCES.iter().find(|sequence| written.contains(**sequence)) {
                wrong.push(format!("{arguments:?} writes {found:?}: {written:?}"));
            }
            if *shows_it && !written.contains("PWNED") {
                wrong.push(format!("{arguments:?} shows none of it: {written:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A program gets every byte.
#[test]
fn a_pipe_gets_texts_unchanged() {
    let daemon = hostile();
    let output = daemon.toolctl(&["call", "s_resource"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with(&format!("{HOSTILE}\n{HOSTILE}\n")), "{text:?}");
    let answer: Value = serde_json::from_slice(&daemon.toolctl(&["call", "s_text", "-o", "json"]).stdout).unwrap();
    assert_eq!(answer["content"][0]["text"], HOSTILE);
}

/// How toolctl shows the hostile text.
fn shown_hostile() -> String {
    let shown = |c: char| match c.is_control() || c == '\u{202e}' {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    HOSTILE.chars().map(shown).collect()
}

/// Starts a call that a person is asked about, with a hostile text in its command, and waits for its prompt.
fn prompted(daemon: &TestDaemon, options: &[&str]) -> Terminal {
    let mut command = daemon.setup.command(toolctl());
    command.args(options).args(["call", "bash", &format!("command=make '{HOSTILE}'")]);
    let terminal = Terminal::run(&mut command);
    terminal.wait_for("deny, with a reason");
    terminal
}

/// Denies the prompt that waits, as a client with a hostile name.
fn deny_elsewhere(daemon: &TestDaemon) {
    let mut other = Wire::connect(&daemon.socket());
    other.result("session.open", json!({"cwd": daemon.work(), "client": {"name": HOSTILE, "version": "1"}}));
    other.result("permissions.subscribe", json!({}));
    let ask = other.result("permissions.pending", json!({}))["asks"][0].take();
    other.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
}

/// The terminal obeys what toolctl itself writes, and shows what others wrote.
#[track_caller]
fn check_kept_apart(written: &str) {
    let own = written.replace(&shown_hostile(), "");
    assert!(own.len() < written.len(), "the hostile text is not shown: {written:?}");
    assert!(!own.contains("\\u{"), "a control sequence is shown as text: {written:?}");
    let found = SEQUENCES.iter().find(|sequence| written.contains(**sequence));
    assert_eq!(found, None, "{written:?}");
}

#[test]
fn a_prompt_that_is_answered_elsewhere_ends_with_the_outcome_on_a_line_of_its_own() {
    let daemon = TestDaemon::asking();
    for options in [&[] as &[&str], &["--plain"]] {
        let terminal = prompted(&daemon, options);
        deny_elsewhere(&daemon);
        let (status, written) = terminal.end();
        assert_eq!(status.code(), Some(6), "{written:?}");
        check_kept_apart(&written);
        let outcome = written.rsplit_once("deny, with a reason").unwrap().1;
        assert!(outcome.starts_with("\r\n") && outcome.contains("denied"), "{outcome:?}");
    }
}

/// The prompt has a reason, too: characters that come with the key are a paste.
fn wait_for_line(terminal: &Terminal) {
    until("the line of the reason", || terminal.written().ends_with("  reason: ").then_some(()));
}

#[test]
fn a_reason_is_typed_corrected_and_sent_in_one_line() {
    let daemon = TestDaemon::asking();
    let mut terminal = prompted(&daemon, &[]);
    terminal.press("d");
    wait_for_line(&terminal);
    terminal.press("noo\u{7f}t now");
    terminal.wait_for("t now");
    terminal.press("\r");
    let (status, written) = terminal.end();
    assert_eq!(status.code(), Some(6), "{written:?}");
    check_kept_apart(&written);
    assert!(written.contains("  reason: noo\r\u{1b}[K  reason: not now\r\n"), "{written:?}");
}

#[test]
fn a_line_that_is_being_typed_makes_room_for_an_answer_from_elsewhere() {
    let daemon = TestDaemon::asking();
    // Without sequences, nothing is overwritten.
    for (options, end_of_line) in [(&[] as &[&str], "\r\u{1b}[K"), (&["--plain"], "\r\n")] {
        let mut terminal = prompted(&daemon, options);
        terminal.press("d");
        wait_for_line(&terminal);
        terminal.press("not now");
        terminal.wait_for("not now");
        deny_elsewhere(&daemon);
        let (status, written) = terminal.end();
        assert_eq!(status.code(), Some(6), "{written:?}");
        check_kept_apart(&written);
        let outcome = written.rsplit_once("  reason: not now").unwrap().1;
        assert!(outcome.starts_with(end_of_line) && outcome.contains("denied"), "{outcome:?}");
    }
}

#[test]
fn a_status_that_is_watched_overwrites_itself_and_goes_on_with_the_next_daemon() {
    let mut daemon = TestDaemon::start();
    let terminal = Terminal::run(daemon.setup.command(toolctl()).args(["status", "--watch"]));
    until("the second status", || (terminal.written().matches("\u{1b}[H").count() > 1).then_some(()));
    daemon.restart("KILL");
    let pid = format!("pid {}", daemon.pid());
    terminal.wait_for(&pid);
    terminal.signal(Signal::INT);
    let (_, written) = terminal.end();
    assert!(written.starts_with("\u{1b}[2J\u{1b}[H") && written.contains("\u{1b}[K\r\n"), "{written:?}");
    assert!(!written.contains("\\u{"), "{written:?}");
}
