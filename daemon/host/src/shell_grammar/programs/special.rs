//! Programs whose words a table alone does not tell apart.

use toold_engine::need::Word;

use super::known::find;
use super::options::{Parsed, parse};
use super::{FileUse, How, Output, Reading, Site, awk, find as find_program, git, sed, shell, tar, xargs};
use crate::shell_grammar::arg::{Arg, Piece};
use crate::shell_grammar::{check, variables};

/// Programs that run others in ways that are not looked into.
const RUN_OTHERS: &[&str] = &[
    "parallel",
    "su",
    "runuser",
    "pkexec",
    "unshare",
    "nsenter",
    "systemd-run",
    "systemd-inhibit",
    "firejail",
    "bwrap",
    "proot",
    "script",
    "at",
    "batch",
    "watch",
    "watchexec",
    "gdb",
    "lldb",
    "valgrind",
    "expect",
    "fish",
    "zsh",
    "ksh",
    "mksh",
    "csh",
    "tcsh",
    "nu",
    "pwsh",
    "powershell",
    "tmux",
    "screen",
    "rlwrap",
    "socat",
    "coproc",
    "ssh-agent",
    "setarch",
    "linux32",
    "linux64",
    "faketime",
    "setpriv",
    "capsh",
    "daemonize",
    "start-stop-daemon",
    "sg",
    "newgrp",
    "busybox",
    "toybox",
    "alias",
    "dc",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "sftp",
    "ftp",
    "lftp",
    "telnet",
    "perf",
    "hyperfine",
    "prlimit",
    "choom",
    "logsave",
    "ld.so",
    "sem",
    "uidmapshift",
    "x86_64",
    "i386",
    "i686",
    "run-parts",
    "prove",
    "uclampset",
];

/// Programs for which `@FILE` stands for the options in that file.
const AT_FILES: &[&str] = &[
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "ld",
    "ar",
    "nm",
    "objdump",
    "size",
    "strings",
    "strip",
    "objcopy",
    "readelf",
    "addr2line",
    "c++filt",
    "javac",
    "dotnet",
];

/// Runners of a project's own tools: the words behind `run` are the command.
const RUNNERS: &[(&str, &[&str])] = &[
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("bundle", &["exec"]),
];

