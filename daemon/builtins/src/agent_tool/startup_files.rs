//! The aliases and functions in the startup files of a person's shell, for a command that comes before Claude Code has written
//! its [snapshot](super::shell_snapshot). The files are read and never run, so that more may be in force: what an if leaves out
//! counts, and what a program prints does not.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use toold_host::environment::Environment;
use toold_host::{files, shell_grammar};

use super::shell_snapshot::{ShellSnapshot, definition_in_zsh, function_name};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// How many files are read: those of the shell, and the ones that they name.
const MAX_FILES: usize = 64;

/// The files below the home folder that Claude Code's shell reads, in its order: a login shell that also reads the file of
/// interactive ones.
const BASH: &[&str] = &[".bash_profile", ".bash_login", ".profile", ".bashrc"];
const ZSH: &[&str] = &[".zshenv", ".zprofile", ".zlogin", ".zshrc"];
/// The same of the machine.
const BASH_OF_MACHINE: &[&str] = &["/etc/profile", "/etc/bash.bashrc", "/etc/bashrc"];
const ZSH_OF_MACHINE: &[&str] = &[
    "/etc/zshenv",
    "/etc/zprofile",
    "/etc/zlogin",
    "/etc/zshrc",
    "/etc/zsh/zshenv",
    "/etc/zsh/zprofile",
    "/etc/zsh/zshrc",
];

/// The aliases and functions that the files of this shell name. Later ones count. Files that cannot be read are skipped, as the
/// shell skips them.
pub(super) fn read(shell: &str, environment: &Environment) -> ShellSnapshot {
    let home = environment.get("HOME").map(PathBuf::from).unwrap_or_default();
    let (of_machine, own) = match shell_grammar::is_zsh(shell) {
        true => (ZSH_OF_MACHINE, ZSH),
        false => (BASH_OF_MACHINE, BASH),
    };
    let mut waiting: VecDeque<PathBuf> = of_machine.iter().map(PathBuf::from).collect();
    waiting.extend(own.iter().map(|name| home.join(name)));
    let mut names = NamesFound::default();
    let mut seen: Vec<PathBuf> = Vec::new();
    while let Some(file) = waiting.pop_front() {
        if seen.len() == MAX_FILES || seen.contains(&file) {
            continue;
        }
        if let Ok(text) = files::read_text(&file, MAX_BYTES) {
            let sourced = names.collect(&text);
            let path = |name: String| at_home(&name, &home).or_else(|| Some(file.parent()?.join(name)));
            waiting.extend(sourced.into_iter().filter_map(path));
        }
        seen.push(file);
    }
    ShellSnapshot::of_startup_files(names.aliases, names.functions)
}

/// A path that begins with the home folder in one of its usual spellings.
fn at_home(name: &str, home: &Path) -> Option<PathBuf> {
    let starts = ["~/", "$HOME/", "${HOME}/"];
    starts.iter().find_map(|start| name.strip_prefix(start)).map(|rest| home.join(rest))
}

#[derive(Default)]
struct NamesFound {
    /// `None` where a text is not known before the shell runs.
    aliases: BTreeMap<String, Option<String>>,
    functions: BTreeMap<String, Option<String>>,
}

impl NamesFound {
    /// Adds those of a file; returns the files that it reads in turn.
    fn collect(&mut self, text: &str) -> Vec<String> {
        let mut sourced = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(name) = defined(line) {
                self.functions.insert(name.to_owned(), definition(line, &mut lines.clone()));
            }
            let words = words(line);
            for (at, word) in words.iter().enumerate() {
                let arguments = || words.iter().skip(at + 1).take_while(|word| !word.ends_command());
                match word.text.as_str() {
                    "alias" if word.is_first => {
                        // Options such as -g, and --, come before the names.
                        for (name, value) in arguments().filter_map(|word| Some((word.text.split_once('=')?, word))) {
                            let known = value.is_literal.then(|| name.1.to_owned());
                            self.aliases.insert(name.0.to_owned(), known);
                        }
                    }
                    "source" | "." if word.is_first => {
                        let named = arguments().next().filter(|word| word.is_literal || word.text.contains("HOME"));
                        sourced.extend(named.map(|word| word.text.clone()));
                    }
                    _ => {}
                }
            }
        }
        sourced
    }
}

/// The name of the function whose definition begins in the line.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    match line.strip_prefix("function ") {
        Some(rest) => rest.split(|c: char| c.is_whitespace() || "({;".contains(c)).find(|name| !name.is_empty()),
        None => function_name(line).or_else(|| {
            let (name, _) = line.split_once("()")?;
            let is_name =
                !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "'\"$`;&|<>(){}#=".contains(c));
            is_name.then_some(name)
        }),
    }
}

