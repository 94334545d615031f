//! The aliases and functions that Claude Code takes from the person's shell: it writes them into a file when it runs its
//! first command, and each of its commands begins with that file. The text is read and never run. The hook of the first
//! command comes before the file, so that [`startup_files`](super::startup_files) stand in for it.
//!
//! The form is that of Claude Code 2.1.332: `CONFIG/shell-snapshots/snapshot-SHELL-MILLISECONDS-ID.sh`, with a section
//! of functions and one of aliases. The functions `rg`, `find` and `grep` behind them are Claude Code's own, for programs
//! that it contains.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toold_engine::need::Word;
use toold_host::environment::Environment;
use toold_host::files;
use toold_proto::shell_word::quoted;

use super::agent_folders::{config_folder, names_in};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 4 << 20;

const FUNCTIONS: &str = "\n# Functions\n";
const OPTIONS: &str = "\n# Shell Options\n";
const ALIASES: &str = "\n# Aliases\n";
const ALIAS: &str = "alias -- ";

/// The commands that are not what their names say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShellSnapshot {
    /// `None` where the text of the alias cannot be read for certain.
    aliases: BTreeMap<String, Option<String>>,
    /// With the text that defines the function, in the language of bash; `None` where it is not read.
    functions: BTreeMap<String, Option<String>>,
    /// Whether there may be others, as when only the shell's startup files were read.
    is_partial: bool,
}

/// The meaning of a command's first word in the agent's shell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ShellName {
    /// A program, as far as the snapshot tells.
    Program,
    /// This line.
    Alias(String),
    /// A function that this text defines.
    Function(String),
    /// Something that is not read.
    Unread,
}

impl ShellSnapshot {
    /// The newest snapshot of this shell; `None` where there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn newest(shell: &str, environment: &Environment) -> anyhow::Result<Option<Self>> {
        let name = Path::new(shell).file_name().and_then(|name| name.to_str()).unwrap_or(shell);
        let Some(folder) = Self::folder(environment) else { return Ok(None) };
        let prefix = format!("snapshot-{name}-");
        let made_at = |file: &String| {
            let rest = file.strip_prefix(&prefix)?.strip_suffix(".sh")?;
            rest.split('-').next()?.parse::<u64>().ok()
        };
        let newest = names_in(&folder).into_iter().filter_map(|file| Some((made_at(&file)?, file))).max();
        let Some((_, file)) = newest else { return Ok(None) };
        Ok(Some(Self::parse(&files::read_text(&folder.join(file), MAX_BYTES)?)))
    }

    /// The aliases and functions of startup files, which may run other files and programs.
    pub(super) fn of_startup_files(
        aliases: BTreeMap<String, Option<String>>,
        functions: BTreeMap<String, Option<String>>,
    ) -> Self {
        Self { aliases, functions, is_partial: true }
    }

    /// Whether there may be aliases and functions that it does not have.
    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Where Claude Code keeps its snapshots, which its shells read.
    pub(super) fn folder(environment: &Environment) -> Option<PathBuf> {
        Some(config_folder(environment)?.join("shell-snapshots"))
    }

    fn parse(text: &str) -> Self {
        let mut snapshot = Self::default();
        if let Some((_, behind)) = text.split_once(FUNCTIONS) {
            let functions = behind.split_once(OPTIONS).map_or(behind, |(functions, _)| functions);
            let mut lines = functions.lines();
            while let Some(line) = lines.next() {
                let Some(name) = function_name(line) else { continue };
                let definition = match line.strip_prefix("eval $'") {
                    Some(quoted) => unescaped(quoted),
                    None => definition_in_zsh(line, &mut lines),
                };
                snapshot.functions.insert(name.to_owned(), definition);
            }
        }
        let mut rest = text.split_once(ALIASES).map_or("", |(_, aliases)| aliases);
        while let Some(alias) = rest.strip_prefix(ALIAS) {
            let (name, value) = alias.split_once('=').unwrap_or((alias, ""));
            let (value, behind) = unquoted(value);
            snapshot.aliases.insert(name.trim_matches('\'').to_owned(), value);
            rest = behind;
        }
        snapshot
    }

    /// The meaning of a command. `seen` are the aliases that it came from, which the shell does not look up again.
    pub(super) fn meaning(&self, words: &[Word], seen: &[String]) -> ShellName {
        let [name, rest @ ..] = words else { return ShellName::Program };
        if !name.literal || seen.contains(&name.text) {
            return ShellName::Program;
        }
        match self.aliases.get(&name.text) {
            Some(Some(text)) => self.replaced(text, rest).map_or(ShellName::Unread, ShellName::Alias),
            Some(None) => ShellName::Unread,
            None => match self.functions.get(&name.text) {
                Some(Some(definition)) => ShellName::Function(definition.clone()),
                Some(None) => ShellName::Unread,
                None => ShellName::Program,
            },
        }
    }

    /// The line that the text of an alias makes with the words behind its name. If the text ends in a blank, the next word may be
    /// an alias, too. `None` where that one is not read.
    fn replaced(&self, text: &str, mut rest: &[Word]) -> Option<String> {
        let mut line = text.to_owned();
        while line.ends_with([' ', '\t'])
            && let [next, behind @ ..] = rest
            && next.literal
            && let Some(alias) = self.aliases.get(&next.text)
        {
            line.push_str(alias.as_deref()?);
            rest = behind;
        }
        for word in rest {
            line.push(' ');
            line.push_str(&if word.literal { quoted(&word.text) } else { word.text.clone() });
        }
        Some(line)
    }
}

