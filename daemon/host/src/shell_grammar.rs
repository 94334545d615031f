//! What a command line needs leave for: each simple command, each file that it redirects to or from,
//! and what wrappers such as `env` or `bash -c` would run.
//!
//! The line is read with a real grammar of the shell, and what the grammar says is checked again
//! where it is known to be laxer than the shell: see `check`. Whatever is not understood for certain
//! becomes a need without words, which nothing but `**` matches. How words match patterns is the
//! engine's.

mod check;
mod compound;
mod fuzz;
mod redirects;
mod words;
mod wrappers;

#[doc(hidden)]
pub use fuzz::fuzz_one;

use std::ops::ControlFlow;
use std::path::Path;

use toold_engine::need::{Need, Word};
use toold_engine::policy::targets::begins_command;
use toold_proto::tool::Category;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

use crate::exclude::Exclusions;
use crate::shell_grammar::redirects::{Redirected, Target};

/// Longer lines are not looked into.
const MAX_BYTES: usize = 256 * 1024;
/// How deep statements, substitutions and wrappers may nest.
const MAX_DEPTH: usize = 60;
/// More needs than these nobody can judge.
const MAX_NEEDS: usize = 200;
/// How many times the parser may report before it is stopped: ambiguous input must not cost seconds.
const MAX_STEPS: usize = 20_000;

/// What running `line` by `bash -c` in the folder `cwd` needs, in the order of the line.
///
/// Looks at the file system only to resolve the files of redirects. Never empty but for a blank line,
/// and never panics.
pub fn needs(line: &str, cwd: &Path) -> Vec<Need> {
    needs_for(line, cwd, &mut |_| true)
}

