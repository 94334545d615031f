//! One daemon for a user: clients find it however poor their environment is, and a second one on its database is refused.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, Wire, toolctl, toold, until};

/// Folders with a runtime folder, and with the state below the home folder.
struct UserFolders {
    setup: Setup,
    started: Vec<Child>,
}

impl UserFolders {
    fn new() -> Self {
        let setup = Setup::new().asking();
        fs::set_permissions(setup.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir_all(setup.path("home/.config")).unwrap();
        fs::rename(setup.path("config/toold"), setup.path("home/.config/toold")).unwrap();
        Self { setup, started: Vec::new() }
    }

    /// The variables that the official Python SDK passes to servers.
    fn poor(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.setup.path("home")).env("PATH", std::env::var_os("PATH").unwrap());
        command.envs([("LOGNAME", "somebody"), ("SHELL", "/bin/sh"), ("TERM", "dumb"), ("USER", "somebody")]);
        command.current_dir(self.setup.path("work")).stdin(Stdio::null());
        command
    }

    /// The variables of a desktop session.
    fn rich(&self, program: &Path) -> Command {
        let mut command = self.poor(program);
        command.env("XDG_RUNTIME_DIR", self.setup.path("run"));
        command
    }

    fn socket(&self) -> PathBuf {
        self.setup.path("run/toold/toold.sock")
    }

