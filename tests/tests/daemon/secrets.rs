//! Secrets: they reach the servers that name them, and nothing that the daemon writes or shows.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, toolctl, until};

const CANARY: &str = "canary/4f9a17c2 \"quoted\" é";
const PASSPHRASE: &str = "correct horse battery";
const ALLOW: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n\
    [[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n\
    [secrets]\nnames = [\"DECLARED\"]\n";

/// A server that is given the secret in its environment and its arguments, and repeats it wherever it can.
const LEAKY: &str = r#"
import json, os, sys
token = os.environ["LEAKY_TOKEN"]
print("started with", token, file=sys.stderr, flush=True)
tool = {"name": "leak", "description": "knows " + token, "inputSchema": {"type": "object"}}
def send(message):
    print(json.dumps(message), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    method, id = request["method"], request.get("id")
    if id is None:
        continue
    if method == "initialize":
        send({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "leaky", "version": token}}})
    elif method == "tools/list":
        send({"jsonrpc": "2.0", "id": id, "result": {"tools": [tool]}})
    elif method == "tools/call":
        progress = request["params"].get("_meta", {}).get("progressToken")
        if progress is not None:
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": progress, "progress": 1, "message": "with " + token}})
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": token}})
        if request["params"]["arguments"].get("crash"):
            print("dies with", token, file=sys.stderr, flush=True)
            sys.exit(3)
        if request["params"]["arguments"].get("refuse"):
            send({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no " + token}})
        else:
            text = json.dumps({"hash": hash(token) != 0, "length": len(token), "env": token, "arg": sys.argv[-1]})
            send({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}],
                "structuredContent": {"length": len(token), token: token}}})
    else:
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}})
"#;

/// `toolctl` with this text on its stdin.
fn toolctl_with(daemon: &TestDaemon, arguments: &[&str], input: &str) -> Output {
    let mut command = daemon.setup.command(toolctl());
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn done(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn setup(program: &str) -> Setup {
    let setup = Setup::new().file("leaky.py", program);
    let server = setup.path("work/leaky.py");
    let plain = "import os, sys\nsys.stderr.write(repr(dict(os.environ)))\nsys.stdin.read()\n";
    let setup = setup.file("plain.py", plain);
    let other = setup.path("work/plain.py");
    let config = format!(
        "{ALLOW}[mcp.servers.leaky]\ncommand = \"python3\"\nargs = [{server:?}, \"--token=${{secret:TOKEN}}\"]\n\
         env = {{ LEAKY_TOKEN = \"${{secret:TOKEN}}\" }}\n\
         [mcp.servers.plain]\ncommand = \"python3\"\nargs = [{other:?}]\nstart_timeout_ms = 1000\n"
    );
    setup.config(&config)
}

#[track_caller]
fn learned(wire: &mut Wire) {
    until("the tool is listed", || wire.call("tools.schema", json!({"name": "leaky_leak"})).get("result").map(|_| ()));
}

fn files_below(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files_below(&entry.path(), found),
            kind if kind.is_file() => {
                found.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap()));
            }
            _ => {}
        }
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The secret, and the forms in which JSON and URLs hold it.
const FORMS: [&str; 3] = ["canary/4f9a17c2", "canary\\/4f9a17c2", "canary%2F4f9a17c2"];

