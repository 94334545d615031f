//! Documents are right: a terminal shows what the README says, every command of every document is understood, and every
//! configuration is valid.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toold_tests::{Setup, toolctl, toold, until};

/// A fenced block of a document.
pub(crate) struct FencedBlock {
    /// Relative to the repository, with the line of the fence.
    pub(crate) place: String,
    pub(crate) language: String,
    pub(crate) text: String,
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn documents() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--", "*.md"])
        .current_dir(repository())
        .output()
        .expect("git lists the documents");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8(listed.stdout).unwrap().split_terminator('\0').map(PathBuf::from).collect()
}

fn blocks(document: &Path) -> Vec<FencedBlock> {
    fenced(document, &fs::read_to_string(repository().join(document)).unwrap())
}

/// The blocks of a text, which is the document or a part of it.
pub(crate) fn fenced(document: &Path, text: &str) -> Vec<FencedBlock> {
    let (mut found, mut open): (Vec<FencedBlock>, bool) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                let place = format!("{}:{}", document.display(), number + 1);
                found.push(FencedBlock { place, language: language.to_owned(), text: String::new() });
            }
            None if open => {
                let block = found.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "{}: a block is not closed", document.display());
    found
}

/// The commands of a console block, each with the text after it: its input or its output.
pub(crate) fn commands(block: &FencedBlock) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.text.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => found.push((command.to_owned(), String::new())),
            None => {
                let (_, after) = found.last_mut().unwrap_or_else(|| panic!("{}: begins with no command", block.place));
                after.push_str(line);
                after.push('\n');
            }
        }
    }
    found
}

/// The prompt of an interactive shell.
const PROMPT: &str = "$ ";

/// A command in the folders of this setup and nothing else, with both programs in its path.
fn command(setup: &Setup, program: &str) -> Command {
    let bin = |program: &Path| program.parent().unwrap().to_str().unwrap().to_owned();
    let path = [bin(toold()), bin(toolctl()), std::env::var("PATH").unwrap_or_default()].join(":");
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", setup.path("home"))
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .current_dir(setup.path("home/work"));
    command
}

pub(crate) fn shell(setup: &Setup, line: &str) -> Command {
    let mut command = command(setup, "bash");
    command.args(["--norc", "--noprofile", "-c", line]);
    command
}

/// The daemon of the first command. It is stopped even if the test fails.
struct ServedDaemon(Child);

impl Drop for ServedDaemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An interactive shell in tmux.
struct Screen<'a> {
    setup: &'a Setup,
    /// One for each screen: a server that is ending takes no new session.
    socket: PathBuf,
}