/// `None` for what the tables tell, or nobody.
pub(super) fn read(name: &str, words: &[Arg], site: &Site) -> Option<Reading> {
    let reading = Reading::default;
    if RUN_OTHERS.contains(&name) || name.starts_with("ld-linux") {
        return Some(reading().open(format!("{name} runs other programs in ways that are not looked into")));
    }
    if shell::NAMES.contains(&name) {
        return Some(shell::read(words));
    }
    if let Some((_, verb)) = RUNNERS.iter().find(|(runner, _)| *runner == name)
        && verb.iter().enumerate().all(|(at, verb)| words.get(at).is_some_and(|word| word.is(verb)))
    {
        return Some(runner(&words[verb.len()..]));
    }
    let at_file = |word: &&Arg| word.start().starts_with('@') || name == "dotnet" && word.start().starts_with("/p:");
    if let Some(word) = words.iter().find(at_file).filter(|_| AT_FILES.contains(&name)) {
        return Some(parse(find(name)?, words).into_reading().unsure(format!("{} stands for other options", word.raw)));
    }
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.is(text));
    Some(match name {
        "npx" | "bunx"
            if words.iter().any(|word| {
                word.literal().is_none() || word.start().starts_with("-c") || word.start().starts_with("--call")
            }) =>
        {
            reading().open("-c runs a command of a shell")
        }
        "cd" | "pushd" => change_folder(words),
        "popd" => Reading { reads_only: true, same_shell: true, ..reading() },
        "eval" => {
            let mut reading = Reading { same_shell: true, ..reading() };
            reading.script(skip_dashes(words));
            reading
        }
        "trap" => trap(words),
        "source" | "." => source(words),
        "hash" if !words.is_empty() && !is(0, "-r") => reading().open("hash changes which program a name runs"),
        "enable" if !words.is_empty() => reading().open("enable changes which commands the shell has"),
        "shopt" if words.iter().any(|word| !word.is("-p") && !word.is("-q")) => {
            reading().open("shopt changes how the shell reads commands")
        }
        "exec" if words.is_empty() => Reading { reads_only: true, ..reading() },
        "command" if words.first().is_some_and(|word| matches!(word.literal(), Some("-v" | "-V" | "-pv" | "-pV"))) => {
            Reading { reads_only: true, ..reading() }
        }
        "command" | "builtin" => Reading { same_shell: true, ..parse(find(name)?, words).into_reading() },
        "test" | "[" | "[[" => test(name, words),
        "export" | "declare" | "typeset" | "local" | "readonly" | "unset" => declare(words),
        "read" => read_line(words),
        "printf" => printf(words),
        "echo" => Reading { output: text_output(words), ..parse(find(name)?, words).into_reading() },
        "cat" | "head" | "tail" | "sort" | "uniq" | "tac" | "grep" | "egrep" | "fgrep" | "shuf" => filter(name, words)?,
        "ls" => list(words)?,
        "xargs" => xargs::read(words, site)?,
        "find" => find_program::read(words)?,
        "fd" | "fdfind" => fd(name, words)?,
        "flock" => flock(words),
        "git" => git::read(words, site)?,
        "sed" | "gsed" => sed::read(words)?,
        "awk" | "gawk" | "mawk" | "nawk" => awk::read(name, words)?,
        "tar" | "gtar" | "bsdtar" => tar::read(words)?,
        "dd" => dd(words),
        "date" => date(words),
        "make" | "gmake" => make(words)?,
        "jq" | "gojq" | "jaq" => jq(name, words)?,
        "tee" => {
            let mut reading = parse(find("tee")?, words).into_reading();
            let is_device = |file: &FileUse| {
                file.arg.literal().is_some_and(super::super::files::is_device) || file.arg.pieces == [Piece::Pipe]
            };
            reading.reads_only = reading.unsure.is_none() && reading.files.iter().all(is_device);
            reading.output = Output::Input;
            reading
        }
        "unzip" => {
            let parsed = parse(find("unzip")?, words);
            let lists = parsed.has(&["-l", "-t", "-v", "-Z", "-z"]);
            let mut reading = parsed.into_reading();
            if !lists {
                reading.doubt("the archive says which files it writes");
            }
            reading
        }
        "curl" => curl(words)?,
        "ln" => link(words)?,
        "rg" | "ag" | "ack" | "ack-grep" => search(name, words)?,
        "pwd" => Reading { output: pwd(words, site), ..parse(find(name)?, words).into_reading() },
        "nproc" => Reading { output: Output::Pieces(vec![Piece::Number]), ..parse(find(name)?, words).into_reading() },
        "whoami" | "hostname" | "arch" | "uname" => {
            let mut reading = parse(find(name)?, words).into_reading();
            if reading.reads_only && words.len() <= 1 {
                reading.output = Output::Pieces(vec![Piece::Plain]);
            }
            reading
        }
        "wc" => {
            let mut reading = parse(find(name)?, words).into_reading();
            // The count alone, without a name, when it reads its standard input.
            if words.len() == 1 && ["-l", "-c", "-w", "-m"].iter().any(|option| words[0].is(option)) {
                reading.output = Output::Pieces(vec![Piece::Number]);
            }
            reading
        }
        "rustup" if is(0, "run") => command_behind(words.get(2..).unwrap_or_default()),
        "mise" | "asdf" if is(0, "exec") || is(0, "x") => match words.iter().position(|word| word.is("--")) {
            Some(at) => command_behind(&words[at + 1..]),
            None => reading().runs_any("which command it runs is not known"),
        },
        "direnv" if is(0, "exec") => command_behind(words.get(2..).unwrap_or_default()),
        "nix-shell" | "nix" if words.iter().any(|word| word.literal().is_none_or(is_run_option)) => {
            reading().runs_any("which command it runs is not known")
        }
        _ => return None,
    })
}

fn is_run_option(text: &str) -> bool {
    matches!(text, "--run" | "--command" | "-c" | "run" | "shell" | "develop")
}

pub(super) fn skip_dashes(words: &[Arg]) -> &[Arg] {
    if words.first().is_some_and(|word| word.is("--")) { &words[1..] } else { words }
}

