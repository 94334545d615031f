//! `toolctl call` and the other commands as a newcomer types them: what a wrong call is answered with.

use std::path::Path;
use std::process::{Command, Output};

use toold_tests::{Setup, Terminal, TestDaemon, toolctl, until};

fn command(daemon: &TestDaemon, arguments: &[&str]) -> Command {
    let mut command = daemon.setup.command(toolctl());
    command.args(arguments).current_dir(daemon.work());
    command
}

fn run(daemon: &TestDaemon, arguments: &[&str]) -> Output {
    command(daemon, arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_wrong_use_is_answered_with_the_right_one() {
    let daemon = Setup::new().file("notes.txt", "tea\n").start();
    for (arguments, words) in [
        (
            &["call", "read", "path=notes.txt", "limit=99999999999999999999"][..],
            "invalid arguments for read: /limit: expected an integer of at most 9007199254740992",
        ),
        (
            &["call", "--json", "read", "path=notes.txt"],
            "--json takes the arguments as a JSON object, got read; for output as JSON, use --output json",
        ),
        (
            &["call", "read", "--json", "path=notes.txt"],
            "--json takes the arguments as a JSON object, got path=notes.txt; for output as JSON, use --output json",
        ),
        (&["call", "read", "notes.txt"], "expected key=value, got \"notes.txt\": did you mean path=notes.txt?"),
        (&["call", "read", "my notes"], "did you mean 'path=my notes'?"),
        (&["call", "write", "notes.txt"], "`toolctl tools schema write` shows the keys"),
        (&["call", "read", "pth=x"], "invalid arguments for read: unknown argument \"pth\": did you mean \"path\"?\n"),
        (
            &["permissions", "check", "file.read"],
            "file.read is a category: expected a target behind it, such as `toolctl permissions check file.read PATH`",
        ),
        (&["help", "permissions", "grnt"], "a similar subcommand exists: 'grant'"),
        (&["audit", "--since", "x"], "error: since: \"x\" is neither"),
    ] {
        let output = run(&daemon, arguments);
        let told = stderr(&output);
        assert!(told.contains(words), "{arguments:?}: {told}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
    }
    assert!(!stderr(&run(&daemon, &["call", "s"])).contains("did you mean"), "a letter is no name");
    assert_eq!(run(&daemon, &["resume"]).stdout, b"nothing was paused\n");
    let shown = String::from_utf8(run(&daemon, &["schema", "remember"]).stdout).unwrap();
    assert!(shown.contains("session | project | global"), "{shown}");
    let shown = String::from_utf8(run(&daemon, &["schema", "question"]).stdout).unwrap();
    assert!(shown.contains("array of {label, description?}"), "{shown}");
    assert!(run(&daemon, &["config", "get", "limits"]).status.success());
    let told = run(&daemon, &["call", "bash", "command=ls ("]);
    let told = String::from_utf8([told.stdout, told.stderr].concat()).unwrap();
    assert!(told.contains("toold cannot read this line as bash: check its quotes and brackets"), "{told}");
}

#[test]
fn a_rule_that_is_typed_says_what_it_does_not_do() {
    let daemon = TestDaemon::start();
    for (pattern, meant) in [("git push:*", "did you mean \"git push *\"?"), ("yarn", "\"yarn *\"")] {
        let told = stderr(&run(&daemon, &["permissions", "grant", "--deny", "shell", pattern]));
        assert!(told.contains("warning:") && told.contains(meant), "{pattern}: {told}");
    }
    let told = stderr(&run(&daemon, &["permissions", "grant", "--deny", "shell", "git push *", "--expires-in", "1h"]));
    assert_eq!(told, "");
    daemon.toolctl(&["pause"]);
    let output = run(&daemon, &["call", "bash", "command=ls"]);
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("(everything is paused by toolctl") && told.contains("`toolctl resume`"), "{told}");
    assert_eq!(output.status.code(), Some(6), "{told}");
    // In the person's zone, as in tables; a program gets the daemon's time.
    let local = command(&daemon, &["call", "bash", "command=ls"]).env("TZ", "JST-9").output().unwrap();
    let told = String::from_utf8([local.stdout, local.stderr].concat()).unwrap();
    let (_, time) = told.split_once("paused by toolctl at ").unwrap();
    let form: String = time.chars().take(20).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(form, "0000-00-00 00:00:00;", "{told}");
    assert_eq!(run(&daemon, &["resume"]).stdout, b"resumed\n");
}

#[test]
fn a_call_gives_up_although_a_person_is_asked() {
    let daemon = TestDaemon::asking();
    let terminal = Terminal::run(&mut command(&daemon, &["call", "bash", "command=touch x", "--timeout", "5"]));
    terminal.wait_for("allow once");
    let (status, text) = terminal.end();
    assert!(text.contains("gave up after 5.0 s"), "{text}");
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(!daemon.work().join("x").exists());
}

#[test]
fn a_denial_at_a_terminal_is_no_error_of_the_tool() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"id\"\naction = \"deny\"\n";
    let daemon = Setup::new().config(rule).start();
    let (status, text) = Terminal::run(&mut command(&daemon, &["call", "bash", "command=id"])).end();
    assert!(text.contains("not allowed: shell id") && !text.contains("reported an error"), "{text}");
    assert_eq!(status.code(), Some(6));
}

#[test]
fn a_pasted_text_answers_nothing() {
    let daemon = TestDaemon::asking();
    let mut terminal = Terminal::run(&mut command(&daemon, &["call", "bash", "command=touch four"]));
    terminal.wait_for("deny, with a reason");
    // Keys right after the prompt count for nothing anyway: the answer at the end is what is waited for.
    for _ in 0..20 {
        terminal.press("clear; toolctl call anything\r");
    }
    let grants = String::from_utf8(run(&daemon, &["permissions", "list"]).stdout).unwrap();
    assert!(!grants.contains("touch four") && !daemon.work().join("four").exists(), "{grants}");
    terminal.press_until("n", "denied");
    let (_, text) = terminal.end();
    assert!(!text.contains("allowed always") && !text.contains("allowed by"), "{text}");
}

#[test]
fn an_ask_in_another_window_says_which_terminal_asks() {
    let daemon = TestDaemon::asking();
    let mut approve = Terminal::run(&mut command(&daemon, &["approve"]));
    approve.wait_for("waiting for prompts");
    let mut asking = Terminal::run(&mut command(&daemon, &["call", "bash", "command=touch two"]));
    asking.wait_for("agent: toolctl, this terminal");
    approve.wait_for("agent: toolctl, terminal pts/");
    let mut second = Terminal::run(&mut command(&daemon, &["call", "bash", "command=touch three"]));
    approve.wait_for("1 more waiting");
    approve.press_until("n", "denied");
    approve.wait_for("touch three");
    approve.press_until("n", "touch three");
    until("both are answered", || {
        approve.press("n");
        (approve.written().matches("denied").count() > 1).then_some(())
    });
    for terminal in [&mut asking, &mut second] {
        terminal.wait_for("not allowed");
    }
    approve.press_until("\u{1b}", "n");
}

#[test]
fn a_level_without_a_session_is_that_of_this_terminal() {
    let daemon = TestDaemon::start();
    let mut other = daemon.connect();
    for id in ["terminal-pts_90-1-1-2", "mine"] {
        other.result("session.open", serde_json::json!({"cwd": daemon.work(), "session_id": id}));
    }
    assert!(Terminal::run(&mut command(&daemon, &["call", "list"])).end().0.success());
    let (status, text) = Terminal::run(&mut command(&daemon, &["level", "edit"])).end();
    assert!(status.success() && text.contains("this terminal"), "{text}");
    let (status, text) = Terminal::run(&mut command(&daemon, &["permissions", "mode", "accept_edits"])).end();
    assert!(status.success(), "{text}");
}

#[test]
fn calls_at_a_terminal_share_its_session_wherever_their_input_and_output_go() {
    let daemon = TestDaemon::start();
    let call = format!("{} call list > /dev/null", toolctl().display());
    let lines =
        ["{}", "{} < /dev/null", "{} 2> /dev/null", "echo x | {} 2>&1 | cat", "timeout 60 {}", "sh -c '{}; true'"];
    // The session ends with the shell.
    let listed = format!(" && {} sessions --json && echo all of them", toolctl().display());
    let script = lines.map(|line| line.replace("{}", &call)).join(" && ") + &listed;
    let mut shell = daemon.setup.command(Path::new("setsid"));
    shell.args(["--ctty", "--wait", "sh", "-c", &script]).current_dir(daemon.work());
    let (status, text) = Terminal::run(&mut shell).end();
    assert!(status.success() && text.contains("all of them"), "{text}");
    assert_eq!(text.matches("\"terminal-pts_").count(), 1, "{text}");
}
