//! No call is lost or made twice when the daemon is replaced by another one, and no command waits for ever for a daemon
//! that does not answer.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use serde_json::{Value, json};
use toold_client::{Client, ClientError};
use toold_proto::call::Execute;
use toold_proto::daemon::NoParams;
use toold_proto::method::DaemonGetStatus;
use toold_proto::session::OpenSession;
use toold_tests::{Setup, toolctl, toold, until};

/// Commands and the files that they write need no approval.
const ALLOW_ALL: &str = "\
[[permission.rules]]
category = \"shell\"
pattern = \"**\"
action = \"allow\"
[[permission.rules]]
category = \"file.write\"
pattern = \"**\"
action = \"allow\"
";

/// The longest that a command may take when the daemon does not answer. It gives up after 8 s; the rest is slack.
const ENDS_WITHIN: Duration = Duration::from_secs(40);

/// Killed when the test is over.
pub(crate) struct KilledProcess(pub(crate) Child);

impl Drop for KilledProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Folders for daemons, each of which takes over from the one before. The last one is stopped at the end of the test.
struct RestartingDaemon {
    setup: Setup,
    first: KilledProcess,
}

impl RestartingDaemon {
    fn new() -> Self {
        let setup = Setup::new().config(ALLOW_ALL);
        fs::set_permissions(setup.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
        let log = fs::File::create(setup.path("log")).unwrap();
        let mut command = setup.command(toold());
        command.arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let first = KilledProcess(command.spawn().unwrap());
        let daemon = Self { setup, first };
        until("the daemon listens", || UnixStream::connect(daemon.socket()).ok());
        daemon
    }

    fn socket(&self) -> PathBuf {
        self.setup.path("run/toold.sock")
    }

    fn toolctl(&self, arguments: &[&str]) -> Output {
        self.setup.command(toolctl()).args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Replaces the daemon, and waits until the old one is gone.
    #[track_caller]
    fn restart(&self, n: usize) {
        let toold = toold().display().to_string();
        let output = self.toolctl(&["restart", "--program", &toold]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        until("the new daemon knows that the old one is gone", || {
            (self.log().matches("the previous daemon is gone").count() >= n).then_some(())
        });
    }

    fn log(&self) -> String {
        fs::read_to_string(self.setup.path("log")).unwrap()
    }
}

impl Drop for RestartingDaemon {
    fn drop(&mut self) {
        let stopped = self.toolctl(&["stop", "--drain-ms", "0"]);
        if std::thread::panicking() {
            eprintln!("--- log of the daemons ---\n{}", self.log());
        } else {
            assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
            until("the first daemon is gone", || self.first.0.try_wait().unwrap());
        }
    }
}

/// Stops the threads, also when the test fails.
struct EndOfTest<'a>(&'a AtomicBool);

impl Drop for EndOfTest<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const RESTARTS: usize = 5;

#[test]
fn no_call_is_lost_or_made_twice_by_restarts() {
    let daemon = RestartingDaemon::new();
    let (over, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let processes = |n: usize| {
        let mut calls = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let name = format!("toolctl-{n}-{}", calls.len());
            let output = daemon.toolctl(&["call", "bash", &format!("command=echo {name} >> calls"), "--quiet"]);
            made.fetch_add(1, Ordering::Relaxed);
            calls.push((name, describe(&output)));
        }
        calls
    };
    std::thread::scope(|scope| {
        let mut callers = Vec::new();
        let ends = EndOfTest(&over);
        for n in 0..3 {
            let processes = &processes;
            callers.push(scope.spawn(move || processes(n)));
        }
        callers.push(scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(calls_of_one_client(&daemon, &over, &made))
        }));
        callers.push(scope.spawn(|| calls_through_the_bridge(&daemon, &over, &made)));
        for n in 1..=RESTARTS {
            let before = made.load(Ordering::Relaxed);
            until("calls are made", || (made.load(Ordering::Relaxed) >= before + 5).then_some(()));
            daemon.restart(n);
        }
        drop(ends);
        let mut names = BTreeMap::new();
        for caller in callers {
            let calls = caller.join().unwrap();
            let lost: Vec<_> = calls.iter().filter(|(_, outcome)| outcome.is_err()).collect();
            assert!(lost.is_empty() && !calls.is_empty(), "lost: {lost:?}");
            names.extend(calls.into_iter().map(|(name, _)| (name, 0)));
        }
        for line in fs::read_to_string(daemon.setup.path("work/calls")).unwrap().lines() {
            *names.get_mut(line).expect("only these calls are made") += 1;
        }
        let wrong: Vec<_> = names.iter().filter(|(_, times)| **times != 1).collect();
        assert!(wrong.is_empty(), "calls that were not carried out once: {wrong:?}");
    });
}