    fn serve(&mut self, mut command: Command) {
        let log = fs::File::create(self.setup.path("log")).unwrap();
        self.started.push(command.arg("serve").stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    fn serve_in_the_runtime_folder(&mut self) {
        self.serve(self.rich(toold()));
        until("the daemon listens", || std::os::unix::net::UnixStream::connect(self.socket()).ok());
    }

    fn record(&self) -> PathBuf {
        self.setup.path("home/.local/state/toold/daemon.json")
    }
}

impl Drop for UserFolders {
    fn drop(&mut self) {
        let mut stop = self.rich(toolctl());
        let stopped = stop.args(["--no-start", "stop", "--drain-ms", "0"]).output();
        let failed = std::thread::panicking() || stopped.is_err();
        for child in &mut self.started {
            if failed {
                let _ = child.kill();
            }
            let _ = child.wait();
        }
    }
}

/// `toolctl mcp`, started by a client.
struct McpServerProcess {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl McpServerProcess {
    /// Through a shell, which is the agent then: the program that starts a client of a model decides nothing.
    fn start(mut shell: Command) -> Self {
        shell.args(["-c", "\"$0\" mcp; true"]).arg(toolctl());
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        writeln!(self.child.stdin.as_mut().unwrap(), "{request}").unwrap();
        loop {
            let message: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
            if message["id"] == method {
                return message;
            }
        }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

#[track_caller]
fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn pid(mut toolctl: Command) -> Value {
    json_of(&toolctl.args(["status", "--json"]).output().unwrap())["pid"].clone()
}

#[test]
fn a_client_with_six_variables_reaches_the_daemon_of_the_desktop_session() {
    let mut user = UserFolders::new();
    user.serve_in_the_runtime_folder();
    let own = user.started[0].id();
    assert_eq!(pid(user.rich(toolctl())), own);
    assert_eq!(pid(user.poor(toolctl())), own);
    assert!(!user.setup.path("home/.local/state/toold/toold.sock").exists());

    // A person opens the folder, which agents may not.
    let mut person = Wire::connect(&user.socket());
    person.result("session.open", json!({"cwd": user.setup.path("work")}));
    let mut mcp = McpServerProcess::start(user.poor(Path::new("sh")));
    let client = json!({"name": "poor", "version": "1"});
    mcp.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}));
    let run = json!({"name": "bash", "arguments": {"command": "echo said"}});
    // The person grants it by the daemon of the desktop session.
    let mut grant = user.rich(toolctl());
    grant.args(["permissions", "grant", "shell", "echo said", "--scope", "always"]);
    assert!(grant.output().unwrap().status.success());
    let called = mcp.request("tools/call", run)["result"].take();
    assert!(called["isError"] != true && called["content"][0]["text"].as_str().unwrap().contains("said"), "{called}");
    mcp.end();
}

#[test]
fn a_client_that_starts_the_daemon_and_a_richer_one_share_it() {
    let user = UserFolders::new();
    // Where there is no folder of the user below /run, the poor client's daemon is in the state folder.
    let mut first = user.poor(toolctl());
    first.env("XDG_RUNTIME_DIR", user.setup.path("run-of-another"));
    let started = pid(first);
    assert_eq!(pid(user.poor(toolctl())), started);
    assert_eq!(pid(user.rich(toolctl())), started);
    assert!(!user.socket().exists());
}

#[test]
fn a_second_daemon_on_the_database_says_which_one_runs_and_what_to_do() {
    let mut user = UserFolders::new();
    user.serve_in_the_runtime_folder();
    let other = user.setup.path("other/toold.sock");
    folder_with_a_file(other.parent().unwrap(), 0o755);
    for arguments in [vec!["serve"], vec!["serve", "--detached"]] {
        let mut second = user.rich(toold());
        let output = second.args(arguments).env("TOOLD_SOCKET", &other).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let (pid, socket) = (user.started[0].id(), user.socket());
        assert!(!output.status.success() && !other.exists(), "{said}");
        for words in [
            format!("process {pid} serves {}", socket.display()),
            format!("toolctl --socket {} stop", socket.display()),
            "XDG_STATE_HOME".to_owned(),
        ] {
            assert!(said.contains(&words), "{words}: {said}");
        }
    }
    // The client that asked for it shows the reason.
    let output = user.rich(toolctl()).args(["status"]).env("TOOLD_SOCKET", &other).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("runs already"), "{output:?}");
    assert_eq!(mode(other.parent().unwrap()), 0o755);
    let left: Vec<_> = fs::read_dir(other.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["index.html"]);
    // On the same socket a detached one has nothing to do.
    assert!(user.rich(toold()).args(["serve", "--detached"]).output().unwrap().status.success());
}

fn folder_with_a_file(folder: &Path, mode: u32) {
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("index.html"), "x").unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_folder_with_other_files_keeps_its_mode_and_is_refused_if_others_can_write_there() {
    let setup = Setup::new();
    let serve = |name: &str| {
        let mut command = setup.command(toold());
        command.args(["serve", "--detached"]).env("TOOLD_SOCKET", setup.path(name)).stderr(Stdio::piped());
        command
    };
    for bits in [0o777, 0o775] {
        let folder = setup.path(&format!("{bits:o}"));
        folder_with_a_file(&folder, bits);
        let output = serve(&format!("{bits:o}/toold.sock")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("other users can replace files in"), "{said}");
        assert_eq!((mode(&folder), fs::read_dir(&folder).unwrap().count()), (bits, 1));
    }
    folder_with_a_file(&setup.path("755"), 0o755);
    fs::create_dir(setup.path("alone")).unwrap();
    fs::set_permissions(setup.path("alone"), fs::Permissions::from_mode(0o755)).unwrap();
    for (folder, bits) in [("755", 0o755), ("alone", 0o700)] {
        let socket = setup.path(folder).join("toold.sock");
        let mut daemon = serve(&format!("{folder}/toold.sock")).spawn().unwrap();
        until("the daemon listens", || std::os::unix::net::UnixStream::connect(&socket).ok());
        assert_eq!((mode(&setup.path(folder)), mode(&socket)), (bits, 0o600));
        let mut stop = setup.command(toolctl());
        assert!(stop.args(["--no-start", "stop"]).env("TOOLD_SOCKET", &socket).output().unwrap().status.success());
        daemon.wait().unwrap();
    }
}

#[test]
fn a_relative_home_names_no_place_and_nothing_is_made_there() {
    let setup = Setup::new();
    for (program, arguments, status) in [(toold(), &["serve"], 1), (toolctl(), &["status"], 3)] {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("HOME", "relative").current_dir(setup.path("work"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("and HOME is an absolute path; set one"), "{said}");
        assert_eq!(output.status.code(), Some(status), "{said}");
    }
    assert_eq!(fs::read_dir(setup.path("work")).unwrap().count(), 0);
}

#[test]
fn the_database_stays_locked_while_one_daemon_hands_over_to_the_next() {
    let mut user = UserFolders::new();
    user.serve_in_the_runtime_folder();
    let program = toold().display().to_string();
    let restarted = json_of(&user.rich(toolctl()).args(["restart", "--json", "--program", &program]).output().unwrap());
    assert_ne!(restarted["pid"], user.started[0].id());
    assert_eq!(pid(user.poor(toolctl())), restarted["pid"]);
    user.started[0].wait().unwrap();
    // The old one is gone, and has left the record of the new one.
    assert_eq!(pid(user.poor(toolctl())), restarted["pid"]);
    let record: Value = serde_json::from_slice(&fs::read(user.record()).unwrap()).unwrap();
    assert_eq!(record["pid"], restarted["pid"]);
    let output = user.rich(toold()).arg("serve").env("TOOLD_SOCKET", user.setup.path("o/s")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(&format!("process {}", restarted["pid"])), "{said}");
    assert!(user.rich(toolctl()).args(["stop"]).output().unwrap().status.success());
    until("the record is removed", || (!user.record().exists()).then_some(()));
}

#[test]
fn the_record_of_a_killed_daemon_is_not_followed() {
    let mut user = UserFolders::new();
    let elsewhere = user.setup.path("elsewhere/toold.sock");
    let mut command = user.rich(toold());
    command.env("TOOLD_SOCKET", &elsewhere);
    user.serve(command);
    until("the daemon listens", || std::os::unix::net::UnixStream::connect(&elsewhere).ok());
    assert_eq!(pid(user.rich(toolctl())), user.started[0].id());
    user.started[0].kill().unwrap();
    user.started[0].wait().unwrap();
    assert!(user.record().exists());
    let next = json_of(&user.rich(toolctl()).args(["status", "--json"]).output().unwrap());
    assert_eq!(next["socket"], json!(user.socket()));
    assert_eq!(next["database"], json!(user.setup.path("home/.local/state/toold/toold.db")));
}

#[test]
fn a_daemon_with_another_database_at_the_usual_place_is_left_alone() {
    let mut user = UserFolders::new();
    let state = user.setup.path("state");
    let mut command = user.rich(toold());
    command.env("XDG_STATE_HOME", &state);
    user.serve(command);
    until("the daemon listens", || std::os::unix::net::UnixStream::connect(user.socket()).ok());
    let mut other = user.rich(toolctl());
    other.env("XDG_STATE_HOME", &state);
    assert_eq!(pid(other), user.started[0].id());
    let own = json_of(&user.rich(toolctl()).args(["status", "--json"]).output().unwrap());
    assert_ne!(own["pid"], user.started[0].id());
    assert_eq!(own["database"], json!(user.setup.path("home/.local/state/toold/toold.db")));
    assert!(user.rich(toolctl()).args(["stop"]).output().unwrap().status.success());
    let mut other = user.rich(toolctl());
    assert!(other.env("XDG_STATE_HOME", &state).args(["stop"]).output().unwrap().status.success());
}

#[test]
fn doctor_calls_a_plain_file_in_the_place_of_the_socket_broken() {
    let user = UserFolders::new();
    fs::create_dir(user.setup.path("run/toold")).unwrap();
    fs::set_permissions(user.setup.path("run/toold"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(user.socket(), "").unwrap();
    let doctor = |user: &UserFolders| user.rich(toolctl()).arg("doctor").output().unwrap();
    let output = doctor(&user);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("broken") && said.contains("is a plain file, not a socket"), "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    fs::remove_file(user.socket()).unwrap();
    let _listener = UnixListener::bind(user.socket()).unwrap();
    assert!(!String::from_utf8_lossy(&doctor(&user).stdout).contains("plain file"));
}
