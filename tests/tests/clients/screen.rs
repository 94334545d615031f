//! The full screen of toolctl in a real terminal multiplexer, with a real daemon.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use toold_tests::{Pane, Setup, Terminal, TestDaemon, Tmux, Wire, toolctl, toold, until};

#[test]
fn full_screen_shows_panels_answers_a_prompt_and_quits() {
    let daemon = TestDaemon::asking();
    let tmux = Tmux::start(&daemon);
    let pane = tmux.first();
    pane.run("toolctl");
    pane.wait("calls first, and what has happened", |screen| {
        ["── Calls", "── last calls", "none has ended yet"].iter().all(|text| screen.contains(text))
    });
    pane.press("5");
    pane.wait("the tools", |screen| screen.contains("DESCRIPTION") && screen.contains("Runs a bash command"));
    pane.press("Tab");
    pane.wait("the plugins", |screen| screen.contains("r reload") && !screen.contains("DESCRIPTION"));
    pane.press("Tab");
    pane.wait("the sessions", |screen| screen.contains("LEVEL") && screen.contains("CALLS"));

    let mut agent = daemon.connect();
    let call = agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo it is done"}}));
    pane.wait("the ask", |screen| {
        ["permission", "bash asks for permission: shell", "echo it is done", "y  allow once"]
            .iter()
            .all(|text| screen.contains(text))
    });
    pane.press_until("y", "the panel without the ask", |screen| !screen.contains("allow once"));
    let result = agent.answer(call)["result"].take();
    assert_eq!((&result["is_error"], &result["content"][0]["text"]), (&json!(false), &json!("it is done\n")));

    pane.press("BTab");
    pane.press("BTab");
    pane.press("BTab");
    pane.wait("the changes", |screen| screen.contains("── Changes"));
    pane.press("1");
    pane.wait_for("duration of the last 1 call,");
    pane.press("9");
    pane.wait_for("call.finished");
    pane.press("q");
    let screen = pane.wait_for_prompt();
    assert!(!screen.contains("q quit"), "{screen}");
}

const COUNT: &str = r#"
hygge.register_tool{
  name = "count", description = "Counts for a minute", parallelizable = true, input_schema = {type = "object"},
  execute = function(ctx)
    for i = 1, 600 do
      ctx.progress{message = "counting", progress = i, total = 600}
      hygge.sleep("100ms")
    end
  end,
}"#;

#[test]
fn a_call_that_began_before_the_screen_shows_its_progress() {
    let daemon = Setup::new().plugin("count.lua", COUNT).start();
    let mut agent = daemon.connect();
    agent.request("tools.execute", json!({"name": "count", "progress": true}));
    agent.notification("tools.progress");
    let tmux = Tmux::start(&daemon);
    let pane = tmux.first();
    pane.run("toolctl");
    pane.wait("how far it is", |screen| screen.contains("counting") && screen.contains(" %"));
}

/// A daemon that lets every command run.
fn allowing() -> TestDaemon {
    let rules = ["shell", "file.read", "file.write"].map(|category| {
        format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"**\"\naction = \"allow\"\n")
    });
    Setup::new().config(&rules.concat()).file("a.txt", "before\n").start()
}

/// The full screen, in this panel.
fn open<'a>(tmux: &'a Tmux<'a>, panel: &str, title: &str) -> Pane<'a> {
    let pane = tmux.first();
    pane.run("toolctl");
    pane.wait_for("── Calls");
    pane.press(panel);
    pane.wait(title, |screen| screen.contains(&format!("── {title}")));
    pane
}

/// A call that waits until the file appears.
fn waiting_call(wire: &mut Wire, call_id: &str, file: &str) -> u64 {
    let command = format!("until test -e {file}; do sleep 0.05; done");
    let arguments = json!({"command": command});
    wire.request("tools.execute", json!({"name": "bash", "arguments": arguments, "call_id": call_id}))
}