impl<'a> Screen<'a> {
    fn open(setup: &'a Setup, name: &str) -> Self {
        let screen = Self { setup, socket: setup.path(name) };
        let shell = format!("exec env PS1='{PROMPT}' bash --norc --noprofile");
        screen.tmux(&["new-session", "-d", "-x", "200", "-y", "100", &shell]);
        until("the shell waits for a command", || (screen.text() == PROMPT.trim_end()).then_some(()));
        screen
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = command(self.setup, "tmux");
        tmux.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(arguments);
        let output = tmux.output().expect("tmux is installed");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Everything on the screen, without the blanks at the ends of lines.
    fn text(&self) -> String {
        let text = self.tmux(&["capture-pane", "-p"]);
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Types a command and waits for its end. A permission prompt is answered as the README says.
    fn run(&self, line: &str) {
        let prompts = || self.text().lines().filter(|line| line.starts_with(PROMPT.trim_end())).count();
        let before = prompts();
        let mut pressed: Option<Instant> = None;
        self.type_text(line);
        self.press("Enter");
        until(&format!("{line} ends"), || {
            let text = self.text();
            // A key that comes before the prompt reads keys is lost, so it is pressed again.
            let waits_for_key = text.lines().any(|line| line.starts_with("? ")) && !text.contains("allowed");
            if waits_for_key && pressed.is_none_or(|at| at.elapsed() > Duration::from_secs(2)) {
                pressed = Some(Instant::now());
                self.press("a");
            }
            (text.ends_with(&format!("\n{}", PROMPT.trim_end())) && prompts() > before).then_some(())
        });
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let mut tmux = command(self.setup, "tmux");
        let _ = tmux.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// Without the time, the process, the home folder and the ids, which differ from run to run.
pub(crate) fn without_the_run(setup: &Setup, text: &str) -> String {
    let mut text = text.replace(setup.path("home").to_str().unwrap(), "/home/you");
    for (pattern, instead) in [
        (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d+Z", "TIME"),
        (r"\b\d{4}-\d{2}-\d{2}\b", "DATE"),
        (r"pid=\d+", "pid=PID"),
        (GRANT, "GRANT"),
        (r"\bs-[0-9a-f]{32}\b|\bterminal-[0-9]+-[0-9]+-[0-9a-f]{16}\b", "SESSION"),
        (r"\b[0-9a-f]{7}\b", "COMMIT"),
        (r"(?m)^\d+(\.\d+)? m?s$", "DURATION"),
        // A table's columns end in blanks.
        (r"(?m)[ \t]+$", ""),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, instead).into_owned();
    }
    text
}

const GRANT: &str = r"grant_[0-9a-f]+_\d+";

#[test]
fn commands_of_the_readme_print_the_shown_output() {
    let setup = Setup::new();
    fs::create_dir(setup.path("home/work")).unwrap();
    let prepare =
        "git init -q . && git -c user.name=you -c user.email=you@example.com commit -q --allow-empty -m First";
    assert!(shell(&setup, prepare).status().unwrap().success());
    let blocks = blocks(Path::new("README.md"));
    let is_build = |block: &&FencedBlock| block.text.contains("cargo build --release");
    let consoles: Vec<&FencedBlock> =
        blocks.iter().filter(|block| block.language == "console").filter(|block| !is_build(block)).collect();

    let build = blocks.iter().find(is_build).expect("the README says how to build");
    let (build, first_line) = commands(build).remove(0);
    let serve =
        build.strip_prefix("cargo build --release && target/release/").expect("the first command builds and runs");
    let mut daemon = ServedDaemon(shell(&setup, &format!("exec {serve}")).stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(daemon.0.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    assert_eq!(without_the_run(&setup, &line), without_the_run(&setup, &first_line));

    // The plugin can be pasted as it stands.
    let pasted = blocks.iter().find(|block| block.language == "sh" && block.text.contains("count.lua"));
    let pasted = pasted.expect("the README has a plugin to paste");
    assert!(shell(&setup, &pasted.text).status().unwrap().success());
    let is_loaded = || shell(&setup, "toolctl schema count").output().unwrap().status.success();
    until("the plugin is loaded", || is_loaded().then_some(()));
    let grant = regex::Regex::new(GRANT).unwrap();
    let mut last_grant = None;
    for (index, block) in consoles.iter().enumerate() {
        if block.text.trim() == "$ .ci/test" {
            assert!(repository().join(".ci/test").is_file());
            continue;
        }
        let screen = Screen::open(&setup, &format!("tmux-{index}"));
        for (line, _) in commands(block) {
            // The grant that this run made has another id.
            let line = match &last_grant {
                Some(id) => grant.replace(&line, String::as_str(id)).into_owned(),
                None => line,
            };
            screen.run(&line);
            last_grant = grant.find(&screen.text()).map(|found| found.as_str().to_owned()).or(last_grant);
            // A reader is slower than the daemon's watch.
            if line.starts_with("rm ") {
                until("the plugin is unloaded", || (!is_loaded()).then_some(()));
            }
        }
        let shown = screen.text();
        let shown = shown.strip_suffix(PROMPT.trim_end()).unwrap();
        let (shown, expected) = (without_the_run(&setup, shown), without_the_run(&setup, &block.text));
        assert_eq!(shown, expected, "{}", block.place);
    }

    assert!(shell(&setup, "toolctl stop").status().unwrap().success());
    assert!(daemon.0.wait().unwrap().success());
}

/// The words of one command in a line: up to the first that only a shell understands.
fn words_of(line: &str) -> Option<Vec<String>> {
    let line = line.split([';', '|', '>', '<', '&', '#']).next()?.trim();
    if line.contains(['`', '(', '…', '[']) || line.contains("...") {
        return None;
    }
    let words = shlex::split(line)?;
    let known = matches!(words.first()?.as_str(), "toolctl" | "toold");
    known.then_some(words)
}

/// Lines of shell blocks, and text between backticks.
fn lines_to_type(document: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for block in blocks(document) {
        match block.language.as_str() {
            "console" => found.extend(block.text.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned)),
            "sh" | "bash" => found.extend(block.text.lines().map(str::to_owned)),
            _ => {}
        }
    }
    let (text, mut fenced) = (fs::read_to_string(repository().join(document)).unwrap(), false);
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

#[test]
fn commands_of_all_documents_are_understood() {
    let setup = Setup::new();
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for document in documents() {
        for line in lines_to_type(&document) {
            let Some(words) = words_of(&line) else { continue };
            if !seen.insert(words.clone()) {
                continue;
            }
            // Behind `do NAME`, `--help` is input of that command.
            let (program, first) = match words[0].as_str() {
                "toold" => (toold(), None),
                _ => (toolctl(), Some("--no-start")),
            };
            // `--help` still reports unknown subcommands and arguments. A value may be
            // missing, or a name in capitals that stands for one. Behind `--` is the command line of another program.
            let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
            let (own, other) = words[1..].split_at(own - 1);
            let printed = setup.command(program).args(first).args(own).arg("--help").args(other).output().unwrap();
            let printed = String::from_utf8_lossy(&printed.stderr).into_owned();
            if printed.contains("unrecognized subcommand") || printed.contains("unexpected argument") {
                wrong.push(format!("{}: {line}\n{printed}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!setup.path("run/toold.sock").exists(), "a command started a daemon");
    assert!(seen.len() > 50, "only {} commands are found in the documents", seen.len());
}

#[test]
fn configurations_of_all_documents_are_right() {
    let place = tempfile::tempdir().unwrap();
    // The files that the documents name in the user's home.
    let made = rcgen::generate_simple_self_signed(vec!["desk.example.net".to_owned()]).unwrap();
    fs::create_dir_all(place.path().join(".config/toold")).unwrap();
    for (name, text) in [("page.pem", made.cert.pem()), ("page-key.pem", made.signing_key.serialize_pem())] {
        let file = place.path().join(".config/toold").join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    // The keys of this machine in its fleet; the person's fits the one that the document names.
    let keys = place.path().join(".local/state/toold/fleet");
    fs::create_dir_all(&keys).unwrap();
    let [_, person] = ["daemon", "person"].map(|of| {
        let file = keys.join(format!("{of}.key"));
        let made = Command::new(toold()).args(["fleet-key", "--create", of]).arg(&file).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    });
    let of_person = regex::Regex::new(r"\bU[A-Z2-7]{55}\b").unwrap();
    let (mut seen, mut wrong) = (0, Vec::new());
    for document in documents() {
        // Files of other programs, not the daemon's configuration.
        if document.starts_with("clients") {
            continue;
        }
        for block in blocks(&document) {
            if block.language != "toml" {
                continue;
            }
            let file = place.path().join("config.toml");
            fs::write(&file, of_person.replace_all(&block.text, &person).as_bytes()).unwrap();
            let checked = Command::new(toold())
                .args(["config", "check"])
                .arg(&file)
                .env("HOME", place.path())
                .env("XDG_CONFIG_HOME", place.path())
                .output()
                .unwrap();
            seen += 1;
            if !checked.status.success() {
                let printed = [checked.stdout, checked.stderr].concat();
                wrong.push(format!("{}: {}", block.place, String::from_utf8_lossy(&printed)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 5, "only {seen} configurations are found in the documents");
}

/// The names from the first to the last variable by which programs find their toolchains.
fn toolchain_of(file: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join(file)).unwrap();
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_' || c == '*';
    let names: Vec<&str> = text.split(|c| !is_name(c)).filter(|name| name.len() > 1).collect();
    let first = names.windows(2).position(|pair| pair == ["PATH", "VIRTUAL_ENV"]);
    let first = first.unwrap_or_else(|| panic!("{file} names no variables"));
    let last = names[first..].iter().position(|name| *name == "TZ").unwrap_or_else(|| panic!("{file} names no TZ"));
    names[first..=first + last].iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_client_passes_the_same_variables_and_says_so() {
    let expected = toolchain_of("clients/rust/src/environment.rs");
    for file in [
        "clients/emacs/README.md",
        "clients/emacs/toold.el",
        "clients/nvim/README.md",
        "clients/nvim/doc/toold.txt",
        "clients/nvim/lua/toold/environment.lua",
        "clients/python/README.md",
        "clients/python/src/toold/environment.py",
        "clients/typescript/README.md",
        "clients/typescript/src/environment.ts",
        "clients/vscode/README.md",
    ] {
        assert_eq!(toolchain_of(file), expected, "{file}");
    }
}

/// The commands of a session and their outputs, without the statuses of those that failed.
fn recorded(session: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in fs::read_to_string(repository().join(session)).unwrap().lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_owned(), String::new()));
        } else if let (Some(printed), Some((_, output))) = (line.strip_prefix("    "), found.last_mut())
            && !printed.starts_with("[status ")
        {
            output.push_str(printed);
            output.push('\n');
        }
    }
    found
}

#[test]
fn the_guide_shows_what_its_session_prints() {
    let recorded = recorded("tests/sessions/guide.session");
    let mut count = 0;
    for block in blocks(Path::new("plugins/GUIDE.md")).iter().filter(|block| block.language == "console") {
        for (command, output) in commands(block) {
            // The session begins in the home folder, and changes to another one for some commands.
            let is_same = |(line, printed): &(String, String)| {
                // Empty lines of an output stand in the session like those between commands.
                let lines = |text: &str| -> Vec<String> {
                    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
                };
                (*line == command || line.ends_with(&format!(" && {command}"))) && lines(printed) == lines(&output)
            };
            assert!(recorded.iter().any(is_same), "{}: {command}\n{output}", block.place);
            count += 1;
        }
    }
    assert!(count >= 20, "{count}");
}
