//! Undoing changes from a shell.

use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toold_tests::{Setup, Terminal, TestDaemon, Wire, toolctl, until};

fn command(daemon: &TestDaemon, arguments: &[&str]) -> Command {
    let mut command = daemon.setup.command(toolctl());
    command.args(arguments);
    command
}

#[track_caller]
fn run(daemon: &TestDaemon, arguments: &[&str]) -> Output {
    let output = command(daemon, arguments).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A daemon that lets tools write, and one file.
fn daemon() -> TestDaemon {
    let rule = "[[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n";
    Setup::new().config(rule).file("a.txt", "before\n").start()
}

fn content(daemon: &TestDaemon) -> String {
    fs::read_to_string(daemon.work().join("a.txt")).unwrap()
}

fn change(daemon: &TestDaemon, from: &str, to: &str) {
    let mut wire = daemon.connect();
    wire.tool("read", json!({"path": "a.txt"}));
    let changed = wire.tool("edit", json!({"path": "a.txt", "old": from, "new": to}));
    assert_eq!(changed["is_error"], false, "{changed}");
}

#[test]
fn the_last_change_is_shown_and_taken_back_when_its_session_and_the_daemon_are_gone() {
    let mut daemon = daemon();
    change(&daemon, "before", "between");
    change(&daemon, "between", "after");
    daemon.restart("KILL");
    let mut terminal = Terminal::run(&mut command(&daemon, &["undo"]));
    terminal.wait_for("-after");
    terminal.wait_for("+between");
    terminal.press_until("y", "undid the changes to a.txt");
    assert!(terminal.end().0.success());
    assert_eq!(content(&daemon), "between\n");
    run(&daemon, &["undo", "--yes", "a.txt"]);
    assert_eq!(content(&daemon), "before\n");
    let listed: Value = serde_json::from_slice(&run(&daemon, &["undo", "--list", "--json"]).stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().iter().filter(|change| change["undone"] == true).count(), 2, "{listed}");
}

#[test]
fn nothing_is_taken_back_without_a_yes() {
    let daemon = daemon();
    change(&daemon, "before", "after");
    let mut terminal = Terminal::run(&mut command(&daemon, &["undo"]));
    terminal.wait_for("[y/N]");
    terminal.press("n");
    let (_, written) = terminal.end();
    assert!(written.trim_end().ends_with("no"), "{written}");
    let nobody = command(&daemon, &["undo"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(nobody.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("--yes"));
    assert_eq!(content(&daemon), "after\n");
}

#[test]
fn a_file_that_changed_since_keeps_its_text() {
    let daemon = daemon();
    change(&daemon, "before", "after");
    fs::write(daemon.work().join("a.txt"), "by hand\n").unwrap();
    let refused = command(&daemon, &["undo", "--yes"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has changed since"));
    assert_eq!(content(&daemon), "by hand\n");
}

#[test]
fn no_tool_sees_the_text_before_a_change() {
    let daemon = daemon();
    change(&daemon, "before", "after");
    let undo = daemon.setup.path("state/toold/undo");
    let kept = fs::read_dir(undo.join("@contents")).unwrap().next().unwrap().unwrap().path();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    let read = wire.tool("read", json!({"path": kept}));
    assert_eq!(read["is_error"], true, "{read}");
    let written = wire.tool("write", json!({"path": kept, "content": "x"}));
    assert_eq!(written["is_error"], true, "{written}");
}

#[test]
fn changes_are_shown_as_one_diff_and_forgotten() {
    let daemon = daemon();
    change(&daemon, "before", "between");
    change(&daemon, "between", "after");
    let shown = String::from_utf8(run(&daemon, &["changes", "--since", "1h"]).stdout).unwrap();
    assert!(shown.contains("-before") && shown.contains("+after"), "{shown}");
    assert_eq!(shown.matches("# by edit in call").count(), 2, "{shown}");
    assert!(!shown.contains("between"), "{shown}");
    let forgotten = run(&daemon, &["changes", "forget", "--all", "--yes"]).stdout;
    assert_eq!(String::from_utf8(forgotten).unwrap(), "forgot 2 changes\n");
    let none = command(&daemon, &["undo", "--yes", "a.txt"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(none.status.code(), Some(5));
    assert_eq!(content(&daemon), "after\n");
}

#[test]
fn all_changes_of_an_hour_are_undone_at_once() {
    let daemon = daemon();
    change(&daemon, "before", "between");
    change(&daemon, "between", "after");
    run(&daemon, &["undo", "--since", "1h", "--yes"]);
    assert_eq!(content(&daemon), "before\n");
}

#[test]
fn changes_elsewhere_are_neither_undone_with_those_below_this_folder_nor_in_their_way() {
    let daemon = daemon();
    change(&daemon, "before", "after");
    fs::write(daemon.work().join("a.txt"), "by hand\n").unwrap();
    fs::create_dir(daemon.work().join("sub")).unwrap();
    let mut wire = daemon.connect();
    let written = wire.tool("write", json!({"path": "sub/b.txt", "content": "made\n"}));
    assert_eq!(written["is_error"], false, "{written}");
    for option in [["--since", "1h"], ["--agent", "nobody"]] {
        let mut undo = command(&daemon, &[&["undo", "--yes"], option.as_slice()].concat());
        let output = undo.current_dir(daemon.work().join("sub")).stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, if option[0] == "--since" { "undid the changes to b.txt\n" } else { "" });
    }
    assert!(!daemon.work().join("sub/b.txt").exists());
    let refused =
        command(&daemon, &["undo", "--yes", "--since", "1h"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has changed since"), "{refused:?}");
    assert_eq!(content(&daemon), "by hand\n");
}

#[track_caller]
fn git(daemon: &TestDaemon, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@example.com"]).args(arguments).current_dir(daemon.work());
    let output = git.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The words are the daemon's, so that all clients say the same.
#[test]
fn what_undo_leaves_as_it_is_and_what_still_runs_is_said() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"sh *\"\naction = \"allow\"\n";
    let script = "git -c user.name=n -c user.email=e@example.com commit -q --allow-empty -m next\n\
                  rm -r out\necho after > a.txt\n";
    let setup = Setup::new().config(rule).file("a.txt", "before\n").file("run.sh", script).file(".gitignore", "out/\n");
    let daemon = setup.file("out/x", "kept by nobody\n").start();
    git(&daemon, &["init", "-q"]);
    git(&daemon, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let mut wire = daemon.connect();
    let call = json!({"name": "bash", "arguments": {"command": "sh run.sh"}, "call_id": "c"});
    assert_eq!(wire.result("tools.execute", call)["is_error"], false);
    let stays = ["out does not come back: nothing of it was kept", "Git's branches and index in .git stay as they are"];
    let folder = daemon.work();
    let planned = wire.result("files.undo", json!({"call_id": "c", "dry_run": true, "folder": folder}));
    assert_eq!(planned["notes"], json!(stays), "{planned}");
    let history = wire.result("files.history", json!({"folder": folder}));
    assert_eq!(history["unrecorded"][0]["notes"], json!(stays), "{history}");
    let shown = String::from_utf8(run(&daemon, &["undo", "--yes"]).stdout).unwrap();
    assert_eq!(shown, format!("undid the changes to a.txt\n{}\n{}\n", stays[0], stays[1]));

    assert_eq!(wire.tool("bash", json!({"command": "sleep 600", "background": true}))["is_error"], false);
    let changes = String::from_utf8(run(&daemon, &["changes"]).stdout).unwrap();
    let running = "# sh_1 still runs in the background, and its changes are recorded when it ends: sleep 600";
    assert!(changes.lines().any(|line| line == running), "{changes}");
    for arguments in [["undo", "--yes", "made-by-it.txt"], ["undo", "--yes", "--since=0s"]] {
        let refused = command(&daemon, &arguments).stdin(std::process::Stdio::null()).output().unwrap();
        assert_eq!(refused.status.code(), Some(5));
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(told.contains(running.trim_start_matches("# ")), "{told}");
        assert!(told.contains("end the command first: `toolctl shells kill sh_1`"), "{told}");
    }
}

/// Names of several lines, and those that are not UTF-8, are shown on one line, and undone by the name in the answer.
#[test]
fn files_with_odd_names_are_undone_by_their_path() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"sh *\"\naction = \"allow\"\n";
    let setup = Setup::new().config(rule).file("lines.sh", "echo x > 'one\n  two'\n");
    let daemon = setup.file("bytes.sh", "echo x > \"$(printf 'caf\\351')\"\n").start();
    let mut wire = daemon.connect();
    for (script, path, shown) in [
        ("lines.sh", "one\n  two", "undid the changes to one\\n  two\n"),
        ("bytes.sh", "caf\u{fffd}", "undid the changes to caf\u{fffd}\n"),
    ] {
        assert_eq!(wire.tool("bash", json!({"command": format!("sh {script}")}))["is_error"], false);
        let undone = String::from_utf8(run(&daemon, &["undo", "--yes", "--", path]).stdout).unwrap();
        assert_eq!(undone, shown);
    }
    assert_eq!(fs::read_dir(daemon.work()).unwrap().count(), 2);
}

/// An answer has room for some ten thousand changes, and a folder for many more.
#[test]
fn the_last_change_is_undone_after_more_changes_than_an_answer_holds() {
    let daemon = daemon();
    change(&daemon, "before", "after");
    let day_ago = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - Duration::from_secs(24 * 3600);
    let long = "long/".repeat(200);
    let path = |number: u32| daemon.work().join(format!("{long}{number}"));
    let changes: Vec<Value> = (0..16_000)
        .map(|number| json!({"path": path(number), "before": null, "after": {"kind": "folder", "mode": null}}))
        .collect();
    let record = json!({
        "session_id": "old", "call_id": "c", "tool": "bash", "changes": changes,
        "at": {"secs_since_epoch": day_ago.as_secs(), "nanos_since_epoch": 0},
    });
    let folder = daemon.state().join("undo/old");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{:020}-00000001-00000001.call", day_ago.as_nanos())), record.to_string()).unwrap();

    let listed = run(&daemon, &["undo", "--list"]);
    let told = String::from_utf8(listed.stderr).unwrap();
    assert!(told.starts_with("not listed: ") && told.ends_with(" older changes\n"), "{told}");
    assert!(String::from_utf8(listed.stdout).unwrap().trim_end().ends_with("a.txt"));
    run(&daemon, &["undo", "--yes"]);
    assert_eq!(content(&daemon), "before\n");
    let undone = String::from_utf8(run(&daemon, &["undo", "--yes", "--call=c"]).stdout).unwrap();
    assert_eq!(undone.lines().count(), 21, "{undone}");
    assert!(undone.ends_with("undid the changes to 15980 more paths\n"), "{undone}");
}

#[test]
fn changes_in_a_file_are_a_patch_that_git_takes_back() {
    let daemon = daemon();
    let odd = "crlf\r\nno end";
    fs::write(daemon.work().join("odd name"), odd).unwrap();
    fs::write(daemon.work().join("binary"), b"\0\xff").unwrap();
    fs::create_dir(daemon.work().join("below")).unwrap();
    git(&daemon, &["init", "-q"]);
    git(&daemon, &["add", "-A"]);
    git(&daemon, &["commit", "-qm", "first"]);
    change(&daemon, "before", "after");
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    let line = "rm 'odd name'; chmod +x a.txt; echo x > below/new; : > empty; ln -s a.txt link; echo y > binary; \
                printf 'a\\nb' > \"$(printf 'two\\nlines')\"; mkdir folder";
    fs::write(daemon.setup.path("script"), line).unwrap();
    let ran = wire.tool("bash", json!({"command": format!("sh {}", daemon.setup.path("script").display())}));
    assert_eq!(ran["is_error"], false, "{ran}");
    let patch = run(&daemon, &["changes"]).stdout;
    let text = String::from_utf8_lossy(&patch).into_owned();
    for expected in
        ["# by edit in call", "# by bash in call", "# binary: not text in UTF-8", "# folder: the folder was made"]
    {
        assert!(text.lines().any(|line| line.starts_with(expected)), "{expected}\n{text}");
    }
    let file = daemon.setup.path("x.patch");
    fs::write(&file, patch).unwrap();
    git(&daemon, &["apply", "-R", file.to_str().unwrap()]);
    assert_eq!(content(&daemon), "before\n");
    assert_eq!(fs::read_to_string(daemon.work().join("odd name")).unwrap(), odd);
    git(&daemon, &["apply", file.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(daemon.work().join("two\nlines")).unwrap(), "a\nb");
    assert_eq!(fs::read_link(daemon.work().join("link")).unwrap(), std::path::Path::new("a.txt"));
    // In another folder, what is not below it is named.
    let mut below = command(&daemon, &["changes"]);
    let text = String::from_utf8(below.current_dir(daemon.work().join("below")).output().unwrap().stdout).unwrap();
    assert!(text.contains("+++ b/new\n") && text.contains("a.txt: not below this folder"), "{text}");
}

/// Calls `bash` and does not wait for its end, but for what it says.
fn begin(daemon: &TestDaemon, line: &str) -> (Wire, u64) {
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    fs::write(daemon.setup.path("script"), line).unwrap();
    let command = format!("sh {}", daemon.setup.path("script").display());
    let call = json!({"name": "bash", "arguments": {"command": command}, "call_id": "killed"});
    let id = wire.request("tools.execute", call);
    (wire, id)
}

#[test]
fn what_a_command_had_done_when_the_daemon_was_killed_is_taken_back() {
    let mut daemon = daemon();
    fs::write(daemon.work().join("gone"), "gone\n").unwrap();
    run(&daemon, &["call", "bash", "command=ls"]);
    let said = daemon.setup.path("said");
    let line = format!(
        "echo killed > a.txt; rm gone; mkdir new; echo x > new/x; mkfifo {0}; echo > {0}; sleep 600",
        said.display()
    );
    let _wire = begin(&daemon, &line);
    until("the command runs", || said.exists().then_some(()));
    // Opening it waits for the command, which has done all else by then.
    fs::read(&said).unwrap();
    daemon.restart("KILL");
    let text = String::from_utf8(run(&daemon, &["undo", "--yes"]).stdout).unwrap();
    assert!(text.contains("undid the changes to a.txt\n"), "{text}");
    assert_eq!(content(&daemon), "before\n");
    assert_eq!(fs::read_to_string(daemon.work().join("gone")).unwrap(), "gone\n");
    assert!(!daemon.work().join("new").exists());
    // The folder of logs holds nothing but those of the daemon that lives.
    let logs = fs::read_dir(daemon.setup.path("state/toold/undo/@index")).unwrap().count();
    assert!(logs <= 1, "{logs} logs");
}

#[test]
fn an_undo_that_was_killed_goes_on() {
    let mut daemon = daemon();
    for n in 0..300 {
        let path = daemon.work().join(format!("m/{}/{n}", n % 10));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{n}\n")).unwrap();
    }
    run(&daemon, &["call", "bash", "command=ls"]);
    let (mut wire, id) = begin(&daemon, "rm -rf m; echo after > a.txt; mkdir new; echo x > new/x");
    assert_eq!(wire.answer(id)["result"]["is_error"], false);
    let before = fs::read_to_string(daemon.work().join("a.txt")).unwrap();
    assert_eq!(before, "after\n");
    wire.request("files.undo", json!({"call_id": "killed"}));
    // Killed while it brings files back: at whatever moment that is.
    until("the undo begins", || daemon.work().join("m").exists().then_some(()));
    daemon.restart("KILL");
    let _ =
        command(&daemon, &["undo", "--yes", "--call", "killed"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(content(&daemon), "before\n");
    for n in 0..300 {
        let path = daemon.work().join(format!("m/{}/{n}", n % 10));
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{n}\n"), "{}", path.display());
    }
    assert!(!daemon.work().join("new").exists());
    let listed: Value = serde_json::from_slice(&run(&daemon, &["undo", "--list", "--json"]).stdout).unwrap();
    assert!(listed.as_array().unwrap().iter().all(|change| change["undone"] == true), "{listed}");
}
