//! Daemons that a test starts, stops and watches itself: they may exit on their own and leave their socket behind.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use toold_tests::{PATIENCE, Setup, toolctl, toold, until};

/// Commands and the files that they write need no approval.
pub(crate) const ALLOW_ALL: &str = "\
[[permission.rules]]
category = \"shell\"
pattern = \"**\"
action = \"allow\"
[[permission.rules]]
category = \"file.write\"
pattern = \"**\"
action = \"allow\"
";

/// Killed when the test fails.
pub(crate) struct ServingProcess(pub(crate) Child);

impl ServingProcess {
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        until("the daemon ends", || self.0.try_wait().unwrap())
    }

    pub(crate) fn stop(mut self) {
        self.signal("TERM");
        assert!(self.ended().success());
    }
}

impl Drop for ServingProcess {
    fn drop(&mut self) {
        // Needed after a failed test; harmless for a daemon that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn private(setup: &Setup) {
    fs::set_permissions(setup.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
}

pub(crate) fn socket(setup: &Setup) -> PathBuf {
    setup.path("run/toold.sock")
}

/// A socket as a service manager makes it.
pub(crate) fn listener(setup: &Setup) -> UnixListener {
    private(setup);
    let listener = UnixListener::bind(socket(setup)).unwrap();
    fs::set_permissions(socket(setup), fs::Permissions::from_mode(0o600)).unwrap();
    listener
}

/// `toold serve` with this descriptor as a service manager passes it.
pub(crate) fn activated(setup: &Setup, given: impl Into<OwnedFd>) -> Command {
    let mut command = setup.command(Path::new("sh"));
    let script = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$0\" serve";
    command.args(["-c", script]).arg(toold()).stdin(given.into()).stdout(Stdio::null());
    // The passed socket takes precedence over any other setting.
    command.env("TOOLD_SOCKET", setup.path("run/other.sock")).stderr(log(setup));
    command
}

/// `toold serve`, which binds its socket itself.
pub(crate) fn serve(setup: &Setup) -> ServingProcess {
    let mut command = setup.command(toold());
    command.arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(setup));
    let mut process = ServingProcess(command.spawn().unwrap());
    until("the daemon listens", || {
        if let Some(status) = process.0.try_wait().unwrap() {
            panic!("the daemon ended with {status}: {}", fs::read_to_string(setup.path("log")).unwrap());
        }
        UnixStream::connect(socket(setup)).ok()
    });
    process
}

fn log(setup: &Setup) -> fs::File {
    fs::OpenOptions::new().create(true).append(true).open(setup.path("log")).unwrap()
}

pub(crate) fn run(setup: &Setup, arguments: &[&str]) -> Output {
    setup.command(toolctl()).args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
pub(crate) fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}{}", output.status, text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The messages of a daemon to its service manager.
pub(crate) struct Manager(UnixDatagram);

impl Manager {
    pub(crate) fn new(setup: &Setup) -> Self {
        let socket = UnixDatagram::bind(setup.path("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    /// The next message that has this word, as lines.
    pub(crate) fn hear(&self, word: &str) -> Vec<String> {
        loop {
            let mut bytes = [0; 4096];
            let read = self.0.recv(&mut bytes).unwrap_or_else(|error| panic!("{word}: {error}"));
            let lines: Vec<String> = String::from_utf8_lossy(&bytes[..read]).lines().map(str::to_owned).collect();
            if lines.iter().any(|line| line.starts_with(word)) {
                return lines;
            }
        }
    }
}

/// Stops the daemon that serves in the end, which may not be a child of the test.
pub(crate) struct Stopped<'s>(pub(crate) &'s Setup);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let stopped = run(self.0, &["stop", "--drain-ms", "0"]);
        if !std::thread::panicking() {
            text(&stopped);
        } else if let Ok(log) = fs::read_to_string(self.0.path("log")) {
            eprintln!("--- log of the daemons ---\n{log}");
        }
    }
}
