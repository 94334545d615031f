//! Programs whose arguments a table alone cannot describe.

use toold_engine::need::CommandForm;

use super::known::find;
use super::options::{Parsed, parse};
use super::{
    CommandContext, CommandOutput, FileAccess, FileUse, Reading, awk, builtins, clouds, coreutils, curl, elsewhere, fd,
    filters, find as find_program, git, jq, make, parallel, ps, runners, rustc, sed, shell, sql, tar, transfers,
    wrapped, wrappers, xargs,
};
use crate::shell_grammar::arg::{Arg, WordPart};

/// Programs that run others in ways that are not analyzed.
const RUN_OTHERS: &[&str] = &[
    "pkexec",
    "unshare",
    "nsenter",
    "firejail",
    "bwrap",
    "proot",
    "at",
    "batch",
    "gdb",
    "lldb",
    "expect",
    "fish",
    "ksh",
    "mksh",
    "csh",
    "tcsh",
    "nu",
    "pwsh",
    "powershell",
    "rlwrap",
    "socat",
    "coproc",
    "zargs",
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
    "gvim",
    "vimdiff",
    "view",
    "gview",
    "rvim",
    "nvim-qt",
    "fzf",
    "sk",
    "wsl",
    "wsl.exe",
    "cmd.exe",
    "reflex",
    "vault-env",
    "uclampset",
    "autossh",
    "mosh",
    "machinectl",
    "systemd-nspawn",
    "kitty",
    "kitten",
    "wezterm",
    "zellij",
    "rush",
    "coreutils",
    "mispipe",
    "pasta",
    "slirp4netns",
    "keychain",
    "xonsh",
    "elvish",
    "osh",
    "ysh",
    "yash",
];

/// Those of them that open the files in their words, unless options say more.
const EDITORS: &[&str] = &["vi", "vim", "nvim", "view", "gvim", "gview", "rvim", "vimdiff"];

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