fn describe(output: &Output) -> Result<(), String> {
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// One client for all restarts, which opens its session once.
async fn calls_of_one_client(
    daemon: &RestartingDaemon,
    over: &AtomicBool,
    made: &AtomicUsize,
) -> Vec<(String, Result<(), String>)> {
    let client = Client::connect(&daemon.socket()).await.unwrap();
    let cwd = Some(daemon.setup.path("work").display().to_string());
    let session = client.open_session(OpenSession { cwd, ..OpenSession::default() }).await.unwrap().session_id;
    let mut calls = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let name = format!("rust-{}", calls.len());
        let arguments = json!({"command": format!("echo {name} >> calls")});
        let execute = Execute { name: "bash".to_owned(), arguments, ..Execute::default() };
        let outcome = match client.execute(execute).unwrap().answer().await {
            Ok(result) if !result.is_error => Ok(()),
            Ok(result) => Err(format!("{result:?}")),
            Err(error) => Err(error.to_string()),
        };
        // Other requests in between.
        let status = client.call::<DaemonGetStatus>(NoParams {}).await;
        calls.push((name, outcome.and(status.map(drop).map_err(|error| error.to_string()))));
        made.fetch_add(1, Ordering::Relaxed);
    }
    let again = client.open_session(OpenSession { session_id: Some(session.clone()), ..OpenSession::default() });
    assert_eq!(again.await.unwrap().session_id, session);
    calls
}

/// One MCP client, which begins its conversation once.
fn calls_through_the_bridge(
    daemon: &RestartingDaemon,
    over: &AtomicBool,
    made: &AtomicUsize,
) -> Vec<(String, Result<(), String>)> {
    let mut command = daemon.setup.command(toolctl());
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bridge = KilledProcess(command.spawn().unwrap());
    let (mut input, output) = (bridge.0.stdin.take().unwrap(), bridge.0.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    let mut ask = |message: Value| {
        writeln!(input, "{message}").unwrap();
        let Some(id) = message.get("id") else { return Value::Null };
        loop {
            let line = lines.next().expect("the bridge goes on").unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer.get("method").is_none() {
                assert_eq!(answer["id"], *id, "{answer}");
                return answer;
            }
        }
    };
    let own = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": own});
    ask(json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params}));
    ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let mut calls = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let name = format!("mcp-{}", calls.len());
        let params = json!({"name": "bash", "arguments": {"command": format!("echo {name} >> calls")}});
        let answer = ask(json!({"jsonrpc": "2.0", "id": calls.len(), "method": "tools/call", "params": params}));
        let fine = answer["result"]["content"].is_array() && answer["result"]["isError"] != true;
        calls.push((name, if fine { Ok(()) } else { Err(answer.to_string()) }));
        made.fetch_add(1, Ordering::Relaxed);
    }
    calls
}

