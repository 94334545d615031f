//! Processes below an agent decide nothing.

use std::path::Path;

use serde_json::json;
use toold_proto::shell_word::quoted;
use toold_tests::{TestDaemon, toolctl};

use crate::principals::peers::{
    GRANT, RequestScript, grant_everything, is_refused, nothing_is_granted, spoken, start_agent,
};

fn grant_line() -> String {
    format!("{} permissions grant shell '**'", toolctl().display())
}

#[test]
fn the_shell_of_an_agent_grants_nothing() {
    let daemon = TestDaemon::start();
    for bridge in ["connected", "gone"] {
        let (status, output) = start_agent(&daemon, bridge, &grant_line()).done();
        assert_ne!(status, 0, "{bridge}: {output}");
        assert!(output.contains("runs an agent"), "{bridge}: {output}");
    }
    nothing_is_granted(&daemon);
}

/// The daemon knows the process that asks by those above it, and not by its name.
#[test]
fn a_copy_of_toolctl_below_an_agent_grants_nothing() {
    let daemon = TestDaemon::start();
    let (toolctl, folder) = (toolctl().display(), daemon.setup.path("copies").display().to_string());
    let grants = "permissions grant shell '**'";
    for line in [
        format!("cp {toolctl} t; ./t {grants}"),
        // Copied by an earlier call.
        format!("./t {grants}"),
        format!("ln -s {toolctl} l; ./l {grants}"),
        format!("mkdir -p bin && cp {toolctl} bin/status && PATH=$PWD/bin:$PATH status {grants}"),
        format!("exec -a toold ./t {grants}"),
        format!("cat {toolctl} > c; chmod +x c; env -i TOOLD_SOCKET=$TOOLD_SOCKET ./c {grants}"),
        format!("setsid -w ./t {grants}"),
    ] {
        let line = format!("mkdir -p {folder} && cd {folder} && {{ {line}; }} 2>&1");
        let (status, output) = start_agent(&daemon, "connected", &format!("bash -c {}", quoted(&line))).done();
        assert!(status != 0 && output.contains("runs an agent"), "{line}: {output}");
    }
    nothing_is_granted(&daemon);
}

#[test]
fn programs_of_any_kind_below_an_agent_grant_nothing() {
    let daemon = TestDaemon::start();
    let speaker = RequestScript::new(&daemon, "requests", &json!([[GRANT, grant_everything()]]));
    for line in [
        speaker.line(),
        format!("setsid {}", speaker.line()),
        format!("env -i PATH=\"$PATH\" bash -c '{}'", speaker.line()),
    ] {
        let (status, output) = start_agent(&daemon, "connected", &line).done();
        assert_eq!(status, 0, "{output}");
        is_refused(&speaker.answers()[0]);
        std::fs::remove_file(speaker.said.with_extension("answers")).unwrap();
    }
    nothing_is_granted(&daemon);
}

/// Each line leaves a process behind that waits until its parent has ended. The agent lives meanwhile.
#[test]
fn orphans_of_an_agent_grant_nothing() {
    let daemon = TestDaemon::start();
    for (number, start) in
        ["(X &)", "(setsid X &)", "setsid sh -c '(X &)'", "(setsid -f X)", "(nohup X >/dev/null 2>&1 &)"]
            .into_iter()
            .enumerate()
    {
        let speaker = RequestScript::new(&daemon, &format!("requests-{number}"), &json!([[GRANT, grant_everything()]]));
        let waits = daemon.setup.path("orphan.sh");
        // Until its parent is another process than at first: it was adopted.
        let script = format!(
            "#!/bin/sh\nwhile [ \"$(cut -d' ' -f4 /proc/$$/stat)\" = \"$1\" ]; do sleep 0.02; done\nexec {}\n",
            speaker.line()
        );
        std::fs::write(&waits, script).unwrap();
        let done = speaker.said.with_extension("answers");
        let line = start.replace('X', &format!("sh {} $PPID", waits.display()));
        let line = format!("{line}; until [ -e {} ]; do sleep 0.02; done", done.display());
        let (status, output) = start_agent(&daemon, "connected", &line).done();
        assert_eq!(status, 0, "{start}: {output}");
        is_refused(&speaker.answers()[0]);
    }
    nothing_is_granted(&daemon);
    orphans_have_ended(&daemon);
}