#[test]
fn rows_are_filtered_and_the_help_names_the_keys() {
    let daemon = TestDaemon::start();
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "5", "Tools");
    pane.press("/");
    pane.type_text("bash shell");
    pane.wait("two tools", |screen| screen.contains("with /bash shell") && !screen.contains("apply_patch"));
    pane.press("Enter");
    pane.press("Enter");
    let details = pane.wait("the schema", |screen| screen.contains("Arguments") && screen.contains("\"properties\""));
    assert!(details.contains("needs"), "{details}");
    pane.press("q");
    pane.press("Escape");
    pane.wait_for("apply_patch");
    pane.press("?");
    pane.wait("the help", |screen| {
        screen.contains("call the tool, with a form") && screen.contains("sort by the next")
    });
    pane.press("q");
    pane.press("s");
    pane.wait_for("TOOL▲");
    pane.press("q");
    pane.wait_for_prompt();
}

#[test]
fn the_call_that_the_dialog_names_is_cancelled_though_rows_have_moved() {
    let daemon = allowing();
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "1", "Calls");
    let running = |count| {
        pane.wait("the calls", |screen| {
            let running = screen.split("── last calls").next().unwrap_or_default();
            running.matches("bash ").count() == count
        })
    };
    let [first, second, third] = [("one", 1), ("two", 2), ("three", 3)].map(|(name, count)| {
        let mut wire = daemon.connect();
        let id = waiting_call(&mut wire, name, &format!("{name}.end"));
        running(count);
        (wire, id)
    });
    pane.press("j");
    pane.press("x");
    pane.wait_for("Cancel the call two of bash?");
    // The rows move while the dialog asks.
    let (mut wire, id) = first;
    fs::write(daemon.work().join("one.end"), "").unwrap();
    assert_eq!(wire.answer(id)["result"]["is_error"], false);
    running(2);
    pane.press("y");
    let (mut wire, id) = second;
    assert_eq!(wire.answer(id)["error"]["code"], -32800);
    pane.wait_for("cancelled the call two");
    let (mut wire, id) = third;
    fs::write(daemon.work().join("three.end"), "").unwrap();
    assert_eq!(wire.answer(id)["result"]["is_error"], false);
    pane.press("q");
    pane.wait_for_prompt();
}

#[test]
fn details_of_a_call_show_its_output_while_it_runs() {
    let daemon = allowing();
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "1", "Calls");
    let mut agent = daemon.connect();
    let command = "echo begun; until test -e end; do sleep 0.05; done; echo all is done";
    let id = agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}}));
    pane.wait_for("bash ");
    pane.press("Enter");
    pane.wait("the output", |screen| screen.contains("who ") && screen.lines().any(|line| line.starts_with("│begun")));
    fs::write(daemon.work().join("end"), "").unwrap();
    assert_eq!(agent.answer(id)["result"]["is_error"], false);
    pane.wait_for("bash, ended");
    pane.press("q");
    pane.press("q");
    pane.wait_for_prompt();
}

fn serve(setup: &Setup) -> Child {
    setup
        .command(toold())
        .arg("serve")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_screen_stays_when_the_daemon_is_killed_and_continues_with_the_next_one() {
    let daemon = TestDaemon::asking();
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "5", "Tools");
    let mut agent = daemon.connect();
    agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo of the old one"}}));
    pane.wait_for("allow once");
    daemon.signal("KILL");
    pane.wait("the last data without the ask", |screen| {
        screen.contains("the daemon is gone, waiting")
            && screen.contains("apply_patch")
            && !screen.contains("allow once")
    });
    // A daemon comes back by itself.
    let mut next = serve(&daemon.setup);
    pane.wait("the next daemon", |screen| screen.contains("toold 0.") && !screen.contains("is gone"));
    let mut agent = until("the next daemon answers", || {
        std::os::unix::net::UnixStream::connect(daemon.socket()).ok()?;
        Some(daemon.connect())
    });
    let call = agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo of the new one"}}));
    pane.wait_for("echo of the new one");
    pane.press_until("y", "the panel", |screen| !screen.contains("allow once"));
    assert_eq!(agent.answer(call)["result"]["is_error"], false);
    next.kill().unwrap();
    next.wait().unwrap();
    // The user starts one.
    pane.wait_for("the daemon is gone, waiting");
    pane.press("D");
    pane.wait("the started daemon", |screen| screen.contains("toold 0.") && !screen.contains("a daemon is"));
    assert!(daemon.toolctl(&["stop"]).status.success());
    pane.wait_for("the daemon is gone, waiting");
    pane.press("q");
    pane.wait_for_prompt();
    // What the started daemon would say if it failed at once.
    fs::remove_file(daemon.setup.path("run/toold.sock.log")).unwrap();
}

