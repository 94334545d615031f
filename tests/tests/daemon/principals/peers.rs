//! Programs that speak to the daemon from processes of their own.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toold_tests::{TestDaemon, until};

/// Sends the requests of a file one after another on one connection, and writes each answer on a line. `wait` as a
/// method waits for the file that the parameters name; `connect` begins another connection.
const SPEAK: &str = r#"
import json, os, socket, sys, time

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    return s.makefile("rw")

lines = connect()
kept = [lines]
out = open(sys.argv[2] + ".part", "w")
for number, (method, params) in enumerate(json.load(open(sys.argv[2]))):
    if method == "wait":
        for _ in range(4500):
            if os.path.exists(params): break
            time.sleep(0.02)
        continue
    if method == "connect":
        lines = connect()
        kept.append(lines)
        continue
    lines.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    lines.flush()
    answer = {}
    while answer.get("id") != number or "method" in answer:
        answer = json.loads(lines.readline())
    out.write(json.dumps(answer) + "\n")
    out.flush()
os.rename(sys.argv[2] + ".part", sys.argv[2] + ".answers")
"#;

/// A stand-in for an agent: it starts `toolctl mcp`, waits until it is connected, closes it on demand, and
/// runs a shell command as agents do.
const AGENT: &str = r#"
import json, subprocess, sys
toolctl, keeps, line = sys.argv[1:4]
bridge = subprocess.Popen([toolctl, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}}) + "\n")
bridge.stdin.flush()
assert "serverInfo" in json.loads(bridge.stdout.readline())["result"]
if keeps == "gone":
    bridge.stdin.close()
    bridge.wait()
done = subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(json.dumps({"status": done.returncode, "output": done.stdout}))
"#;

/// Rules with which a command of a tool needs no approval.
pub(crate) const ALLOW: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n\
                     [[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n";

/// Requests that a separate program sends.
pub(crate) struct RequestScript {
    pub(crate) script: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) said: PathBuf,
}

impl RequestScript {
    pub(crate) fn new(daemon: &TestDaemon, name: &str, requests: &Value) -> Self {
        let script = daemon.setup.path("speak.py");
        std::fs::write(&script, SPEAK).unwrap();
        let said = daemon.setup.path(name);
        std::fs::write(&said, requests.to_string()).unwrap();
        Self { script, socket: daemon.socket(), said }
    }

    pub(crate) fn line(&self) -> String {
        format!("python3 {} {} {}", self.script.display(), self.socket.display(), self.said.display())
    }

    /// The answers, once all are there.
    #[track_caller]
    pub(crate) fn answers(&self) -> Vec<Value> {
        let text = until("all is answered", || std::fs::read_to_string(self.said.with_extension("answers")).ok());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The answers to requests of a program that a person starts, in the daemon's work folder, with these variables.
#[track_caller]
pub(crate) fn spoken(daemon: &TestDaemon, env: &[(&str, &str)], requests: &Value) -> Vec<Value> {
    let speaker = RequestScript::new(daemon, "requests", requests);
    let _ = std::fs::remove_file(speaker.said.with_extension("answers"));
    let mut command = daemon.setup.command("python3".as_ref());
    command.envs(env.iter().copied()).arg(&speaker.script).arg(&speaker.socket).arg(&speaker.said);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    speaker.answers()
}

pub(crate) struct AgentProcess(Child);

/// An agent that runs a line of shell.
pub(crate) fn start_agent(daemon: &TestDaemon, bridge: &str, line: &str) -> AgentProcess {
    let script = daemon.setup.path("agent.py");
    std::fs::write(&script, AGENT).unwrap();
    let mut command: Command = daemon.setup.command("python3".as_ref());
    command.arg(script).arg(toold_tests::toolctl()).args([bridge, line]);
    AgentProcess(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
}

impl AgentProcess {
    /// The exit status and the output of its line.
    #[track_caller]
    pub(crate) fn done(self) -> (i64, String) {
        let output = self.0.wait_with_output().unwrap();
        let done: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let status = done["status"].as_i64().unwrap_or_else(|| panic!("the agent failed: {output:?}"));
        (status, done["output"].as_str().unwrap().to_owned())
    }
}

pub(crate) const GRANT: &str = "permissions.grant";

pub(crate) fn grant_everything() -> Value {
    json!({"category": "shell", "pattern": "**", "scope": "always"})
}

/// Checks that nothing was granted meanwhile.
#[track_caller]
pub(crate) fn nothing_is_granted(daemon: &TestDaemon) {
    let grants = daemon.connect().result("permissions.list", json!({}))["grants"].take();
    assert_eq!(grants, json!([]));
}

#[track_caller]
pub(crate) fn is_refused(answer: &Value) {
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
}