fn command_behind(words: &[Arg]) -> Reading {
    let mut reading = Reading::default();
    match words.first() {
        Some(first) if !first.is_one() || first.may_be_option() => {
            return reading.runs_any(format!("which program {} is, is not known", first.raw));
        }
        _ => reading.command(words),
    }
    reading
}

/// A command behind options that are not known here.
fn runner(words: &[Arg]) -> Reading {
    let behind = skip_dashes(words);
    match behind.first() {
        Some(first) if behind.len() == words.len() && first.may_be_option() => {
            Reading::default().runs_any(format!("{} is not known, so which command it runs is not either", first.raw))
        }
        _ => command_behind(behind),
    }
}

fn change_folder(words: &[Arg]) -> Reading {
    let mut reading = Reading { same_shell: true, reads_only: true, ..Reading::default() };
    let folder = words.iter().find(|word| !matches!(word.literal(), Some("-P" | "-L" | "--" | "-e" | "-n")));
    if let Some(folder) = folder.filter(|folder| !folder.is("-")) {
        reading.note(folder, "folder");
        match folder.literal() {
            Some(text) if text.starts_with(['-', '+']) => reading.doubt(format!("{text} is no folder")),
            Some(_) => reading.files.push(FileUse::new(How::List, folder.clone())),
            None if folder.has_glob() => reading.files.push(FileUse::new(How::List, folder.clone())),
            None => reading.doubt(format!("where {} leads is not known", folder.raw)),
        }
    }
    reading
}

fn trap(words: &[Arg]) -> Reading {
    let mut reading = Reading { same_shell: true, ..Reading::default() };
    match skip_dashes(words) {
        [] => reading.reads_only = true,
        [first, ..] if matches!(first.literal(), Some("-l" | "-p" | "-" | "")) => reading.reads_only = true,
        [first, ..] => reading.script(std::slice::from_ref(first)),
    }
    reading
}

fn source(words: &[Arg]) -> Reading {
    let mut reading = Reading { same_shell: true, ..Reading::default() };
    match skip_dashes(words).first() {
        Some(file) if file.literal().is_some_and(|text| !text.starts_with("/dev/") && !text.starts_with("/proc/")) => {
            reading.script_file = Some(file.clone());
            reading.files.push(FileUse::new(How::Read, file.clone()));
            reading
        }
        _ => reading.open("which script is read is not known"),
    }
}

/// Whether a file is there is told to whoever may read its folder.
fn test(name: &str, words: &[Arg]) -> Reading {
    // A number or a name cannot be evaluated to anything else.
    let word = |arg: &Arg| match arg.pieces.as_slice() {
        [Piece::Number | Piece::Digits | Piece::Plain] => Word { text: "0".to_owned(), literal: true },
        _ => arg.word(),
    };
    let plain: Vec<Word> = std::iter::once(&Arg::text(name)).chain(words).map(word).collect();
    let mut reading = Reading { reads_only: true, ..Reading::default() };
    if check::test_evaluates(&plain, name == "[[") {
        return reading.runs_any("what the shell expands here may be evaluated");
    }
    for pair in words.windows(2) {
        let asks = pair[0].literal().is_some_and(|text| {
            text.len() == 2 && text.starts_with('-') && "abcdefghkprsuwxGLNOS".contains(&text[1..])
        });
        if asks && pair[1].literal().is_some_and(|text| text != "]" && text != "]]") {
            reading.files.push(FileUse::new(How::List, pair[1].clone()));
        }
    }
    reading
}

/// Variables that programs get from then on.
fn declare(words: &[Arg]) -> Reading {
    let mut reading = Reading { reads_only: true, same_shell: true, ..Reading::default() };
    for word in words {
        let text = word.start();
        let is_option = text.starts_with(['-', '+']);
        if is_option && !word.literal().is_some_and(|text| text[1..].chars().all(|c| "fFgprxlu".contains(c))) {
            reading.doubt(format!("{} is not known to be harmless", word.raw));
        } else if let Some((name, _)) = text.split_once('=') {
            let value = word.literal().and_then(|text| text.split_once('=')).map(|(_, value)| value);
            reading.reads_only &= variables::is_harmless_for_programs(name, value);
        } else if !is_option && !check::is_harmless_name(text) {
            // Exporting, hiding or removing a variable that programs look at.
            reading.reads_only &= words.iter().any(|word| word.is("-p"));
        }
    }
    reading
}

