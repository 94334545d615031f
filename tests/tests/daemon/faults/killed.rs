//! `kill -9`, at any moment: files whole, the database whole, nothing left running, and the next start serves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, has_ended, until};

use crate::faults::SHELL;

const ALLOW: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";

fn kill(daemon: &mut TestDaemon) {
    daemon.signal("KILL");
    daemon.wait();
}

/// Before another daemon starts, which could clean up.
#[track_caller]
fn nothing_runs(daemon: &TestDaemon) {
    until("nothing runs that the daemon started", || daemon.processes().is_empty().then_some(()));
}

#[test]
fn a_command_ends_with_a_daemon_that_is_killed() {
    let mut daemon = Setup::new().config(ALLOW).start();
    for line in [
        "sleep 1000",
        // They make their own groups and sessions, and one clears the environment by which it could be recognised.
        "setsid sleep 1001 & (setsid bash -c 'sleep 1002; true' &) ; exec env -i sleep 1003",
        "trap '' TERM; sleep 1004 & while :; do wait; done",
    ] {
        for background in [false, true] {
            let mut wire = daemon.connect();
            let arguments = json!({"command": format!("touch started; {line}"), "background": background});
            wire.request("tools.execute", json!({"name": "bash", "arguments": arguments}));
            until("the command runs", || daemon.work().join("started").exists().then_some(()));
            until("all of it runs", || (daemon.processes().len() >= line.matches("sleep").count()).then_some(()));
            kill(&mut daemon);
            nothing_runs(&daemon);
            std::fs::remove_file(daemon.work().join("started")).unwrap();
            daemon.start_again();
        }
    }
}

#[test]
fn detached_children_of_a_command_end_when_the_daemon_is_killed() {
    let keep = format!("[shell]\nkeep = [\"sleep\"]\n{ALLOW}");
    let mut daemon = Setup::new().config(&keep).start();
    // The configuration keeps it, once it has left the group; all others end with their command.
    let line = "setsid sleep 1000 >/dev/null 2>&1 & until grep -qs '^sleep' /proc/$!/comm; do :; done";
    let result = daemon.connect().tool("bash", json!({"command": line}));
    assert_eq!(result["is_error"], false, "{result}");
    let left = daemon.processes();
    assert!(left.iter().any(|process| process.contains("sleep 1000")), "{left:?}");
    kill(&mut daemon);
    nothing_runs(&daemon);
    daemon.start_again();
}

#[test]
fn a_reaper_that_is_killed_is_followed_by_another() {
    let mut daemon = Setup::new().config(ALLOW).start();
    let mut wire = daemon.connect();
    let start = |wire: &mut toold_tests::Wire, line: &str| {
        let result = wire.tool("bash", json!({"command": line, "background": true}));
        assert_eq!(result["is_error"], false, "{result}");
    };
    start(&mut wire, "exec sleep 1000");
    let reaper = daemon.reaper();
    assert!(std::process::Command::new("kill").args(["-9", &reaper.to_string()]).status().unwrap().success());
    until("the reaper has ended", || has_ended(reaper).then_some(()));
    start(&mut wire, "exec sleep 1001");
    until("both run", || (daemon.processes().len() == 2).then_some(()));
    kill(&mut daemon);
    nothing_runs(&daemon);
    daemon.start_again();
}

#[test]
fn a_reaper_that_is_stopped_when_the_daemon_is_killed_does_its_work_later() {
    let mut daemon = Setup::new().config(ALLOW).start();
    let mut wire = daemon.connect();
    // In the foreground: the daemon of another test may end background commands.
    wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": "touch started; exec sleep 1000"}}));
    until("the command runs", || daemon.work().join("started").exists().then_some(()));
    let reaper = daemon.reaper().to_string();
    let signal = |name: &str| {
        assert!(std::process::Command::new("kill").args([name, &reaper]).status().unwrap().success());
    };
    signal("-STOP");
    kill(&mut daemon);
    assert_eq!(daemon.processes().len(), 1);
    signal("-CONT");
    nothing_runs(&daemon);
    daemon.start_again();
}

/// The actions of the clients, and how far they came before the daemon was killed.
#[derive(Default)]
struct Load {
    done: AtomicU64,
    over: AtomicBool,
    /// The last numbers that were answered as written, by file.
    written: Mutex<BTreeMap<String, u64>>,
    granted: Mutex<Vec<String>>,
    /// The calls that were answered.
    called: Mutex<Vec<String>>,
}

/// A client that accepts the end of its connection at any moment.
struct LoadClient {
    reader: BufReader<UnixStream>,
    id: u64,
    /// An error as the answer is an end, too.
    may_refuse: bool,
    /// The calls that were answered.
    called: Vec<String>,
}