/// The function that begins in this line: `eval $'NAME () ` of bash, `NAME () {` of zsh.
fn function_name(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("eval $'").unwrap_or(line).split_once(" ()")?;
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "'\"$`;&|<>(){}#".contains(c));
    is_name.then_some(name)
}

/// The text behind `$'`, up to its end, with the escapes that bash writes.
fn unescaped(quoted: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            '\'' => return Some(text),
            '\\' => text.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                same @ ('\\' | '\'' | '"') => same,
                _ => return None,
            }),
            c => text.push(c),
        }
    }
}

/// The lines of a function, of which zsh indents all but the first and the last.
fn definition_in_zsh<'a>(first: &'a str, rest: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    let mut text = first.to_owned();
    loop {
        let line = rest.next()?;
        text.push('\n');
        text.push_str(line);
        if line == "}" {
            return Some(text);
        }
    }
}

/// The text of a quoted word, and the lines behind its own; `None` for a text in another form than bash and zsh write.
fn unquoted(word: &str) -> (Option<String>, &str) {
    let mut text = String::new();
    let mut rest = word;
    loop {
        let mut chars = rest.chars();
        let Some(c) = chars.next() else { return (Some(text), rest) };
        rest = chars.as_str();
        match c {
            '\n' => return (Some(text), rest),
            '\'' => {
                let Some((quoted, behind)) = rest.split_once('\'') else { return (None, "") };
                text.push_str(quoted);
                rest = behind;
            }
            '\\' => {
                text.extend(chars.next());
                rest = chars.as_str();
            }
            '$' | '"' | '`' => return (None, rest.split_once('\n').map_or("", |(_, behind)| behind)),
            _ => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Claude Code 2.1.332 writes it for bash, shortened.
    const BASH: &str = "# Snapshot file\n# Functions\n\
        eval $'git () \\n{ \\n    command git \"$@\"\\n}' > /dev/null 2>&1\n\
        # Shell Options\nshopt -s expand_aliases\n# Aliases\n\
        alias -- gp='git push'\nalias -- q='it'\\''s 1'\nalias -- two='a\nb'\nalias -- odd=$'a'\nalias -- s='sudo '\n\
        # Shadow find/grep with embedded bfs/ugrep\nfunction find {\n  x\n}\nalias -- late='no'\n";
    /// And for zsh.
    const ZSH: &str = "# Snapshot file\n# Functions\ngit () {\n\tcommand git \"$@\"\n}\nmyfn () {\n\techo hi\n}\n\
        # Shell Options\nsetopt login\n# Aliases\nalias -- G='| grep'\nalias -- plain=pwd\n# Check for rg availability\n";

    fn meaning(snapshot: &str, line: &str) -> ShellName {
        let word = |text: &str| Word { text: text.to_owned(), literal: !text.contains('$') };
        let words: Vec<Word> = line.split(' ').map(word).collect();
        ShellSnapshot::parse(snapshot).meaning(&words, &["seen".to_owned()])
    }

    #[test]
    fn aliases_and_functions_of_both_shells_are_read() {
        let alias = |line: &str| ShellName::Alias(line.to_owned());
        assert_eq!(meaning(BASH, "gp -f $x a;b"), alias("git push -f $x 'a;b'"));
        assert_eq!(meaning(BASH, "q"), alias("it's 1"));
        assert_eq!(meaning(BASH, "two"), alias("a\nb"));
        assert_eq!(meaning(ZSH, "G x"), alias("| grep x"));
        assert_eq!(meaning(ZSH, "plain"), alias("pwd"));
        for (snapshot, name, definition) in [
            (BASH, "git", "git () \n{ \n    command git \"$@\"\n}"),
            (ZSH, "git", "git () {\n\tcommand git \"$@\"\n}"),
            (ZSH, "myfn", "myfn () {\n\techo hi\n}"),
        ] {
            assert_eq!(meaning(snapshot, name), ShellName::Function(definition.to_owned()), "{name}");
        }
        let unread = "#\n# Functions\neval $'f () \\n{ \\x41\\n}'\n";
        // An alias that ends in a blank makes one of the next word.
        assert_eq!(meaning(BASH, "s gp -f"), alias("sudo git push -f"));
        assert_eq!(meaning(BASH, "s s gp"), alias("sudo sudo git push"));
        assert_eq!(meaning(BASH, "s ls gp"), alias("sudo  ls gp"));
        for (snapshot, name) in [(BASH, "odd"), (BASH, "s odd"), (unread, "f")] {
            assert_eq!(meaning(snapshot, name), ShellName::Unread, "{name}");
        }
        for name in ["find", "late", "command", "x", "$gp", "ls"] {
            assert_eq!(meaning(BASH, name), ShellName::Program, "{name}");
        }
        assert_eq!(ShellSnapshot::parse(""), ShellSnapshot::default());
    }

    #[test]
    fn the_newest_file_of_the_shell_counts() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("shell-snapshots");
        std::fs::create_dir(&folder).unwrap();
        let write = |file: &str, alias: &str| {
            std::fs::write(folder.join(file), format!("#\n# Aliases\nalias -- a={alias}\n")).unwrap();
        };
        write("snapshot-bash-20-x.sh", "new");
        write("snapshot-bash-9-x.sh", "old");
        write("snapshot-zsh-30-x.sh", "other");
        write("snapshot-bash-late.sh", "odd");
        let environment = Environment::default().with([("CLAUDE_CONFIG_DIR", top.path())]);
        let read = |shell: &str| ShellSnapshot::newest(shell, &environment).unwrap();
        let alias = |shell| read(shell).map(|snapshot| snapshot.aliases["a"].clone().unwrap());
        assert_eq!(alias("/bin/bash").as_deref(), Some("new"));
        assert_eq!(alias("zsh").as_deref(), Some("other"));
        assert_eq!(alias("fish"), None);
        std::fs::write(folder.join("snapshot-fish-1-x.sh"), [0xff]).unwrap();
        assert!(ShellSnapshot::newest("fish", &environment).is_err());
    }
}