/// Its text, if it ends in the same line, or is not indented and ends in a line that is a brace.
fn definition<'a>(first: &'a str, rest: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    match first.trim_end().ends_with('}') {
        true => Some(first.trim().to_owned()),
        false if first.starts_with(char::is_whitespace) => None,
        false => definition_in_zsh(first, rest),
    }
}

/// A word of a line. Its quotes are removed.
#[derive(Debug, PartialEq, Eq)]
struct StartupWord {
    text: String,
    /// The text is that of the file, and not one that the shell puts together.
    is_literal: bool,
    /// A command begins with it.
    is_first: bool,
}

impl StartupWord {
    fn ends_command(&self) -> bool {
        self.is_first
    }
}

/// The words of a line, with nothing behind a `#`.
fn words(line: &str) -> Vec<StartupWord> {
    let mut words = Vec::new();
    let mut word: Option<StartupWord> = None;
    let mut begins = true;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let is_break = c.is_whitespace() || ";&|()".contains(c) || "{}".contains(c) && word.is_none();
        if is_break || c == '#' && word.is_none() {
            if let Some(ended) = word.take() {
                // Words after which another command begins.
                begins = matches!(
                    ended.text.as_str(),
                    "then" | "else" | "do" | "!" | "if" | "elif" | "while" | "builtin" | "command"
                );
                words.push(ended);
            }
            if c == '#' {
                break;
            }
            begins |= !c.is_whitespace();
            continue;
        }
        let word = word.get_or_insert_with(|| {
            let is_first = std::mem::take(&mut begins);
            StartupWord { text: String::new(), is_literal: true, is_first }
        });
        match c {
            '\'' => {
                let quoted: String = chars.by_ref().take_while(|c| *c != '\'').collect();
                word.text.push_str(&quoted);
            }
            '"' => {
                while let Some(c) = chars.next_if(|c| *c != '"') {
                    word.is_literal &= !"$`\\".contains(c);
                    word.text.push(c);
                }
                chars.next();
            }
            '\\' => word.text.extend(chars.next()),
            '$' | '`' => {
                word.is_literal = false;
                word.text.push(c);
            }
            c => word.text.push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use toold_engine::need::Word;

    use super::super::shell_snapshot::ShellName;
    use super::*;

    const FILE: &str = "# alias no=1\nalias gp='git push'\nif true; then\n  alias a=\"git pull\" b=git\\ log\nfi\n\
        [ -x /bin/bat ] && alias cat=bat\nalias -g G='| grep'\nbuiltin alias -- d=date\nalias odd=\"$x\" late=$'x'\n\
        one() { git push; }\ntwo ()\n{\n\tgit push\n}\nfunction three {\n  git push\n}\n  four () {\n    x\n  }\necho alias e=f\n\
        test -f ~/.more && . ~/.more\nsource \"$HOME/other.sh\"\nsource $(find it)\n";

    fn found(text: &str) -> (NamesFound, Vec<String>) {
        let mut names = NamesFound::default();
        let sourced = names.collect(text);
        (names, sourced)
    }

    #[test]
    fn aliases_functions_and_further_files_are_found_where_people_write_them() {
        let (names, sourced) = found(FILE);
        let alias = |name: &str| names.aliases.get(name).map(Option::as_deref);
        for (name, text) in
            [("gp", "git push"), ("a", "git pull"), ("b", "git log"), ("cat", "bat"), ("G", "| grep"), ("d", "date")]
        {
            assert_eq!(alias(name), Some(Some(text)), "{name}");
        }
        assert_eq!((alias("odd"), alias("late")), (Some(None), Some(None)));
        assert_eq!((alias("no"), alias("e")), (None, None));
        let function = |name: &str| names.functions.get(name).map(Option::as_deref);
        assert_eq!(function("one"), Some(Some("one() { git push; }")));
        assert_eq!(function("two"), Some(Some("two ()\n{\n\tgit push\n}")));
        assert_eq!(function("three"), Some(Some("function three {\n  git push\n}")));
        assert_eq!(function("four"), Some(None));
        assert_eq!(sourced, ["~/.more", "$HOME/other.sh"]);
    }

    #[test]
    fn the_files_of_the_shell_and_those_that_they_name_are_read() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).unwrap();
        write(".bashrc", "alias x=first\n. ~/.more\n. .bashrc\n");
        write(".more", "alias x=second\n");
        write(".zshrc", "alias x=zsh\n");
        let environment = Environment::default().with([("HOME", home.path())]);
        let meaning = |shell: &str| {
            let word = Word { text: "x".to_owned(), literal: true };
            read(shell, &environment).meaning(&[word], &[])
        };
        assert_eq!(meaning("bash"), ShellName::Alias("second".to_owned()));
        assert_eq!(meaning("/usr/bin/zsh"), ShellName::Alias("zsh".to_owned()));
    }
}
