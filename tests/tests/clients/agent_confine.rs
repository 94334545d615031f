//! `toolctl confine`: the command lines of Claude Code, between its hook and the shell.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, has_ended, skip, toolctl, toold, until};

/// What Claude Code does with a line, as far as it concerns the hook and the program that runs the line.
struct FakeClaude<'d> {
    daemon: &'d TestDaemon,
    prefix: String,
}

impl<'d> FakeClaude<'d> {
    fn new(daemon: &'d TestDaemon) -> Self {
        let link = daemon.setup.path("toolctl-confine-closed");
        // The test may have made it before.
        let _ = symlink(toolctl(), &link);
        Self { daemon, prefix: link.display().to_string() }
    }

    fn command(&self, program: &Path, kind: &str) -> Command {
        let mut command = self.daemon.setup.command(program);
        command
            .env("CLAUDE_CODE_SHELL_PREFIX", &self.prefix)
            .env("CLAUDE_CODE_SESSION_ID", "s-1")
            .env("AI_AGENT", format!("claude-code_2-1-332_{kind}"))
            .env("SHELL", "/bin/bash")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.current_dir(self.daemon.work());
        command
    }

    /// The decision of the hook; null for silence.
    fn hook_with(&self, line: &str, more: &[(&str, &str)]) -> Value {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        self.event("PreToolUse", line, call, more)["permissionDecision"].take()
    }

    /// The answer of the hook to an event of a call.
    fn event(&self, event: &str, line: &str, call: u32, more: &[(&str, &str)]) -> Value {
        let input = json!({
            "session_id": "s-1", "cwd": self.daemon.work(), "hook_event_name": event, "permission_mode": "default",
            "tool_name": "Bash", "tool_input": {"command": line}, "tool_use_id": format!("toolu_{call}"),
        });
        let mut command = self.command(toolctl(), "harness");
        command.args(["hook", "claude-code"]).envs(more.iter().copied());
        let output = answered(command, &input.to_string());
        let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        answer["hookSpecificOutput"].take()
    }

    fn hook(&self, line: &str) -> Value {
        self.hook_with(line, &[])
    }

    /// Runs a text as Claude Code hands it over.
    fn run(&self, kind: &str, text: &str) -> Output {
        let mut command = self.command(Path::new(&self.prefix), kind);
        command.arg(text);
        answered(command, "")
    }

    /// Runs a line as Claude Code 2.1.332 does.
    fn bash(&self, line: &str) -> Output {
        let quoted = format!("'{}'", line.replace('\'', "'\"'\"'"));
        let file = self.daemon.setup.path(&format!("folder-{}", line.len()));
        let _ = std::fs::remove_file(&file);
        let output = self.run(
            "agent",
            &format!(
                "source /nowhere/snapshot-bash-1.sh 2>/dev/null || true && {{ \\builtin shopt -u extglob; }} >/dev/null 2>&1 \
                 || true && eval {quoted} < /dev/null && pwd -P >| {}",
                file.display()
            ),
        );
        if output.status.success() {
            let folder = std::fs::read_to_string(&file).unwrap();
            assert!(folder.trim().starts_with(self.daemon.work().to_str().unwrap()), "{folder}");
        }
        output
    }
}

fn answered(mut command: Command, input: &str) -> Output {
    let mut child = command.spawn().unwrap();
    // It may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const RULES: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"rm *\"\naction = \"deny\"\n\
                     [[permission.rules]]\ncategory = \"shell\"\npattern = \"touch ../ruled\"\naction = \"allow\"\n\
                     [[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n";

fn daemon(config: &str) -> TestDaemon {
    let script = "echo built > built; echo x > ../outside; exit 7\n";
    let daemon = Setup::new().config(config).file("build.sh", script).file("a.txt", "alpha\n").start();
    // A person opens the folder before an agent comes.
    drop(daemon.connect());
    daemon
}

/// Only a process with one thread gets a namespace of its own, and root needs none.
#[test]
fn the_program_confines_itself_for_a_user_other_than_root() {
    let as_user = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-user=1000", "--map-group=1000"]).arg(program);
        command
    };
    if !as_user(Path::new("/bin/true")).status().is_ok_and(|status| status.success()) {
        return skip("this machine has no user namespaces");
    }
    let output = as_user(toold()).args(["sandbox-exec", "--guard", "--", "/bin/echo", "confined"]).output().unwrap();
    let (status, text, words) = texts(&output);
    assert_eq!((status, text.as_str()), (Some(0), "confined\n"), "{words}");
}