/// Terminals that are no person's, since the agent started what is above them.
#[test]
fn a_terminal_that_an_agent_made_grants_nothing_without_a_code() {
    let daemon = TestDaemon::start();
    let multiplexer = daemon.setup.path("tmux");
    std::fs::copy("/bin/bash", &multiplexer).unwrap();
    let typed = "import pty; pty.spawn(['sh', '-i'])";
    for (name, start) in
        [("server", format!("{} -c 'sh RC; :'", multiplexer.display())), ("pty", format!("python3 -c \"{typed}\""))]
    {
        let speaker = RequestScript::new(&daemon, name, &json!([[GRANT, grant_everything()]]));
        let [rc, go] = ["rc", "go"].map(|end| daemon.setup.path(&format!("{name}-{end}")));
        let script = format!("while [ ! -e {} ]; do sleep 0.02; done\n{}\nexit\n", go.display(), speaker.line());
        std::fs::write(&rc, script).unwrap();
        let start = start.replace("RC", &rc.display().to_string());
        let done = speaker.said.with_extension("answers");
        // The subshell has ended before it may go on, and with it the parent.
        let line = format!(
            "(ENV={} setsid {start} >/dev/null 2>&1 </dev/null &)\ntouch {}; until [ -e {} ]; do sleep 0.02; done",
            rc.display(),
            go.display(),
            done.display()
        );
        let (status, output) = start_agent(&daemon, "connected", &line).done();
        assert_eq!(status, 0, "{name}: {output}");
        let answers = speaker.answers();
        assert_eq!(answers[0]["error"]["data"]["kind"], "confirmation_required", "{name}: {answers:?}");
    }
    nothing_is_granted(&daemon);
    orphans_have_ended(&daemon);
}

/// A process that its agent left behind, and that connects when the agent has ended.
#[test]
fn orphans_of_an_agent_that_has_ended_grant_nothing() {
    let daemon = TestDaemon::start();
    let speaker = RequestScript::new(&daemon, "requests", &json!([[GRANT, grant_everything()]]));
    let go = daemon.setup.path("go");
    let line = format!(
        "(setsid sh -c 'while [ ! -e {} ]; do sleep 0.02; done; exec {}' >/dev/null 2>&1 &)",
        go.display(),
        speaker.line()
    );
    let (status, output) = start_agent(&daemon, "connected", &line).done();
    assert_eq!(status, 0, "{output}");
    std::fs::write(go, "").unwrap();
    is_refused(&speaker.answers()[0]);
    nothing_is_granted(&daemon);
    orphans_have_ended(&daemon);
}

/// It began after the agent had ended, so that it may be a person's, or that of a process that the agent left behind.
#[test]
fn an_orphan_that_began_after_an_agent_decides_with_a_code() {
    let daemon = TestDaemon::start();
    start_agent(&daemon, "connected", "true").done();
    let left = |speaker: &RequestScript| {
        let line = format!("(setsid {} >/dev/null 2>&1 &)", speaker.line());
        assert!(daemon.setup.command("sh".as_ref()).args(["-c", &line]).status().unwrap().success());
        let answers = speaker.answers();
        orphans_have_ended(&daemon);
        answers
    };
    let mut number = 0;
    toold_tests::until("the daemon has noticed the agent's end", || {
        number += 1;
        let speaker = RequestScript::new(&daemon, &format!("first-{number}"), &json!([[GRANT, grant_everything()]]));
        let answers = left(&speaker);
        is_refused(&answers[0]);
        (answers[0]["error"]["data"]["kind"] == "confirmation_required").then_some(())
    });
    let code = daemon.connect().result("permissions.code", json!({}));
    let requests = json!([
        [GRANT, grant_everything()],
        ["permissions.confirm", {"code": "0000000000"}],
        ["permissions.confirm", {"code": code["code"]}],
        [GRANT, grant_everything()],
    ]);
    let speaker = RequestScript::new(&daemon, "requests", &requests);
    let answers = left(&speaker);
    assert_eq!(answers[1]["error"]["data"]["kind"], "wrong_code", "{answers:?}");
    assert!(answers[2].get("error").is_none() && answers[3].get("error").is_none(), "{answers:?}");
}

/// Nobody waits for them but their adopter.
fn orphans_have_ended(daemon: &TestDaemon) {
    toold_tests::until("the orphans have ended", || daemon.processes().is_empty().then_some(()));
}

#[test]
fn an_orphan_decides_where_no_agent_runs_that_it_could_belong_to() {
    let daemon = TestDaemon::start();
    let speaker = RequestScript::new(&daemon, "requests", &json!([[GRANT, grant_everything()]]));
    let line = format!("(setsid {} >/dev/null 2>&1 &)", speaker.line());
    let status = daemon.setup.command("sh".as_ref()).args(["-c", &line]).status().unwrap();
    assert!(status.success());
    let answers = speaker.answers();
    orphans_have_ended(&daemon);
    assert!(answers[0].get("error").is_none(), "{answers:?}");
}