fn read_line(words: &[Arg]) -> Reading {
    let Some(known) = find("read") else { return Reading::default() };
    let parsed = parse(known, words);
    let is_name = |word: &Arg| word.literal().is_some_and(check::is_harmless_name_of_variable);
    let names = parsed.operands.iter().chain(parsed.values(&["-a"])).all(is_name);
    let mut reading = parsed.into_reading();
    reading.reads_only = reading.unsure.is_none() && names;
    reading
}

fn printf(words: &[Arg]) -> Reading {
    let mut reading = Reading { reads_only: true, output: text_output(words), ..Reading::default() };
    // Only the first words can be options.
    match skip_dashes(words).first() {
        Some(first) if first.start().starts_with("-v") => reading.runs_any("-v assigns to a variable"),
        Some(first) if first.literal().is_none() && first.may_be_option() => {
            // It might become `-v` with an index that is evaluated.
            reading.may_run_any = true;
            reading.unsure(format!("{} may become the option -v", first.raw))
        }
        _ => {
            words.iter().for_each(|word| reading.note(word, "text"));
            reading
        }
    }
}

/// What `echo` prints, when that is one word of text.
fn text_output(words: &[Arg]) -> Output {
    match words {
        [only] => match only.literal().filter(|text| !text.starts_with('-') && !text.contains(['\\', '%', '\n'])) {
            Some(_) => Output::Pieces(only.pieces.clone()),
            None => Output::Unknown,
        },
        _ => Output::Unknown,
    }
}

/// Prints lines of what it reads: those of its standard input when it names no file.
fn filter(name: &str, words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    // With these options each line that it prints is one that it has read.
    let keeps: &[&str] = match name {
        "uniq" => &["-d", "-u", "-i", "--repeated", "--unique", "--ignore-case"],
        "head" | "tail" => &["-n", "--lines", "-q", "--quiet"],
        "sort" => &[
            "-r",
            "-n",
            "-u",
            "-h",
            "-V",
            "-f",
            "-d",
            "-b",
            "-g",
            "-M",
            "-R",
            "-k",
            "-t",
            "-s",
            "--reverse",
            "--unique",
        ],
        "shuf" => &["-n", "--head-count"],
        "grep" | "egrep" | "fgrep" => &[
            "-v",
            "-i",
            "-E",
            "-F",
            "-P",
            "-G",
            "-w",
            "-x",
            "-e",
            "-h",
            "-s",
            "-a",
            "-m",
            "--invert-match",
            "--ignore-case",
        ],
        _ => &[],
    };
    let is_grep = name.ends_with("grep");
    let lists = is_grep && parsed.has(&["-l", "--files-with-matches", "-L", "--files-without-match"]);
    let plain = [
        "-l",
        "-L",
        "-r",
        "-R",
        "-i",
        "-E",
        "-F",
        "-w",
        "-e",
        "-n",
        "-s",
        "--include",
        "--exclude",
        "--exclude-dir",
        "--files-with-matches",
    ];
    let lists = lists && parsed.given.iter().all(|given| plain.contains(&given.name.as_str()));
    let has_pattern = parsed.has(&["-e", "--regexp", "-f", "--file"]);
    let named = parsed.operands.len() - usize::from(is_grep && !has_pattern && !parsed.operands.is_empty());
    let keeps_lines = named == 0 && parsed.given.iter().all(|given| keeps.contains(&given.name.as_str()));
    let filter = is_grep.then(|| super::super::trees::Filter::of_grep(&parsed)).flatten();
    let mut reading = parsed.into_reading();
    for file in &mut reading.files {
        if file.how == How::Tree {
            file.filter.clone_from(&filter);
        }
    }
    if keeps_lines && reading.files.is_empty() {
        reading.output = Output::Input;
    } else if lists {
        reading.output = Output::Names(reading.files.clone());
    }
    Some(reading)
}