impl LoadClient {
    fn connect(daemon: &Path, work: &Path) -> Option<Self> {
        let stream = UnixStream::connect(daemon).ok()?;
        let mut client = Self { reader: BufReader::new(stream), id: 0, may_refuse: false, called: Vec::new() };
        client.ask("session.open", json!({"cwd": work}))?;
        client.ask("permissions.set_mode", json!({"mode": "accept_edits"}))?;
        Some(client)
    }

    fn send(&mut self, method: &str, params: Value) -> Option<()> {
        self.id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        self.reader.get_mut().write_all(format!("{request}\n").as_bytes()).ok()
    }

    fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        self.send(method, params)?;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 || !line.ends_with('\n') {
                return None;
            }
            let mut answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.id {
                if self.may_refuse && answer.get("error").is_some() {
                    return None;
                }
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return Some(answer["result"].take());
            }
        }
    }

    fn tool(&mut self, name: &str, arguments: Value) -> Option<()> {
        let result = self.ask("tools.execute", json!({"name": name, "arguments": arguments}))?;
        if self.may_refuse && result["is_error"] == true {
            return None;
        }
        assert_eq!(result["is_error"], false, "{name}: {result}");
        self.called.push(result["call_id"].as_str().unwrap().to_owned());
        Some(())
    }
}

/// A text that shows whether it is whole: it has the number at both ends and between.
fn text(number: u64) -> String {
    let line = format!("number {number}\n");
    format!("{line}{}{line}", format!("{number} ").repeat(20_000) + "\n")
}

fn number(text: &str) -> u64 {
    text.lines().next().unwrap().strip_prefix("number ").unwrap().parse().unwrap()
}

fn write(load: &Load, client: &mut LoadClient) -> Option<()> {
    for n in 1.. {
        client.tool("write", json!({"path": "written.txt", "content": text(n)}))?;
        load.written.lock().unwrap().insert("written.txt".into(), n);
        load.done.fetch_add(1, Ordering::Relaxed);
    }
    None
}

fn edit(load: &Load, client: &mut LoadClient) -> Option<()> {
    client.tool("write", json!({"path": "edited.txt", "content": "A=0\nmiddle\nB=0\n"}))?;
    for n in 1.. {
        let edit = |name: &str| json!({"old": format!("{name}={}", n - 1), "new": format!("{name}={n}")});
        client.tool("edit", json!({"path": "edited.txt", "edits": [edit("A"), edit("B")]}))?;
        load.written.lock().unwrap().insert("edited.txt".into(), n);
        load.done.fetch_add(1, Ordering::Relaxed);
    }
    None
}

fn run(load: &Load, client: &mut LoadClient) -> Option<()> {
    // Never answered, and it blocks nobody else: a serial call blocks only its own session.
    client.send("tools.execute", json!({"name": "bash", "arguments": {"command": "sleep 1000 & sleep 1000"}}))?;
    load.done.fetch_add(1, Ordering::Relaxed);
    hold(load, client)
}

fn background(load: &Load, client: &mut LoadClient) -> Option<()> {
    for n in 0..20 {
        let line = format!("(setsid sleep 1{n:03} &); exec sleep 1{n:03}");
        client.tool("bash", json!({"command": line, "background": true}))?;
        load.done.fetch_add(1, Ordering::Relaxed);
    }
    hold(load, client)
}

/// Keeps the session and its commands until the daemon ends.
fn hold(load: &Load, client: &mut LoadClient) -> Option<()> {
    while !load.over.load(Ordering::Relaxed) {
        client.ask("daemon.status", json!({}))?;
    }
    None
}

fn grant(load: &Load, client: &mut LoadClient) -> Option<()> {
    for n in 0.. {
        let params = json!({"category": "shell", "pattern": format!("echo {n}"), "scope": "always"});
        let granted = client.ask("permissions.grant", params)?;
        load.granted.lock().unwrap().push(granted["id"].as_str().unwrap().to_owned());
        client.ask("session.open", json!({"cwd": "/", "session_id": format!("s{n}")}))?;
        load.done.fetch_add(2, Ordering::Relaxed);
    }
    None
}

type LoadJob = fn(&Load, &mut LoadClient) -> Option<()>;