#[test]
fn a_line_runs_once_for_each_judgement() {
    let daemon = daemon(RULES);
    let claude = FakeClaude::new(&daemon);
    let there = |name: &str| daemon.work().join(name).exists();
    assert_eq!(claude.hook("touch ../ruled"), "allow");
    assert_eq!(texts(&claude.bash("touch ../ruled")).0, Some(0));
    assert!(there("../ruled"));
    assert_eq!(claude.hook("rm a.txt"), "deny");
    let (status, _, words) = texts(&claude.bash("rm a.txt"));
    assert_eq!(status, Some(126));
    assert!(words.contains("not run") && words.contains("rm *"), "{words}");
    assert!(there("a.txt"));
    // The hook says nothing, Claude Code asks its user, who allows it.
    assert_eq!(claude.hook("./mytool --version; echo ran >> ran"), Value::Null);
    let count = || std::fs::read_to_string(daemon.work().join("ran")).unwrap_or_default().lines().count();
    claude.bash("./mytool --version; echo ran >> ran");
    assert_eq!(count(), 1);
    let (status, _, words) = texts(&claude.bash("./mytool --version; echo ran >> ran"));
    assert_eq!((status, count()), (Some(126), 1), "{words}");
    assert!(words.contains("needs approval"), "{words}");
    // That it was judged, and not allowed, approves nothing.
    assert_eq!((texts(&claude.bash("./mytool --version; echo ran >> ran")).0, count()), (Some(126), 1));
    // Another line than the one that was judged.
    claude.hook("./mytool a");
    assert_eq!(texts(&claude.bash("./mytool b")).0, Some(126));
    // One without a hook before it, which a rule allows.
    std::fs::remove_file(daemon.work().join("../ruled")).unwrap();
    assert_eq!(texts(&claude.bash("touch ../ruled")).0, Some(0));
    assert!(there("../ruled"));
}

#[test]
fn an_approval_is_for_the_session_and_the_folder_of_the_judgement() {
    let daemon = daemon(RULES);
    let claude = FakeClaude::new(&daemon);
    let text = |line: &str| format!("true && eval '{line}' < /dev/null");
    let elsewhere = daemon.work().join("deep");
    std::fs::create_dir(&elsewhere).unwrap();
    let line = "./mytool --version; echo ran >> ran";
    let run_as = |change: &dyn Fn(&mut Command)| {
        assert_eq!(claude.hook(line), Value::Null);
        let mut command = claude.command(Path::new(&claude.prefix), "agent");
        change(command.arg(text(line)));
        texts(&answered(command, ""))
    };
    for change in [
        &(|command: &mut Command| _ = command.env("CLAUDE_CODE_SESSION_ID", "s-2")) as &dyn Fn(&mut Command),
        &|command: &mut Command| _ = command.env_remove("CLAUDE_CODE_SESSION_ID"),
        &|command: &mut Command| _ = command.current_dir(&elsewhere),
    ] {
        let (status, _, words) = run_as(change);
        assert_eq!(status, Some(126), "{words}");
        assert!(words.contains("needs approval") || words.contains("not run"), "{words}");
    }
    assert!(!daemon.work().join("ran").exists() && !elsewhere.join("ran").exists());
    // As it was judged.
    run_as(&|_| {});
    assert!(daemon.work().join("ran").exists());
}

#[test]
fn what_no_person_allowed_runs_confined_or_is_left_to_the_agent() {
    let confines = toolctl_confines();
    let daemon = daemon(&format!("[permission]\nlevel = \"develop\"\n{RULES}"));
    let claude = FakeClaude::new(&daemon);
    assert_eq!(claude.hook("cat a.txt"), "allow");
    assert_eq!(texts(&claude.bash("cat a.txt")), (Some(0), "alpha\n".into(), String::new()));
    // Where the line would not run through this program, or not only.
    let elsewhere = FakeClaude { prefix: "/bin/log".to_owned(), ..FakeClaude::new(&daemon) };
    let without = FakeClaude { prefix: String::new(), ..FakeClaude::new(&daemon) };
    for line in ["cat a.txt", "sh build.sh"] {
        assert_eq!(elsewhere.hook(line), Value::Null, "{line}");
        assert_eq!(without.hook(line), Value::Null, "{line}");
        assert_eq!(claude.hook_with(line, &[("BASH_ENV", "./evil.sh")]), Value::Null, "{line}");
    }
    assert_eq!(without.hook("touch ../ruled"), "allow");
    if !confines {
        return;
    }
    assert_eq!(claude.hook("sh build.sh"), "allow");
    let (status, _, words) = texts(&claude.bash("sh build.sh"));
    assert_eq!(status, Some(7), "{words}");
    let there = |name: &str| daemon.work().join(name).exists();
    assert!(there("built") && !there("../outside"), "{words}");
    assert!(words.contains("Read-only file system") || words.contains("Permission denied"), "{words}");
}