#[test]
fn a_question_of_a_tool_is_answered_in_the_screen() {
    let daemon = TestDaemon::start();
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "1", "Calls");
    let mut agent = daemon.connect();
    let options = json!([{"label": "Left"}, {"label": "Right"}]);
    let arguments = json!({"question": "Which way?", "options": options});
    let id = agent.request("tools.execute", json!({"name": "question", "arguments": arguments}));
    pane.wait("the question", |screen| screen.contains("Which way?") && screen.contains("2  Right"));
    pane.press_until("2", "the panel", |screen| !screen.contains("Which way?"));
    let result = agent.answer(id)["result"].take();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("Right"), "{result}");
    pane.press("q");
    pane.wait_for_prompt();
}

#[test]
fn an_answer_that_is_remembered_takes_one_press_after_a_long_diff_was_scrolled_to_its_end() {
    let daemon = TestDaemon::asking();
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "5", "Tools");
    let mut agent = daemon.connect();
    let text: String = (0..500).map(|n| format!("line {n}\n")).collect();
    let arguments = json!({"path": "big.txt", "content": text});
    let call = agent.request("tools.execute", json!({"name": "write", "arguments": arguments}));
    pane.wait("the start", |screen| screen.contains("+line 0") && screen.contains("allow only at the end"));
    pane.press_until("y", "a refusal", |screen| screen.contains("read the prompt to its end first"));
    pane.press("PageDown");
    pane.wait("the next lines", |screen| !screen.contains("+line 0") && screen.contains("allow only at the end"));
    pane.press("G");
    pane.wait_for("+line 499");
    pane.press_until("s", "the panel", |screen| !screen.contains("allow once"));
    assert_eq!(agent.answer(call)["result"]["is_error"], false);
    assert_eq!(fs::read_to_string(daemon.work().join("big.txt")).unwrap(), text);
    pane.press("q");
    pane.wait_for_prompt();
}

#[test]
fn a_change_is_undone_after_its_diff_was_shown() {
    let daemon = allowing();
    let mut agent = daemon.connect();
    agent.tool("read", json!({"path": "a.txt"}));
    let changed = agent.tool("edit", json!({"path": "a.txt", "old": "before", "new": "after"}));
    assert_eq!(changed["is_error"], false, "{changed}");
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "4", "Changes");
    pane.wait_for("a.txt");
    pane.press("u");
    pane.wait("the diff", |screen| {
        ["Undo the changes of this call", "-after", "+before"].iter().all(|text| screen.contains(text))
    });
    pane.press_until("y", "the end", |screen| screen.contains("undone"));
    assert_eq!(fs::read_to_string(daemon.work().join("a.txt")).unwrap(), "before\n");
    pane.press("q");
    pane.wait_for_prompt();
}

/// Calls bash with the form of the panel of tools.
fn call_bash(pane: &Pane<'_>, command: &str) {
    pane.press("/");
    pane.type_text("bash shell command");
    pane.press("Enter");
    // A key acts on the row that is on the screen.
    pane.wait("one tool", |screen| screen.contains("bash ") && !screen.contains("apply_patch"));
    pane.press("r");
    pane.wait("the form", |screen| screen.contains("command:"));
    pane.type_line(command);
    pane.wait_for("Set optional arguments?");
    pane.press("Enter");
    pane.wait_for("Call bash");
    pane.press("Enter");
}