/// As [`needs`], for a caller that may not be told of links in folders that it may not read: see [`resolve_for`].
///
/// [`resolve_for`]: crate::files::resolve_for
pub fn needs_for(line: &str, cwd: &Path, may_read: &mut dyn FnMut(&Path) -> bool) -> Vec<Need> {
    let mut walk = Walk { source: line, found: Vec::new(), doubt: false, depth: 0, substitutions: 0, heredocs: 0 };
    let outcome = walk.script();
    let found = walk.found;
    let understood = outcome.is_ok() && found.len() <= MAX_NEEDS;
    if !understood {
        return vec![shell(line, line.trim().to_owned(), None)];
    }
    let cwd = (!found.iter().any(changes_folder)).then_some(cwd);
    let mut exclusions = Exclusions::default();
    let mut needs = Vec::new();
    for found in found {
        let found = match found {
            Found::Command { target, words } => vec![shell(line, target, words)],
            Found::File(redirected) => redirected.needs(line, cwd, may_read, &mut exclusions),
        };
        for need in found {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

fn shell(line: &str, target: String, words: Option<Vec<Word>>) -> Need {
    Need { command: Some(line.to_owned()), words, ..Need::new(Category::Shell, target) }
}

/// One thing that a line does.
enum Found {
    Command { target: String, words: Option<Vec<Word>> },
    File(Redirected),
}

/// After such a command it is not known where relative paths lead.
fn changes_folder(found: &Found) -> bool {
    match found {
        Found::File(_) => false,
        Found::Command { words: None, .. } => true,
        Found::Command { words: Some(words), .. } => {
            let moves = ["cd", "pushd", "popd", "source", "."];
            words.first().is_some_and(|word| moves.contains(&word.text.as_str()))
        }
    }
}

/// The line is not understood for certain.
struct Lost;

type Walked<T = ()> = Result<T, Lost>;

struct Walk<'a> {
    source: &'a str,
    found: Vec<Found>,
    /// Something in the command that is being read cannot be judged by its words.
    doubt: bool,
    depth: usize,
    /// How many substitutions the walk is inside of.
    substitutions: usize,
    heredocs: usize,
}

fn parse(source: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let bytes = source.as_bytes();
    let mut steps = 0;
    let mut count = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > MAX_STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut count);
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

impl<'a> Walk<'a> {
    fn script(&mut self) -> Walked {
        if self.source.len() > MAX_BYTES || check::has_odd_characters(self.source) {
            return Err(Lost);
        }
        let tree = parse(self.source).ok_or(Lost)?;
        let root = tree.root_node();
        if root.has_error() || !check::gaps_are_blank(root, self.source) {
            return Err(Lost);
        }
        self.statement(root)
    }

    fn text(&self, node: Node) -> &'a str {
        &self.source[node.byte_range()]
    }

    fn statement(&mut self, node: Node) -> Walked {
        self.depth += 1;
        if self.depth > MAX_DEPTH || self.found.len() > MAX_NEEDS {
            return Err(Lost);
        }
        self.statement_of_kind(node)?;
        self.depth -= 1;
        Ok(())
    }

    fn statement_of_kind(&mut self, node: Node) -> Walked {
        match node.kind() {
            "compound_statement" if self.text(node).starts_with("((") => self.unsure(node),
            "compound_statement" if !check::blank_follows(self.source, node.start_byte() + 1) => Err(Lost),
            "negated_command" if !check::blank_follows(self.source, node.start_byte() + 1) => Err(Lost),
            "program" | "compound_statement" | "negated_command" | "subshell" | "pipeline" | "list" | "do_group"
            | "if_statement" | "elif_clause" | "else_clause" | "while_statement" => self.statements_in(node),
            "comment" if self.substitutions > 0 || !check::comment_is_one(node, self.source) => Err(Lost),
            "comment" => Ok(()),
            "command" => self.command(node, &[]),
            "redirected_statement" => self.redirected(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "test_command" => self.test(node),
            "variable_assignment" => self.assignment(node),
            "variable_assignments" => named(node).into_iter().try_for_each(|child| self.assignment(child)),
            "for_statement" => self.for_loop(node),
            "case_statement" => self.case(node),
            "function_definition" | "c_style_for_statement" => {
                // What it runs is known, when and with what is not.
                self.unsure(node)?;
                let bodies: Vec<Node> = children_of_field(node, "body");
                bodies.into_iter().try_for_each(|body| self.statement(body))
            }
            _ => Err(Lost),
        }
    }

    fn statements_in(&mut self, node: Node) -> Walked {
        named(node).into_iter().try_for_each(|child| self.statement(child))
    }

    /// A need that nobody can match but by `**`.
    fn unsure(&mut self, node: Node) -> Walked {
        self.found.push(Found::Command { target: self.text(node).to_owned(), words: None });
        Ok(())
    }

    /// Reads with doubts of its own, and says whether there were any.
    fn doubting(&mut self, read: impl FnOnce(&mut Self) -> Walked) -> Walked<bool> {
        let outer = std::mem::replace(&mut self.doubt, false);
        read(self)?;
        Ok(std::mem::replace(&mut self.doubt, outer))
    }

    /// A simple command; `redirects` stand behind it.
    fn command(&mut self, node: Node, redirects: &[Node]) -> Walked {
        let mut words = Vec::new();
        let doubt = self.doubting(|walk| {
            let children = all(node);
            check::words_stand_apart(&children, walk.source)?;
            for child in children {
                match child.kind() {
                    "variable_assignment" => walk.assignment(child)?,
                    "command_name" => {
                        let name = child.child(0).filter(|_| child.child_count() == 1).ok_or(Lost)?;
                        walk.doubt |= check::is_reserved(walk.text(name)) || walk.text(name).contains('=');
                        words.push(walk.word(name)?);
                    }
                    "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                        // Words behind the target of a redirect that stands before the name: the name is one of them.
                        let further = walk.redirect(child)?;
                        walk.doubt |= words.is_empty() && !further.is_empty();
                        words.extend(further);
                    }
                    "subshell" => return Err(Lost),
                    _ => words.push(walk.word(child)?),
                }
            }
            let mut at = node.end_byte();
            for redirect in redirects {
                if walk.source[at..redirect.start_byte()].trim() == "-" {
                    words.push(Word { text: "-".to_owned(), literal: true });
                }
                check::number_is_no_descriptor(&walk.source[..redirect.start_byte()], words.last())?;
                words.extend(walk.redirect(*redirect)?);
                at = redirect.end_byte();
            }
            Ok(())
        })?;
        let end = redirects.last().map_or(node.end_byte(), |redirect| redirect.end_byte());
        self.simple(words, doubt, &self.source[node.start_byte()..end])
    }

    fn redirected(&mut self, node: Node) -> Walked {
        let body = node.child_by_field_name("body");
        let redirects: Vec<Node> = named(node).into_iter().filter(|child| Some(*child) != body).collect();
        if let Some(body) = body.filter(|body| body.kind() == "command") {
            return self.command(body, &redirects);
        }
        let mut further = Vec::new();
        let doubt = self.doubting(|walk| {
            for redirect in &redirects {
                further.extend(walk.redirect(*redirect)?);
            }
            Ok(())
        })?;
        match body {
            // Words behind a redirect belong to a command, and these bodies take none.
            Some(_) if !further.is_empty() => Err(Lost),
            Some(body) => {
                if doubt {
                    self.unsure(node)?;
                }
                self.statement(body)
            }
            None if !further.is_empty() => self.simple(further, true, self.text(node)),
            None if doubt => self.unsure(node),
            None => Ok(()),
        }
    }

    fn assignment(&mut self, node: Node) -> Walked {
        let mut word = None;
        let doubt = self.doubting(|walk| {
            word = Some(walk.assignment_word(node)?);
            Ok(())
        })?;
        let target = self.text(node).to_owned();
        self.found.push(Found::Command { target, words: word.filter(|_| !doubt).map(|word| vec![word]) });
        Ok(())
    }

    /// `name=value` as one word.
    fn assignment_word(&mut self, node: Node) -> Walked<Word> {
        let name = node.child_by_field_name("name").ok_or(Lost)?;
        if name.kind() == "variable_name" && !check::is_name(self.text(name)) {
            return Err(Lost);
        }
        let raw = self.text(node).to_owned();
        let Some(value) = node.child_by_field_name("value") else {
            self.doubt |= name.kind() != "variable_name";
            return Ok(Word { text: raw, literal: true });
        };
        if name.kind() != "variable_name" || value.kind() == "array" {
            self.doubt = true;
            return Ok(Word { text: raw, literal: false });
        }
        let before = &self.source[node.start_byte()..value.start_byte()];
        let value = self.word(value)?;
        match value.literal && !value.text.starts_with('~') {
            true => Ok(Word { text: format!("{before}{}", value.text), literal: true }),
            false => Ok(Word { text: raw, literal: false }),
        }
    }

    fn declaration(&mut self, node: Node) -> Walked {
        let mut words = Vec::new();
        let children = all(node);
        check::words_stand_apart(&children, self.source)?;
        let doubt = self.doubting(|walk| {
            for child in children {
                words.push(match child.kind() {
                    "variable_assignment" => walk.assignment_word(child)?,
                    "variable_name" => Word { text: walk.text(child).to_owned(), literal: true },
                    _ if child.is_named() => walk.word(child)?,
                    _ => Word { text: walk.text(child).to_owned(), literal: true },
                });
            }
            Ok(())
        })?;
        self.simple(words, doubt, self.text(node))
    }

    /// Gives the words that stand behind the redirect's target: the grammar counts them to the
    /// redirect, the shell to the command.
    fn redirect(&mut self, node: Node) -> Walked<Vec<Word>> {
        check::descriptor_stands_alone(node, self.source)?;
        match node.kind() {
            "file_redirect" => self.file_redirect(node),
            "herestring_redirect" => {
                named(node)
                    .into_iter()
                    .filter(|child| child.kind() != "file_descriptor")
                    .try_for_each(|child| self.word(child).map(drop))?;
                Ok(Vec::new())
            }
            "heredoc_redirect" => self.heredoc(node),
            _ => Err(Lost),
        }
    }

    fn file_redirect(&mut self, node: Node) -> Walked<Vec<Word>> {
        let operator = all(node).into_iter().find(|child| !child.is_named()).ok_or(Lost)?;
        let mut destinations = Vec::new();
        let written = children_of_field(node, "destination");
        check::words_stand_apart(&written, self.source)?;
        for destination in written {
            destinations.push((self.word(destination)?, self.text(destination)));
        }
        let mut destinations = destinations.into_iter();
        let operator = self.text(operator);
        if !operator.ends_with('-') {
            let (word, raw) = destinations.next().ok_or(Lost)?;
            match Redirected::target(operator, word, raw) {
                Target::Nothing => {}
                Target::File(redirected) => self.found.push(Found::File(redirected)),
                Target::Unsure => self.doubt = true,
            }
        }
        Ok(destinations.map(|(word, _)| word).collect())
    }

    fn heredoc(&mut self, node: Node) -> Walked<Vec<Word>> {
        self.heredocs += 1;
        // The shell reads bodies where lines end, not where the grammar would have them.
        if self.heredocs > 1 {
            return Err(Lost);
        }
        let expands = check::heredoc_ends_where_it_says(node, self.source, self.substitutions)?;
        let mut words = Vec::new();
        for (child, field) in with_fields(node) {
            match (child.kind(), field) {
                ("file_redirect" | "herestring_redirect", _) => words.extend(self.redirect(child)?),
                ("heredoc_body", _) if expands => self.heredoc_body(child)?,
                ("heredoc_body" | "heredoc_start" | "heredoc_end" | "file_descriptor", _) => {}
                (_, Some("argument")) => words.push(self.word(child)?),
                ("pipeline", _) | (_, Some("right")) => {
                    let outer = self.doubt;
                    self.statement(child)?;
                    self.doubt = outer;
                }
                _ if child.is_named() => return Err(Lost),
                _ => {}
            }
        }
        Ok(words)
    }

    /// A command with its words known, and as it was written. `doubt`: its words do not tell all that it does.
    fn simple(&mut self, words: Vec<Word>, doubt: bool, raw: &str) -> Walked {
        self.depth += 1;
        if self.depth > MAX_DEPTH || self.found.len() > MAX_NEEDS {
            return Err(Lost);
        }
        let doubt = doubt || words.first().is_none_or(|name| !name.literal) || check::evaluates_its_words(&words);
        // Patterns that begin with such words are refused, since no command does.
        let doubt = doubt || !begins_command(&words);
        let looked = wrappers::look_into(&words);
        let unsure = doubt || looked.unsure;
        let target = if unsure { raw.to_owned() } else { shown(&words) };
        self.found.push(Found::Command { target, words: (!unsure).then_some(words) });
        for file in looked.writes {
            self.found.push(Found::File(Redirected::written_by_argument(file)));
        }
        for inner in looked.commands {
            let raw = shown(&inner);
            // Behind `time` the shell reads keywords and assignments.
            let doubt = inner.first().is_some_and(|name| check::is_reserved(&name.text) || name.text.contains('='));
            self.simple(inner, doubt, &raw)?;
        }
        for script in looked.scripts {
            let mut inner = Walk {
                source: &script,
                found: Vec::new(),
                doubt: false,
                depth: self.depth,
                substitutions: 0,
                heredocs: 0,
            };
            match inner.script() {
                Ok(()) => self.found.append(&mut inner.found),
                Err(Lost) => self.found.push(Found::Command { target: script, words: None }),
            }
        }
        self.depth -= 1;
        Ok(())
    }
}

/// A command as one would type it.
fn shown(words: &[Word]) -> String {
    let shown: Vec<String> =
        words.iter().map(|word| if word.literal { quoted(&word.text) } else { word.text.clone() }).collect();
    shown.join(" ")
}

fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-^".contains(c);
    if text == "{}" || text == "[" || text == "[[" || text == "]" || text == "]]" || text == "!" {
        return text.to_owned();
    }
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn all<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    node.children(&mut node.walk()).collect()
}

fn named<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    node.named_children(&mut node.walk()).collect()
}

fn children_of_field<'t>(node: Node<'t>, field: &str) -> Vec<Node<'t>> {
    with_fields(node)
        .into_iter()
        .filter(|(child, name)| *name == Some(field) && child.is_named())
        .map(|(child, _)| child)
        .collect()
}

fn with_fields<'t>(node: Node<'t>) -> Vec<(Node<'t>, Option<&'t str>)> {
    let mut cursor = node.walk();
    let mut found = Vec::new();
    if cursor.goto_first_child() {
        loop {
            found.push((cursor.node(), cursor.field_name()));
            if !cursor.goto_next_sibling() {
                break;
            }
        }
    }
    found
}