/// `None` if the tables describe the program, or nothing does.
pub(super) fn read(name: &str, words: &[Arg], site: &CommandContext) -> Option<Reading> {
    let reading = Reading::default;
    // They read what is typed from their standard input.
    let opens_files = |word: &Arg| word.literal().is_some_and(|text| !text.starts_with(['-', '+']));
    if EDITORS.contains(&name) && matches!(site.input, CommandOutput::OfLine) && words.iter().all(opens_files) {
        let uses = |word: &Arg| [FileAccess::Read, FileAccess::Write].map(|how| FileUse::new(how, word.clone()));
        let files = words.iter().flat_map(uses).collect();
        let mut edits = Reading { files, ..reading() };
        edits.doubt_files(format!("{name} runs what is typed there"));
        return Some(edits);
    }
    if matches!(name, "busybox" | "toybox")
        && let Some((applet @ ("sh" | "ash"), rest)) =
            words.split_first().and_then(|(first, rest)| Some((first.literal()?, rest)))
    {
        return Some(shell::read(applet, rest, site));
    }
    if RUN_OTHERS.contains(&name) || name.starts_with("ld-linux") {
        return Some(reading().open(format!("{name} runs other programs, which toold does not analyze")));
    }
    if shell::NAMES.contains(&name) {
        return Some(shell::read(name, words, site));
    }
    let looked_into = elsewhere::read(name, words)
        .or_else(|| wrappers::read(name, words))
        .or_else(|| runners::read(name, words, site))
        .or_else(|| wrapped::read(name, words, site))
        .or_else(|| sql::read(name, words, site))
        .or_else(|| clouds::read(name, words, site))
        .or_else(|| transfers::read(name, words, site));
    if looked_into.is_some() {
        return looked_into;
    }
    let at_file = |word: &&Arg| word.start().starts_with('@') || name == "dotnet" && word.start().starts_with("/p:");
    if let Some(word) = words.iter().find(at_file).filter(|_| AT_FILES.contains(&name)) {
        return Some(parse(find(name)?, words).into_reading().unsure(format!("{} stands for other options", word.raw)));
    }
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.is(text));
    Some(match name {
        "cd" | "pushd" => builtins::change_folder(name, words, site),
        "crontab" if !is(0, "-l") => reading().open("crontab runs commands later, which are not looked into"),
        "popd" => Reading { reads_only: true, same_shell: true, ..reading() },
        "eval" => {
            let mut reading = Reading { same_shell: true, ..reading() };
            reading.script(skip_dashes(words));
            // What it evaluates is judged by itself.
            reading.reads_only = reading.unsure.is_none();
            reading
        }
        "trap" => builtins::trap(words),
        "alias" => builtins::alias(words),
        "source" | "." => builtins::source(words),
        "hash" if !words.is_empty() && !is(0, "-r") => reading().open("hash changes which program a name runs"),
        "enable" if !words.is_empty() => reading().open("enable changes which commands the shell has"),
        "shopt" if builtins::only_empties_wildcards(words) => {
            Reading { reads_only: true, same_shell: true, ..reading() }
        }
        "shopt" if words.iter().any(|word| !word.is("-p") && !word.is("-q")) => {
            reading().open("shopt changes how the shell reads commands")
        }
        // The shell evaluates its words, but for plain arithmetic: see `ShellWalk::only_computes`.
        "let" => Reading { reads_only: true, same_shell: true, ..reading() },
        "exec" if words.is_empty() => Reading { reads_only: true, ..reading() },
        "command" if words.first().is_some_and(|word| matches!(word.literal(), Some("-v" | "-V" | "-pv" | "-pV"))) => {
            Reading { reads_only: true, ..reading() }
        }
        "command" | "builtin" => Reading { same_shell: true, ..parse(find(name)?, words).into_reading() },
        "test" | "[" | "[[" => builtins::test(name, words),
        "export" | "declare" | "typeset" | "local" | "readonly" | "unset" => builtins::declare(name, words, site),
        "read" | "mapfile" | "readarray" => builtins::read_line(name, words),
        "printf" => builtins::printf(words),
        "echo" => Reading { output: builtins::text_output(name, words), ..parse(find(name)?, words).into_reading() },
        "cat" | "head" | "tail" | "sort" | "uniq" | "tac" | "grep" | "egrep" | "fgrep" | "shuf" => {
            filters::filter(name, words)?
        }
        "ls" => filters::list(words)?,
        "xargs" => xargs::read(words, site)?,
        "parallel" => parallel::read(words)?,
        "find" => find_program::read(words)?,
        "fd" | "fdfind" => fd::fd(name, words)?,
        "flock" => coreutils::flock(words),
        "git" => git::read(words, site)?,
        "sed" | "gsed" => sed::read(words)?,
        "awk" | "gawk" | "mawk" | "nawk" => awk::read(name, words)?,
        "tar" | "gtar" | "bsdtar" => tar::read(words)?,
        "dd" => coreutils::dd(words),
        "date" => coreutils::date(words),
        "make" | "gmake" => make::make(words)?,
        "jq" | "gojq" | "jaq" => jq::jq(name, words)?,
        "tee" => {
            let mut reading = parse(find("tee")?, words).into_reading();
            let is_device = |file: &FileUse| {
                file.arg.literal().is_some_and(super::super::files::is_device) || file.arg.pieces == [WordPart::Pipe]
            };
            reading.reads_only = reading.unsure.is_none() && reading.files.iter().all(is_device);
            reading.output = CommandOutput::Input;
            reading
        }
        "unzip" | "zipinfo" => {
            let parsed = parse(find(name)?, words);
            let lists = name == "zipinfo" || parsed.has(&["-l", "-t", "-v", "-Z", "-z"]);
            // The shell has left them alone, and these programs compare them with the names of files.
            let is_wildcard = |archive: &Arg| archive.literal().is_some_and(|text| text.contains(['*', '?', '[']));
            let wildcard = parsed.operands.first().filter(|archive| is_wildcard(archive)).cloned();
            let mut reading = parsed.into_reading();
            if let Some(wildcard) = wildcard {
                reading.doubt_files(format!("{} may stand for several archives", wildcard.raw));
            }
            if !lists {
                reading.doubt("the archive decides which files are written");
            }
            reading
        }
        "curl" => curl::curl(words)?,
        "patch" => {
            let parsed = parse(find("patch")?, words);
            let only_tries = parsed.has(&["--dry-run"]);
            let original = parsed.operands.first().map(|file| FileUse::new(FileAccess::Read, file.clone()));
            let mut reading = parsed.into_reading();
            // It shows lines of the file that it changes, or copies it.
            reading.files.extend(original);
            if !only_tries {
                reading.doubt("the patch decides which files are written");
            }
            reading
        }
        "ln" => coreutils::link(words)?,
        "rg" | "ag" | "ack" | "ack-grep" => filters::search(name, words)?,
        "ps" => ps::ps(words)?,
        "lsof" => {
            let reading = parse(find("lsof")?, words).into_reading();
            let is_number = |word: &Arg| matches!(word.pieces.as_slice(), [WordPart::Number | WordPart::Digits]);
            let may_name = |word: &&Arg| !is_number(word) && word.literal().is_none_or(|text| text.contains('@'));
            match words.iter().find(may_name) {
                Some(word) => reading.unsure(format!("{} may name a host that it looks up", word.raw)),
                None => reading,
            }
        }
        "netstat" => {
            let parsed = parse(find("netstat")?, words);
            let is_numeric = parsed.has(&["-n", "--numeric"]);
            let mut reading = parsed.into_reading();
            reading.reads_only &= is_numeric;
            reading
        }
        "pwd" => Reading { output: builtins::pwd(words, site), ..parse(find(name)?, words).into_reading() },
        "nproc" => Reading {
            output: CommandOutput::Pieces(vec![WordPart::Number]),
            ..parse(find(name)?, words).into_reading()
        },
        "whoami" | "hostname" | "arch" | "uname" => {
            let mut reading = parse(find(name)?, words).into_reading();
            if reading.reads_only && words.len() <= 1 {
                reading.output = CommandOutput::Pieces(vec![WordPart::Plain]);
            }
            reading
        }
        "wc" => {
            let mut reading = parse(find(name)?, words).into_reading();
            // Only the count, without a name, if it reads its standard input.
            if words.len() == 1 && ["-l", "-c", "-w", "-m"].iter().any(|option| words[0].is(option)) {
                reading.output = CommandOutput::Pieces(vec![WordPart::Number]);
            }
            reading
        }
        // A command in the folder of one package.
        "yarn" | "yarnpkg" if is(0, "workspace") && words.get(1).is_some_and(Arg::is_one) && words.len() > 2 => {
            // The name of the package is no operation.
            let form =
                CommandForm { plain: words.iter().map(Arg::word).collect(), options: Vec::new(), operation: Some(1) };
            let mut reading = Reading { reads_only: true, form: Some(form), ..reading() };
            reading.command(&[&[Arg::text(name)], &words[2..]].concat());
            reading
        }
        "rustc" => rustc::read(words)?,
        "rustup" if is(0, "run") => command_behind(words.get(2..).unwrap_or_default()),
        _ => return None,
    })
}

pub(super) fn skip_dashes(words: &[Arg]) -> &[Arg] {
    if words.first().is_some_and(|word| word.is("--")) { &words[1..] } else { words }
}

fn command_behind(words: &[Arg]) -> Reading {
    let mut reading = Reading::default();
    match words.first() {
        Some(first) if !first.is_one() || first.may_be_option() => {
            return reading.runs_any(format!("the program that {} names is unknown", first.raw));
        }
        _ => reading.command(words),
    }
    reading
}

/// The words into which something else is inserted are not known.
pub(super) fn with_unknown(words: &[Arg], is_replaced: impl Fn(&str) -> bool) -> Vec<Arg> {
    let change = |word: &Arg| match word.literal() {
        Some(text) if !is_replaced(text) => word.clone(),
        _ => Arg { pieces: vec![WordPart::Unknown { splits: false }], raw: word.raw.clone() },
    };
    words.iter().map(change).collect()
}

impl Parsed {
    /// Whether nothing about it is unsure so far.
    pub(super) fn is_sure(&self) -> bool {
        self.reading.unsure.is_none()
    }
}
