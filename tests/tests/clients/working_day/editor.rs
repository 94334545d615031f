//! Neovim, headless, with the plugin of this repository.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use toold_tests::{PATIENCE, TestDaemon, toold};

use crate::working_day::Seen;

pub(crate) struct Editor {
    process: Child,
    /// `None` once it must stop.
    stream: Option<BufReader<UnixStream>>,
}

/// Whether there is a Neovim on this machine.
pub(crate) fn is_installed() -> bool {
    Command::new("nvim")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

impl Editor {
    pub(crate) fn start(daemon: &TestDaemon, folder: &Path) -> Self {
        let script = daemon.setup.path("editor.lua");
        std::fs::write(&script, include_str!("editor.lua")).unwrap();
        let socket = daemon.setup.path("editor.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let temporary = daemon.setup.path("editor-tmp");
        std::fs::create_dir(&temporary).unwrap();
        let mut command = daemon.setup.command("nvim".as_ref());
        command
            .args(["--headless", "--clean", "-c"])
            .arg(format!("luafile {}", script.display()))
            .env("DAY_SOCKET", socket)
            .env("DAY_PLUGIN", concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/nvim"))
            .env("PATH", programs())
            .env("TMPDIR", temporary)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let stream = toold_tests::until("the editor connects", || {
            if let Some(status) = process.try_wait().unwrap() {
                panic!("the editor ended with {status}");
            }
            listener.set_nonblocking(true).unwrap();
            listener.accept().ok()
        });
        stream.0.set_nonblocking(false).unwrap();
        stream.0.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { process, stream: Some(BufReader::new(stream.0)) }
    }

    /// Runs Lua in the editor; gives the text of its value.
    #[track_caller]
    pub(crate) fn run(&mut self, lua: &str) -> Seen {
        let stream = self.stream.as_mut().expect("it is taken only when the editor ends");
        writeln!(stream.get_mut(), "{}", Value::from(lua)).unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{lua}: {error}: {line:?}"));
        Seen { text: answer["text"].as_str().unwrap_or_default().to_owned(), failed: answer["ok"] != true }
    }
}

/// The folder of `toold`, before those of the machine.
fn programs() -> std::ffi::OsString {
    let here = toold().parent().expect("a program lies in a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(here).chain(std::env::split_paths(&path))).unwrap()
}

impl Drop for Editor {
    fn drop(&mut self) {
        // It quits when its connection ends.
        drop(self.stream.take());
        if std::thread::panicking() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
