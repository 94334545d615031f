//! Programs that run the command in their words here, in ways that a table alone cannot describe.

use super::in_folder::InFolder;
use super::known::find;
use super::options::parse;
use super::placed::{OptionSpec, skip_options};
use super::{FileAccess, FileUse, Reading, tmux};
use crate::shell_grammar::arg::Arg;

/// Properties of a unit that limit what its command may use. Others name files, users and further commands.
const LIMITS: &[&str] = &[
    "MemoryMax",
    "MemoryHigh",
    "MemorySwapMax",
    "CPUQuota",
    "CPUWeight",
    "TasksMax",
    "IOWeight",
    "LimitNOFILE",
    "LimitNPROC",
    "LimitCORE",
    "RuntimeMaxSec",
    "OOMScoreAdjust",
    "Nice",
];

/// Tools of Valgrind: another value is part of the name of the program that it starts.
const VALGRIND_TOOLS: &[&str] =
    &["memcheck", "callgrind", "cachegrind", "helgrind", "drd", "massif", "dhat", "lackey", "none"];

/// Shells whose scripts are read as bash reads them.
const SHELLS: &[&str] = &["sh", "bash", "dash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/bin/dash"];

/// `None` if the program is not one of these.
pub(super) fn read(name: &str, words: &[Arg]) -> Option<Reading> {
    Some(match name {
        "su" | "runuser" => other_user(name, words)?,
        "sudo" => sudo(words)?,
        "script" => script(words)?,
        "watch" => watch(words)?,
        "hyperfine" => hyperfine(words)?,
        "systemd-run" => systemd_run(words)?,
        "strace" => strace(words)?,
        "valgrind" => valgrind(words)?,
        "perf" => perf(words)?,
        "tmux" => tmux::read(words)?,
        "nix" => nix(words)?,
        "nix-shell" => nix_shell(words)?,
        "devbox" => devbox(words)?,
        _ => return None,
    })
}

/// `su USER -c SCRIPT`, `runuser -u USER -- COMMAND`. Options may follow operands.
fn other_user(name: &str, words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    let is_login = parsed.has(&["-l", "--login"]) || words.iter().any(|word| word.is("-"));
    let shell = parsed.values(&["-s", "--shell"]).last().cloned();
    let scripts: Vec<Arg> = parsed.values(&["-c", "--command", "--session-command"]).cloned().collect();
    let has_user = parsed.has(&["-u", "--user"]);
    let operands = parsed.operands.clone();
    let mut reading = parsed.into_reading();
    reading.other_shell = true;
    let folder = if is_login { InFolder::Unknown } else { InFolder::Here };
    if has_user {
        // Without `--` an option of the command would be one of `runuser`.
        let behind = words.iter().position(|word| word.is("--")).and_then(|at| words.get(at + 1..));
        let command = behind.unwrap_or(&operands).to_vec();
        if command.is_empty() || command[0].literal().is_none() {
            return Some(reading.open("the command that it runs is unknown"));
        }
        reading.command_in(&command, &folder);
        return Some(reading);
    }
    if shell.is_some_and(|shell| !SHELLS.iter().any(|known| shell.is(known))) {
        return Some(reading.runs_any("another shell reads the script"));
    }
    for script in &scripts {
        reading.script_in(std::slice::from_ref(script), &folder);
    }
    if scripts.is_empty() {
        return Some(reading.open("the commands on its standard input are unknown"));
    }
    if operands.len() > 1 {
        return Some(reading.runs_any("further words are options of the other user's shell"));
    }
    Some(reading)
}

/// `-i` and `-s` without a command run a shell; with one, the shell gets it with all special characters quoted.
fn sudo(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("sudo")?, words);
    let (is_login, is_shell) = (parsed.has(&["-i", "--login"]), parsed.has(&["-s", "--shell"]));
    let command = parsed.command.clone();
    let mut reading = parsed.into_reading();
    if (is_login || is_shell) && command.is_empty() {
        return Some(reading.open("the commands on its standard input are unknown"));
    }
    if is_login {
        reading.commands.clear();
        reading.command_in(&command, &InFolder::Unknown);
    }
    Some(reading)
}

