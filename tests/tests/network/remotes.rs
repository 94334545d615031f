//! Two daemons, of which one has mounted the other: over a program that stands for `ssh HOST toolctl connect`, and over
//! a WebSocket.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, lasting_port, toolctl, until};

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "hello", description = "Says hello", permission = false,
  execute = function(ctx, input) ctx.progress("one") ctx.progress("two") return "hello" end,
}
hygge.register_tool{
  name = "forever", description = "Waits", permission = false,
  execute = function(ctx, input) ctx.progress("waiting") hygge.sleep(60000) return "never" end,
}
"#;

/// Like sshd: runs `toolctl connect` for each client, in a process that belongs to no local client.
struct Sshd {
    socket: PathBuf,
    stops: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
}

impl Sshd {
    fn start(far: &TestDaemon) -> Self {
        let socket = far.setup.path("ssh.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let stops = Arc::new(AtomicBool::new(false));
        let (stopped, home) = (stops.clone(), far.setup.path("home"));
        let (path, far_socket) = (std::env::var_os("PATH").unwrap_or_default(), far.socket());
        let accepts = std::thread::spawn(move || {
            let mut children = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let stream = stream.unwrap();
                let output: OwnedFd = stream.try_clone().unwrap().into();
                let input: OwnedFd = stream.into();
                let mut command = Command::new(toolctl());
                command.env_clear().env("PATH", &path).env("HOME", &home).env("TOOLD_SOCKET", &far_socket);
                command.arg("connect").current_dir(&home).stdin(Stdio::from(input)).stdout(Stdio::from(output));
                children.push(command.spawn().unwrap());
            }
            children.iter_mut().for_each(|child| _ = child.wait());
        });
        Self { socket, stops, accepts: Some(accepts) }
    }

    /// The configuration of a mount through it.
    fn section(&self, name: &str) -> String {
        format!(
            "[remotes.{name}]\ncommand = [{:?}, \"connect\"]\nenv = {{ TOOLD_SOCKET = {:?} }}\n",
            toolctl(),
            self.socket
        )
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.socket);
        let _ = self.accepts.take().map(JoinHandle::join);
    }
}

/// The mounted daemon, the one that mounts it, and the connection between them. Dropped in this order.
struct Two {
    near: TestDaemon,
    _ssh: Sshd,
    far: TestDaemon,
}

fn two() -> Two {
    let far = Setup::new().plugin("hello.lua", PLUGIN).start();
    let ssh = Sshd::start(&far);
    let near = Setup::new().config(&ssh.section("far")).start();
    let two = Two { near, _ssh: ssh, far };
    wait_for_tool(&two.near, "far_hello");
    two
}

fn wait_for_tool(daemon: &TestDaemon, name: &str) -> Value {
    let mut wire = daemon.connect();
    until(&format!("{name} is listed and its daemon connected"), || {
        let remotes = wire.result("remotes.list", json!({}))["remotes"].take();
        let remotes = remotes.as_array().unwrap();
        let owner =
            remotes.iter().find(|remote| name.starts_with(&format!("{}_", remote["name"].as_str().unwrap())))?;
        let tools = wire.result("tools.list", json!({"names": [name]}))["tools"].take();
        (owner["state"] == "connected" && !tools[0].is_null()).then(|| tools[0].clone())
    })
}

impl Two {
    fn remote(&self) -> Value {
        self.near.connect().result("remotes.list", json!({}))["remotes"][0].take()
    }