#[test]
fn a_call_that_a_killed_daemon_read_is_not_sent_again() {
    let mut daemon = RestartingDaemon::new();
    let call = "command=echo once >> calls; exec sleep 600";
    let mut command = daemon.setup.command(toolctl());
    command.args(["call", "bash", call]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let calling = command.spawn().unwrap();
    let calls = daemon.setup.path("work/calls");
    until("the call runs", || fs::read_to_string(&calls).ok().filter(|text| !text.is_empty()));
    daemon.first.0.kill().unwrap();
    daemon.first.0.wait().unwrap();
    let output = calling.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{words}");
    assert!(words.contains("Whether the call was carried out is not known, so it is not sent again"), "{words}");
    assert_eq!(fs::read_to_string(calls).unwrap(), "once\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_stands_still_for_a_moment_is_waited_for() {
    let daemon = RestartingDaemon::new();
    let client = Client::connect(&daemon.socket()).await.unwrap();
    let pid = daemon.first.0.id();
    signal(pid, "STOP");
    let newcomer = tokio::spawn({
        let socket = daemon.socket();
        async move { Client::connect(&socket).await.map(drop) }
    });
    let asked = tokio::spawn(async move { client.call::<DaemonGetStatus>(NoParams {}).await.map(drop) });
    // While the daemon stands still, neither may end.
    assert!(tokio::time::timeout(Duration::from_secs(2), until_both(&newcomer, &asked)).await.is_err());
    signal(pid, "CONT");
    newcomer.await.unwrap().unwrap();
    asked.await.unwrap().unwrap();
}

type CallTask = tokio::task::JoinHandle<Result<(), ClientError>>;

async fn until_both(one: &CallTask, other: &CallTask) {
    while !one.is_finished() && !other.is_finished() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Subcommands that ask no daemon, or only whether there is one.
const WITHOUT_DAEMON: &[&str] = &[
    "agents",
    "completions",
    "confine",
    "config check",
    "config edit",
    "config path",
    "config schema",
    "fleet broker-config",
    "fleet forget",
    "fleet init",
    "fleet invite",
    "fleet trust",
    "logs",
    "man",
    "mcp install",
    "mcp token",
    "plugins check",
    "plugins install",
    "plugins test",
    "plugins types",
    "upgrade",
];

/// Subcommands that `--help` shows in a group, and that work without it.
const GROUPED: &[(&str, &[&str])] = &[
    ("tools", &["list", "schema", "prompt", "parse", "do"]),
    ("permissions", &["workspaces", "level"]),
    ("audit", &["changes", "events", "watch"]),
    ("agents", &["sessions", "shells", "hook", "confine"]),
    ("plugins", &["skills", "memories"]),
    (
        "daemon",
        &[
            "status",
            "doctor",
            "start",
            "restart",
            "stop",
            "pause",
            "resume",
            "logs",
            "connect",
            "upgrade",
            "completions",
            "man",
        ],
    ),
    ("fleet", &["remotes"]),
    ("page", &["notify"]),
];

/// The words without their group.
fn without_group(above: &[String]) -> &[String] {
    let is_grouped =
        |group: &str, name: &str| GROUPED.iter().any(|(known, names)| *known == group && names.contains(&name));
    match above {
        [group, rest @ ..] if rest.first().is_some_and(|name| is_grouped(group, name)) => rest,
        _ => above,
    }
}

/// They check their arguments first, and `x` is none that they take.
const CHECK_ARGUMENTS: &[&str] = &["fleet grant", "fleet join"];

/// It reads its input first, and says nothing when there is no daemon.
const SILENT: &str = "hook";

/// These wait for their input once a daemon answers.
const READ_INPUT: &[&str] = &["changes forget", "connect", "parse", "secrets set", "shells write"];

/// These end at once without a person at a terminal.
const NEED_TERMINAL: &[&str] = &["approve"];

/// Errors show among the other output.
const TELL_ON_STDOUT: &[&str] = &["doctor"];

/// Values for required arguments.
fn argument(command: &str, name: &str) -> String {
    match (command, name) {
        // It makes the folder, below the one that the command runs in.
        ("man", _) => "man",
        ("completions", _) => "bash",
        ("permissions grant", "CATEGORY") => "shell",
        ("permissions mode", "MODE") => "default",
        ("plugins install", _) => "local:/nowhere",
        ("agents install", _) => "cursor",
        ("agents confine" | "confine", "FAIL") => "open",
        ("mcp install", _) => "cursor",
        ("parse", _) => "anthropic",
        (_, "FILE" | "PATH") => "/dev/null",
        (_, "FOLDER" | "DIR") => "/",
        (_, "N" | "TURNS") => "1",
        _ => "x",
    }
    .to_owned()
}

/// Options without which a subcommand does nothing.
fn options(command: &str) -> &'static [&'static str] {
    match command {
        "agents install" | "mcp install" => &["--yes"],
        // Without a name, it needs a terminal.
        "call" => &["read"],
        _ => &[],
    }
}

/// All subcommands without subcommands of their own, by clap's lists, with their required arguments.
fn commands(above: &[String]) -> Vec<Vec<String>> {
    let mut asked = Command::new(toolctl());
    let help = asked.args(above).arg("--help").env("COLUMNS", "500").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, list)| list.split("\n\n").next().unwrap_or_default());
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned));
    let below: Vec<String> = names.filter(|name| !name.is_empty() && name != "help").collect();
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: ")).expect("clap prints the usage").to_owned();
    let mut found: Vec<Vec<String>> = Vec::new();
    for name in &below {
        found.extend(commands(&[above, std::slice::from_ref(name)].concat()));
    }
    if below.is_empty() || !above.is_empty() && !usage.contains("<COMMAND>") {
        let (shown, above) = (above, without_group(above));
        let name = above.join(" ");
        let words: Vec<&str> = usage.split_whitespace().skip(1 + shown.len()).collect();
        let needed = words.iter().filter_map(|word| match word.strip_prefix('<') {
            Some(word) => Some(argument(&name, word.split('>').next().unwrap_or_default())),
            None => word.starts_with("--").then(|| (*word).to_owned()),
        });
        let options = options(&name).iter().map(|option| (*option).to_owned());
        found.push(above.iter().cloned().chain(needed).chain(options).collect());
    }
    found
}

