//! Levels: what runs without an approval, where it runs, and who may change that.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, skip, toold, until};

/// Whether this machine can confine what a level frees.
pub(crate) fn machine_confines() -> bool {
    let arguments = ["sandbox-exec", "--needs-scope", "--", "/bin/true"];
    let confines = std::process::Command::new(toold()).args(arguments).output().unwrap().status.success();
    if !confines {
        skip("this machine cannot confine commands, so that levels free no commands");
    }
    confines
}

fn at(level: &str, setup: Setup) -> TestDaemon {
    setup.config(&format!("[permission]\nlevel = \"{level}\"\n")).start()
}

fn bash(wire: &mut Wire, command: &str) -> Value {
    wire.tool("bash", json!({"command": command}))
}

fn write(wire: &mut Wire, path: &str) -> Value {
    wire.tool("write", json!({"path": path, "content": "text\n"}))
}

#[track_caller]
fn ran(result: &Value) {
    assert_ne!(result["metadata"]["permission"], json!(true), "{result}");
    assert_eq!(result["is_error"], json!(false), "{result}");
}

/// Nobody is there to be asked.
#[track_caller]
fn asked(result: &Value) {
    assert!(!result["metadata"]["permission"].is_null(), "{result}");
}

#[test]
fn each_level_frees_what_the_table_says() {
    let confines = machine_confines();
    let script = "#!/bin/sh\necho built > built-$1\n";
    for (level, edits, builds) in
        [("read", false, false), ("edit", true, false), ("develop", true, true), ("operate", true, true)]
    {
        let setup = Setup::new().file("build.sh", script).file("kept.txt", "work\n").file("out/kept.txt", "work\n");
        std::fs::create_dir(setup.path("work/.git")).unwrap();
        let daemon = at(level, setup.file(".gitignore", "out/\n"));
        let mut wire = daemon.connect();
        ran(&bash(&mut wire, "cat kept.txt"));
        let frees = |free: bool, result: Value| if free { ran(&result) } else { asked(&result) };
        frees(edits, write(&mut wire, "new.txt"));
        frees(edits && confines, bash(&mut wire, "echo x > made.txt"));
        frees(edits && confines, bash(&mut wire, "mkdir folder"));
        frees(builds && confines, bash(&mut wire, &format!("sh build.sh {level}")));
        for line in [
            "echo x > out/kept.txt",
            "echo x > ~/toold-level-test",
            "rm -r out",
            "git push",
            "npm install -g x",
            "mytool x",
            "curl -d x http://example.invalid/",
            "sh build.sh a && git push",
            "sudo true",
        ] {
            asked(&bash(&mut wire, line));
        }
        // There, the question is about the host, when it is connected to.
        let result = bash(&mut wire, "curl -sS http://example.invalid/");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(
            text.contains("not allowed: network example.invalid:80"),
            level == "operate" && confines,
            "{result}"
        );
        asked(&write(&mut wire, "../outside.txt"));
        asked(&write(&mut wire, ".git/hooks/pre-commit"));
        assert_eq!(std::fs::read_to_string(daemon.work().join("out/kept.txt")).unwrap(), "work\n");
    }
}

#[test]
fn what_a_level_lets_commands_overwrite_can_be_undone() {
    if !machine_confines() {
        return;
    }
    let setup = Setup::new().file("a.txt", "one\n").file("b.txt", "two\n").file("big.bin", vec![0; (64 << 20) + 1]);
    let daemon = at("edit", setup.file("c.txt", "three\n"));
    let mut wire = daemon.connect();
    let lines = [("a.txt", "echo new > a.txt"), ("b.txt", "sed -i s/two/2/ b.txt"), ("c.txt", "mv a.txt c.txt")];
    for (name, line) in lines {
        let before = std::fs::read(daemon.work().join(name)).unwrap();
        let call = json!({"name": "bash", "arguments": {"command": line}, "call_id": name});
        // Until the daemon knows the folder, a person is asked.
        until("it is free", || {
            let result = wire.result("tools.execute", call.clone());
            result["metadata"]["permission"].is_null().then(|| ran(&result))
        });
        assert_ne!(std::fs::read(daemon.work().join(name)).unwrap(), before, "{line}");
        daemon.connect().result("files.undo", json!({"all": true, "call_id": name}));
        assert_eq!(std::fs::read(daemon.work().join(name)).unwrap(), before, "{line}");
    }
    // Its content is too long to be kept.
    asked(&bash(&mut wire, "echo x > big.bin"));
    assert_eq!(std::fs::metadata(daemon.work().join("big.bin")).unwrap().len(), (64 << 20) + 1);
}

