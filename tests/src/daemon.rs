//! A daemon of a test's own, in folders of its own.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use toold_test_kit::until;

use crate::binaries::{toolctl, toold};
use crate::wire::Wire;

/// Folders for a daemon, and their content before it starts.
pub struct Setup {
    dir: TempDir,
    /// The program that starts the daemon, and its arguments.
    through: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

impl Setup {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("toold-test-").tempdir().expect("there is a place for temp files");
        for name in ["config/toold/plugins", "state", "run", "work", "home"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        Self { dir, through: Vec::new() }
    }

    /// Starts the daemon through another program, which is given the daemon's command line after its own arguments
    /// and must become it.
    pub fn through(mut self, command: &[&str]) -> Self {
        self.through = command.iter().map(|part| (*part).to_owned()).collect();
        self
    }

    pub fn config(self, toml: &str) -> Self {
        fs::write(self.path("config/toold/config.toml"), toml).unwrap();
        self
    }

    /// Prompts also for commands that only read.
    pub fn asking(self) -> Self {
        self.config("[permission]\nread_only_commands = \"ask\"\n")
    }

    pub fn plugin(self, name: &str, source: &str) -> Self {
        fs::write(self.path("config/toold/plugins").join(name), source).unwrap();
        self
    }

    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path("work").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// A path below this setup's own folder.
    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    /// A path below the home folder, or below the folder of configurations where it begins with `.config`.
    pub fn home(&self, below: &str) -> PathBuf {
        match below.strip_prefix(".config/") {
            Some(below) => self.path("config").join(below),
            None => self.path("home").join(below),
        }
    }

    /// The variables that point daemons and clients to these folders.
    pub fn environment(&self) -> [(&'static str, OsString); 6] {
        [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.path("home").into()),
            ("XDG_CONFIG_HOME", self.path("config").into()),
            ("XDG_STATE_HOME", self.path("state").into()),
            ("TOOLD_SOCKET", self.path("run/toold.sock").into()),
            ("LC_ALL", "C.UTF-8".into()),
        ]
    }

    /// A program in this setup's environment, and in no other.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(self.environment())
            .env("TOOLD_LOG", "debug")
            .env("NO_COLOR", "1")
            .current_dir(self.path("work"));
        command
    }

    /// Removes the folders, where dropping would ignore a failure.
    pub fn remove(self) -> std::io::Result<()> {
        self.dir.close()
    }

    /// Starts `toold serve` and waits until it answers.
    pub fn start(self) -> TestDaemon {
        self.start_by(Self::daemon_command)
    }

    /// The same by another command, which becomes `toold`.
    pub fn start_by(self, command: impl FnOnce(&Self) -> Command) -> TestDaemon {
        let child = self.serve(command(&self));
        let mut daemon = TestDaemon { setup: self, child };
        daemon.wait_until_it_listens();
        daemon
    }

    /// The daemon's program, or a wrapper that executes it.
    pub fn daemon_command(&self) -> Command {
        let [program, arguments @ ..] = self.through.as_slice() else { return self.command(toold()) };
        let mut command = self.command(Path::new(program));
        command.args(arguments).arg(toold());
        command
    }

    fn serve(&self, mut command: Command) -> Child {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("log")).unwrap();
        command.arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }
}

/// A running daemon. On drop, it is stopped, and the test fails if anything of it is left.
pub struct TestDaemon {
    pub setup: Setup,
    child: Child,
}

impl TestDaemon {
    pub fn start() -> Self {
        Setup::new().start()
    }

    /// One that prompts also for commands that only read.
    pub fn asking() -> Self {
        Setup::new().asking().start()
    }

    /// Ends the daemon by a signal, and starts another one in the same folders.
    pub fn restart(&mut self, signal: &str) {
        self.signal(signal);
        self.wait();
        self.start_again();
    }

    /// Starts another daemon in the folders of one that has ended.
    pub fn start_again(&mut self) {
        self.child = self.setup.serve(self.setup.daemon_command());
        self.wait_until_it_listens();
    }

    fn wait_until_it_listens(&mut self) {
        until("the daemon listens", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the daemon ended with {status}: {}", self.log());
            }
            let stream = std::os::unix::net::UnixStream::connect(self.socket()).ok()?;
            // A daemon that is being killed still listens for a moment after its files are gone from /proc.
            let listener = rustix::net::sockopt::socket_peercred(&stream).ok()?.pid;
            (listener.as_raw_nonzero().get().unsigned_abs() == self.pid()).then_some(())
        });
    }

    /// Stops it; another can be started in the same folders.
    pub fn into_setup(mut self) -> Setup {
        self.end();
        // Its own end has been checked, and there is nothing more to end.
        std::mem::take(&mut self.setup)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn socket(&self) -> PathBuf {
        self.setup.path("run/toold.sock")
    }

    /// The folder that clients of this test work in.
    pub fn work(&self) -> PathBuf {
        self.setup.path("work")
    }

    pub fn plugins(&self) -> PathBuf {
        self.setup.path("config/toold/plugins")
    }

    pub fn state(&self) -> PathBuf {
        self.setup.path("state/toold")
    }

    pub fn log(&self) -> String {
        let mut text = String::new();
        fs::File::open(self.setup.path("log")).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// A raw connection, with a session in [`work`](Self::work).
    pub fn connect(&self) -> Wire {
        let mut wire = Wire::connect(&self.socket());
        wire.result("session.open", serde_json::json!({"cwd": self.work(), "client": {"name": "test"}}));
        wire
    }

    /// `toolctl` with these arguments, in the daemon's environment.
    pub fn toolctl(&self, arguments: &[&str]) -> std::process::Output {
        self.setup.command(toolctl()).args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub fn wait(&mut self) -> std::process::ExitStatus {
        until("the daemon ends", || self.child.try_wait().unwrap())
    }

    /// Processes that work in this test's folders.
    pub fn processes(&self) -> Vec<String> {
        let root = self.setup.path("");
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            if pid != self.pid() && fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&root)) {
                let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(format!("{pid} {}", String::from_utf8_lossy(&command).replace('\0', " ")));
            }
        }
        found
    }

    /// The reaper: it ends running commands when the daemon is killed. It exists from the first command on.
    #[track_caller]
    pub fn reaper(&self) -> u32 {
        until("there is a reaper", || {
            fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
                let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
                let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()?;
                let line = fs::read(entry.path().join("cmdline")).ok()?;
                let found = parent == self.pid() && line.split(|byte| *byte == 0).nth(1) == Some(b"keeper");
                found.then(|| entry.file_name().to_str()?.parse().ok())?
            })
        })
    }

    /// Stops the daemon as a service manager does, and checks that nothing is left.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.signal("TERM");
            self.wait();
        }
        let left = self.processes();
        assert!(left.is_empty(), "processes are left: {left:?}\n{}", self.log());
        assert!(!self.socket().exists(), "the socket is left\n{}", self.log());
        let run: Vec<_> = fs::read_dir(self.setup.path("run")).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(run.iter().all(|name| name == "toold.sock.lock"), "left in the socket's folder: {run:?}");
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of the daemon ---\n{}", self.log());
            let _ = self.child.kill();
            let _ = self.child.wait();
        } else {
            self.end();
        }
    }
}