#[test]
fn a_tool_is_called_with_a_form() {
    let daemon = TestDaemon::asking();
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "5", "Tools");
    call_bash(&pane, "echo by hand");
    pane.wait("the ask", |screen| screen.contains("bash asks for permission") && screen.contains("echo by hand"));
    pane.press_until("y", "the result", |screen| screen.contains("result of bash"));
    pane.wait("the output", |screen| screen.lines().any(|line| line.starts_with("│by hand")));
    pane.press("q");
    pane.press("q");
    pane.wait_for_prompt();
}

#[test]
fn a_call_from_the_screen_has_the_session_folder_and_project_of_a_call_from_its_shell() {
    let daemon = Setup::new().file(".git/HEAD", "ref: refs/heads/main\n").file("sub/a.txt", "a\n").start();
    let mut watch = daemon.connect();
    watch.result("events.subscribe", json!({"kinds": ["call.started"]}));
    let mut call = || {
        let call = watch.notification("events.event")["result"].take();
        let list = daemon.connect().result("session.list", json!({}));
        let all = list["sessions"].as_array().unwrap();
        let session = all.iter().find(|session| session["session_id"] == call["session_id"]).unwrap();
        let of_session = ["session_id", "cwd", "project", "mode", "level"].map(|member| session[member].clone());
        (call["cwd"].clone(), call["client"].clone(), of_session)
    };
    let tmux = Tmux::start(&daemon);
    let pane = tmux.first();
    pane.run("cd sub");
    let pane = open(&tmux, "5", "Tools");
    call_bash(&pane, "pwd");
    pane.wait_for("result of bash");
    let from_screen = call();
    pane.press("q");
    pane.press("q");
    pane.run("toolctl call bash command=pwd");
    pane.wait_for_line(daemon.work().join("sub").to_str().unwrap());
    let from_shell = call();
    assert_eq!(from_screen, from_shell);
    assert_eq!((from_shell.0, &from_shell.2[2]), (json!(daemon.work().join("sub")), &json!(daemon.work())));
}

#[test]
fn a_grant_is_revoked_after_a_question() {
    let daemon = TestDaemon::asking();
    let mut person = daemon.connect();
    let grant = json!({"category": "shell", "pattern": "make *", "scope": "always"});
    let granted = person.result("permissions.grant", grant);
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "3", "Rules");
    pane.wait_for("make *");
    pane.press("g");
    pane.press("x");
    pane.wait_for(&format!("Revoke the grant {}?", granted["id"].as_str().unwrap()));
    pane.press("y");
    pane.wait("the other rules", |screen| !screen.contains("make *") && screen.contains("revoked the grant"));
    let left: Vec<Value> =
        serde_json::from_value(person.result("permissions.list", json!({}))["grants"].take()).unwrap();
    assert!(left.is_empty(), "{left:?}");
    pane.press("q");
    pane.wait_for_prompt();
}

#[test]
fn forty_columns_show_whole_words() {
    let daemon = TestDaemon::start();
    let tmux = Tmux::start(&daemon);
    tmux.run(&["resize-window", "-x", "40", "-y", "12"]);
    let pane = open(&tmux, "5", "Tools");
    for (key, words) in [("5", "apply_patch"), ("7", "toolctl"), ("2", "OUTCOME"), ("9", "session.opened")] {
        pane.press(key);
        let screen = pane.wait_for(words);
        assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
    }
    pane.press("q");
    pane.wait_for_prompt();
}

#[test]
fn times_are_in_the_zone_of_the_user() {
    let daemon = TestDaemon::start();
    let tmux = Tmux::start(&daemon);
    let pane = tmux.first();
    // Nine hours ahead of UTC, in the notation of POSIX.
    pane.run("TZ=JST-9 toolctl");
    pane.wait_for("── last calls");
    pane.press("9");
    let screen = pane.wait_for("session.opened");
    let row = screen.lines().find(|line| line.contains("session.opened")).unwrap();
    let shown: u64 = row[..2].parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() / 3600;
    // The hour may have ended since.
    assert!([now, now - 1].iter().any(|hour| (hour + 9) % 24 == shown), "{screen}");
    pane.press("q");
    pane.wait_for_prompt();
}