    /// A local client whose session may call all remote tools; the remote still checks their permissions.
    fn client(&self) -> Wire {
        let mut wire = self.near.connect();
        wire.result("permissions.grant", json!({"category": "mcp", "pattern": "remote:far/*", "scope": "always"}));
        wire
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// The next prompt that is still open.
fn asked(wire: &mut Wire) -> Value {
    loop {
        let mut event = wire.notification("permissions.event")["result"].take();
        if event["type"] == "asked" {
            return event["request"].take();
        }
    }
}

#[test]
fn tools_run_there_and_are_followed_and_cancelled_from_here() {
    let two = two();
    let tool = wait_for_tool(&two.near, "far_hello");
    assert_eq!(tool["source"], json!({"kind": "remote", "name": "far"}));
    assert_eq!(tool["permissions"], json!(["mcp"]));
    let mut client = two.client();
    let call = client.request("tools.execute", json!({"name": "far_hello", "arguments": {}, "progress": true}));
    for (seq, word) in [(0, "one"), (1, "two")] {
        let progress = client.notification("tools.progress");
        assert_eq!((progress["seq"].as_u64(), progress["text"].as_str()), (Some(seq), Some(word)));
    }
    let result = client.answer(call)["result"].take();
    assert_eq!((text(&result), result["metadata"]["remote"].as_str()), ("hello", Some("far")));

    // The remote session works in the remote home folder, whichever folder the local client works in.
    let listed = client.tool("far_list", json!({}));
    assert!(!listed.to_string().contains(&two.near.work().display().to_string()), "{listed}");
    assert_eq!(two.remote()["cwd"], json!(two.far.setup.path("home")));

    let mut watcher = two.far.connect();
    watcher.result("events.subscribe", json!({"kinds": ["call.started", "call.finished"]}));
    let call = client.request("tools.execute", json!({"name": "far_forever", "arguments": {}, "progress": true}));
    client.notification("tools.progress");
    assert_eq!(watcher.notification("events.event")["result"]["kind"], "call.started");
    client.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}}));
    assert_eq!(client.answer(call)["error"]["code"], -32800);
    assert_eq!(watcher.notification("events.event")["result"]["outcome"], "cancelled");
    // The time limit here also applies there.
    let late = client.result("tools.execute", json!({"name": "far_forever", "arguments": {}, "timeout_ms": 200}));
    assert_eq!((&late["is_error"], &late["metadata"]["timed_out"]), (&json!(true), &json!(true)), "{late}");
    watcher.notification("events.event");
    assert_ne!(watcher.notification("events.event")["result"]["outcome"], "ok");
}

#[test]
fn a_link_that_breaks_ends_calls_on_both_sides_and_is_made_again() {
    let two = two();
    let mut client = two.client();
    let mut watcher = two.far.connect();
    watcher.result("events.subscribe", json!({"kinds": ["call.finished"]}));
    let call = client.request("tools.execute", json!({"name": "far_forever", "arguments": {}, "progress": true}));
    client.notification("tools.progress");
    let pid = two.remote()["pid"].as_u64().unwrap();
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    let result = client.answer(call)["result"].take();
    assert!(result["is_error"] == true && text(&result).contains("may have been executed"), "{result}");
    assert_eq!(watcher.notification("events.event")["result"]["outcome"], "cancelled");
    until("it is connected again", || {
        (two.remote()["connects"] == 2 && two.remote()["state"] == "connected").then_some(())
    });
    assert_eq!(text(&client.tool("far_hello", json!({}))), "hello");

    let output = two.near.toolctl(&["remotes", "doctor"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("connected"), "{output:?}");
}

#[test]
fn asks_there_are_answered_here() {
    let two = two();
    let mut client = two.client();
    let mut person = two.near.connect();
    person.result("permissions.subscribe", json!({}));
    let bash = |command: &str| json!({"name": "far_bash", "arguments": {"command": command}});

    let call = client.request("tools.execute", bash("touch made"));
    let ask = asked(&mut person);
    let expected = json!({"category": "shell", "target": "touch made", "tool": "far_bash",
        "source": {"kind": "remote", "name": "far"}, "cwd": two.far.setup.path("home")});
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(ask[member], *value, "{ask}");
    }
    assert!(ask["reason"].as_str().unwrap().starts_with("on far"), "{ask}");
    let pattern = &ask["suggestions"][0]["pattern"];
    let reply = json!({"request_id": ask["request_id"], "action": "allow", "scope": "session", "pattern": pattern});
    person.result("permissions.reply", reply);
    let result = client.answer(call)["result"].take();
    assert_eq!(result["is_error"], false, "{result}");
    assert!(two.far.setup.path("home/made").exists());
    // The approval holds there, for this session, and not here.
    assert_eq!(client.result("tools.execute", bash("touch made"))["is_error"], false);
    let grants = two.far.connect().result("permissions.list", json!({}))["grants"].take();
    assert_eq!((&grants[0]["category"], &grants[0]["scope"]), (&json!("shell"), &json!("session")), "{grants}");
    let grants = person.result("permissions.list", json!({}))["grants"].take();
    assert!(grants.as_array().unwrap().iter().all(|grant| grant["category"] == "mcp"), "{grants}");
    // Each local session has its own remote session.
    let mut other = two.near.connect();
    let call = other.request("tools.execute", bash("touch made"));
    let ask = asked(&mut person);
    let reply = json!({"request_id": ask["request_id"], "action": "deny", "message": "not that"});
    person.result("permissions.reply", reply);
    let result = other.answer(call)["result"].take();
    assert!(result["is_error"] == true && text(&result).contains("not that"), "{result}");

    // The first answer counts, from either side.
    let call = other.request("tools.execute", bash("touch made"));
    let ask = asked(&mut person);
    let mut there = two.far.connect();
    there.result("permissions.subscribe", json!({}));
    let theirs = asked(&mut there);
    there.result("permissions.reply", json!({"request_id": theirs["request_id"], "action": "allow"}));
    assert_eq!(other.answer(call)["result"]["is_error"], false);
    let resolved = loop {
        let event = person.notification("permissions.event")["result"].take();
        if event["type"] == "resolved" && event["request_id"] == ask["request_id"] {
            break event;
        }
    };
    assert_eq!(resolved["action"], "allow");
    // An ask of two calls stays when the first of them is cancelled here.
    let read = json!({"name": "far_read", "arguments": {"path": "/etc/hostname"}});
    let first = other.request("tools.execute", read.clone());
    asked(&mut person);
    let second = other.request("tools.execute", read);
    until("both wait there", || {
        let ask = there.result("permissions.pending", json!({}))["asks"][0].take();
        (ask["call_ids"].as_array()?.len() == 2).then_some(())
    });
    other.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": first}}));
    assert_eq!(other.answer(first)["error"]["code"], -32800);
    let ask = asked(&mut person);
    assert_eq!(ask["target"], "/etc/hostname", "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(other.answer(second)["result"]["is_error"], false);
    // A call that is cancelled here no longer prompts anybody.
    let call = other.request("tools.execute", bash("touch never"));
    asked(&mut person);
    other.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}}));
    other.answer(call);
    until("nothing is asked there", || {
        there.result("permissions.pending", json!({}))["asks"].as_array().unwrap().is_empty().then_some(())
    });
    assert!(person.result("permissions.pending", json!({}))["asks"].as_array().unwrap().is_empty());
}

