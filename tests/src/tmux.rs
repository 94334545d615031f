//! toolctl in a real terminal multiplexer: a person types into shells and reads the screen.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use toold_test_kit::until;

use crate::binaries::toolctl;
use crate::daemon::TestDaemon;

/// The prompt of the shells.
const PROMPT: &str = "ready>";

/// After this time without an effect, a key is pressed again. toolctl takes keys that come faster for one that is held
/// down.
pub const PRESS_EVERY: Duration = Duration::from_millis(400);

/// A tmux server of a test's own, in the daemon's environment. All it started is gone when this is dropped.
pub struct Tmux<'a> {
    daemon: &'a TestDaemon,
    socket: PathBuf,
}

/// A pane with a shell.
pub struct Pane<'a> {
    tmux: &'a Tmux<'a>,
    id: String,
}

impl<'a> Tmux<'a> {
    pub fn start(daemon: &'a TestDaemon) -> Self {
        let tmux = Self { daemon, socket: daemon.setup.path("tmux") };
        tmux.run(&["new-session", "-d", "-x", "100", "-y", "40", "exec sh"]);
        tmux
    }

    fn command(&self, arguments: &[&str]) -> Command {
        // The panes find toolctl as a person does.
        let mut path = toolctl().parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = self.daemon.setup.command(Path::new("tmux"));
        command.env("PATH", path).env("SHELL", "/bin/sh").env("PS1", format!("{PROMPT} "));
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(arguments).stdin(Stdio::null());
        command
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("tmux is installed");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The initial pane.
    pub fn first(&'a self) -> Pane<'a> {
        self.pane(&["display-message", "-p", "#{pane_id}"])
    }

    /// Halves the window.
    pub fn split(&'a self) -> Pane<'a> {
        self.pane(&["split-window", "-P", "-F", "#{pane_id}", "exec sh"])
    }

    fn pane(&'a self, arguments: &[&str]) -> Pane<'a> {
        let pane = Pane { tmux: self, id: self.run(arguments).trim().to_owned() };
        pane.wait_for_prompt();
        pane
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        // Nothing here may hide an earlier failure.
        if std::thread::panicking() {
            let panes = self.command(&["list-panes", "-a", "-F", "#{pane_id}"]).output();
            let panes = panes.map(|output| output.stdout).unwrap_or_default();
            for id in String::from_utf8_lossy(&panes).lines() {
                let screen = self.command(&["capture-pane", "-p", "-t", id]).output();
                let screen = screen.map(|output| output.stdout).unwrap_or_default();
                eprintln!("--- pane {id} ---\n{}", String::from_utf8_lossy(&screen).trim_end());
            }
        }
        let _ = self.command(&["kill-server"]).output();
        let _ = std::fs::remove_file(&self.socket);
        if !std::thread::panicking() {
            let daemon = self.daemon;
            until("tmux and its panes end", || daemon.processes().is_empty().then_some(()));
        }
    }
}

impl Pane<'_> {
    pub fn screen(&self) -> String {
        self.tmux.run(&["capture-pane", "-p", "-J", "-t", &self.id])
    }

    /// Types this, without Enter.
    pub fn type_text(&self, text: &str) {
        self.tmux.run(&["send-keys", "-t", &self.id, "-l", text]);
    }

    /// One key, by its name in tmux.
    pub fn press(&self, key: &str) {
        self.tmux.run(&["send-keys", "-t", &self.id, key]);
    }

    /// Types a line at the shell's prompt, at the top of an empty screen.
    #[track_caller]
    pub fn run(&self, line: &str) {
        self.wait_for_prompt();
        self.tmux.run(&["send-keys", "-R", "-t", &self.id]);
        self.type_line(line);
    }

    pub fn type_line(&self, line: &str) {
        let id = self.id.as_str();
        self.tmux.run(&["send-keys", "-t", id, "-l", line, ";", "send-keys", "-t", id, "Enter"]);
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        until(&format!("{what} in pane {}", self.id), || Some(self.screen()).filter(|screen| wanted(screen)))
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits for a line that is this and nothing else.
    #[track_caller]
    pub fn wait_for_line(&self, text: &str) -> String {
        self.wait(text, |screen| screen.lines().any(|line| line.trim_end() == text))
    }

    /// Waits until the shell waits; gives the screen.
    #[track_caller]
    pub fn wait_for_prompt(&self) -> String {
        self.wait("the prompt", |screen| screen.trim_end().lines().last().is_some_and(|line| line.trim_end() == PROMPT))
    }

    /// Presses the key until the screen is as wanted, because a program does not read keys at once. An extra
    /// key may then be at the shell's prompt.
    #[track_caller]
    pub fn press_until(&self, key: &str, what: &str, wanted: impl Fn(&str) -> bool) {
        let mut pressed: Option<Instant> = None;
        until(&format!("{what} in pane {}", self.id), || {
            if wanted(&self.screen()) {
                return Some(());
            }
            if pressed.is_none_or(|at| at.elapsed() >= PRESS_EVERY) {
                self.press(key);
                pressed = Some(Instant::now());
            }
            None
        });
    }
}
