//! Shell builtins.

use toold_engine::need::Word;
use toold_proto::cut;

use super::known::find;
use super::options::parse;
use super::special::skip_dashes;
use super::{CommandContext, CommandOutput, FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::{Arg, WordPart};
use crate::shell_grammar::{check, variables};

/// Builtins that set variables, and may hand them to programs.
pub(in crate::shell_grammar) const DECLARING: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

/// Whether a builtin hands what it sets to programs: `export`, and `declare -x`.
pub(in crate::shell_grammar) fn exports(name: &str, words: &[Arg]) -> bool {
    let has = |letter: char| words.iter().any(|word| word.start().starts_with('-') && word.start().contains(letter));
    name == "export" && !has('n') || DECLARING.contains(&name) && has('x')
}

/// Without an operand `cd` goes to the home folder (POSIX.1-2024, cd, step 2).
pub(super) fn change_folder(name: &str, words: &[Arg], site: &CommandContext) -> Reading {
    let mut reading = Reading { same_shell: true, reads_only: true, ..Reading::default() };
    let folder = words.iter().find(|word| !matches!(word.literal(), Some("-P" | "-L" | "--" | "-e" | "-n")));
    if folder.is_none() && name == "cd" {
        match site.environment.get("HOME").and_then(|home| home.to_str()) {
            Some(home) => reading.files.push(FileUse::new(FileAccess::List, Arg::text(home))),
            None => reading.doubt("the home folder is unknown"),
        }
    }
    if let Some(folder) = folder.filter(|folder| !folder.is("-")) {
        reading.note(folder, "folder");
        match folder.literal() {
            Some(text) if text.starts_with(['-', '+']) => reading.doubt(format!("{text} is not a folder")),
            Some(_) => reading.files.push(FileUse::new(FileAccess::List, folder.clone())),
            None if folder.has_glob() => reading.files.push(FileUse::new(FileAccess::List, folder.clone())),
            None => reading.doubt(format!("the folder that {} names is unknown", folder.raw)),
        }
    }
    reading
}

pub(super) fn trap(words: &[Arg]) -> Reading {
    let mut reading = Reading { same_shell: true, ..Reading::default() };
    match skip_dashes(words) {
        [] => reading.reads_only = true,
        [first, ..] if matches!(first.literal(), Some("-l" | "-p" | "-" | "")) => reading.reads_only = true,
        // Its commands are judged by themselves.
        [first, ..] => {
            reading.script(std::slice::from_ref(first));
            reading.reads_only = reading.unsure.is_none();
        }
    }
    reading
}

/// Where it is used is not known, so it counts where it is defined.
pub(super) fn alias(words: &[Arg]) -> Reading {
    let mut reading = Reading { same_shell: true, ..Reading::default() };
    if words.iter().any(|word| word.literal().is_none_or(|text| text.contains('='))) {
        reading = reading.open("alias changes what a name runs");
    }
    for word in words.iter().filter(|word| word.literal().is_none_or(|text| text.contains('='))) {
        let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        match word.literal().and_then(|text| text.split_once('=')) {
            Some((name, text)) if name.chars().all(is_name) => reading.script(&[Arg::text(text)]),
            _ => reading.doubt(format!("what {} stands for is unknown", word.raw)),
        }
    }
    reading
}

pub(super) fn source(words: &[Arg]) -> Reading {
    let mut reading = Reading { same_shell: true, ..Reading::default() };
    match skip_dashes(words).first() {
        Some(file) if file.literal().is_some_and(|text| !text.starts_with("/dev/") && !text.starts_with("/proc/")) => {
            reading.script_file = Some(file.clone());
            reading.files.push(FileUse::new(FileAccess::Read, file.clone()));
            reading
        }
        _ => reading.open("the script that it reads is unknown"),
    }
}

/// Testing whether a file exists needs permission to read its folder.
pub(super) fn test(name: &str, words: &[Arg]) -> Reading {
    // A number or a name evaluates only to itself.
    let word = |arg: &Arg| match arg.pieces.as_slice() {
        [WordPart::Number | WordPart::Digits | WordPart::Plain] => Word { text: "0".to_owned(), literal: true },
        _ => arg.word(),
    };
    let plain: Vec<Word> = std::iter::once(&Arg::text(name)).chain(words).map(word).collect();
    let mut reading = Reading { reads_only: true, ..Reading::default() };
    if check::test_evaluates(&plain, name == "[[") {
        return reading.runs_any("the shell may evaluate the expanded words as code");
    }
    for pair in words.windows(2) {
        let asks = pair[0].literal().is_some_and(|text| {
            text.len() == 2 && text.starts_with('-') && "abcdefghkprsuwxGLNOS".contains(cut::after_first(text))
        });
        if asks && pair[1].literal().is_some_and(|text| text != "]" && text != "]]") {
            reading.files.push(FileUse::new(FileAccess::List, pair[1].clone()));
        }
    }
    reading
}

/// Builtins that change the folder, the variables, the functions or the options of the shell.
const CHANGING: &[&str] = &[
    "cd",
    "pushd",
    "popd",
    "read",
    "mapfile",
    "readarray",
    "eval",
    "source",
    ".",
    "set",
    "shopt",
    "trap",
    "exec",
    "getopts",
    "printf",
    "let",
    "hash",
    "enable",
    "alias",
    "unalias",
    "unset",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "wait",
    "umask",
    "ulimit",
    "shift",
    "command",
    "builtin",
    "coproc",
];

/// Others.
const OTHER_BUILTINS: &[&str] = &[
    ":", "[", "bg", "bind", "break", "caller", "compgen", "complete", "compopt", "continue", "dirs", "disown", "echo",
    "exit", "false", "fc", "fg", "help", "history", "jobs", "kill", "logout", "pwd", "return", "suspend", "test",
    "time", "times", "true", "type",
];

pub(in crate::shell_grammar) fn changes_shell(name: &str) -> bool {
    CHANGING.contains(&name)
}

pub(super) fn is_builtin(name: &str) -> bool {
    CHANGING.contains(&name) || OTHER_BUILTINS.contains(&name) || name == "[["
}

/// Whether a word of the shell, a builtin or a program that toold knows has this name.
pub fn is_known_command(name: &str) -> bool {
    check::is_reserved(name) || is_builtin(name) || find(name).is_some()
}

/// Whether none of them has this name, which a function can have.
pub(in crate::shell_grammar) fn is_no_command(name: &str) -> bool {
    check::is_name(name) && !is_known_command(name)
}

/// Variables that programs get from then on.
pub(super) fn declare(name: &str, words: &[Arg], site: &CommandContext) -> Reading {
    // Without that, it sets variables as an assignment does.
    let hands_on = exports(name, words);
    let mut reading = Reading { reads_only: true, same_shell: true, ..Reading::default() };
    for word in words {
        let text = word.start();
        let is_option = text.starts_with(['-', '+']);
        if is_option
            && !word.literal().is_some_and(|text| cut::after_first(text).chars().all(|c| "aAfFgprxlu".contains(c)))
        {
            reading.doubt(format!("{} is not known to be harmless", word.raw));
        } else if let Some((name, _)) = text.split_once('=') {
            let value = word.literal().and_then(|text| text.split_once('=')).map(|(_, value)| value);
            let name = name.trim_end_matches('+');
            reading.reads_only &= variables::is_harmless_for_programs(name, value)
                || !hands_on && check::is_name(name) && (site.is_the_shells_own)(name);
            reading.may_run_any |= variables::names_settings(name, text);
        } else if !is_option && !check::is_harmless_name(text) {
            // Exporting, hiding or removing a variable that programs read.
            reading.reads_only &= words.iter().any(|word| word.is("-p"));
        }
    }
    reading
}

/// `shopt -s nullglob`: a wildcard without matches is no word, or an error, and not itself.
pub(in crate::shell_grammar) fn only_empties_wildcards(words: &[Arg]) -> bool {
    let [option, names @ ..] = words else { return false };
    let is_one = |word: &Arg| ["nullglob", "failglob", "inherit_errexit"].iter().any(|name| word.is(name));
    (option.is("-s") || option.is("-u")) && !names.is_empty() && names.iter().all(is_one)
}

fn is_harmless_variable(word: &Arg) -> bool {
    word.literal().is_some_and(check::is_harmless_name_of_variable)
}

pub(super) fn read_line(name: &str, words: &[Arg]) -> Reading {
    let Some(known) = find(name) else { return Reading::default() };
    let parsed = parse(known, words);
    let names = parsed.operands.iter().chain(parsed.values(&["-a"])).all(is_harmless_variable);
    let mut reading = parsed.into_reading();
    reading.reads_only = reading.unsure.is_none() && names;
    reading
}

pub(super) fn printf(words: &[Arg]) -> Reading {
    let mut reading = Reading { reads_only: true, output: text_output("printf", words), ..Reading::default() };
    // Only the first words can be options.
    match skip_dashes(words).first() {
        Some(first) if first.is("-v") && words.get(1).is_some_and(is_harmless_variable) => {
            words.iter().for_each(|word| reading.note(word, "text"));
            Reading { output: CommandOutput::Unknown, same_shell: true, ..reading }
        }
        Some(first) if first.start().starts_with("-v") => reading.runs_any("-v assigns to a variable"),
        Some(first) if first.literal().is_none() && first.may_be_option() => {
            // It might become `-v` with a subscript that is evaluated.
            reading.may_run_any = true;
            reading.unsure(format!("{} may expand to the option -v", first.raw))
        }
        _ => {
            words.iter().for_each(|word| reading.note(word, "text"));
            reading
        }
    }
}

/// The output of `echo` or `printf`, as far as it is known: one word of text, or the whole of it.
pub(super) fn text_output(name: &str, words: &[Arg]) -> CommandOutput {
    match words {
        [only] if only.literal().is_none_or(|text| !text.starts_with('-') && !text.contains(['\\', '%', '\n'])) => {
            CommandOutput::Pieces(only.pieces.clone())
        }
        _ => {
            let texts: Option<Vec<&str>> = words.iter().map(Arg::literal).collect();
            CommandOutput::of_text(texts.and_then(|texts| match name {
                "echo" => echoed(&texts),
                _ => formatted(&texts),
            }))
        }
    }
}

fn echoed(texts: &[&str]) -> Option<String> {
    let is_option = |text: &&&str| {
        text.len() > 1 && text.starts_with('-') && cut::after_first(text).chars().all(|c| "neE".contains(c))
    };
    let options = texts.iter().take_while(is_option).count();
    let text = texts[options..].join(" ");
    let has = |letter: char| texts[..options].iter().any(|option| option.contains(letter));
    match has('e') {
        true => unescaped(&text),
        false => Some(format!("{text}{}", if has('n') { "" } else { "\n" })),
    }
}

/// Only with `%s` and `%%`, which is what lines of text are written with.
fn formatted(texts: &[&str]) -> Option<String> {
    let (format, mut arguments) = texts.strip_prefix(&["--"]).unwrap_or(texts).split_first()?;
    let format = unescaped(format)?;
    let mut text = String::new();
    loop {
        let mut rest = format.as_str();
        let before = arguments.len();
        while let Some((plain, behind)) = rest.split_once('%') {
            text.push_str(plain);
            let conversion = behind.chars().next()?;
            match conversion {
                '%' => text.push('%'),
                's' => {
                    let (first, others) =
                        arguments.split_first().map_or(("", arguments), |(first, others)| (*first, others));
                    text.push_str(first);
                    arguments = others;
                }
                _ => return None,
            }
            rest = cut::after_first(behind);
        }
        text.push_str(rest);
        if arguments.is_empty() || arguments.len() == before {
            return Some(text);
        }
    }
}

/// With the escapes that all versions read alike.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                '\\' => '\\',
                _ => return None,
            }),
            c => plain.push(c),
        }
    }
    Some(plain)
}

pub(super) fn pwd(words: &[Arg], site: &CommandContext) -> CommandOutput {
    match site.folders {
        Some([folder]) if words.is_empty() => match folder.to_str() {
            Some(folder) => CommandOutput::Pieces(vec![WordPart::Text(folder.to_owned())]),
            None => CommandOutput::Unknown,
        },
        _ => CommandOutput::Unknown,
    }
}