/// Ten times by default; `TOOLD_KILLS` makes it more.
#[test]
fn nothing_is_half_done_after_kills_at_random_moments() {
    let rounds = std::env::var("TOOLD_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut daemon = Setup::new().config(ALLOW).start();
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut all, mut calls) = (0, 0);
    for round in 0..rounds {
        let load = Load::default();
        let (socket, work) = (daemon.socket(), daemon.work());
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let moment = dice % 150;
        std::thread::scope(|scope| {
            for job in [write as LoadJob, edit, run, background, grant] {
                let (load, socket, work) = (&load, &socket, &work);
                scope.spawn(move || {
                    // Ends with its connection.
                    if let Some(mut client) = LoadClient::connect(socket, work) {
                        job(load, &mut client);
                        load.called.lock().unwrap().append(&mut client.called);
                    }
                });
            }
            until("the moment comes", || (load.done.load(Ordering::Relaxed) >= moment).then_some(()));
            kill(&mut daemon);
            load.over.store(true, Ordering::Relaxed);
        });
        nothing_runs(&daemon);
        check_files(&load, &work);
        check_database(&daemon.state().join("toold.db"), &load);
        all += load.done.load(Ordering::Relaxed);
        for name in ["written.txt", "edited.txt"] {
            // There is none yet if the kill came early.
            let _ = std::fs::remove_file(work.join(name));
        }
        daemon.start_again();
        let status = daemon.connect().result("daemon.status", json!({}));
        assert_eq!(status.get("problems"), None, "round {round}: {status}");
        calls += check_audit_log(&daemon, &load);
    }
    let verified = daemon.toolctl(&["audit", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
    println!("{rounds} kills amid {all} things done; all of {calls} answered calls are in the audit log");
}

/// Allocates memory until there is none left.
const GREEDY: &str = r#"
local all = {}
hygge.register_tool{
  name = "take", description = "Keeps memory", permission = false,
  execute = function(ctx, input) all[#all + 1] = string.rep(tostring(#all), 8000000) return "taken" end,
}
"#;

fn take(load: &Load, client: &mut LoadClient) -> Option<()> {
    let mut ended = 0;
    while ended < 3 {
        let result = client.ask("tools.execute", json!({"name": "take", "arguments": {}}))?;
        ended += u64::from(result["is_error"] == true);
        load.done.fetch_add(1, Ordering::Relaxed);
    }
    load.over.store(true, Ordering::Relaxed);
    None
}

#[test]
fn a_plugin_that_takes_all_memory_ends_its_own_calls_alone() {
    let config = format!("{ALLOW}[limits]\nvm_memory_mib = 4096\n");
    // If it ended, it would be by a signal that dumps its memory (a core file).
    let no_dump = [SHELL[0], SHELL[1], "ulimit -c 0 && exec \"$@\"", "sh"];
    let mut daemon = Setup::new().config(&config).plugin("greedy.lua", GREEDY).through(&no_dump).start();
    leave_memory(&daemon, 160 << 20);
    let load = Load::default();
    let (socket, work) = (daemon.socket(), daemon.work());
    std::thread::scope(|scope| {
        for job in [write as LoadJob, edit, grant, take] {
            let (load, socket, work) = (&load, &socket, &work);
            scope.spawn(move || {
                let mut client = LoadClient::connect(socket, work).unwrap();
                job(load, &mut client);
            });
        }
        until("calls have ended for lack of memory", || load.over.load(Ordering::Relaxed).then_some(()));
        kill(&mut daemon);
    });
    println!("{} things done", load.done.load(Ordering::Relaxed));
    nothing_runs(&daemon);
    check_files(&load, &work);
    check_database(&daemon.state().join("toold.db"), &load);
    daemon.start_again();
    assert_eq!(daemon.connect().result("daemon.status", json!({})).get("problems"), None);
}

#[test]
fn memory_that_a_plugin_took_is_there_again_for_its_next_call() {
    let config = format!("{ALLOW}[limits]\nvm_memory_mib = 4096\n");
    let daemon = Setup::new().config(&config).plugin("greedy.lua", GREEDY).start();
    let mut wire = daemon.connect();
    assert_eq!(wire.tool("take", json!({}))["is_error"], false);
    leave_memory(&daemon, 160 << 20);
    let refusal = until("a call ends for lack of memory", || {
        Some(wire.tool("take", json!({}))).filter(|result| result["is_error"] == true)
    });
    assert!(refusal.to_string().contains("the system has no more memory"), "{refusal}");
    until("the memory is there again", || (wire.tool("take", json!({}))["is_error"] == false).then_some(()));
}

/// Their Lua states and what they allocate in small pieces find no memory either.
#[test]
fn many_calls_that_find_no_memory_end_alone() {
    let tool = |name: &str, fill: &str| {
        let run =
            format!("execute = function() local t = {{}} for i = 1, {fill} end hygge.sleep('50ms') return 'full' end");
        format!(
            "hygge.register_tool{{name = '{name}', description = 'Fills', parallelizable = true, permission = false, {run}}}"
        )
    };
    let no_dump = [SHELL[0], SHELL[1], "ulimit -c 0 && exec \"$@\"", "sh"];
    let daemon = Setup::new()
        .config(ALLOW)
        .plugin("long.lua", &tool("long", "50 do t[i] = string.rep(i, 500000)"))
        .plugin("short.lua", &tool("short", "200000 do t[i] = {i}"))
        .through(&no_dump)
        .start();
    let (mut wire, mut other) = (daemon.connect(), daemon.connect());
    for name in ["long", "short"] {
        until("the plugins are loaded", || (wire.tool(name, json!({}))["is_error"] == false).then_some(()));
    }
    leave_memory(&daemon, 160 << 20);
    let execute = |name: &str| json!({"name": name, "arguments": {}});
    let calls: Vec<u64> = (0..40).map(|n| wire.request("tools.execute", execute(["long", "short"][n % 2]))).collect();
    let command = other.tool("bash", json!({"command": "echo other"}));
    assert!(command.to_string().contains("other"), "{command}");
    let answers: Vec<Value> = calls.into_iter().map(|id| wire.answer(id)).collect();
    let short = answers.iter().filter(|answer| answer.to_string().contains("the system has no more memory")).count();
    assert!(short > 0, "{answers:?}");
    until("the memory is there again", || (wire.tool("short", json!({}))["is_error"] == false).then_some(()));
}

/// Lets a daemon map this many more bytes of address space than it has.
fn leave_memory(daemon: &TestDaemon, bytes: u64) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")).unwrap();
    let most = size.parse::<u64>().unwrap() * 1024 + bytes;
    let pid = Pid::from_raw(daemon.pid().try_into().unwrap());
    prlimit(pid, Resource::As, Rlimit { current: Some(most), maximum: Some(most) }).unwrap();
}

fn check_files(load: &Load, work: &Path) {
    let answered = load.written.lock().unwrap();
    let answered = |name: &str| answered.get(name).copied().unwrap_or(0);
    if let Ok(written) = std::fs::read_to_string(work.join("written.txt")) {
        let n = number(&written);
        assert!(written == text(n), "written.txt is half written");
        assert!(n == answered("written.txt") || n == answered("written.txt") + 1);
    } else {
        assert_eq!(answered("written.txt"), 0);
    }
    if let Ok(edited) = std::fs::read_to_string(work.join("edited.txt")) {
        let n: u64 = edited.lines().next().unwrap().strip_prefix("A=").unwrap().parse().unwrap();
        assert_eq!(edited, format!("A={n}\nmiddle\nB={n}\n"));
        assert!(n == answered("edited.txt") || n == answered("edited.txt") + 1);
    }
}

fn check_database(path: &Path, load: &Load) {
    let database = rusqlite::Connection::open(path).unwrap();
    let found: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
    for id in load.granted.lock().unwrap().iter() {
        let there: bool =
            database.query_row("SELECT count(*) = 1 FROM grants WHERE id = ?1", [id], |row| row.get(0)).unwrap();
        assert!(there, "the grant {id} was answered as kept and is gone");
    }
}

/// Every call that was answered has its row; returns how many there were.
fn check_audit_log(daemon: &TestDaemon, load: &Load) -> usize {
    let path = daemon.state().join("toold.db");
    let rows = || -> BTreeSet<String> {
        let database = rusqlite::Connection::open(&path).unwrap();
        let mut rows = database.prepare("SELECT call_id FROM audit").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let called: BTreeSet<String> = load.called.lock().unwrap().iter().cloned().collect();
    until("each call is in the audit log", || called.is_subset(&rows()).then_some(()));
    called.len()
}

#[test]
fn a_call_that_kills_the_daemon_has_a_row() {
    let rule = |category: &str| {
        format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"**\"\naction = \"allow\"\n")
    };
    let mut daemon = Setup::new().config(&(rule("shell") + &rule("file.write"))).file("a.txt", "here").start();
    let mut wire = daemon.connect();
    let answered = wire.tool("read", json!({"path": "a.txt"}))["call_id"].take();
    let command = format!("echo payload > proof; kill -9 {}", daemon.pid());
    let call = json!({"name": "bash", "arguments": {"command": command}, "call_id": "killer"});
    wire.request("tools.execute", call);
    daemon.wait();
    daemon.start_again();
    let entries = daemon.connect().result("audit.query", json!({}))["entries"].take();
    let of = |id: &Value| entries.as_array().unwrap().iter().find(|entry| entry["call_id"] == *id).cloned();
    assert_eq!(of(&answered).unwrap()["outcome"], "ok", "{entries}");
    let killer = of(&json!("killer")).unwrap_or_else(|| panic!("{entries}"));
    assert_eq!(killer["outcome"], "interrupted", "{killer}");
    assert!(killer["decisions"].to_string().contains("payload"), "{killer}");
    let verified = daemon.toolctl(&["audit", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
}