fn list(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("ls")?, words);
    // One name of a file that is there, each on a line, as they were given.
    let is_plain = parsed.given.iter().all(|given| matches!(given.name.as_str(), "-1" | "-t" | "-r" | "-d" | "-S"));
    let has_names = !parsed.operands.is_empty() && parsed.operands.iter().all(|operand| operand.has_glob());
    let mut reading = parsed.into_reading();
    if is_plain && has_names {
        reading.output = Output::Names(reading.files.clone());
    }
    Some(reading)
}

fn search(name: &str, words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    let has_pattern = parsed.known.first_unless.iter().any(|option| parsed.has(&[option]));
    let has_path = parsed.operands.len() > usize::from(!has_pattern);
    let lists = parsed.has(&["-l", "--files-with-matches", "--files", "--files-without-match"]);
    let plain = [
        "-l",
        "--files-with-matches",
        "--files",
        "--files-without-match",
        "-i",
        "-w",
        "-F",
        "-g",
        "-t",
        "--type",
        "--glob",
        "-e",
        "-n",
    ];
    let is_plain = parsed.given.iter().all(|given| plain.contains(&given.name.as_str()));
    let filter = super::super::trees::Filter::of_rg(&parsed);
    let mut reading = parsed.into_reading();
    if !has_path {
        reading.files.push(FileUse::new(How::Tree, Arg::text(".")));
    }
    for file in &mut reading.files {
        if file.how == How::Tree {
            file.filter.clone_from(&filter);
        }
    }
    if lists && is_plain {
        reading.output = Output::Names(reading.files.clone());
    }
    Some(reading)
}

fn pwd(words: &[Arg], site: &Site) -> Output {
    match site.folders {
        Some([folder]) if words.is_empty() => match folder.to_str() {
            Some(folder) => Output::Pieces(vec![Piece::Text(folder.to_owned())]),
            None => Output::Unknown,
        },
        _ => Output::Unknown,
    }
}

fn fd(name: &str, words: &[Arg]) -> Option<Reading> {
    let at = words.iter().position(|word| matches!(word.literal(), Some("-x" | "-X" | "--exec" | "--exec-batch")));
    let Some(at) = at else { return Some(parse(find(name)?, words).into_reading()) };
    let mut reading = parse(find(name)?, &words[..at]).into_reading();
    let rest = &words[at + 1..];
    if rest.iter().any(|word| word.is(";")) {
        return Some(reading.runs_any("what stands behind the command is not known"));
    }
    let mut command = with_unknown(rest, |text| text.contains('{'));
    command.push(Arg::unknown("..."));
    reading.command(&command);
    Some(reading)
}

/// The words in which something else will be put are not known.
pub(super) fn with_unknown(words: &[Arg], is_replaced: impl Fn(&str) -> bool) -> Vec<Arg> {
    let change = |word: &Arg| match word.literal() {
        Some(text) if !is_replaced(text) => word.clone(),
        _ => Arg { pieces: vec![Piece::Unknown { splits: false }], raw: word.raw.clone() },
    };
    words.iter().map(change).collect()
}

fn flock(words: &[Arg]) -> Reading {
    let mut reading = Reading::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.literal() {
            Some("-s" | "-x" | "-e" | "-n" | "-o" | "-F" | "--nonblock" | "--shared" | "--exclusive" | "--close") => {
                at += 1
            }
            Some("-w" | "--timeout" | "-E") => at += 2,
            Some(text) if text.starts_with('-') => {
                return reading.runs_any(format!("{text} is not known to be harmless"));
            }
            None if word.may_be_option() => return reading.runs_any(format!("{} may become an option", word.raw)),
            _ => break,
        }
    }
    if let Some(file) = words.get(at) {
        reading.files.push(FileUse::new(How::Write, file.clone()));
    }
    match words.get(at + 1..).unwrap_or_default() {
        [] => {}
        [option, script @ ..] if matches!(option.literal(), Some("-c" | "--command")) => reading.script(script),
        [first, ..] if !first.is_one() || first.may_be_option() => {
            return reading.runs_any(format!("which program {} is, is not known", first.raw));
        }
        command => reading.command(command),
    }
    reading
}