#[test]
fn a_session_removes_what_it_made_itself() {
    if !machine_confines() {
        return;
    }
    let setup = Setup::new().file("old/a.txt", "old\n").file("kept.txt", "kept\n").file("b.txt", "b\n");
    let daemon = at("edit", setup);
    let mut wire = daemon.connect();
    // Until the daemon knows the folder, it does not know who made what.
    until("it is free", || {
        // From an attempt before this one.
        let _ = std::fs::remove_dir_all(daemon.work().join("made"));
        ran(&bash(&mut wire, "mkdir -p made/deep && cat b.txt > made/deep/b.txt && ln -s b.txt made/deep/link"));
        let result = wire
            .result("tools.execute", json!({"name": "bash", "arguments": {"command": "rm -rf made"}, "call_id": "c"}));
        result["metadata"]["permission"].is_null().then(|| ran(&result))
    });
    assert!(!daemon.work().join("made").exists());
    daemon.connect().result("files.undo", json!({"all": true, "call_id": "c"}));
    assert_eq!(std::fs::read_to_string(daemon.work().join("made/deep/b.txt")).unwrap(), "b\n");
    // Others made it, made a part of it, moved a file into it, or changed it.
    for line in
        ["mkdir part", "echo x > part/own.txt", "mkdir in && mv kept.txt in/", "mkdir changed && echo x > changed/x"]
    {
        ran(&bash(&mut wire, line));
    }
    std::fs::write(daemon.work().join("part/theirs.txt"), "theirs\n").unwrap();
    std::fs::write(daemon.work().join("changed/x"), "theirs\n").unwrap();
    for line in [
        "rm -r old",
        "rm -r part",
        "rm -r in",
        "rm -r changed",
        "rm -r made old",
        "rm -r .",
        "cp -r old own && rm -r own",
        "find in -delete",
    ] {
        asked(&bash(&mut wire, line));
    }
    for file in ["old/a.txt", "part/theirs.txt", "in/kept.txt", "changed/x"] {
        assert!(daemon.work().join(file).exists(), "{file}");
    }
    // What another session made.
    asked(&bash(&mut daemon.connect(), "rm -r made"));
}

struct RemovedFiles<'a>(&'a [String]);

impl Drop for RemovedFiles<'_> {
    fn drop(&mut self) {
        for file in self.0 {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// The process that a background command of this session has printed.
fn background(wire: &mut Wire, command: &str) -> (String, String) {
    let started = wire.tool("bash", json!({"command": command, "background": true}));
    let shell = started["metadata"]["shell_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    let pid = until("it prints its id", || {
        let output = wire.tool("bash_output", json!({"shell_id": shell}));
        let text = output["content"][0]["text"].as_str().unwrap();
        text.lines().next().filter(|line| line.parse::<u32>().is_ok()).map(str::to_owned)
    });
    (shell, pid)
}

#[test]
fn at_operate_a_session_ends_the_processes_that_it_started_and_no_others() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"sleep *\"\naction = \"allow\"\n";
    let started = "sleep 1000 & echo $!; wait";
    for (level, frees) in [("develop", false), ("operate", true)] {
        let daemon = Setup::new().config(&format!("[permission]\nlevel = \"{level}\"\n{rule}")).start();
        let (mut wire, mut other) = (daemon.connect(), daemon.connect());
        wire.result("session.open", json!({"cwd": daemon.work()}));
        other.result("session.open", json!({"cwd": daemon.work()}));
        let lives = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        let (_, pid) = background(&mut wire, started);
        let (_, of_other) = background(&mut other, started);
        let mut theirs = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        for line in [
            format!("kill {}", theirs.id()),
            format!("kill {of_other}"),
            format!("kill {pid} {}", theirs.id()),
            format!("kill {}", daemon.pid()),
            format!("kill -- -{pid}"),
            "kill -9 -1".to_owned(),
            "kill 1".to_owned(),
            "pkill sleep".to_owned(),
            format!("kill {pid}; kill {of_other}"),
            format!("env kill {pid}"),
            format!("kill {pid} > killed.txt"),
            format!("sh -c 'kill {pid}'"),
        ] {
            asked(&bash(&mut wire, &line));
        }
        assert!([&pid, &of_other, &theirs.id().to_string()].into_iter().all(|pid| lives(pid)));
        let result = bash(&mut wire, &format!("kill -9 {pid}"));
        if frees {
            ran(&result);
            assert_eq!(result["content"][0]["text"], format!("sent KILL to {pid}"), "{result}");
            until("it has ended", || (!lives(&pid)).then_some(()));
            let why =
                wire.result("permissions.check", json!({"category": "shell", "target": format!("kill {of_other}")}));
            assert_eq!(why["verdict"], "ask", "{why}");
        } else {
            asked(&result);
            assert!(lives(&pid));
        }
        let (shell, pid) = background(&mut wire, started);
        let killed = wire.tool("kill_shell", json!({"shell_id": shell}));
        if frees {
            ran(&killed);
            until("it has ended", || (!lives(&pid)).then_some(()));
        } else {
            asked(&killed);
        }
        theirs.kill().unwrap();
        theirs.wait().unwrap();
    }
}

#[test]
fn a_level_lets_commands_write_only_their_own_files_below_tmp() {
    if !machine_confines() {
        return;
    }
    let folder = tempfile::Builder::new().prefix("toold-level-").tempdir_in("/tmp").unwrap();
    // Files beside the folder, removed with it.
    let beside = |name: &str| format!("{}-{name}", folder.path().display());
    let paths = ["new", "other", "link", "copy"].map(beside);
    let [new, other, link, copy] = &paths;
    let _removed = RemovedFiles(&paths);
    std::fs::write(other, "of another program\n").unwrap();
    std::os::unix::fs::symlink(other, link).unwrap();
    let daemon = at("edit", Setup::new().file("a.txt", "a\n"));
    let mut wire = daemon.connect();
    let result = bash(&mut wire, &format!("cat a.txt > {new} && cat {new}"));
    assert_eq!(result["content"][0]["text"], "a\n", "{result}");
    ran(&bash(&mut wire, &format!("echo more >> {new}")));
    assert_eq!(bash(&mut wire, &format!("cat {new}"))["content"][0]["text"], "a\nmore\n");
    ran(&bash(&mut wire, &format!("cp a.txt {copy}")));
    // Nor in the folders of others, which may run what is there.
    for line in ["echo x > PATH-other", "echo x > PATH-link", "echo x > PATH/new", "cp a.txt PATH-other"] {
        asked(&bash(&mut wire, &line.replace("PATH", &folder.path().display().to_string())));
    }
    assert_eq!(std::fs::read_to_string(other).unwrap(), "of another program\n");
}