#[test]
fn an_agent_is_one_after_the_daemon_was_killed() {
    let mut daemon = TestDaemon::start();
    let (ready, go) = (daemon.setup.path("ready"), daemon.setup.path("go"));
    let line =
        format!("touch {}; while [ ! -e {} ]; do sleep 0.02; done; {}", ready.display(), go.display(), grant_line());
    let agent = start_agent(&daemon, "gone", &line);
    toold_tests::until("the agent's shell runs", || ready.exists().then_some(()));
    daemon.restart("KILL");
    std::fs::write(go, "").unwrap();
    let (status, output) = agent.done();
    assert!(status != 0 && output.contains("runs an agent"), "{output}");
    nothing_is_granted(&daemon);
}

#[test]
fn process_started_by_a_native_agent_grants_nothing() {
    let daemon = TestDaemon::start();
    let script = r#"
import json, socket, subprocess, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": {"role": "agent"}}) + "\n"); f.flush()
assert "result" in json.loads(f.readline())
sys.exit(subprocess.run(sys.argv[2], shell=True).returncode)
"#;
    let output = daemon
        .setup
        .command("python3".as_ref())
        .args(["-c", script, &daemon.socket().display().to_string(), &grant_line()])
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
    nothing_is_granted(&daemon);
}

#[test]
fn an_editor_that_a_person_uses_may_run_an_agent_beside() {
    let daemon = TestDaemon::start();
    let script = r#"
import json, socket, subprocess, sys
def say(f, method, params):
    f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"); f.flush()
    return json.loads(f.readline())
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); return s.makefile("rw")
order = sys.argv[3]
editor = connect()
if order == "editor first":
    assert "result" in say(editor, "session.open", {"cwd": sys.argv[4]})
bridge = subprocess.Popen([sys.argv[2], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}}) + "\n")
bridge.stdin.flush(); bridge.stdout.readline()
if order != "editor first":
    assert "result" in say(editor, "session.open", {"cwd": sys.argv[4]})
assert "result" in say(editor, "permissions.grant", {"category": "shell", "pattern": "ls", "scope": "always"})
sys.exit(subprocess.run([sys.argv[2], "permissions", "grant", "shell", "pwd"]).returncode)
"#;
    for order in ["editor first", "agent first"] {
        let (socket, work) = (daemon.socket().display().to_string(), daemon.work().display().to_string());
        let output = daemon
            .setup
            .command("python3".as_ref())
            .args(["-c", script, &socket, &toolctl().display().to_string(), order, &work])
            .output()
            .unwrap();
        assert!(output.status.success(), "{order}: {output:?}");
    }
}

#[test]
fn a_program_that_is_no_agents_decides() {
    let daemon = TestDaemon::start();
    start_agent(&daemon, "connected", "true").done();
    let answers = spoken(&daemon, &[], &json!([[GRANT, grant_everything()]]));
    assert!(answers[0].get("error").is_none(), "{answers:?}");
}

#[test]
fn an_agent_below_another_one_is_one_when_the_other_has_ended() {
    let daemon = TestDaemon::start();
    let script = r#"
import json, os, socket, subprocess, sys, time
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
    f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": {"role": "agent"}}) + "\n"); f.flush()
    assert "result" in json.loads(f.readline())
    return f
outer = connect()
me = os.getpid()
if os.fork() == 0:
    os.execv(sys.executable, [sys.executable, "-c", """
import json, os, socket, subprocess, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": {"role": "agent"}}) + chr(10)); f.flush()
assert "result" in json.loads(f.readline())
open(sys.argv[3] + ".ready", "w").close()
while os.getppid() == int(sys.argv[4]): time.sleep(0.02)
done = subprocess.run(sys.argv[2], shell=True)
open(sys.argv[3] + ".part", "w").write(str(done.returncode))
os.rename(sys.argv[3] + ".part", sys.argv[3])
""", sys.argv[1], sys.argv[2], sys.argv[3], str(me)])
while not os.path.exists(sys.argv[3] + ".ready"): time.sleep(0.02)
"#;
    let said = daemon.setup.path("said");
    let (socket, said_at) = (daemon.socket().display().to_string(), said.display().to_string());
    let output = daemon
        .setup
        .command("python3".as_ref())
        .args(["-c", script, &socket, &grant_line(), &said_at])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let status = toold_tests::until("the inner agent has tried", || std::fs::read_to_string(&said).ok());
    assert_ne!(status, "0");
    nothing_is_granted(&daemon);
}

#[test]
fn a_program_that_ran_the_doctor_of_mcp_is_no_agent() {
    let daemon = TestDaemon::start();
    let script = "import subprocess, sys\n\
                  subprocess.run([sys.argv[1], 'mcp', 'doctor'])\n\
                  grant = subprocess.run([sys.argv[1], 'permissions', 'grant', 'shell', 'git fetch'])\n\
                  sys.exit(grant.returncode)";
    let output = daemon.setup.command(Path::new("python3")).args(["-c", script]).arg(toolctl()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("ok    stdio: revision "), "{output:?}");
}