/// `if=FILE of=FILE bs=1M`
fn dd(words: &[Arg]) -> Reading {
    let mut reading = Reading::default();
    for word in words {
        match word.start().split_once('=') {
            Some((name @ ("if" | "of"), _)) => {
                let how = if name == "if" { How::Read } else { How::Write };
                reading.note(word, how.describe());
                reading.files.push(FileUse::new(how, word.without_start(3)));
            }
            Some((
                "bs" | "count" | "skip" | "seek" | "ibs" | "obs" | "cbs" | "conv" | "status" | "iflag" | "oflag"
                | "iseek" | "oseek",
                _,
            )) => reading.note(word, "option"),
            _ if matches!(word.literal(), Some("--help" | "--version")) => {}
            _ => reading.doubt(format!("{} is no operand of dd that is known", word.raw)),
        }
    }
    reading
}

/// A format prints; any other operand sets the clock.
fn date(words: &[Arg]) -> Reading {
    let Some(known) = find("date") else { return Reading::default() };
    let (formats, rest): (Vec<Arg>, Vec<Arg>) = words.iter().cloned().partition(|word| word.start().starts_with('+'));
    let parsed = parse(known, &rest);
    let sets = !parsed.operands.is_empty();
    let mut reading = parsed.into_reading();
    reading.reads_only &= !sets;
    // What it prints begins with a digit or a letter, and holds no blank, when the format does.
    let is_plain = |format: &Arg| {
        let text = format.literal().unwrap_or_default();
        text.starts_with("+%")
            && !text.starts_with("+%-")
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+%-_:.TZ".contains(c))
            && !["%c", "%x", "%X", "%r", "%n", "%t", "%e", "%k", "%l", "%P", "%p", "%z", "%_", "%-", "%D", "%Z"]
                .iter()
                .any(|blank| text.contains(blank))
    };
    if reading.reads_only && formats.len() == 1 && is_plain(&formats[0]) {
        reading.output = Output::Pieces(vec![Piece::Plain]);
    }
    formats.iter().for_each(|format| reading.note(format, "format"));
    reading
}

/// A filter can read modules and data from files (jq manual, "Modules").
fn jq(name: &str, words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    let reads = |text: &str| {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|word| matches!(word, "import" | "include" | "input_filename" | "modulemeta"))
    };
    let filter = parsed.operands.first().cloned();
    let mut reading = parsed.into_reading();
    reading.reads_only = reading.unsure.is_none() && !reading.files.iter().any(|file| file.how == How::Write);
    match filter.as_ref().map(|filter| (filter, filter.literal())) {
        Some((filter, None)) => reading.doubt(format!("the shell still changes the filter {}", filter.raw)),
        Some((_, Some(text))) if reads(text) => reading.doubt("its filter reads modules"),
        _ => {}
    }
    Some(reading)
}