#[test]
fn a_secret_reaches_the_server_that_names_it_and_nothing_else() {
    let daemon = setup(LEAKY).start();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"progress": true}));
    let absent: Value = serde_json::from_str(&done(daemon.toolctl(&["secrets", "list", "--json"]))).unwrap();
    assert_eq!((&absent["store"], &absent["state"]), (&json!("file"), &json!("absent")));
    done(toolctl_with(&daemon, &["secrets", "unlock"], PASSPHRASE));
    done(toolctl_with(&daemon, &["secrets", "set", "TOKEN"], &format!("{CANARY}\n")));
    let listed: Value = serde_json::from_str(&done(daemon.toolctl(&["secrets", "list", "--json"]))).unwrap();
    assert_eq!(
        listed["secrets"],
        json!([
            {"name": "DECLARED", "is_set": false, "used_by": []},
            {"name": "TOKEN", "is_set": true, "used_by": ["leaky"]},
        ])
    );
    learned(&mut wire);

    let mut shown = vec![listed.to_string()];
    let result = wire.tool("leaky_leak", json!({}));
    assert_eq!(result["structured"]["length"], CANARY.chars().count(), "the server has the whole value: {result}");
    assert!(result.to_string().contains("[redacted]"), "{result}");
    shown.push(result.to_string());
    shown.push(wire.tool("leaky_leak", json!({"refuse": true})).to_string());
    shown.push(wire.tool("leaky_leak", json!({"crash": true})).to_string());
    shown.push(wire.tool("leaky_leak", json!({"note": CANARY})).to_string());
    shown.push(wire.tool("bash", json!({"command": "env; tr '\\0' '\\n' < /proc/$PPID/environ"})).to_string());
    for method in ["mcp.servers", "audit.query", "daemon.config", "daemon.status", "daemon.metrics", "tools.list"] {
        shown.push(wire.result(method, json!({})).to_string());
    }
    shown.push(done(daemon.toolctl(&["config", "show"])));
    shown.push(done(daemon.toolctl(&["mcp", "servers", "--json"])));
    let mut events = Wire::connect(&daemon.socket());
    events.result("events.subscribe", json!({"since": 0, "epoch": "none"}));
    let last = wire.result("daemon.status", json!({}))["pid"].clone();
    assert_eq!(last, json!(daemon.pid()));
    events.result("daemon.ping", json!({}));
    shown.push(fs::read_to_string(daemon.setup.path("log")).unwrap());

    // The server runs again, with the secret in its environment, and no other process has it.
    shown.push(wire.tool("leaky_leak", json!({})).to_string());
    let mut with_secret = 0;
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let of = |file: &str| fs::read(process.path().join(file)).unwrap_or_default();
        let below_daemon = String::from_utf8_lossy(&of("stat"))
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse::<u32>().ok())
            == Some(daemon.pid());
        let is_daemon = process.file_name().to_str() == Some(&daemon.pid().to_string());
        if (below_daemon || is_daemon) && contains(&of("environ"), FORMS[0]) {
            with_secret += 1;
            assert!(contains(&of("cmdline"), "leaky.py"), "{}", String::from_utf8_lossy(&of("cmdline")));
        }
    }
    assert_eq!(with_secret, 1);
    assert!(shown.iter().any(|text| text.contains("[redacted]")));
    for (at, text) in shown.iter().enumerate() {
        for form in FORMS {
            assert!(!text.contains(form), "{form} is shown in {at}: {text}");
        }
    }

    let setup = daemon.into_setup();
    let mut files = Vec::new();
    for folder in ["state", "run", "home", "config"] {
        files_below(&setup.path(folder), &mut files);
    }
    files.push(("log".to_owned(), fs::read(setup.path("log")).unwrap()));
    assert!(files.iter().any(|(name, _)| name.ends_with("toold.db")) && files.len() > 5);
    for (name, bytes) in files {
        for text in FORMS.into_iter().chain([PASSPHRASE]) {
            assert!(!contains(&bytes, text), "{text} stands in {name}");
        }
    }
}

#[test]
fn secrets_are_locked_after_a_restart_until_a_person_unlocks_them() {
    let mut daemon = setup(LEAKY).start();
    done(toolctl_with(&daemon, &["secrets", "unlock"], PASSPHRASE));
    done(toolctl_with(&daemon, &["secrets", "set", "TOKEN"], CANARY));
    learned(&mut daemon.connect());
    daemon.restart("TERM");
    let mut wire = daemon.connect();
    let refused = wire.tool("leaky_leak", json!({}));
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(refused["is_error"] == true && words.contains("toolctl secrets unlock"), "{refused}");
    let wrong = toolctl_with(&daemon, &["secrets", "unlock"], "another passphrase");
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("does not open"));
    done(toolctl_with(&daemon, &["secrets", "unlock"], PASSPHRASE));
    until("the server answers", || {
        Some(wire.tool("leaky_leak", json!({}))).filter(|result| result["is_error"] == false)
    });
    done(daemon.toolctl(&["secrets", "remove", "TOKEN"]));
    let gone = daemon.toolctl(&["secrets", "remove", "TOKEN"]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("there is no secret TOKEN"));
}

#[test]
fn a_server_without_its_secret_says_which_command_sets_it() {
    let daemon = setup(LEAKY).start();
    let mut wire = daemon.connect();
    until("the server has failed", || {
        let servers = wire.result("mcp.servers", json!({}));
        let leaky = servers["servers"].as_array().unwrap().iter().find(|server| server["name"] == "leaky").cloned();
        leaky.filter(|leaky| leaky["error"].as_str().is_some_and(|error| error.contains("toolctl secrets set TOKEN")))
    });
    let refused = toolctl_with(&daemon, &["secrets", "set", "TOKEN"], CANARY);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("toolctl secrets unlock"));
    let short = toolctl_with(&daemon, &["secrets", "set", "TOKEN"], "1234");
    assert!(String::from_utf8_lossy(&short.stderr).contains("6 characters"));
}