#[test]
fn code_that_shows_something_is_tried_where_it_can_change_nothing() {
    if !machine_confines() {
        return;
    }
    let daemon = at("edit", Setup::new().file("a.txt", "a b\n").file(".env", "KEY=1\n"));
    let (mut wire, mut person) = (daemon.connect(), daemon.connect());
    for (line, shown) in [("awk '{print $2}' a.txt", "b\n"), ("python3 -c 'print(open(\"a.txt\").read(1))'", "a\n")] {
        assert_eq!(bash(&mut wire, line)["content"][0]["text"], shown, "{line}");
    }
    let writes = "python3 -c 'open(\"made\", \"w\")'";
    let refused = bash(&mut wire, writes);
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("Read-only file system"), "{refused}");
    assert!(!daemon.work().join("made").exists());
    // Somebody is there to be asked: it runs again.
    person.result("permissions.subscribe", json!({}));
    let id = wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": writes}}));
    let asked = person.notification("permissions.event")["result"].take();
    assert!(!daemon.work().join("made").exists());
    let request = asked["request"]["request_id"].clone();
    person.result("permissions.reply", json!({"request_id": request, "action": "allow"}));
    ran(&wire.answer(id)["result"]);
    assert!(daemon.work().join("made").exists());
}

#[test]
fn a_rule_for_one_command_does_not_unconfine_another_that_only_a_level_frees() {
    if !machine_confines() {
        return;
    }
    let rule = "[permission]\nlevel = \"develop\"\n[[permission.rules]]\ncategory = \"shell\"\npattern = \"mkdir *\"\n\
                action = \"allow\"\n";
    let daemon = Setup::new().config(rule).file("all.sh", "echo x > ../outside\nexit 0\n").start();
    let mut wire = daemon.connect();
    ran(&bash(&mut wire, "mkdir a && sh all.sh"));
    assert!(daemon.work().join("a").exists() && !daemon.work().join("../outside").exists());
    let alone = bash(&mut wire, "mkdir b");
    ran(&alone);
    assert!(alone["metadata"]["sandbox"].is_null(), "{alone}");
}

#[test]
fn builds_and_downloads_have_the_network_of_their_session() {
    if !machine_confines() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let outside = listener.local_addr().unwrap().port();
    let script = "import http.server, urllib.request, threading\n\
                  server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
                  threading.Thread(target=server.serve_forever, daemon=True).start()\n\
                  at = 'http://127.0.0.1:%d/a.txt' % server.server_address[1]\n\
                  print(urllib.request.urlopen(at).read().decode())\n";
    let daemon = at("develop", Setup::new().file("a.txt", "served\n").file("serve.py", script));
    let mut wire = daemon.connect();
    let result = bash(&mut wire, "python3 serve.py 2> log");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("served"), "{result}");
    assert!(result["metadata"]["sandbox"].as_str().unwrap().contains("network by host"), "{result}");
    // The machine's own servers are not those of the session.
    let result = bash(&mut wire, &format!("curl -sS http://127.0.0.1:{outside}/"));
    assert!(result["metadata"]["permission"].is_null() && result["is_error"] == json!(true), "{result}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
    for line in
        ["curl http://example.invalid/", "curl http://localhost:1/ http://example.invalid/", "curl file:///etc/hosts"]
    {
        asked(&bash(&mut wire, line));
    }
    // At a level below, neither.
    let daemon = at("edit", Setup::new());
    asked(&bash(&mut daemon.connect(), "curl -sS http://localhost:1/"));
}

#[test]
fn what_a_level_frees_runs_confined() {
    if !machine_confines() {
        return;
    }
    let script = "#!/bin/sh\necho x > inside\necho x > ../outside\necho x > .git/hooks/pre-commit\necho x > .envrc\n\
                  cat .env deep/er/.env ../home/note > leaked\nexec 3<>/dev/tcp/127.0.0.1/22\nexit 0\n";
    let setup = Setup::new()
        .file("../home/note", "private\n")
        .file("deep/er/.env", "KEY=2\n")
        .file("all.sh", script)
        .file(".env", "KEY=secret\n")
        .file(".envrc", "old\n");
    let daemon = at("develop", setup.file(".git/hooks/x", "hook\n").file(".git/HEAD", "ref: refs/heads/main\n"));
    let mut wire = daemon.connect();
    let result = bash(&mut wire, "bash all.sh");
    let sandbox = result["metadata"]["sandbox"].as_str().unwrap_or_default().to_owned();
    assert!(sandbox.contains("level develop"), "{result}");
    let read = |name: &str| std::fs::read_to_string(daemon.work().join(name)).ok();
    assert_eq!(read("inside").as_deref(), Some("x\n"), "{result}");
    assert_eq!((read("../outside"), read(".git/hooks/pre-commit"), read(".envrc")), (None, None, Some("old\n".into())));
    assert_eq!(read("leaked").as_deref(), Some(""), "{result}");
    // A rule of a person runs it as the sandbox of the configuration says: here, not confined.
    let rule = "[permission]\nlevel = \"develop\"\n[[permission.rules]]\ncategory = \"shell\"\npattern = \"sh free.sh\"\n\
                action = \"allow\"\n";
    let daemon = Setup::new().config(rule).file("free.sh", "echo x > ../outside-free\n").start();
    let result = bash(&mut daemon.connect(), "sh free.sh");
    assert!(result["metadata"]["sandbox"].is_null(), "{result}");
    assert!(daemon.work().join("../outside-free").exists());
}

