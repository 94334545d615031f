//! Completes names at the prompt: those of Lua, of `hygge` and `ctx`, and those that were typed before.

use std::collections::BTreeSet;

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use crate::commands::author::STUBS;

/// Names of Lua that people type; the libraries are completed as a whole.
const LUA: &[&str] = &[
    "and", "break", "continue", "do", "else", "elseif", "end", "error", "false", "for", "function", "if", "in",
    "ipairs", "local", "math", "nil", "not", "or", "os", "pairs", "pcall", "print", "repeat", "require", "return",
    "select", "string", "table", "then", "tonumber", "tostring", "true", "type", "until", "while",
];

pub(super) struct LuaCompleter {
    /// Dotted paths, such as `hygge.fs.read`.
    names: BTreeSet<String>,
}

impl Default for LuaCompleter {
    fn default() -> Self {
        let mut names: BTreeSet<String> = LUA.iter().map(|name| (*name).to_owned()).collect();
        // The stubs name each member in a line of its own.
        for line in STUBS.lines().filter(|line| !line.starts_with('-')) {
            let line = line.strip_prefix("function ").unwrap_or(line);
            let path: String = line.chars().take_while(|c| is_of_path(*c)).collect();
            if path.contains('.') {
                names.insert(path);
            }
        }
        Self { names }
    }
}

impl LuaCompleter {
    /// Offers the names of this input from now on.
    pub(super) fn learn(&mut self, source: &str) {
        let words = source.split(|c| !is_of_path(c)).filter(|word| word.len() > 2);
        self.names.extend(words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned));
    }

    /// Where the name before the cursor begins, and the names that continue it, up to their next dot.
    fn matching(&self, before: &str) -> (usize, Vec<String>) {
        let start =
            before.rfind(|c| !is_of_path(c)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let typed = &before[start..];
        if typed.is_empty() {
            return (start, Vec::new());
        }
        let with_prefix = self.names.range(typed.to_owned()..).take_while(|name| name.starts_with(typed));
        let until_dot = |name: &String| {
            let end = name[typed.len()..].find('.').map_or(name.len(), |at| typed.len() + at);
            name[..end].to_owned()
        };
        let found: BTreeSet<String> = with_prefix.map(until_dot).filter(|name| name != typed).collect();
        (start, found.into_iter().collect())
    }
}

fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

impl Completer for LuaCompleter {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.matching(&line[..at]))
    }
}

impl Hinter for LuaCompleter {
    type Hint = String;
}

impl Highlighter for LuaCompleter {}
impl Validator for LuaCompleter {}
impl Helper for LuaCompleter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_one_part_at_a_time() {
        let mut completer = LuaCompleter::default();
        assert_eq!(
            completer.matching("x = hygge.fs.rea"),
            (4, vec!["hygge.fs.read".to_owned(), "hygge.fs.read_at".to_owned()])
        );
        assert!(completer.matching("hygge.").1.contains(&"hygge.fs".to_owned()));
        assert!(completer.matching("ctx.").1.contains(&"ctx.progress".to_owned()));
        assert_eq!(completer.matching("é forec"), (3, vec![]));
        completer.learn("forecast = 1");
        assert_eq!(completer.matching("é forec"), (3, vec!["forecast".to_owned()]));
        assert_eq!(completer.matching("f( "), (3, vec![]));
    }
}