#[test]
fn with_nobody_here_it_is_as_with_nobody_there() {
    let two = two();
    let mut client = two.client();
    let result = client.tool("far_bash", json!({"command": "touch made"}));
    assert!(result["is_error"] == true && text(&result).contains("permissions grant"), "{result}");
    // The policy here judges first.
    let mut stranger = two.near.connect();
    stranger.result(
        "permissions.grant",
        json!({"category": "mcp", "pattern": "remote:far/*", "scope": "session", "action": "deny"}),
    );
    let result = stranger.tool("far_hello", json!({}));
    assert_eq!(result["metadata"]["permission"]["target"], "remote:far/hello", "{result}");
}

#[test]
fn questions_there_are_answered_here() {
    let two = two();
    let mut client = two.client();
    let mut person = two.near.connect();
    person.result("permissions.subscribe", json!({}));
    person.result("questions.subscribe", json!({}));
    let question = json!({"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]});
    let call = client.request("tools.execute", json!({"name": "far_question", "arguments": question}));
    let event = person.notification("questions.event")["result"].take();
    assert_eq!(event["request"]["question"], "[far] Which?");
    let reply =
        json!({"request_id": event["request"]["request_id"], "answer_ids": [event["request"]["options"][1]["id"]]});
    person.result("questions.reply", reply);
    let result = client.answer(call)["result"].take();
    assert!(result["is_error"] == false && result.to_string().contains("Blue"), "{result}");
}

#[test]
fn changed_remote_tool_is_updated_and_loses_its_grants() {
    let two = two();
    let mut client = two.client();
    assert_eq!(text(&client.tool("far_hello", json!({}))), "hello");
    client.result("events.subscribe", json!({"kinds": ["tools.changed"]}));
    let changed = PLUGIN.replace("Says hello", "Says hello, and more");
    std::fs::write(two.far.plugins().join("hello.lua"), changed).unwrap();
    let event = client.notification("events.event")["result"].take();
    assert_eq!(event["changed"], json!(["far_hello"]), "{event}");
    let result = client.tool("far_hello", json!({}));
    assert!(result["is_error"] == true && text(&result).contains("remote:far/hello"), "{result}");
    // The tools of a daemon disappear when it is unmounted.
    std::fs::write(two.near.setup.path("config/toold/config.toml"), "").unwrap();
    until("its tools are gone", || {
        client.result("tools.list", json!({"source": "far"}))["tools"].as_array().unwrap().is_empty().then_some(())
    });
}

#[test]
fn a_daemon_that_leads_back_is_cut_off() {
    let far = Setup::new().plugin("hello.lua", PLUGIN).start();
    let ssh = Sshd::start(&far);
    let near = Setup::new().config(&ssh.section("far")).start();
    wait_for_tool(&near, "far_hello");
    // Both mount each other, and one itself.
    let back = Sshd::start(&near);
    let config = format!("{}{}", back.section("near"), ssh.section("me"));
    std::fs::write(far.setup.path("config/toold/config.toml"), config).unwrap();
    wait_for_tool(&far, "near_read");
    let mut wire = far.connect();
    let me = until("it is known", || {
        let mut remotes = wire.result("remotes.list", json!({}))["remotes"].take();
        (remotes[0]["name"] == "me" && remotes[0]["state"] == "away").then(|| remotes[0].take())
    });
    assert_eq!(me["error"], "it is this daemon itself");
    let names = |daemon: &TestDaemon| daemon.connect().result("tools.list", json!({}))["tools"].to_string();
    assert!(!names(&far).contains("near_far_") && !names(&near).contains("far_near_"));
    let near_there = wire.result("remotes.list", json!({}))["remotes"][1].take();
    assert!(near_there["problems"][0].as_str().unwrap().contains("lead back"), "{near_there}");
    drop(wire);
    // The connections are dropped before the daemons.
    std::fs::write(far.setup.path("config/toold/config.toml"), "").unwrap();
    std::fs::write(near.setup.path("config/toold/config.toml"), "").unwrap();
    for daemon in [&far, &near] {
        until("nothing is mounted", || {
            daemon.connect().result("remotes.list", json!({}))["remotes"].as_array().unwrap().is_empty().then_some(())
        });
    }
    drop((ssh, back));
}

/// A daemon on HTTP, and one that mounts it there with a token.
fn over_websocket(token: &str) -> (TestDaemon, TestDaemon) {
    let listen = format!("[mcp]\nlisten = \"127.0.0.1:{}\"\n", lasting_port());
    let setup = Setup::new().config(&listen).plugin("hello.lua", PLUGIN);
    let made = setup.command(toolctl()).args(["mcp", "token", "--admin"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let far = setup.start();
    let url = until("HTTP is served", || {
        far.connect().result("daemon.status", json!({}))["rpc_url"].as_str().map(str::to_owned)
    });
    let near = Setup::new();
    let file: &Path = &near.path("home/token");
    std::fs::copy(far.state().join(token), file).unwrap();
    // The person there opened this folder; the home folder, which is the default, is no workspace for a token.
    far.connect();
    let remote = format!("[remotes.far]\nurl = {url:?}\ntoken_file = \"~/token\"\ncwd = {:?}\n", far.work());
    let near = near.config(&remote).start();
    wait_for_tool(&near, "far_hello");
    (near, far)
}

#[test]
fn a_websocket_carries_the_same() {
    let (near, far) = over_websocket("admin-token");
    let mut client = near.connect();
    client.result("permissions.grant", json!({"category": "mcp", "pattern": "remote:far/*", "scope": "always"}));
    client.result("permissions.subscribe", json!({}));
    let call = client.request("tools.execute", json!({"name": "far_hello", "arguments": {}, "progress": true}));
    assert_eq!(client.notification("tools.progress")["text"], "one");
    assert_eq!(text(&client.answer(call)["result"]), "hello");
    let call = client.request("tools.execute", json!({"name": "far_bash", "arguments": {"command": "touch made"}}));
    let ask = asked(&mut client);
    client.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(client.answer(call)["result"]["is_error"], false);
    assert!(far.work().join("made").exists());
    // The remote is restarted, and found again.
    let mut far = far;
    far.restart("TERM");
    until("it is connected again", || {
        let remote = client.result("remotes.list", json!({}))["remotes"][0].take();
        (remote["connects"] == 2 && remote["state"] == "connected").then_some(())
    });
    assert_eq!(text(&client.tool("far_hello", json!({}))), "hello");
    drop(client);
    near.stop();
}

#[test]
fn prompts_stay_on_the_remote_when_the_token_may_not_decide() {
    let (near, far) = over_websocket("mcp-token");
    let mut client = near.connect();
    client.result("permissions.grant", json!({"category": "mcp", "pattern": "remote:far/*", "scope": "always"}));
    client.result("permissions.subscribe", json!({}));
    assert_eq!(client.result("remotes.list", json!({}))["remotes"][0]["relays_asks"], false);
    let mut person = far.connect();
    person.result("permissions.subscribe", json!({}));
    let call = client.request("tools.execute", json!({"name": "far_bash", "arguments": {"command": "touch made"}}));
    let ask = asked(&mut person);
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(client.answer(call)["result"]["is_error"], false);
    drop((client, person));
    near.stop();
}