#[test]
fn the_mouse_selects_rows_and_tabs_and_the_keyboard_copies() {
    let daemon = TestDaemon::start();
    let mut names: Vec<String> = Vec::new();
    let tools = daemon.connect().result("tools.list", json!({}))["tools"].take();
    names.extend(tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
    // Below the header, the tabs, the title and the names of the columns; the first row has the number 1.
    let row = 5 + names.iter().position(|name| name == "grep").unwrap();
    let mut terminal = Terminal::run(&mut daemon.setup.command(toolctl()));
    terminal.wait_for("── Calls");
    terminal.press("5");
    terminal.wait_for("apply_patch");
    terminal.press(&format!("\x1b[<0;3;{row}M\x1b[<0;3;{row}m"));
    terminal.press("c");
    // The name in base64: the sequence that sets the clipboard.
    terminal.wait_for("\x1b]52;c;Z3JlcA==");
    // The wheel.
    terminal.press("\x1b[<65;3;10M");
    terminal.press("c");
    terminal.wait_for("\x1b]52;c;a2lsbF9zaGVsbA==");
    terminal.press("\x1b[<0;3;2M");
    terminal.wait_for("last changes");
    terminal.press("q");
    let (status, written) = terminal.end();
    assert!(status.success(), "{written:?}");
    // The terminal is as it was before.
    assert!(written.contains("\x1b[?1049l"), "{written:?}");
}

#[test]
fn a_server_is_restarted_and_a_daemon_reconnected_after_a_question() {
    let far = TestDaemon::start();
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/stand_in.py");
    let server = format!("[mcp.servers.helper]\ncommand = \"python3\"\nargs = [{stand_in:?}]\n");
    let socket = far.socket();
    let remote =
        format!("[remotes.far]\ncommand = [{:?}, \"connect\"]\nenv = {{ TOOLD_SOCKET = {socket:?} }}\n", toolctl());
    let daemon = Setup::new().config(&(server + &remote)).start();
    let tmux = Tmux::start(&daemon);
    let pane = open(&tmux, "6", "Sources");
    for (name, question, done) in [
        ("helper mcp", "Restart the MCP server helper?", "restarted helper"),
        ("far remote", "Reconnect to far?", "reconnected far"),
    ] {
        pane.press("/");
        pane.type_text(name);
        pane.wait("the row", |screen| {
            screen.contains("── Sources: 1 of ") && screen.contains(&format!("with /{name} "))
        });
        pane.press("Enter");
        pane.press("r");
        pane.wait_for(question);
        pane.wait_for("running calls that fail: 0");
        pane.press("y");
        pane.wait_for(done);
        pane.press("Escape");
        pane.wait("all rows", |screen| !screen.contains("with /"));
    }
    pane.press("q");
    pane.wait_for_prompt();
    // The server's process ends before the terminal does.
    fs::write(daemon.setup.path("config/toold/config.toml"), "").unwrap();
    let mut wire = daemon.connect();
    until("nothing is mounted", || {
        (wire.result("mcp.servers", json!({}))["servers"] == json!([])
            && wire.result("remotes.list", json!({}))["remotes"] == json!([]))
        .then_some(())
    });
}

/// The sequences that end what the screen switches on: the mouse, the paste mode, the other screen, a hidden cursor.
const LEFT: [&str; 4] = ["\x1b[?1000l", "\x1b[?2004l", "\x1b[?1049l", "\x1b[?25h"];

#[test]
fn a_signal_restores_the_terminal_and_is_the_status() {
    let daemon = TestDaemon::start();
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130), (Signal::QUIT, 131)] {
        let terminal = Terminal::run(&mut daemon.setup.command(toolctl()));
        terminal.wait_for("── Calls");
        terminal.signal(signal);
        let (ended, written) = terminal.end();
        assert_eq!(ended.code(), Some(status), "{written:?}");
        for left in LEFT {
            assert!(written.contains(left), "{left:?} in {written:?}");
        }
    }
    // The session was closed, as by `q`.
    until("the sessions are closed", || {
        let sessions = daemon.connect().result("session.list", json!({}))["sessions"].take();
        let names = sessions.as_array().unwrap().iter().map(|session| session["client"]["name"].clone());
        (!names.collect::<Vec<_>>().contains(&json!("toolctl"))).then_some(())
    });
}