#[test]
fn the_model_reads_what_was_set_aside_after_a_confined_command() {
    if !toolctl_confines() {
        return;
    }
    let daemon = daemon("[permission]\nlevel = \"develop\"\n");
    let claude = FakeClaude::new(&daemon);
    std::fs::write(daemon.work().join("setup.sh"), "echo '{}' > .mcp.json\n").unwrap();
    for (call, line, is_told) in [(9_001, "sh setup.sh", true), (9_002, "cat a.txt", false)] {
        assert_eq!(claude.event("PreToolUse", line, call, &[])["permissionDecision"], "allow");
        assert_eq!(texts(&claude.bash(line)).0, Some(0));
        let told = claude.event("PostToolUse", line, call, &[]);
        let context = told["additionalContext"].as_str();
        assert_eq!(context.is_some_and(|context| context.contains(".mcp.json.not-allowed")), is_told, "{told}");
        assert_eq!(told.is_object(), is_told, "{told}");
    }
    assert!(daemon.work().join(".mcp.json.not-allowed").exists());
}

/// Each of its builds has sockets and a loopback address of its own, and no network.
/// An agent may leave servers behind, which have lost their parent.
#[test]
fn a_pause_stops_what_a_confined_line_has_left_behind() {
    if !toolctl_confines() {
        return;
    }
    let daemon = daemon("[permission]\nlevel = \"develop\"\n");
    let file = |name: &str| daemon.work().join(name);
    std::fs::write(file("leave.py"), include_str!("../daemon/sandbox/leave.py")).unwrap();
    std::fs::write(file("leave.sh"), "python3 leave.py; until [ -e left ]; do sleep 0.01; done\n").unwrap();
    let claude = FakeClaude::new(&daemon);
    assert_eq!(claude.event("PreToolUse", "sh leave.sh", 1, &[])["permissionDecision"], "allow");
    let output = claude.bash("sh leave.sh");
    assert!(output.status.success(), "{output:?}");
    claude.event("PostToolUse", "sh leave.sh", 1, &[]);
    let pid: u32 = std::fs::read_to_string(file("left")).unwrap().parse().unwrap();
    let is_stopped = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ");
    assert!(!is_stopped());
    assert!(daemon.toolctl(&["pause"]).status.success());
    until("it is stopped", || is_stopped().then_some(()));
    assert!(daemon.toolctl(&["resume"]).status.success());
    until("it goes on", || (!is_stopped()).then_some(()));
    std::fs::write(file("go"), "").unwrap();
    until("the file is set aside", || file(".envrc.not-allowed").exists().then_some(()));
    until("it has ended", || has_ended(pid).then_some(()));
    assert!(!file(".envrc").exists());
}

#[test]
fn a_confined_build_of_the_agent_makes_sockets_and_reaches_no_other() {
    if !toolctl_confines() {
        return;
    }
    let daemon = daemon("[permission]\nlevel = \"develop\"\n");
    let claude = FakeClaude::new(&daemon);
    let script = "import multiprocessing, socket\nif __name__ == '__main__':\n    m = multiprocessing.Manager()\n    \
                  print(list(m.list([1])))\n    s = socket.create_server(('127.0.0.1', 0))\n    \
                  socket.create_connection(s.getsockname())\n    print('connected')\n    try:\n        \
                  socket.socket(socket.AF_UNIX).connect(open('outside').read())\n        print('reached')\n    \
                  except OSError as error:\n        print(error.strerror)\n";
    std::fs::write(daemon.work().join("m.py"), script).unwrap();
    let outside = daemon.setup.path("home/outside");
    let listener = std::os::unix::net::UnixListener::bind(&outside).unwrap();
    std::fs::write(daemon.work().join("outside"), outside.display().to_string()).unwrap();
    std::fs::write(daemon.work().join("test.sh"), "python3 m.py; echo said > /dev/stderr\n").unwrap();
    assert_eq!(claude.hook("sh test.sh"), "allow");
    let (status, out, words) = texts(&claude.bash("sh test.sh"));
    assert_eq!((status, out.as_str()), (Some(0), "[1]\nconnected\nPermission denied\n"), "{words}");
    assert_eq!(words, "said\n");
    drop(listener);
}