/// Runs all subcommands at once for this socket, except the skipped ones; returns the failed ones, and why.
fn wrong(setup: &Setup, socket: &Path, words: &[String], left_out: &[&str]) -> Vec<String> {
    let mut commands = commands(&[]);
    commands.retain(|command| !left_out.iter().any(|name| command.join(" ").starts_with(name)) && command[0] != SILENT);
    assert!(commands.len() > 40, "{commands:?}");
    let run = |arguments: &Vec<String>| -> Option<String> {
        let mut command = setup.command(toolctl());
        command.args(arguments).env("TOOLD_SOCKET", socket).env("VISUAL", "true").env("EDITOR", "true");
        // Open as a person's terminal is: an end of the input ends some commands.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        let _input = child.stdin.take();
        let pid = child.id();
        let (ended, waits) = std::sync::mpsc::channel();
        let reading = std::thread::spawn(move || {
            let output = child.wait_with_output().unwrap();
            // Fails if the command took too long.
            let _ = ended.send(());
            output
        });
        let in_time = waits.recv_timeout(ENDS_WITHIN).is_ok();
        if !in_time {
            signal(pid, "KILL");
        }
        let output = reading.join().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        // Long lines may be wrapped.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = arguments.join(" ");
        let known = |list: &[&str]| list.iter().any(|known| name == *known || name.starts_with(&format!("{known} ")));
        let fault = match () {
            () if !in_time => "does not end",
            () if output.status.code() == Some(2) && known(CHECK_ARGUMENTS) => return None,
            () if output.status.code() == Some(2) && !known(NEED_TERMINAL) => "is not called as it should be",
            () if known(WITHOUT_DAEMON) || known(NEED_TERMINAL) => return None,
            () if output.status.success() => "reports no fault",
            () if known(TELL_ON_STDOUT) && words.iter().any(|word| said.contains(word)) => return None,
            () if !words.iter().all(|word| said.contains(word)) => "does not say what is wrong",
            () => return None,
        };
        Some(format!("toolctl {name} {fault} (after {:?}): {said}", began.elapsed()))
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = commands.iter().map(|arguments| scope.spawn(|| run(arguments))).collect();
        running.into_iter().filter_map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn every_command_ends_when_the_daemon_is_stopped() {
    let daemon = RestartingDaemon::new();
    let pid = daemon.first.0.id();
    signal(pid, "STOP");
    let socket = daemon.socket();
    let words =
        ["does not answer after 8 s", &socket.display().to_string(), &format!("kill -CONT {pid}")].map(str::to_owned);
    let wrong = wrong(&daemon.setup, &socket, &words, &[]);
    signal(pid, "CONT");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Another program at the socket of the daemon: each connection goes to `serve`.
fn stranger(setup: &Setup, serve: impl Fn(UnixStream) + Send + 'static) -> (PathBuf, Vec<String>) {
    let socket = setup.path("run/toold.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    let words = vec![socket.display().to_string(), std::process::id().to_string()];
    (socket, words)
}

/// Runs all subcommands; the socket is still this process's afterwards, and no daemon was started.
#[track_caller]
fn every_command_says(setup: &Setup, socket: &Path, words: &[String], what: &str) {
    all_but_say(&[], setup, socket, words, what);
}

#[track_caller]
fn all_but_say(left_out: &[&str], setup: &Setup, socket: &Path, words: &[String], what: &str) {
    let before = fs::symlink_metadata(socket).unwrap();
    let words = [words, &[what.to_owned()]].concat();
    let wrong = wrong(setup, socket, &words, left_out);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let after = fs::symlink_metadata(socket).expect("the socket is still there");
    assert_eq!(before.ino(), after.ino(), "another program's socket was replaced");
    assert!(!setup.path("state/toold/toold.db").exists(), "a daemon was started");
}

#[test]
fn every_command_ends_when_nobody_answers() {
    let setup = Setup::new();
    let kept = Mutex::new(Vec::new());
    // Kept open, and never read.
    let (socket, words) = stranger(&setup, move |stream| kept.lock().unwrap().push(stream));
    every_command_says(&setup, &socket, &words, "does not answer after 8 s");
}

#[test]
fn every_command_ends_when_another_program_answers() {
    for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.9", "{\"hello\": 1}\n", "\u{0}\u{1}\u{2}"] {
        let setup = Setup::new();
        let kept = Mutex::new(Vec::new());
        let (socket, words) = stranger(&setup, move |mut stream| {
            // The caller may be gone.
            let _ = stream.write_all(answer.as_bytes());
            kept.lock().unwrap().push(stream);
        });
        every_command_says(&setup, &socket, &words, "is not the socket of a daemon");
    }
}

#[test]
fn every_command_ends_when_each_connection_is_closed() {
    let setup = Setup::new();
    let (socket, words) = stranger(&setup, drop);
    every_command_says(&setup, &socket, &words, "closes each connection");
}

#[test]
fn every_command_ends_when_no_connection_is_accepted() {
    let setup = Setup::new();
    let socket = setup.path("run/toold.sock");
    // As many as may wait for their turn.
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(&socket).unwrap()).unwrap();
    listen(&listener, 0).unwrap();
    let waiting = UnixStream::connect(&socket).unwrap();
    let words = [socket.display().to_string(), std::process::id().to_string()];
    every_command_says(&setup, &socket, &words, "accepts no connections");
    drop(waiting);
}

#[test]
fn every_command_ends_when_only_pings_are_answered() {
    let setup = Setup::new();
    let (socket, words) = stranger(&setup, |stream| {
        std::thread::spawn(move || {
            let mut output = stream.try_clone().unwrap();
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { return };
                let request: Value = serde_json::from_str(&line).unwrap_or_default();
                if request["method"] == "daemon.ping" {
                    // The caller may be gone.
                    let _ = writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}));
                }
            }
        });
    });
    all_but_say(READ_INPUT, &setup, &socket, &words, "answers pings, but not");
}
