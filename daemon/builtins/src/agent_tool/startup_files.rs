//! The aliases and functions in the startup files of a person's shell, for a command that comes before Claude Code has written
//! its [snapshot](super::shell_snapshot). The files are read and never run, so that more may be in force: what an if leaves out
//! counts, and what a program prints does not.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use toold_engine::need::Word;
use toold_host::environment::Environment;
use toold_host::files;
use toold_host::shell_grammar::{self, Outline, OutlinePart};

use super::shell_snapshot::ShellSnapshot;

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
            let sourced = names.collect(&text, environment);
            waiting.extend(sourced.into_iter().filter_map(|name| Some(file.parent()?.join(name))));
        }
        seen.push(file);
    }
    ShellSnapshot::of_startup_files(names.aliases, names.functions)
}

#[derive(Debug, Default)]
struct NamesFound {
    /// `None` where a text is not known before the shell runs.
    aliases: BTreeMap<String, Option<String>>,
    functions: BTreeMap<String, Option<String>>,
}

/// One of these is in each line that defines a name or reads another file.
const MARKS: &[&str] = &["alias", "source", ". ", "()", "function"];

/// Words in front of the name of a builtin, and those that begin a part of a statement, where a line is read alone.
const IN_FRONT: &[&str] = &["builtin", "command", "nocorrect", "noglob", "then", "else", "elif", "if", "do", "!", "{"];

impl NamesFound {
    /// Adds those of a file; returns the files that it reads in turn.
    fn collect(&mut self, text: &str, environment: &Environment) -> Vec<String> {
        let Outline { parts, is_whole } = shell_grammar::outline(text, environment);
        let mut sourced = self.add(parts);
        if !is_whole {
            let mut of_lines = Self::default();
            for line in text.lines().filter(|line| MARKS.iter().any(|mark| line.contains(mark))) {
                sourced.extend(of_lines.add_line(line, environment));
            }
            self.join(of_lines);
        }
        sourced
    }

    fn add(&mut self, parts: Vec<OutlinePart>) -> Vec<String> {
        let mut sourced = Vec::new();
        for part in parts {
            match part {
                OutlinePart::Function { name, definition } => _ = self.functions.insert(name, definition),
                OutlinePart::Command(words) => {
                    let is_in_front = |word: &&Word| word.literal && IN_FRONT.contains(&word.text.as_str());
                    let Some((name, words)) = words[words.iter().take_while(is_in_front).count()..].split_first()
                    else {
                        continue;
                    };
                    match name.text.as_str() {
                        // Options such as -g, and --, come before the names.
                        "alias" => self.aliases.extend(words.iter().filter_map(|word| {
                            let (name, text) = word.text.split_once('=')?;
                            Some((name.to_owned(), word.literal.then(|| text.to_owned())))
                        })),
                        "source" | "." => {
                            sourced.extend(words.first().filter(|word| word.literal).map(|word| word.text.clone()))
                        }
                        _ => {}
                    }
                }
            }
        }
        sourced
    }

    /// Adds the names of a line that is read alone.
    fn add_line(&mut self, line: &str, environment: &Environment) -> Vec<String> {
        let Outline { mut parts, is_whole } = shell_grammar::outline(line, environment);
        parts.retain(|part| is_whole || matches!(part, OutlinePart::Command(_)));
        let sourced = self.add(parts);
        if let Some(name) = defined(line).filter(|_| !is_whole) {
            self.functions.insert(name.to_owned(), None);
        }
        sourced
    }

    /// Adds the names in the lines of a text that is not bash as a whole, as where it is zsh.
    fn join(&mut self, of_lines: Self) {
        for (name, text) in of_lines.aliases {
            let doubted = |known: &mut Option<String>| {
                known.take_if(|known| text.as_ref() != Some(&*known));
            };
            self.aliases.entry(name).and_modify(doubted).or_insert(text.clone());
        }
        for (name, text) in of_lines.functions {
            self.functions.entry(name).or_insert(text);
        }
    }
}

/// The name of the function whose definition begins in the line.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name = match line.strip_prefix("function ") {
        Some(rest) => rest.split(|c: char| c.is_whitespace() || "({;".contains(c)).find(|name| !name.is_empty())?,
        None => line.split_once("()")?.0.trim_end(),
    };
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "'\"$`;&|<>(){}#=".contains(c));
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::shell_snapshot::ShellName;
    use super::*;

    const FILE: &str = "# alias no=1\nalias gp='git push'\nif true; then\n  alias a=\"git pull\" b=git\\ log\nfi\n\
        [ -x /bin/bat ] && alias cat=bat\nalias -g G='| grep'\nbuiltin alias -- d=date\nalias odd=\"$x\" late=$'x'\n\
        one() { git push; }\ntwo ()\n{\n\tgit push\n}\nfunction three {\n  git push\n}\n  four () {\n    x\n  }\necho alias e=f\n\
        test -f ~/.more && . ~/.more\nsource \"$HOME/other.sh\"\nsource $(find it)\n";

    fn found(text: &str) -> (NamesFound, Vec<String>) {
        let mut names = NamesFound::default();
        let sourced = names.collect(text, &Environment::default().with([("HOME", "/home/me")]));
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
        assert_eq!((alias("odd"), alias("late")), (Some(None), Some(Some("x"))));
        assert_eq!((alias("no"), alias("e")), (None, None));
        let function = |name: &str| names.functions.get(name).map(Option::as_deref);
        assert_eq!(function("one"), Some(Some("one() { git push; }")));
        assert_eq!(function("two"), Some(Some("two ()\n{\n\tgit push\n}")));
        assert_eq!(function("three"), Some(Some("function three {\n  git push\n}")));
        assert_eq!(function("four"), Some(Some("four () {\n    x\n  }")));
        assert_eq!(sourced, ["/home/me/.more", "/home/me/other.sh"]);
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
