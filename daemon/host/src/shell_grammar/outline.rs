//! The commands and functions of a text that a shell reads as it starts, by their words alone: nothing is judged or looked up.
//! For lines that are about to run, see [`super::needs`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use toold_engine::need::Word;
use tree_sitter::Node;

use super::arg::Arg;
use super::clock::JudgingClock;
use super::heredocs::{self, LiftedText};
use super::state::ShellState;
use super::{MAX_BYTES, ShellWalk, Surroundings, Unreadable, all, named, parse};
use crate::environment::Environment;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutlinePart {
    /// The words of a simple command, as far as they are known without running anything.
    Command(Vec<Word>),
    /// `None` where it is not certain where the definition ends.
    Function { name: String, definition: Option<String> },
}

/// The parts of a text in their order, wherever they stand: in a condition, a loop or a function, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub parts: Vec<OutlinePart>,
    /// The whole text could be read. Otherwise parts may be missing, and some may be none.
    pub is_whole: bool,
}

/// Never panics. Of the variables, only those that the shell gets from its environment for sure are known, such as `HOME`.
pub fn outline(text: &str, environment: &Environment) -> Outline {
    catch_unwind(AssertUnwindSafe(|| read(text, environment))).unwrap_or_default()
}

fn read(text: &str, environment: &Environment) -> Outline {
    if text.len() > MAX_BYTES {
        return Outline::default();
    }
    let lifted = heredocs::lift(text).unwrap_or_else(|Unreadable| LiftedText::as_it_is(text));
    let cwd = Path::new("/");
    let mut surroundings = Surroundings { cwd, folders: &[], environment, may_read: &mut |_| false };
    let mut walk = ShellWalk::new(&lifted, &mut surroundings, ShellState::new(cwd), JudgingClock::start());
    let certain = walk.parsed().ok();
    let is_whole = certain.is_some();
    let Some(tree) = certain.or_else(|| parse(walk.source)) else { return Outline::default() };
    let mut parts = Vec::new();
    let mut waiting = vec![tree.root_node()];
    while let Some(node) = waiting.pop() {
        match node.kind() {
            "command" => parts.push(OutlinePart::Command(walk.outlined_words(node))),
            "function_definition" => {
                let name = node.child_by_field_name("name").map(|name| walk.text(name)).unwrap_or_default().to_owned();
                let definition = (!node.has_error()).then(|| walk.text(node).to_owned());
                parts.push(OutlinePart::Function { name, definition });
            }
            // They change nothing in the shell.
            "command_substitution" | "process_substitution" => continue,
            _ => {}
        }
        waiting.extend(named(node).into_iter().rev());
    }
    Outline { parts, is_whole }
}

impl<'t> ShellWalk<'_, '_, '_> {
    fn outlined_words(&mut self, command: Node<'t>) -> Vec<Word> {
        let is_word = |child: &Node| {
            child.is_named() && child.kind() != "variable_assignment" && !child.kind().ends_with("_redirect")
        };
        let children = all(command).into_iter().filter(is_word);
        let written =
            children.map(|child| if child.kind() == "command_name" { child.child(0).unwrap_or(child) } else { child });
        written.collect::<Vec<_>>().into_iter().flat_map(|word| self.outlined_word(word)).collect()
    }

    fn outlined_word(&mut self, node: Node<'t>) -> Vec<Word> {
        let known = (!node.has_error() && !substitutes(node)).then(|| self.word(node).ok()).flatten();
        let unknown = || vec![Word { text: self.text(node).to_owned(), literal: false }];
        known.map_or_else(unknown, |words| words.iter().map(Arg::word).collect())
    }
}

/// Whether the word has the output of a command.
fn substitutes(node: Node) -> bool {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        if matches!(node.kind(), "command_substitution" | "process_substitution") {
            return true;
        }
        waiting.extend(named(node));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of each command, with `?` behind those that are not known, and the names of functions with `()`.
    fn outlined(text: &str) -> (String, bool) {
        let environment = Environment::default().with([("HOME", "/home/me")]);
        let Outline { parts, is_whole } = outline(text, &environment);
        let word = |word: &Word| format!("<{}>{}", word.text, if word.literal { "" } else { "?" });
        let part = |part: &OutlinePart| match part {
            OutlinePart::Command(words) => words.iter().map(word).collect::<Vec<_>>().join(" "),
            OutlinePart::Function { name, definition } => format!("{name}() {}", definition.as_deref().unwrap_or("?")),
        };
        (parts.iter().map(part).collect::<Vec<_>>().join("\n"), is_whole)
    }

    #[test]
    fn commands_and_functions_are_found_wherever_they_stand() {
        for (text, expected) in [
            ("alias gp='git push' # x\n", "<alias> <gp=git push>"),
            ("if true; then\n  alias a=\"b c\" d=e\\ f\nfi", "<true>\n<alias> <a=b c> <d=e f>"),
            ("x=1 builtin alias -- a=$'b\\tc' 2>/dev/null", "<builtin> <alias> <--> <a=b\tc>"),
            ("[ -f ~/.more ] && . ~/.more", ". </home/me/.more>"),
            ("source \"$HOME/a\" $(b alias c=d) \"$e\"", "<source> </home/me/a> <$(b alias c=d)>? <\"$e\">?"),
            ("f () { g; }\nfunction h {\n  i\n}", "f() f () { g; }\n<g>\nh() function h {\n  i\n}\n<i>"),
            ("cat <<'END'\nalias a=b\nEND\nalias c=d", "<cat>\n<alias> <c=d>"),
        ] {
            let (found, is_whole) = outlined(text);
            let found = found.lines().filter(|line| !line.starts_with("<[>")).collect::<Vec<_>>().join("\n");
            assert!(is_whole, "{text}");
            assert_eq!(found, expected.replacen(". ", "<.> ", usize::from(expected.starts_with('.'))), "{text}");
        }
    }

    #[test]
    fn a_text_of_another_shell_is_not_whole() {
        for text in ["if [[ -o x ]] { alias a=b }", "for f (a b) { source $f }", "x='", "a=(${(f)b})"] {
            assert!(!outlined(text).1, "{text}");
        }
        assert!(!outlined(&" ".repeat(MAX_BYTES + 1)).1);
    }
}
