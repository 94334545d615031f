//! Folders for a daemon, for the tests of clients in other languages.
//!
//! The first line on standard input is a JSON object ([`FolderContents`]; `{}` is enough), and the first line on standard
//! output says where everything is ([`FolderPaths`]). Each further line in is a command ([`FolderCommand`]), which is
//! answered by one line: `{"pid": 7}`, `{"processes": [7]}`, `{"stopped": [7]}`, `{"killed": [7]}` or `{"error": "..."}`.
//!
//! When standard input ends or a signal comes, it stops every process that belongs to these folders, whoever started it,
//! and removes the folders. So a test that is killed leaves nothing behind. It exits with 1 when a process had to be
//! killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::AsyncBufReadExt;
use tokio::signal::unix::{SignalKind, signal};
use toold_tests::Setup;

/// How long the processes may take to end, before they are killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The files in the folders, and whether a daemon runs there from the start.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FolderContents {
    /// The text of `config.toml`.
    config: Option<String>,
    /// Source by file name.
    plugins: BTreeMap<String, String>,
    /// Without it, the client that is tested starts the daemon itself.
    serve: bool,
}

#[derive(Serialize)]
struct FolderPaths {
    root: PathBuf,
    /// Where clients work.
    work: PathBuf,
    plugins: PathBuf,
    /// Holds links to `toold` and `toolctl`; not in the `PATH` of `environment`.
    bin: PathBuf,
    socket: PathBuf,
    /// Points clients and daemons to these folders.
    environment: BTreeMap<&'static str, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FolderCommand {
    /// Starts a daemon and waits until it listens.
    Start,
    /// Stops the daemon and waits until every process of these folders has ended and the socket is gone.
    Stop,
    /// Kills them, as a crash would, and waits until they have ended. The socket stays.
    Kill,
    /// Lists the daemons of these folders and the processes that they started.
    Processes,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    // A test run is often killed by its process group; this program must outlive it to tidy up.
    let _ = rustix::process::setsid();
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    let mut folders: Option<DaemonFolders> = None;
    loop {
        let line = tokio::select! {
            biased;
            _ = hangup.recv() => break,
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            line = lines.next_line() => line,
        };
        let Ok(Some(line)) = line else { break };
        let answer = match &mut folders {
            Some(folders) => folders.run(&line),
            None => DaemonFolders::create(&line).and_then(|created| {
                let folders = folders.insert(created);
                folders.describe()
            }),
        };
        let answer = answer.unwrap_or_else(|error| json!({"error": format!("{error:#}")}));
        // Fails when the test has gone; then standard input ends too.
        let _ = writeln!(std::io::stdout(), "{answer}");
    }
    let clean = folders.is_none_or(DaemonFolders::remove);
    // Not by returning: that would wait for the thread that reads standard input.
    std::process::exit(i32::from(!clean));
}

struct DaemonFolders {
    setup: Setup,
    /// `NAME=VALUE`, as the environment of every process of these folders has it.
    mark: String,
    /// The last daemon that was started from here.
    child: Option<Child>,
}

impl DaemonFolders {
    fn create(line: &str) -> anyhow::Result<Self> {
        let contents: FolderContents = serde_json::from_str(line).context("expected a JSON object first")?;
        let mut setup = Setup::new();
        if let Some(config) = contents.config {
            setup = setup.config(&config);
        }
        for (name, source) in &contents.plugins {
            setup = setup.plugin(name, source);
        }
        let bin = setup.path("bin");
        std::fs::create_dir(&bin)?;
        for name in ["toold", "toolctl"] {
            std::os::unix::fs::symlink(program(name)?, bin.join(name))?;
        }
        let mark = format!("TOOLD_SOCKET={}", setup.path("run/toold.sock").display());
        let mut folders = Self { setup, mark, child: None };
        if contents.serve {
            folders.start()?;
        }
        Ok(folders)
    }

    fn describe(&self) -> anyhow::Result<Value> {
        Ok(serde_json::to_value(FolderPaths {
            root: self.setup.path("").components().collect(),
            work: self.setup.path("work"),
            plugins: self.setup.path("config/toold/plugins"),
            bin: self.setup.path("bin"),
            socket: self.socket(),
            environment: (self.setup.environment().into_iter())
                .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
                .collect(),
        })?)
    }

