//! Commands that run other commands: what they would run, from their words.
//!
//! A wrapper's own words are judged as any command's. This finds what else must be judged, and says
//! when that cannot be told.

mod git;
mod prefix;

use toold_engine::need::Word;

#[derive(Default)]
pub(super) struct Looked {
    pub(super) commands: Vec<Vec<Word>>,
    pub(super) scripts: Vec<String>,
    /// Files that the command writes because an argument says so.
    pub(super) writes: Vec<String>,
    /// It runs something that cannot be told.
    pub(super) unsure: bool,
}

impl Looked {
    fn unsure() -> Self {
        Self { unsure: true, ..Self::default() }
    }

    fn command(words: &[Word]) -> Self {
        if words.is_empty() { Self::default() } else { Self { commands: vec![words.to_vec()], ..Self::default() } }
    }

    fn script(words: &[Word]) -> Self {
        if words.iter().any(|word| !word.literal) {
            return Self::unsure();
        }
        let script = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        if script.trim().is_empty() { Self::default() } else { Self { scripts: vec![script], ..Self::default() } }
    }
}

/// Wrappers whose arguments are not looked into.
const UNSURE: &[&str] = &[
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
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "rbash"];

/// What `-o` may turn on: nothing here changes how a script is read.
const SHELL_OPTIONS: &[&str] =
    &["errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "errtrace", "noclobber"];

/// Arguments by which a program runs or loads something else.
const ESCAPES: &[(&str, &[&str])] = &[
    (
        "tar",
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "-I",
            "-F",
        ],
    ),
    ("sort", &["--compress-program"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("ssh", &["-o", "-F"]),
    ("scp", &["-o", "-S", "-F"]),
    ("sftp", &["-o", "-S", "-F", "-b"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("zip", &["-T", "--unzip-command"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("less", &["+", "-k", "--lesskey"]),
    ("vim", &["-c", "--cmd", "+", "-S", "-s"]),
    ("vi", &["-c", "--cmd", "+", "-S", "-s"]),
    ("nvim", &["-c", "--cmd", "+", "-S", "-s", "-l"]),
    ("ex", &["-c", "--cmd", "+", "-S", "-s"]),
    ("curl", &["-K", "--config"]),
    ("split", &["--filter"]),
    ("make", &["--eval", "SHELL="]),
    ("gcc", &["-wrapper", "-fplugin"]),
    ("ip", &["-b", "-batch"]),
    ("nmap", &["--script"]),
];

/// What a command with these words runs besides itself.
pub(super) fn look_into(words: &[Word]) -> Looked {
    let Some((first, rest)) = words.split_first() else { return Looked::default() };
    if !first.literal {
        return Looked::default();
    }
    let name = first.text.rsplit('/').next().unwrap_or_default();
    if UNSURE.contains(&name) {
        return Looked::unsure();
    }
    if SHELLS.contains(&name) {
        return shell(rest);
    }
    if let Some((_, flags)) = ESCAPES.iter().find(|(program, _)| *program == name)
        && rest.iter().any(|word| flags.iter().any(|flag| word.text.starts_with(flag)))
    {
        return Looked::unsure();
    }
    match name {
        "eval" => Looked::script(skip_dashes(rest)),
        "trap" => trap(rest),
        "command" if rest.first().is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V" | "-pv" | "-pV")) => {
            Looked::default()
        }
        "source" | "."
            if skip_dashes(rest).first().is_some_and(|file| !file.literal || file.text.starts_with("/dev/")) =>
        {
            Looked::unsure()
        }
        "watch" => Looked::unsure(),
        "xargs" => xargs(rest),
        "find" => find(rest),
        "fd" | "fdfind" => fd(rest),
        "flock" => flock(rest),
        "git" => git::look_into(rest),
        "rustup" if is(rest, 0, "run") => Looked::command(rest.get(2..).unwrap_or_default()),
        "mise" | "asdf" if is(rest, 0, "exec") || is(rest, 0, "x") => after_dashes(rest),
        "direnv" if is(rest, 0, "exec") => Looked::command(rest.get(2..).unwrap_or_default()),
        "uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "rye" if is(rest, 0, "run") => runner(&rest[1..]),
        "bundle" if is(rest, 0, "exec") => runner(&rest[1..]),
        "nix-shell" | "nix" if rest.iter().any(|word| is_run_option(&word.text)) => Looked::unsure(),
        _ => prefix::look_into(name, rest).unwrap_or_default(),
    }
}

fn is(words: &[Word], at: usize, text: &str) -> bool {
    words.get(at).is_some_and(|word| word.literal && word.text == text)
}

fn is_run_option(text: &str) -> bool {
    matches!(text, "--run" | "--command" | "-c" | "run" | "shell" | "develop")
}

fn skip_dashes(words: &[Word]) -> &[Word] {
    if is(words, 0, "--") { &words[1..] } else { words }
}

/// A command behind options that are not known here.
fn runner(words: &[Word]) -> Looked {
    match skip_dashes(words) {
        [first, ..] if words.len() == skip_dashes(words).len() && first.text.starts_with('-') => Looked::unsure(),
        command => Looked::command(command),
    }
}

fn after_dashes(words: &[Word]) -> Looked {
    match words.iter().position(|word| word.text == "--") {
        Some(at) => Looked::command(&words[at + 1..]),
        None => Looked::unsure(),
    }
}

/// `bash -c script`. A shell without a script reads its standard input, and that cannot be told.
fn shell(words: &[Word]) -> Looked {
    let mut at = 0;
    let mut takes_script = false;
    while let Some(word) = words.get(at) {
        if !word.literal {
            return Looked::unsure();
        }
        match word.text.as_str() {
            "--" => {
                at += 1;
                break;
            }
            "--version" | "--help" => return Looked::default(),
            "--norc" | "--noprofile" | "--login" | "--posix" | "--verbose" => {}
            text if text.starts_with("--") => return Looked::unsure(),
            text if text.starts_with(['-', '+']) => {
                if text.len() < 2 || text[1..].contains(|c: char| !"abcefhlmnouvxBCEPT".contains(c)) {
                    return Looked::unsure();
                }
                takes_script |= text.contains('c');
                match text.matches('o').count() {
                    0 => {}
                    1 if words.get(at + 1).is_some_and(|name| SHELL_OPTIONS.contains(&name.text.as_str())) => at += 1,
                    _ => return Looked::unsure(),
                }
            }
            _ => break,
        }
        at += 1;
    }
    match words.get(at) {
        None => Looked::unsure(),
        Some(script) if takes_script => Looked::script(std::slice::from_ref(script)),
        Some(file) if !file.literal || file.text.starts_with("/dev/") => Looked::unsure(),
        Some(_) => Looked::default(),
    }
}

fn trap(words: &[Word]) -> Looked {
    match skip_dashes(words) {
        [] => Looked::default(),
        [first, ..] if matches!(first.text.as_str(), "-l" | "-p" | "-" | "") => Looked::default(),
        [first, ..] => Looked::script(std::slice::from_ref(first)),
    }
}

/// The command, with words behind it that are not known yet.
fn xargs(words: &[Word]) -> Looked {
    let mut at = 0;
    let mut replaced: Option<String> = None;
    while let Some(word) = words.get(at) {
        if !word.literal {
            return Looked::unsure();
        }
        let text = word.text.as_str();
        at += 1;
        match text {
            "--" => break,
            "-0" | "--null" | "-r" | "--no-run-if-empty" | "-t" | "--verbose" | "-x" | "--exit" | "-p" | "-o"
            | "--open-tty" | "-0r" | "-r0" | "-rt" => {}
            "-n" | "-P" | "-L" | "-s" | "-d" | "-E" | "-a" | "--max-args" | "--max-procs" | "--max-lines"
            | "--max-chars" | "--delimiter" | "--arg-file" | "--eof" => at += 1,
            "-I" | "--replace" | "-J" => {
                replaced = words.get(at).map(|word| word.text.clone());
                at += 1;
            }
            _ if text.starts_with("--") && text.contains('=') => {
                if let Some(mark) = text.strip_prefix("--replace=") {
                    replaced = Some(mark.to_owned());
                }
            }
            _ if text.starts_with("-I") => replaced = Some(text[2..].to_owned()),
            _ if text.len() > 2 && ["-n", "-P", "-L", "-s", "-d", "-E", "-a"].iter().any(|o| text.starts_with(o)) => {}
            _ if text.starts_with('-') => return Looked::unsure(),
            _ => {
                at -= 1;
                break;
            }
        }
    }
    let command = words.get(at..).unwrap_or_default();
    if command.is_empty() {
        return Looked::default();
    }
    let looked = match replaced.filter(|mark| !mark.is_empty()) {
        Some(mark) => with_unknown(command, |text| text.contains(&mark)),
        None => {
            let mut command = command.to_vec();
            command.push(Word { text: "...".to_owned(), literal: false });
            command
        }
    };
    Looked::command(&looked)
}

fn with_unknown(words: &[Word], is_unknown: impl Fn(&str) -> bool) -> Vec<Word> {
    let change = |word: &Word| Word { literal: word.literal && !is_unknown(&word.text), ..word.clone() };
    words.iter().map(change).collect()
}

fn find(words: &[Word]) -> Looked {
    let mut looked = Looked::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = &words[at..];
                let length = rest.iter().enumerate().position(|(index, word)| {
                    word.text == ";" || (word.text == "+" && index > 0 && rest[index - 1].text == "{}")
                });
                let Some(length) = length else { return Looked::unsure() };
                looked.commands.push(with_unknown(&rest[..length], |text| text.contains("{}")));
                at += length + 1;
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => match words.get(at) {
                Some(file) if file.literal => looked.writes.push(file.text.clone()),
                Some(_) | None => return Looked::unsure(),
            },
            "-files0-from" => return Looked::unsure(),
            // It may become any number of words, an `-exec` among them.
            text if !word.literal && text.starts_with(['$', '`', '.']) && !text.starts_with("./") => {
                return Looked::unsure();
            }
            _ => {}
        }
    }
    looked.commands.retain(|command| !command.is_empty());
    looked
}

fn fd(words: &[Word]) -> Looked {
    let starts = |text: &str| text.starts_with("--exec") || (text.starts_with('-') && !text.starts_with("--"));
    let at = words.iter().position(|word| starts(&word.text) && word.text.contains(['x', 'X']));
    let Some(at) = at else { return Looked::default() };
    if !matches!(words[at].text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch") {
        return Looked::unsure();
    }
    let rest = &words[at + 1..];
    let end = rest.iter().position(|word| word.text == ";").unwrap_or(rest.len());
    if end < rest.len() {
        return Looked::unsure();
    }
    let mut command = with_unknown(rest, |text| text.contains('{'));
    command.push(Word { text: "...".to_owned(), literal: false });
    Looked::command(&command)
}

fn flock(words: &[Word]) -> Looked {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.text.as_str() {
            "-s" | "-x" | "-e" | "-n" | "-o" | "-F" | "--nonblock" | "--shared" | "--exclusive" | "--close" => at += 1,
            "-w" | "--timeout" | "-E" => at += 2,
            text if text.starts_with('-') => return Looked::unsure(),
            _ => break,
        }
    }
    let rest = words.get(at + 1..).unwrap_or_default();
    match rest {
        [] => Looked::default(),
        [option, script @ ..] if matches!(option.text.as_str(), "-c" | "--command") => Looked::script(script),
        [first, ..] if !first.literal || first.text.starts_with('-') => Looked::unsure(),
        command => Looked::command(command),
    }
}