#[test]
fn the_screen_ends_when_its_terminal_is_closed() {
    let daemon = TestDaemon::start();
    let tmux = Tmux::start(&daemon);
    open(&tmux, "5", "Tools");
    // Closes the terminal, and waits until no process is left.
    drop(tmux);
}

#[test]
fn a_signal_restores_the_terminal_while_a_form_or_a_search_has_it() {
    let daemon = TestDaemon::start();
    let mut screen = Terminal::run(&mut daemon.setup.command(toolctl()));
    screen.wait_for("── Calls");
    screen.press("5");
    screen.wait_for("apply_patch");
    screen.press("r");
    screen.wait_for("input:");
    let form = Terminal::run(daemon.setup.command(toolctl()).args(["call", "bash", "--form"]));
    form.wait_for("command:");
    let search = Terminal::run(daemon.setup.command(toolctl()).arg("call"));
    search.wait_for("type to search");
    for terminal in [screen, form, search] {
        terminal.signal(Signal::TERM);
        let (ended, written) = terminal.end();
        assert_eq!(ended.code(), Some(143), "{written:?}");
        assert!(written.ends_with("\x1b[?25h"), "{written:?}");
    }
}

#[test]
fn a_pasted_text_is_typed_into_the_filter_and_presses_no_keys() {
    let daemon = TestDaemon::start();
    let mut terminal = Terminal::run(&mut daemon.setup.command(toolctl()));
    terminal.wait_for("\x1b[?2004h");
    terminal.wait_for("── Calls");
    terminal.press("5");
    terminal.wait_for("apply_patch");
    // As keys, it would quit.
    terminal.press("\x1b[200~q9\n\x1b[201~");
    terminal.wait_for("can be pasted only where");
    terminal.press("/\x1b[200~web_fetch\n\x1b[201~");
    terminal.wait_for("with /web_fetch");
    terminal.press("\r");
    terminal.press("c");
    // The name in base64: the sequence that sets the clipboard.
    terminal.wait_for("\x1b]52;c;d2ViX2ZldGNo");
    terminal.press("q");
    assert!(terminal.end().0.success());
}

#[test]
fn a_mouse_report_outside_the_screen_is_harmless() {
    let daemon = TestDaemon::start();
    let mut terminal = Terminal::run(&mut daemon.setup.command(toolctl()));
    terminal.wait_for("── Calls");
    terminal.press("5");
    terminal.wait_for("apply_patch");
    terminal.press("\x1b[<0;0;0M\x1b[M   \x1b[32;0;0M?");
    terminal.wait_for("Esc q ? back");
    terminal.press("qq");
    let (status, written) = terminal.end();
    assert!(status.success() && !written.contains("panicked"), "{written:?}");
}

#[test]
fn plain_output_is_a_summary_without_a_terminal() {
    let daemon = TestDaemon::asking();
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let mut agent = daemon.connect();
    agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo it is done"}}));
    let said = until("the ask", || {
        let output = daemon.toolctl(&["--plain"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        said.contains("asks for permission").then_some(said)
    });
    assert!(said.contains("bash asks for permission: shell echo it is done. Answer with: toolctl approve"), "{said}");
    assert!(said.contains("has been running for") && said.contains("1 call running"), "{said}");
}