    fn run(&mut self, line: &str) -> anyhow::Result<Value> {
        Ok(match serde_json::from_str(line).with_context(|| format!("{line} is not a command"))? {
            FolderCommand::Start => json!({"pid": self.start()?}),
            FolderCommand::Stop => json!({"stopped": self.stop()?}),
            FolderCommand::Kill => json!({"killed": self.kill()?}),
            FolderCommand::Processes => json!({"processes": self.processes()}),
        })
    }

    fn socket(&self) -> PathBuf {
        self.setup.path("run/toold.sock")
    }

    fn start(&mut self) -> anyhow::Result<u32> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.setup.path("run/toold.sock.log"))?;
        let mut child = (self.setup.command(&self.setup.path("bin/toold")).arg("serve"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("can't start toold")?;
        let start = Instant::now();
        while UnixStream::connect(self.socket()).is_err() {
            if let Some(status) = child.try_wait()? {
                let log = std::fs::read_to_string(self.setup.path("run/toold.sock.log"))?;
                bail!("toold ended with {status}: {log}");
            }
            ensure!(start.elapsed() < STOP_TIMEOUT, "toold did not listen within {STOP_TIMEOUT:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = child.id();
        self.child = Some(child);
        Ok(pid)
    }

    fn stop(&mut self) -> anyhow::Result<Vec<u32>> {
        // Looked up once: to read the environment of every process again and again would take long.
        let stopped = self.processes();
        if self.socket().exists() && self.request_shutdown().is_err() {
            signal_all(&stopped, Signal::TERM);
        }
        self.wait_for(&stopped)?;
        let left = self.processes();
        ensure!(
            left.is_empty(),
            "processes are left: {:?}",
            left.iter().map(|pid| command_line(*pid)).collect::<Vec<_>>()
        );
        ensure!(!self.socket().exists(), "the socket is left");
        Ok(stopped)
    }

    fn kill(&mut self) -> anyhow::Result<Vec<u32>> {
        let killed = self.processes();
        signal_all(&killed, Signal::KILL);
        self.wait_for(&killed)?;
        Ok(killed)
    }

    /// Waits until these processes, and the daemon that was started from here, have ended with all their threads.
    fn wait_for(&mut self, ending: &[u32]) -> anyhow::Result<()> {
        let start = Instant::now();
        while let Some(pid) = ending.iter().find(|pid| self.is_ours(**pid)) {
            ensure!(start.elapsed() < STOP_TIMEOUT, "process {pid} is left: {}", command_line(*pid));
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        Ok(())
    }

    fn request_shutdown(&self) -> anyhow::Result<()> {
        let mut stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(STOP_TIMEOUT))?;
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.shutdown", "params": {"drain_ms": 0}});
        writeln!(stream, "{request}")?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        ensure!(serde_json::from_str::<Value>(&answer)?.get("result").is_some(), "the daemon refused: {answer}");
        Ok(())
    }

    /// The processes whose environment names these folders, but for the test's own.
    fn processes(&self) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| self.is_ours(*pid)).collect()
    }

    fn is_ours(&self, pid: u32) -> bool {
        // Unreadable: it has ended, or it belongs to another user.
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == self.mark.as_bytes())
            && pid != std::os::unix::process::parent_id()
            // Another harness, which a test started while its environment named these folders.
            && std::fs::read_link(format!("/proc/{pid}/exe")).ok() != std::env::current_exe().ok()
    }

    /// Stops what runs and removes the folders. False if something did not stop by itself or could not be removed.
    fn remove(mut self) -> bool {
        if !self.socket().exists() {
            // A daemon that does not listen yet, or a client's other processes: no test stops them any more.
            signal_all(&self.processes(), Signal::TERM);
        }
        let stopped = self.stop();
        if let Err(error) = &stopped {
            eprintln!("toold-test-daemon: {error:#}");
            signal_all(&self.processes(), Signal::KILL);
        }
        let removed = self.setup.remove();
        if let Err(error) = &removed {
            eprintln!("toold-test-daemon: can't remove the folders: {error}");
        }
        stopped.is_ok() && removed.is_ok()
    }
}

fn signal_all(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()
}

/// The program of this name: `$TOOLD` and the one beside it, else the one beside this program.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = std::env::var_os("TOOLD").map_or(own, PathBuf::from);
    let found = beside.parent().unwrap_or(Path::new("")).join(name);
    std::path::absolute(&found).with_context(|| format!("can't find {}", found.display()))
}
