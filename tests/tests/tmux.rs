//! toolctl in a real terminal multiplexer: a person types into shells and reads the screen.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toold_tests::{Setup, TestDaemon, toolctl, until};

/// The prompt of the shells.
const PROMPT: &str = "ready>";

/// After this time without an effect, a key is pressed again.
const PRESS_EVERY: Duration = Duration::from_millis(100);

/// A tmux server of a test's own, in the daemon's environment. All it started is gone when this is dropped.
struct Tmux<'a> {
    daemon: &'a TestDaemon,
    socket: PathBuf,
}

/// A pane with a shell.
struct Pane<'a> {
    tmux: &'a Tmux<'a>,
    id: String,
}

impl<'a> Tmux<'a> {
    fn start(daemon: &'a TestDaemon) -> Self {
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
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("tmux is installed");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The initial pane.
    fn first(&'a self) -> Pane<'a> {
        self.pane(&["display-message", "-p", "#{pane_id}"])
    }

    /// Halves the window.
    fn split(&'a self) -> Pane<'a> {
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
    fn screen(&self) -> String {
        self.tmux.run(&["capture-pane", "-p", "-J", "-t", &self.id])
    }

    /// One key, by its name in tmux.
    fn press(&self, key: &str) {
        self.tmux.run(&["send-keys", "-t", &self.id, key]);
    }

    /// Types a line at the shell's prompt, at the top of an empty screen.
    #[track_caller]
    fn run(&self, line: &str) {
        self.wait_for_prompt();
        self.tmux.run(&["send-keys", "-R", "-t", &self.id]);
        self.type_line(line);
    }

    fn type_line(&self, line: &str) {
        let id = self.id.as_str();
        self.tmux.run(&["send-keys", "-t", id, "-l", line, ";", "send-keys", "-t", id, "Enter"]);
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        until(&format!("{what} in pane {}", self.id), || Some(self.screen()).filter(|screen| wanted(screen)))
    }

    #[track_caller]
    fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits for a line that is this and nothing else.
    #[track_caller]
    fn wait_for_line(&self, text: &str) -> String {
        self.wait(text, |screen| screen.lines().any(|line| line.trim_end() == text))
    }

    /// Waits until the shell waits; gives the screen.
    #[track_caller]
    fn wait_for_prompt(&self) -> String {
        self.wait("the prompt", |screen| screen.trim_end().lines().last().is_some_and(|line| line.trim_end() == PROMPT))
    }

    /// Presses the key until the screen is as wanted, because a program does not read keys at once. An extra
    /// key may then be at the shell's prompt.
    #[track_caller]
    fn press_until(&self, key: &str, what: &str, wanted: impl Fn(&str) -> bool) {
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

#[test]
fn project_grant_from_one_pane_applies_in_the_other() {
    const CALL: &str = "toolctl call bash command='echo it is done'";
    let daemon = TestDaemon::asking();
    let tmux = Tmux::start(&daemon);
    let (first, second) = (tmux.first(), tmux.split());
    for pane in [&first, &second] {
        pane.run(CALL);
        pane.wait_for("deny, with a reason");
    }
    first.press_until("p", "the answer", |screen| screen.contains("allowed in this project"));
    // The answer is for both, which wait for the same prompt. Extra keys may precede the output.
    first.wait("it is done", |screen| {
        screen.lines().any(|line| line.trim_end().trim_start_matches('p') == "it is done")
    });
    second.wait_for_line("it is done");
    // From now on nobody is asked.
    second.run(CALL);
    second.wait_for_line("it is done");
    let screen = second.wait_for_prompt();
    assert!(!screen.contains("asks for"), "{screen}");
    // Another command still prompts.
    second.run("toolctl call bash command='echo another'");
    second.wait_for("deny, with a reason");
    second.press_until("n", "the answer", |screen| screen.contains("denied"));
}

#[test]
fn a_shell_is_attached_to_typed_into_and_left_running() {
    let allow = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";
    let daemon = Setup::new().config(allow).start();
    let tmux = Tmux::start(&daemon);
    let (first, second) = (tmux.first(), tmux.split());
    let program = "echo begun; while read line; do echo got $line; done";
    first.run(&format!("toolctl call bash command='{program}' tty=true background=true"));
    first.wait_for("sh_1 runs in the background");
    first.run("toolctl shells attach sh_1");
    first.wait_for("Ctrl-] detaches");
    first.wait_for_line("begun");
    first.type_line("by hand");
    first.wait_for_line("got by hand");
    // Output that comes while it is attached is shown too.
    second.run("toolctl shells write sh_1 from elsewhere");
    first.wait_for_line("got from elsewhere");
    first.press("C-]");
    first.wait_for_line("detached from sh_1; it keeps running");

    let status = |wanted: &str| {
        first.run("toolctl shells");
        let screen = first.wait_for_prompt();
        let row = screen.lines().find(|line| line.trim_start().starts_with("sh_1 ")).expect(&screen);
        assert_eq!(row.split_whitespace().nth(1), Some(wanted), "{screen}");
    };
    status("running");
    second.run("toolctl shells kill sh_1");
    second.wait_for_line("sh_1: killed");
    status("killed");
}

#[test]
fn full_screen_shows_panels_answers_a_prompt_and_quits() {
    let daemon = TestDaemon::asking();
    let tmux = Tmux::start(&daemon);
    let pane = tmux.first();
    pane.run("toolctl");
    pane.wait("the tools", |screen| screen.contains("DESCRIPTION") && screen.contains("Runs a bash command"));
    pane.press("Tab");
    pane.wait("the plugins", |screen| screen.contains("r reload") && !screen.contains("DESCRIPTION"));
    pane.press("Tab");
    pane.wait_for("CONN / CALLS");

    let mut agent = daemon.connect();
    let call = agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo it is done"}}));
    pane.wait("the ask", |screen| {
        ["permission", "bash asks for permission: shell", "echo it is done", "y  allow once"]
            .iter()
            .all(|text| screen.contains(text))
    });
    pane.press_until("y", "the panel without the ask", |screen| !screen.contains("allow once"));
    let result = agent.answer(call)["result"].take();
    assert_eq!((&result["is_error"], &result["content"][0]["text"]), (&json!(false), &json!("it is done\n")));

    pane.press("BTab");
    pane.press("BTab");
    pane.press("BTab");
    pane.wait_for("duration of the last 1 call,");
    pane.press("q");
    let screen = pane.wait_for_prompt();
    assert!(!screen.contains("q quit"), "{screen}");
}