#[test]
fn a_person_sets_the_level_of_a_session_and_the_audit_log_has_it() {
    let mut daemon = at("read", Setup::new());
    let (mut person, mut agent) = (daemon.connect(), daemon.connect());
    let session = agent.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}))["session_id"].clone();
    let shown = person.result("permissions.level", json!({"session_id": session}));
    assert_eq!((&shown["level"], &shown["from"]), (&json!("read"), &json!("the default")), "{shown}");
    assert_eq!(agent.error("permissions.set_level", json!({"level": "develop"}))["code"], -32002);
    let set = person.result("permissions.set_level", json!({"session_id": session, "level": "edit"}));
    assert_eq!(set["level"], "edit");
    assert!(set["from"].as_str().unwrap().contains("person"), "{set}");
    ran(&write(&mut agent, "a.txt"));
    // Other sessions keep theirs.
    asked(&write(&mut person, "b.txt"));
    let rows = until("the row of the level", || {
        let found = person.result("audit.query", json!({"tool": "permission_level"}));
        found["entries"].get(0).cloned()
    });
    assert_eq!(rows["decisions"][0]["target"], "edit (before: read)", "{rows}");
    // It outlives the daemon, and ends when the person says so.
    daemon.restart("TERM");
    let mut person = daemon.connect();
    person.result("session.open", json!({"session_id": session}));
    assert_eq!(person.result("permissions.level", json!({}))["level"], "edit");
    assert_eq!(person.result("permissions.set_level", json!({}))["level"], "read");
}

#[test]
fn projects_agents_and_profiles_only_lower_the_level() {
    let project = |level: &str| format!("[permission]\nlevel = \"{level}\"\n");
    for (user, own, expected) in [("develop", "read", "read"), ("develop", "edit", "edit"), ("read", "develop", "read")]
    {
        let daemon = at(user, Setup::new().file(".toold/config.toml", project(own)));
        assert_eq!(daemon.connect().result("permissions.level", json!({}))["level"], expected, "{user}, {own}");
    }
    let config =
        "[permission]\nlevel = \"develop\"\n[agents.test]\nlevel = \"read\"\n[agents.other]\nlevel = \"edit\"\n";
    let daemon = Setup::new().config(config).start();
    let mut wire = daemon.connect();
    for (name, expected) in [("test", "read"), ("other-mcp-client", "edit"), ("third", "develop")] {
        let client = json!({"name": name});
        wire.result("session.open", json!({"cwd": daemon.work(), "client": client}));
        let shown = wire.result("permissions.level", json!({}));
        assert_eq!(shown["level"], expected, "{name}: {shown}");
    }
    let status = wire.result("daemon.status", json!({}));
    assert_eq!(status["level"]["level"], "develop", "{status}");
}

/// The messages of a program to a bridge for MCP clients, in which it calls itself Claude Code.
const CLAUDE_CODE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"claude-code","version":"1"}}}"#,
    "\\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":"a.txt"}}}"#,
    "\\n"
);