/// `script -c SCRIPT FILE`; with BSD's program `script FILE COMMAND`.
fn script(words: &[Arg]) -> Option<Reading> {
    const OPTIONS: OptionSpec =
        OptionSpec { flags: "-a -e -f -F -k -p -q -r -d", values: "-c -t -I -O -B -T -m -E -o" };
    let (file, _) = skip_options(words, 0, &OPTIONS);
    let is_bsd = words.get(file + 1).is_some_and(|word| !word.start().starts_with('-'))
        && !words.iter().take(file).any(|word| word.start().contains('c'));
    let (own, command) = if is_bsd { words.split_at(file + 1) } else { (words, &[][..]) };
    let parsed = parse(find("script")?, own);
    let scripts: Vec<Arg> = parsed.values(&["-c", "--command"]).cloned().collect();
    let names_file = !parsed.operands.is_empty() || parsed.has(&["-O", "--log-out", "-B", "--log-io"]);
    let mut reading = parsed.into_reading();
    if !names_file {
        reading.files.push(FileUse::new(FileAccess::Write, Arg::text("typescript")));
    }
    reading.command(command);
    for script in &scripts {
        reading.script(std::slice::from_ref(script));
    }
    reading.other_shell = !scripts.is_empty();
    if command.is_empty() && scripts.is_empty() {
        return Some(reading.open("the commands on its standard input are unknown"));
    }
    Some(reading)
}

fn watch(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("watch")?, words);
    let runs_itself = parsed.has(&["-x", "--exec"]);
    let command = parsed.operands.clone();
    let mut reading = parsed.into_reading();
    match runs_itself {
        true => reading.command(&command),
        false => reading.script(&command),
    }
    Some(reading)
}

fn hyperfine(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("hyperfine")?, words);
    let shell = parsed.values(&["-S", "--shell"]).last().cloned();
    let option = ["-s", "--setup", "-p", "--prepare", "-c", "--cleanup", "-C", "--conclude", "--reference"];
    let scripts: Vec<Arg> = parsed.values(&option).chain(&parsed.operands).cloned().collect();
    let mut reading = parsed.into_reading();
    for script in &scripts {
        reading.script(std::slice::from_ref(script));
    }
    if shell.is_some_and(|shell| !shell.is("none") && !SHELLS.iter().any(|known| shell.is(known))) {
        return Some(reading.runs_any("another program reads the commands"));
    }
    Some(reading)
}

/// The service manager starts the command in `/`, or in the person's home, unless it is a scope of this process.
fn systemd_run(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("systemd-run")?, words);
    let is_here = parsed.has(&["--scope", "-d", "--same-dir"]);
    let folder = parsed.values(&["--working-directory"]).last().cloned();
    let is_limit = |value: &Arg| {
        value.literal().and_then(|text| text.split_once('=')).is_some_and(|(name, _)| LIMITS.contains(&name))
    };
    let odd = parsed.values(&["-p", "--property"]).find(|value| !is_limit(value)).cloned();
    let command = parsed.command.clone();
    let mut reading = parsed.into_reading();
    reading.commands.clear();
    reading.scripts.clear();
    match (&folder, is_here) {
        (Some(folder), _) => reading.command_in(&command, &InFolder::At(folder)),
        (None, true) => reading.command_in(&command, &InFolder::Here),
        (None, false) => reading.command_in(&command, &InFolder::Unknown),
    }
    match odd {
        Some(odd) => Some(reading.runs_any(format!("the property {} may name a command", odd.raw))),
        None => Some(reading),
    }
}

