//! What the documents tell people to type, typed: the README's commands print what it says they print, every command of
//! every document is understood, and every configuration is right.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toold_tests::{Setup, toolctl, toold, until};

/// A fenced block of a document.
struct Block {
    /// Relative to the repository, with the line of the fence.
    place: String,
    language: String,
    text: String,
}

fn repository() -> PathBuf {
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

fn blocks(document: &Path) -> Vec<Block> {
    let text = fs::read_to_string(repository().join(document)).unwrap();
    let (mut found, mut open): (Vec<Block>, bool) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                let place = format!("{}:{}", document.display(), number + 1);
                found.push(Block { place, language: language.to_owned(), text: String::new() });
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

/// A command of a console block and what comes after it: its input, or what it prints.
fn commands(block: &Block) -> Vec<(String, String)> {
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

/// A shell with this person's own folders and nothing else, and both programs in its path.
fn shell(setup: &Setup, line: &str) -> Command {
    let bin = |program: &Path| program.parent().unwrap().to_str().unwrap().to_owned();
    let path = [bin(toold()), bin(toolctl()), std::env::var("PATH").unwrap_or_default()].join(":");
    let mut command = Command::new("bash");
    command
        .args(["--norc", "--noprofile", "-c", line])
        .env_clear()
        .env("PATH", path)
        .env("HOME", setup.path("home"))
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .current_dir(setup.path("work"));
    command
}

/// Without what is of one run: the time, the process, the home folder, the ids.
fn without_the_run(setup: &Setup, text: &str) -> String {
    let mut text = text.replace(setup.path("home").to_str().unwrap(), "/home/you");
    for (pattern, instead) in [
        (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d+Z", "TIME"),
        (r"pid=\d+", "pid=PID"),
        (r"grant_[0-9a-f]+_\d+", "GRANT"),
        (r"\b[0-9a-f]{7}\b", "COMMIT"),
        // A terminal's columns end in blanks.
        (r"(?m)[ \t]+$", ""),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, instead).into_owned();
    }
    text
}

#[test]
fn commands_of_the_readme_print_what_it_says() {
    let setup = Setup::new();
    let prepare =
        "git init -q . && git -c user.name=you -c user.email=you@example.com commit -q --allow-empty -m First";
    assert!(shell(&setup, prepare).status().unwrap().success());
    let blocks = blocks(Path::new("README.md"));
    let consoles: Vec<&Block> = blocks.iter().filter(|block| block.language == "console").collect();

    let (build, first_line) = commands(consoles[0]).remove(0);
    let serve =
        build.strip_prefix("cargo build --release && target/release/").expect("the first command builds and runs");
    let mut daemon = shell(&setup, &format!("exec {serve}")).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(daemon.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    assert_eq!(without_the_run(&setup, &line), without_the_run(&setup, &first_line));

    for block in &consoles[1..] {
        for (command, after) in commands(block) {
            if command == ".ci/test" {
                assert!(repository().join(command).is_file());
                continue;
            }
            // What follows `cat >` is typed into it.
            let typed = command.starts_with("cat > ");
            let mut child =
                shell(&setup, &format!("{command} 2>&1")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut input = child.stdin.take().unwrap();
            if typed {
                input.write_all(after.as_bytes()).unwrap();
            }
            drop(input);
            let printed = child.wait_with_output().unwrap().stdout;
            let printed = without_the_run(&setup, &String::from_utf8(printed).unwrap());
            let expected = if typed { String::new() } else { without_the_run(&setup, &after) };
            assert_eq!(printed, expected, "{}: $ {command}", block.place);
            if typed {
                // A person is slower than the daemon's watch.
                let loaded = || shell(&setup, "toolctl schema count").output().unwrap().status.success();
                until("the plugin is loaded", || loaded().then_some(()));
            }
        }
    }

    assert!(shell(&setup, "toolctl stop").status().unwrap().success());
    assert!(daemon.wait().unwrap().success());
}

/// The words of a line that are one command's: up to what only a shell understands.
fn words_of(line: &str) -> Option<Vec<String>> {
    let line = line.split([';', '|', '>', '<', '&', '#']).next()?.trim();
    if line.contains(['`', '(', '…', '[']) || line.contains("...") {
        return None;
    }
    let words = shlex::split(line)?;
    let known = matches!(words.first()?.as_str(), "toolctl" | "toold");
    known.then_some(words)
}

/// Lines of blocks that are for a shell, and what stands between backticks in the text.
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
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for document in documents() {
        for line in lines_to_type(&document) {
            let Some(words) = words_of(&line) else { continue };
            if !seen.insert(words.clone()) {
                continue;
            }
            let program = if words[0] == "toold" { toold() } else { toolctl() };
            // What reads its arguments only to print how to use them, says of any that it does not know. A value may be
            // missing, or a name in capitals that stands for one.
            let told = Command::new(program).args(&words[1..]).arg("--help").output().unwrap();
            let told = String::from_utf8_lossy(&told.stderr).into_owned();
            if told.contains("unrecognized subcommand") || told.contains("unexpected argument") {
                wrong.push(format!("{}: {line}\n{told}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() > 50, "only {} commands are found in the documents", seen.len());
}

#[test]
fn configurations_of_all_documents_are_right() {
    let place = tempfile::tempdir().unwrap();
    let (mut seen, mut wrong) = (0, Vec::new());
    for document in documents() {
        // Others' files, and not the daemon's configuration.
        if document.starts_with("clients") {
            continue;
        }
        for block in blocks(&document) {
            if block.language != "toml" {
                continue;
            }
            let file = place.path().join("config.toml");
            fs::write(&file, &block.text).unwrap();
            let checked = Command::new(toold())
                .args(["config", "check"])
                .arg(&file)
                .env("HOME", place.path())
                .env("XDG_CONFIG_HOME", place.path())
                .output()
                .unwrap();
            seen += 1;
            if !checked.status.success() {
                let told = [checked.stdout, checked.stderr].concat();
                wrong.push(format!("{}: {}", block.place, String::from_utf8_lossy(&told)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 5, "only {seen} configurations are found in the documents");
}

/// The names between the first and the last of the variables by which programs find their toolchains.
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