/// Variables on the command line reach every recipe.
fn make(words: &[Arg]) -> Option<Reading> {
    let is_plain = |value: &str| {
        value.bytes().all(|b| b.is_ascii_digit())
            || matches!(value, "y" | "n" | "yes" | "no" | "true" | "false" | "on" | "off" | "debug" | "release" | "all")
    };
    let mut words = words.to_vec();
    // `-j 4`: the number is the option's only if it is one.
    for at in 1..words.len() {
        let is_number =
            words[at].literal().is_some_and(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        if is_number && matches!(words[at - 1].literal(), Some("-j" | "--jobs" | "-l" | "--load-average")) {
            words[at - 1] = Arg::text(&format!("-j{}", words[at].literal().unwrap_or_default()));
            words[at] = Arg::text("-j1");
        } else if words[at - 1].is("-j") && words[at].pieces == [Piece::Number] {
            words[at] = Arg::text("-j1");
        }
    }
    let parsed = parse(find("make")?, &words);
    let mut why = None;
    for operand in &parsed.operands {
        let odd = match operand.start().split_once('=') {
            Some((name, _)) if operand.literal().is_some() => {
                let value = &operand.start()[name.len() + 1..];
                let is_name =
                    name.trim_end_matches([':', '?', '+']).chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                !is_plain(value) || !is_name || matches!(name, "SHELL" | "MAKEFLAGS" | "MAKEFILES")
            }
            Some(_) => true,
            None => operand.literal().is_none() && !matches!(operand.pieces.first(), Some(Piece::Plain)),
        };
        if odd {
            why = Some(format!("{} sets a variable, and recipes may run what it holds", operand.raw));
        }
    }
    let mut reading = parsed.into_reading();
    if let Some(why) = why {
        reading.doubt(why);
    }
    Some(reading)
}

/// `@file` in what it sends, and files that it names after the address.
fn curl(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("curl")?, words);
    let mut files = Vec::new();
    let mut why = None;
    let sends = [
        "-d",
        "--data",
        "--data-ascii",
        "--data-binary",
        "--data-urlencode",
        "--json",
        "-F",
        "--form",
        "-H",
        "--header",
        "-b",
        "--cookie",
        "-w",
        "--write-out",
        "--variable",
        "--url-query",
        "--expand-data",
    ];
    for value in parsed.values(&sends) {
        let Some(text) = value.literal() else {
            if value.start().is_empty() && value.pieces.first() != Some(&Piece::Plain) {
                why = Some(format!("{} may name a file that is sent", value.raw));
            }
            continue;
        };
        // Also `name=@file`, `name=<file` and `name@file`.
        if let Some(at) = text.find(['@', '<']).filter(|at| {
            *at == 0
                || text.starts_with('@')
                || text[..*at].contains('=')
                || text[..*at].chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        }) {
            let name = text[at + 1..].split(';').next().unwrap_or_default();
            if !name.is_empty() && name != "-" {
                files.push(FileUse::new(How::Read, Arg::text(name)));
            }
        }
    }
    for value in parsed.values(&["-b", "--cookie"]) {
        if value.literal().is_some_and(|text| !text.contains('=')) {
            files.push(FileUse::new(How::Read, value.clone()));
        }
    }
    // Braces and brackets in an address stand for several, also in the part that says how it is reached.
    let has_list = |url: &Arg| {
        let scheme = url.start().split("://").next().unwrap_or_default();
        scheme.contains(['{', '[']) || url.start().starts_with(['{', '['])
    };
    if parsed.operands.iter().any(has_list)
        || parsed.values(&["-w", "--write-out"]).any(|format| format.start().contains("%output"))
    {
        why = Some("what it reads or writes is not known".to_owned());
    }
    if parsed
        .operands
        .iter()
        .chain(parsed.values(&["--url"]))
        .any(|url| url.start().to_ascii_lowercase().starts_with("file:"))
    {
        why = Some("it reads a file by its address".to_owned());
    }
    if parsed.has(&["-O", "--remote-name", "--remote-name-all"]) {
        for url in &parsed.operands {
            let name = url.literal().and_then(|url| url.split(['?', '#']).next()?.rsplit('/').next());
            match name.filter(|name| !name.is_empty() && !name.contains(['{', '['])) {
                Some(name) => files.push(FileUse::new(How::Write, Arg::text(name))),
                None => why = Some("the name of the file that it writes is not known".to_owned()),
            }
        }
    }
    let mut reading = parsed.into_reading();
    // Naming the file with `-o` is what the command is for.
    reading.files.iter_mut().for_each(|file| file.is_operand = true);
    reading.files.extend(files);
    if let Some(why) = why {
        reading.doubt(why);
    }
    Some(reading)
}

/// A link gives what it leads to another name, so its target is judged as read.
fn link(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("ln")?, words);
    let is_symbolic = parsed.has(&["-s", "--symbolic"]);
    let operands = parsed.operands.clone();
    let mut reading = parsed.into_reading();
    if let (true, [targets @ .., link]) = (is_symbolic && operands.len() > 1, operands.as_slice()) {
        // A relative target is looked up from where the link lies: beside its name, or in the folder of that name.
        reading.files.retain(|file| file.how != How::Read);
        let beside = link.literal().map(|link| match link.rsplit_once('/') {
            Some((folder, _)) if !folder.is_empty() => Arg::text(folder),
            _ => Arg::text("."),
        });
        let is_folder = link.literal().is_some_and(|link| link.ends_with('/') || matches!(link, "." | ".."));
        for target in targets {
            let folder = if is_folder { Some(link.clone()) } else { beside.clone() };
            reading.files.push(FileUse { folder, ..FileUse::new(How::Read, target.clone()) });
        }
    }
    Some(reading)
}

impl Parsed {
    /// Whether nothing about it is unsure so far.
    pub(super) fn is_sure(&self) -> bool {
        self.reading.unsure.is_none()
    }
}