/// The value of `-o` is a file, or a command behind `|` or `!`.
fn strace(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("strace")?, words);
    let is_file = |value: &Arg| value.literal().is_some_and(|text| !text.trim_start().starts_with(['|', '!']));
    let odd = parsed.values(&["-o", "--output"]).find(|value| !is_file(value)).cloned();
    let mut reading = parsed.into_reading();
    if let Some(odd) = odd {
        reading.files.retain(|file| file.arg != odd);
        return Some(reading.runs_any(format!("{} writes a file, or runs a program", odd.raw)));
    }
    Some(reading)
}

fn valgrind(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("valgrind")?, words);
    let odd = parsed.values(&["--tool"]).find(|tool| !VALGRIND_TOOLS.iter().any(|known| tool.is(known))).cloned();
    let reading = parsed.into_reading();
    match odd {
        Some(odd) => Some(reading.runs_any(format!("{} is not among the known tools", odd.raw))),
        None => Some(reading),
    }
}

/// An event may be the name of a file that is compiled and loaded into the kernel.
fn perf(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("perf")?, words);
    let is_event = |value: &Arg| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-:,{}".contains(c);
        value.literal().is_some_and(|text| text.chars().all(is_plain))
    };
    let odd = parsed.values(&["-e", "--event"]).find(|value| !is_event(value)).cloned();
    let records = parsed.known.name == "perf record" && !parsed.has(&["-o", "--output"]);
    let mut reading = parsed.into_reading();
    if records {
        reading.files.push(FileUse::new(FileAccess::Write, Arg::text("perf.data")));
    }
    match odd {
        Some(odd) => Some(reading.runs_any(format!("{} may be a file that is loaded as code", odd.raw))),
        None => Some(reading),
    }
}

/// `nix develop -c COMMAND`, `nix shell PACKAGES -c COMMAND`.
fn nix(words: &[Arg]) -> Option<Reading> {
    let verb = words.iter().find(|word| !word.start().starts_with('-'))?;
    if !matches!(verb.literal(), None | Some("develop" | "shell" | "run")) {
        return None;
    }
    let starts = |word: &Arg| word.is("-c") || word.is("--command");
    let at = words.iter().position(starts).filter(|_| !verb.is("run"));
    let (before, command) = match at {
        Some(at) => (&words[..at], words.get(at + 1..).unwrap_or_default()),
        None => (words, &[][..]),
    };
    let reading = Reading::default();
    if command.is_empty() || before.iter().any(|word| word.literal().is_none()) {
        return Some(reading.runs_any("the command that it runs is unknown"));
    }
    let mut reading = reading;
    reading.note(verb, "subcommand");
    let is_known = |word: &&Arg| {
        matches!(word.literal(), Some("-L" | "--print-build-logs" | "--impure" | "--offline" | "-q" | "--quiet"))
    };
    if let Some(odd) = before.iter().find(|word| word.start().starts_with('-') && !is_known(word)) {
        reading.doubt(format!("{} is not among the options that are known to be harmless", odd.raw));
    }
    reading.command(command);
    Some(reading)
}

fn nix_shell(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("nix-shell")?, words);
    let scripts: Vec<Arg> = parsed.values(&["--run", "--command"]).cloned().collect();
    let mut reading = parsed.into_reading();
    for script in &scripts {
        reading.script(std::slice::from_ref(script));
    }
    if scripts.is_empty() {
        return Some(reading.open("the commands on its standard input are unknown"));
    }
    Some(reading)
}

/// The words behind `run` are a script of the project with its arguments, or a command that a shell reads.
fn devbox(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("devbox")?, words);
    let runs = parsed.known.name == "devbox run";
    let command = parsed.operands.clone();
    let mut reading = parsed.into_reading();
    if runs {
        reading.elsewhere.extend((!command.is_empty()).then_some(command));
    } else if reading.notes.iter().any(|note| note.text == "shell" && note.meaning == "subcommand") {
        return Some(reading.open("the commands on its standard input are unknown"));
    }
    Some(reading)
}