/// Claude Code gives its commands a file to write to, which they open again by a name.
#[test]
fn a_confined_command_writes_to_its_output_by_name() {
    if !toolctl_confines() {
        return;
    }
    let daemon = daemon("[permission]\nlevel = \"develop\"\n");
    let claude = FakeClaude::new(&daemon);
    let output = daemon.setup.path("home/output");
    let mut command = claude.command(Path::new(&claude.prefix), "agent");
    let line = "echo one >> /dev/stdout; echo two | tee -a /dev/stderr > /dev/null; cat a.txt";
    assert_eq!(claude.hook(line), "allow");
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&output).unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(file).arg(format!("true && eval '{line}' < /dev/null"));
    assert!(command.stdin(Stdio::null()).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "one\ntwo\nalpha\n");
}

fn toolctl_confines() -> bool {
    let arguments = ["sandbox-exec", "--needs-scope", "--", "/bin/true"];
    let confines = Command::new(toold()).args(arguments).output().unwrap().status.success();
    if !confines {
        skip("this machine cannot confine commands");
    }
    confines
}

#[test]
fn a_configuration_confines_all_lines_or_none() {
    if !toolctl_confines() {
        return;
    }
    let sandbox = "[sandbox]\nmode = \"workspace-write\"\n";
    for (confine, outside) in [("all", false), ("free", true), ("off", true)] {
        let daemon = daemon(&format!("{RULES}{sandbox}[agents.claude-code]\nconfine = \"{confine}\"\n"));
        let claude = FakeClaude::new(&daemon);
        assert_eq!(claude.hook("touch ../ruled"), "allow");
        let output = claude.bash("touch ../ruled");
        assert_eq!(daemon.work().join("../ruled").exists(), outside, "{confine}: {output:?}");
        assert_eq!(claude.hook("cat a.txt"), if confine == "off" { Value::Null } else { json!("allow") }, "{confine}");
    }
}

#[test]
fn hooks_and_status_lines_run_as_they_are_and_odd_lines_do_not() {
    let daemon = daemon(RULES);
    let claude = FakeClaude::new(&daemon);
    let (status, out, _) = texts(&claude.run("harness", "echo \"status $((1 + 1))\"; exit 5"));
    assert_eq!((status, out.as_str()), (Some(5), "status 2\n"));
    for text in ["touch odd", "eval \"$x\"", "cd / && eval 'touch odd' && eval 'touch odd'"] {
        let (status, _, words) = texts(&claude.run("agent", text));
        assert_eq!(status, Some(126), "{text}");
        assert!(words.contains("does not know"), "{words}");
    }
    // A version of Claude Code that says nothing about itself.
    for (kind, status) in [("", Some(126)), ("CLAUDE_PROJECT_DIR", Some(0))] {
        let mut command = claude.command(Path::new(&claude.prefix), "agent");
        command.env_remove("AI_AGENT").arg("echo odd");
        if !kind.is_empty() {
            command.env(kind, daemon.work());
        }
        assert_eq!(texts(&answered(command, "")).0, status, "{kind}");
    }
    assert!(!daemon.work().join("odd").exists());
    // An agent does not run it by itself.
    let line = format!("{} confine closed 'touch odd'", toolctl().display());
    assert_eq!(claude.hook(&line), "deny");
}

#[test]
fn without_a_daemon_a_line_runs_only_where_the_hooks_are_open() {
    let mut daemon = daemon(RULES);
    daemon.signal("TERM");
    daemon.wait();
    let claude = FakeClaude::new(&daemon);
    let text = "true && eval 'echo ran' < /dev/null";
    assert_eq!(texts(&claude.run("agent", text)).0, Some(126));
    let mut open = claude.command(toolctl(), "agent");
    open.args(["confine", "open", text]);
    assert_eq!(texts(&answered(open, "")), (Some(0), "ran\n".into(), String::new()));
}