/// The level of the session that a command line of this program opens through a bridge.
fn level_of_bridge(daemon: &TestDaemon, program: &std::path::Path, line: &str) -> String {
    let mut wire = daemon.connect();
    let mut command = daemon.setup.command(program);
    command.args(["-c", line]).current_dir(daemon.work()).stdin(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let level = until("its session is open", || {
        let sessions = wire.result("session.list", json!({}))["sessions"].take();
        let of_client = |session: &&Value| session["client"]["name"] == "claude-code" && session["connections"] == 1;
        let found = sessions.as_array().unwrap().iter().find(of_client)?;
        Some(found["level"].as_str().unwrap().to_owned())
    });
    drop(child.stdin.take());
    child.wait().unwrap();
    until("its session is closed", || {
        let sessions = wire.result("session.list", json!({}))["sessions"].take();
        let is_open = sessions
            .as_array()
            .unwrap()
            .iter()
            .any(|session| session["client"]["name"] == "claude-code" && session["connections"] == 1);
        (!is_open).then_some(())
    });
    level
}

#[test]
fn an_agents_level_raises_that_of_the_recorded_program_and_of_no_other() {
    let config = "[permission]\nlevel = \"edit\"\n[agents.claude-code]\nlevel = \"develop\"\n";
    let daemon = Setup::new().config(config).file("a.txt", "a\n").start();
    let bin = daemon.setup.home("bin");
    std::fs::create_dir_all(&bin).unwrap();
    // A program of its own, and not a shell to those who look at its file.
    let [claude, other] = ["claude", "other"].map(|name| bin.join(name));
    for copy in [&claude, &other] {
        std::fs::copy("/bin/sh", copy).unwrap();
    }
    assert!(daemon.toolctl(&["workspaces", "allow", daemon.work().to_str().unwrap()]).status.success());
    let toolctl = toold_tests::toolctl().display();
    let bridge = format!("(printf '{CLAUDE_CODE}'; cat) | {toolctl} mcp; true");
    let level = |program: &std::path::Path, line: &str| level_of_bridge(&daemon, program, line);
    assert_eq!(level(&claude, &bridge), "edit", "nothing is recorded");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let install = |arguments: &[&str]| {
        let mut command = daemon.setup.command(toold_tests::toolctl());
        let output = command
            .args(["agents", "install", "claude-code", "--mcp", "--yes"])
            .args(arguments)
            .env("PATH", &path)
            .output();
        let output = output.unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (done, told) = install(&[]);
    assert!(done && told.contains("recorded its program") && told.contains("bin/claude"), "{told}");
    assert_eq!(level(&claude, &bridge), "develop");
    assert_eq!(level(&other, &bridge), "edit", "by its name alone");
    // Another agent gains nothing by starting it.
    let own = CLAUDE_CODE.replace("claude-code", "other");
    let as_agent = format!("printf '{own}' | {toolctl} mcp > other.out; {} -c \"$LINE\"; true", claude.display());
    assert_eq!(
        level(&other, &format!("LINE=\"{}\"; {as_agent}", bridge.replace('\\', "\\\\").replace('"', "\\\""))),
        "edit"
    );
    // Nor does a program that has taken its place.
    std::fs::remove_file(&claude).unwrap();
    std::fs::copy("/bin/sh", &claude).unwrap();
    assert_eq!(level(&claude, &bridge), "edit", "it is another file");
    let listed = |path: &str| {
        let output =
            daemon.setup.command(toold_tests::toolctl()).args(["agents", "--json"]).env("PATH", path).output().unwrap();
        let agents: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = agents["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == "claude-code").cloned();
        found.unwrap()["level_may_raise"].clone()
    };
    assert_eq!(listed(&path), false);
    assert!(install(&[]).0);
    assert_eq!(listed(&path), true);
    assert_eq!(level(&claude, &bridge), "develop", "it is recorded again");
    // A program that runs others' code proves nothing.
    std::fs::write(bin.join("script"), "#!/bin/sh\ntrue\n").unwrap();
    for (program, why) in [(bin.join("script"), "is a script"), ("/bin/sh".into(), "runs code of others")] {
        let (done, told) = install(&["--program", program.to_str().unwrap()]);
        assert!(!done && told.contains(why), "{told}");
    }
    assert!(install(&["--undo"]).0);
    assert_eq!(level(&claude, &bridge), "edit");
}

#[test]
fn a_level_that_has_no_effect_is_found_by_a_check() {
    let user = "[permission]\nlevel = \"edit\"\n[agents.codex]\nlevel = \"develop\"\n[agents.gemini]\nlevel = \"read\"\n\
                [mcp.profiles.wide]\nlevel = \"operate\"\n";
    let project = "[permission]\nlevel = \"develop\"\n";
    let setup = Setup::new().config(user).file(".toold/config.toml", project);
    let check = || {
        let output = setup.command(toold_tests::toolctl()).args(["config", "check"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = check();
    for found in [
        "config.toml:4:1: warning: agents.codex.level: develop has no effect: it only lowers yours, which is edit, unless \
         `toolctl agents install codex` has recorded the agent's program",
        "config.toml:8:1: warning: mcp.profiles.wide.level: operate has no effect: it only lowers yours, which is edit",
        ".toold/config.toml:2:1: warning: permission.level: develop has no effect: a project only lowers yours, which is edit",
    ] {
        assert!(text.contains(found), "{found}\n{text}");
    }
    assert_eq!(text.matches("has no effect").count(), 3, "{text}");
    // With its program, the agent's level counts, and a project may lower that.
    let program = json!({"path": "/x/codex", "file": {"device": 1, "inode": 2, "bytes": 3, "changed": [4, 5]}});
    std::fs::create_dir_all(setup.path("state/toold")).unwrap();
    std::fs::write(setup.path("state/toold/agent-programs.json"), json!({"agents": {"codex": program}}).to_string())
        .unwrap();
    let text = check();
    assert!(!text.contains("agents.codex.level") && !text.contains("a project only lowers"), "{text}");
}

#[test]
fn the_session_of_a_terminal_ends_with_its_shell() {
    let daemon = Setup::new().start();
    let mut watcher = daemon.connect();
    watcher.result("events.subscribe", json!({"kinds": ["session.closed"]}));
    let mut shell = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", shell.id())).unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap();
    let id = format!("terminal-pts_5-{}-{start}-0123456789abcdef", shell.id());
    let mut person = daemon.connect();
    person.result("session.open", json!({"cwd": daemon.work(), "session_id": id}));
    person.result("permissions.set_level", json!({"level": "edit"}));
    drop(person);
    let is_listed = |wire: &mut Wire| {
        let sessions = wire.result("session.list", json!({}))["sessions"].take();
        sessions.as_array().unwrap().iter().any(|session| session["session_id"] == id.as_str())
    };
    assert!(is_listed(&mut watcher), "the next command of the shell continues it");
    shell.kill().unwrap();
    shell.wait().unwrap();
    // As soon as the daemon has noticed that the connection is closed.
    until("it is not listed", || (!is_listed(&mut watcher)).then_some(()));
    until("it is closed", || {
        let event = watcher.notification("events.event")["result"].take();
        (event["session_id"] == id.as_str()).then_some(())
    });
    assert!(daemon.connect().error("permissions.level", json!({"session_id": id}))["message"].is_string());
}

#[test]
fn rules_and_levels_are_tried_on_the_audit_log() {
    let config = "[permission]\nread_only_commands = \"ask\"\n[[permission.rules]]\ncategory = \"shell\"\n\
                  pattern = \"git push *\"\naction = \"deny\"\n";
    let daemon = Setup::new().config(config).start();
    let (mut person, mut agent) = (daemon.connect(), daemon.connect());
    person.result("permissions.subscribe", json!({}));
    for (number, (line, action)) in
        [("echo one", "allow"), ("echo two", "allow"), ("mkdir a", "deny"), ("touch b", "allow")]
            .into_iter()
            .enumerate()
    {
        let call = json!({"name": "bash", "arguments": {"command": line}, "call_id": format!("c{number}")});
        let id = agent.request("tools.execute", call);
        let asked = person.notification("permissions.event")["result"].take();
        let request = asked["request"]["request_id"].clone();
        person.result("permissions.reply", json!({"request_id": request, "action": action}));
        agent.answer(id);
        assert_eq!(person.notification("permissions.event")["result"]["type"], "resolved");
        let late = person.error("permissions.reply", json!({"request_id": request, "action": "allow"}));
        assert!(late["message"].as_str().unwrap().contains("already answered: "), "{late}");
    }
    bash(&mut agent, "git push origin main");
    let replay = |person: &mut Wire, params: Value| person.result("permissions.replay", params);
    let now = replay(&mut person, json!({"since": "1h"}));
    assert_eq!((&now["asks_before"], &now["calls"]), (&json!(4), &json!(5)), "{now}");
    assert_eq!((&now["asks_after"], &now["freed"]), (&json!(4), &json!([])), "{now}");
    let rules = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"echo *\"\naction = \"allow\"\n\
                 [[permission.rules]]\ncategory = \"shell\"\npattern = \"mkdir *\"\naction = \"allow\"\n\
                 [[permission.rules]]\ncategory = \"shell\"\npattern = \"touch *\"\naction = \"deny\"\n";
    let tried = replay(&mut person, json!({"since": "1h", "rules": rules}));
    assert_eq!(tried["asks_after"], 0, "{tried}");
    // What a person denied comes first.
    assert_eq!((&tried["freed"][0]["target"], &tried["freed"][0]["was_denied"]), (&json!("mkdir a"), &json!(true)));
    assert_eq!(tried["denied"][0]["target"], "touch b", "{tried}");
    // A file without rules is a slip, and no rules that change nothing.
    for wrong in ["x = [", "", "[[permision.rules]]\ncategory = \"shell\"\n"] {
        assert_eq!(
            person.error("permissions.replay", json!({"since": "1h", "rules": wrong}))["code"],
            -32602,
            "{wrong}"
        );
    }
    let by_file = replay(&mut person, json!({"since": "1h", "rules": "[permission]\nlevel = \"edit\"\n"}));
    assert_eq!(by_file, replay(&mut person, json!({"since": "1h", "level": "edit"})));
    let suggested = person.result("permissions.suggest", json!({}));
    assert_eq!(suggested["answers"], 4, "{suggested}");
    assert_eq!((&suggested["rules"][0]["pattern"], &suggested["rules"][0]["count"]), (&json!("echo *"), &json!(2)));
    assert_eq!(suggested["rules"].as_array().unwrap().len(), 1, "{suggested}");
    for (folder, answers) in [(daemon.work(), 4), (daemon.setup.path("home"), 0)] {
        let of_project = person.result("permissions.suggest", json!({"cwd": folder}));
        assert_eq!(of_project["answers"], answers, "{of_project}");
    }
    let rows = person.result("audit.query", json!({}));
    let push = &rows["entries"].as_array().unwrap().last().unwrap()["decisions"][0];
    assert_eq!((&push["operation"], &push["effects"][0]), (&json!("git push"), &json!("publish")), "{push}");
    // They show the commands of all sessions.
    let mut model = daemon.connect();
    model.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    for (method, params) in [("permissions.replay", json!({"since": "1h"})), ("permissions.suggest", json!({}))] {
        assert_eq!(model.error(method, params)["code"], -32002);
    }
}

#[test]
fn what_was_free_is_free_when_it_is_replayed_and_else_is_named() {
    let daemon = Setup::new().start();
    // Directly below the home folder, which is no folder of a session.
    let folder = daemon.setup.path("home/project");
    std::fs::create_dir(&folder).unwrap();
    let mut person = Wire::connect(&daemon.socket());
    person.result("session.open", json!({"cwd": folder}));
    let calls = [("list", json!({"path": "."})), ("glob", json!({"pattern": "*"})), ("bash", json!({"command": "ls"}))];
    for (name, arguments) in calls {
        assert_eq!(person.tool(name, arguments)["is_error"], false);
    }
    let grant =
        person.result("permissions.grant", json!({"category": "shell", "pattern": "touch *", "scope": "always"}));
    assert_eq!(person.tool("bash", json!({"command": "touch a"}))["is_error"], false);
    // No rule lifts what denies it, and its target does not show that.
    std::fs::write(folder.join(".env"), "A=b\n").unwrap();
    let denied = person.tool("bash", json!({"command": "grep -r x ."}));
    assert!(denied["content"][0]["text"].as_str().unwrap().contains("secrets (.env)"), "{denied}");
    let replay = || daemon.connect().result("permissions.replay", json!({"since": "1h"}));
    let now = replay();
    assert_eq!((&now["asks_before"], &now["asks_after"], now.get("asked")), (&json!(0), &json!(0), None), "{now}");
    assert_eq!(now["freed"], json!([]), "{now}");
    daemon.connect().result("permissions.revoke", json!({"id": grant["id"]}));
    let now = replay();
    assert_eq!((&now["asks_before"], &now["asks_after"]), (&json!(0), &json!(1)), "{now}");
    assert_eq!((&now["asked"][0]["target"], &now["asked"][0]["count"]), (&json!("touch a"), &json!(1)), "{now}");
    // The mode denies at every level.
    person.result("permissions.set_mode", json!({"mode": "plan"}));
    assert_eq!(person.tool("bash", json!({"command": "touch in-plan"}))["is_error"], true);
    let at_edit = person.result("permissions.replay", json!({"since": "1h", "level": "edit"}));
    assert!(!at_edit.to_string().contains("in-plan"), "{at_edit}");
}

/// An agent that guesses the id of a terminal's session must not share what a person allows there.
#[test]
fn only_people_open_the_sessions_of_terminals() {
    let daemon = Setup::new().start();
    let open = json!({"cwd": daemon.work(), "session_id": "terminal-1-2-3", "role": "agent"});
    assert_eq!(daemon.connect().error("session.open", open)["code"], -32004);
    let open = json!({"cwd": daemon.work(), "session_id": "terminal-1-2-3"});
    assert_eq!(daemon.connect().result("session.open", open)["resumed"], false);
}

#[test]
fn a_pause_stops_what_runs_and_denies_the_rest_until_a_person_resumes() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"sh *\"\naction = \"allow\"\n";
    // One goes on in a session of its own, without its parent.
    let loops = "while :; do echo tick >> $1; sleep 0.02; done\n";
    let script = "(setsid sh loop.sh left &)\nuntil [ -s left ]; do sleep 0.02; done\nsh loop.sh ticks\n";
    let mut daemon = Setup::new().config(rule).file("run.sh", script).file("loop.sh", loops).start();
    let (mut person, mut model) = (daemon.connect(), daemon.connect());
    model.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    assert_eq!(model.error("daemon.pause", json!({}))["code"], -32002);
    let call = json!({"name": "bash", "arguments": {"command": "sh run.sh", "timeout_ms": 600_000}, "call_id": "c"});
    person.request("tools.execute", call);
    let work = daemon.work();
    let count_of = |name: &str| std::fs::metadata(work.join(name)).map_or(0, |found| found.len());
    let count = || count_of("ticks");
    until("it runs", || (count() > 20).then_some(()));
    let mut other = daemon.connect();
    let paused = other.result("daemon.pause", json!({}));
    assert!(paused["processes"].as_u64().unwrap() >= 2, "{paused}");
    let (before, left) = (count(), count_of("left"));
    let denied = bash(&mut other, "ls");
    assert!(denied["content"][0]["text"].as_str().unwrap().contains("paused by "), "{denied}");
    assert_eq!(model.error("daemon.resume", json!({}))["code"], -32002);
    assert_eq!((count(), count_of("left")), (before, left));
    // Nor does a tool of which nobody knows what it needs.
    let unknown =
        json!({"agent": "claude-code", "tool": "Frobnicate", "input": {}, "cwd": daemon.work(), "session": "z"});
    let judged = daemon.connect().result("permissions.request", unknown.clone());
    assert_eq!(judged["decision"], "deny", "{judged}");
    assert!(judged["reason"].as_str().unwrap().contains("frobnicate (everything is paused by"), "{judged}");
    let status = other.result("daemon.status", json!({}))["problems"].to_string();
    assert!(status.contains("toolctl resume"), "{status}");
    other.result("daemon.resume", json!({}));
    until("both go on", || (count() > before && count_of("left") > left).then_some(()));
    assert_eq!(daemon.connect().result("permissions.request", unknown)["decision"], "ask");
    ran(&bash(&mut other, "ls"));
    let replayed = daemon.connect().result("permissions.replay", json!({"since": "1h"}));
    assert_eq!(replayed["asks_after"], 0, "{replayed}");
    // With `kill` it ends, and a restart does not resume.
    other.result("daemon.pause", json!({"kill": true}));
    daemon.restart("TERM");
    let mut person = daemon.connect();
    assert!(bash(&mut person, "ls")["content"][0]["text"].as_str().unwrap().contains("paused by "));
    person.result("daemon.resume", json!({}));
    ran(&bash(&mut person, "ls"));
    // Where it cannot be stored, it holds, and nobody is told that it ends later than the daemon.
    let file = daemon.setup.path("state/toold/paused.json");
    std::fs::create_dir_all(file.join("full")).unwrap();
    let not_kept = person.error("daemon.pause", json!({}));
    assert_eq!(not_kept["data"]["kind"], "not_kept", "{not_kept}");
    assert!(not_kept["message"].as_str().unwrap().contains("this holds only until the daemon stops"), "{not_kept}");
    assert!(bash(&mut person, "ls")["content"][0]["text"].as_str().unwrap().contains("paused by "));
    let not_kept = person.error("daemon.resume", json!({}));
    assert!(not_kept["message"].as_str().unwrap().contains("nothing was changed"), "{not_kept}");
    std::fs::remove_dir_all(file).unwrap();
    person.result("daemon.resume", json!({}));
    ran(&bash(&mut person, "ls"));
}

/// A line of Claude Code begins a moment after it was judged, or once Claude Code's user has allowed it.
#[test]
fn a_judged_line_of_an_agent_runs_as_rules_and_files_are_when_it_begins() {
    if !machine_confines() {
        return;
    }
    let script = "cat .env; echo evil > .envrc; echo ran\n";
    let daemon = at("develop", Setup::new().file("run.sh", script));
    let (mut person, mut agent) = (daemon.connect(), daemon.connect());
    let work = daemon.work();
    let mut calls = 0;
    let mut judge = |agent: &mut Wire| {
        calls += 1;
        let request = json!({
            "agent": "claude-code", "tool": "Bash", "input": {"command": "sh run.sh"}, "cwd": work, "session": "s",
            "confines": true, "call_id": format!("c{calls}"),
        });
        let judged = agent.result("permissions.request", request);
        assert_eq!(judged["decision"], "allow", "{judged}");
    };
    let line =
        json!({"agent": "claude-code", "session": "s", "command": "sh run.sh", "cwd": work, "program": "/bin/sh"});
    // Nothing that a person forbids in between begins.
    let deny = json!({"category": "shell", "pattern": "sh *", "action": "deny", "scope": "always"});
    judge(&mut agent);
    person.result("daemon.pause", json!({}));
    let refused = agent.error("permissions.confine", line.clone());
    assert!(refused["message"].as_str().unwrap().contains("everything is paused by"), "{refused}");
    person.result("daemon.resume", json!({}));
    judge(&mut agent);
    let grant = person.result("permissions.grant", deny);
    let refused = agent.error("permissions.confine", line.clone());
    assert!(refused["message"].as_str().unwrap().contains("not allowed any more: shell sh run.sh"), "{refused}");
    // It counted once, whatever became of it.
    person.result("permissions.revoke", json!({"id": grant["id"]}));
    assert_eq!(agent.error("permissions.confine", line.clone())["data"]["kind"], "not_approved");
    judge(&mut agent);
    let sessions = person.result("session.list", json!({}))["sessions"].take();
    let is_agents = |session: &&Value| session["session_id"].as_str().is_some_and(|id| id.starts_with("agent-"));
    let session = sessions.as_array().unwrap().iter().find(is_agents).unwrap()["session_id"].clone();
    person.result("permissions.set_level", json!({"session_id": session, "level": "read"}));
    assert_eq!(agent.error("permissions.confine", line.clone())["data"]["kind"], "not_approved");
    person.result("permissions.set_level", json!({"session_id": session, "level": "develop"}));
    // A file that somebody wrote in between is hidden and stays as it is.
    judge(&mut agent);
    std::fs::write(work.join(".env"), "KEY=secret-1\n").unwrap();
    std::fs::write(work.join(".envrc"), "mine\n").unwrap();
    let begun = agent.result("permissions.confine", line);
    let arguments: Vec<&str> = begun["arguments"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut program = std::process::Command::new(toold());
    let output = program.args(arguments).args(["-c", "sh run.sh"]).current_dir(&work).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(said.contains("ran\n") && said.contains(".env: Permission denied") && !said.contains("secret-1"), "{said}");
    assert_eq!(std::fs::read_to_string(work.join(".envrc")).unwrap(), "mine\n");
    // Its confined commands are free at a level without a question.
    let replayed = person.result("permissions.replay", json!({"since": "1h", "level": "develop"}));
    assert_eq!((&replayed["asks_after"], replayed.get("asked")), (&json!(0), None), "{replayed}");
}

/// The floor hides the file, and not what Git has of it.
#[test]
fn git_shows_no_file_that_a_rule_denies_unasked() {
    if !machine_confines() {
        return;
    }
    let rule = "[[permission.rules]]\ncategory = \"file.read\"\npattern = \"**/private/**\"\naction = \"deny\"\n";
    let daemon = Setup::new().file("private/plan.txt", "the plan\n").file("open.txt", "known\n").config(rule).start();
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "one"]] {
        toold_test_kit::git(&daemon.work(), arguments);
    }
    let mut wire = daemon.connect();
    for line in ["git show", "git log -p", "git archive HEAD", "git cat-file --batch-all-objects --batch"] {
        let result = bash(&mut wire, line);
        asked(&result);
        assert!(!result.to_string().contains("the plan"), "{result}");
    }
    let refused = bash(&mut wire, "git show").to_string();
    assert!(refused.contains("leave it out with -- ':(exclude)private'"), "{refused}");
    for line in ["git show -- ':(exclude)private'", "git log -p -- open.txt"] {
        let result = bash(&mut wire, line);
        ran(&result);
        assert!(result.to_string().contains("known") && !result.to_string().contains("the plan"), "{result}");
    }
}
