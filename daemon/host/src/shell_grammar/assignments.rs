//! Assignments of variables: alone, before a command, and by `export` and similar builtins.

use toold_engine::need::Word;
use toold_proto::cut;
use tree_sitter::Node;

use super::arg::{self, Arg, WordPart};
use super::{LineItem, ShellWalk, SimpleCommand, Unreadable, Walked, all, check, named, shown, variables};

impl<'t> ShellWalk<'_, '_, '_> {
    /// `stays`: no command follows, so the shell keeps the value.
    pub(super) fn assignment(&mut self, node: Node<'t>, stays: bool) -> Walked {
        let mut found = None;
        let doubt = self.doubting(|walk| {
            found = Some(walk.assignment_word(node)?);
            Ok(())
        })?;
        let (name, value, word) = found.ok_or(Unreadable)?;
        let target = self.text(node).to_owned();
        let is_digits = text_of(&value).is_some_and(|value| value.bytes().all(|b| b.is_ascii_digit()));
        let doubt = doubt || variables::is_integer(&name) && !is_digits || variables::is_read_only(&name);
        let is_list = node.child_by_field_name("value").is_some_and(|value| value.kind() == "array");
        let doubt = doubt || is_list && !stays;
        let known = match value.as_slice() {
            // One number is as good as any other.
            [WordPart::Digits] => Some("1"),
            value => text_of(value),
        };
        let is_harmless = match stays && !self.state.hands_on(&name) {
            true => self.is_the_shells_own(&name),
            false => variables::is_harmless_for_programs(&name, known),
        };
        let written = known.map(str::to_owned);
        if stays {
            let appends = self.text(node).contains("+=");
            self.state.set(&name, (!doubt && !appends).then_some(value));
        }
        let is_handed = !stays || !self.is_the_shells_own(&name);
        let discards = match is_handed {
            true => self.places_of_variable(&name, written.as_deref(), &target),
            false => Vec::new(),
        };
        let variable = SimpleCommand {
            discards,
            words: (!doubt).then(|| vec![word]),
            unsure: doubt.then(|| "the shell may evaluate the value as code".to_owned()),
            reads_only: is_harmless && !doubt,
            ..SimpleCommand::variable(&name, &target, is_harmless)
        };
        self.found.push(LineItem::Command(SimpleCommand { may_run_any: variable.may_run_any || doubt, ..variable }));
        if is_handed {
            self.file_of_variable(&name, written.as_deref(), &target);
        }
        Ok(())
    }

    /// The name, the value, and `name=value` as one word.
    fn assignment_word(&mut self, node: Node<'t>) -> Walked<(String, Vec<WordPart>, Word)> {
        let name = node.child_by_field_name("name").ok_or(Unreadable)?;
        let raw = self.text(node).to_owned();
        if name.kind() == "variable_name" && !check::is_name(self.text(name)) {
            return Err(Unreadable);
        }
        let text = self.text(name).to_owned();
        let array = text.split_once('[').map(|(array, _)| array.to_owned());
        if name.kind() != "variable_name" {
            // A subscript is evaluated, and so are commands in the values.
            self.doubt |= !self.evaluates_no_index(&text);
            self.inner_expansions(name)?;
        }
        let text = array.unwrap_or(text);
        let Some(value) = node.child_by_field_name("value") else {
            return Ok((text, Vec::new(), Word { text: raw, literal: true }));
        };
        let unknown = vec![WordPart::Unknown { splits: true }];
        let declares = node.parent().filter(|parent| parent.kind() == "declaration_command");
        let is_associative = declares.is_some_and(|parent| all(parent).iter().any(|child| self.text(*child) == "-A"));
        if value.kind() == "array" {
            for element in named(value) {
                // A subscript is evaluated.
                self.doubt |=
                    self.text(element).starts_with('[') && !(is_associative && has_plain_index(self.text(element)));
                self.word(element)?;
            }
            return Ok((text, unknown, Word { text: raw, literal: false }));
        }
        if name.kind() != "variable_name" {
            self.tokens(value)?;
            return Ok((text, unknown, Word { text: raw, literal: false }));
        }
        let before = cut::between(self.source, node.start_byte()..value.start_byte());
        let home = self.home();
        let pieces = arg::value(&self.tokens(value)?, home.as_deref());
        let word = match text_of(&pieces) {
            Some(value) => Word { text: format!("{before}{value}"), literal: true },
            None => Word { text: raw, literal: false },
        };
        Ok((text, pieces, word))
    }

    pub(super) fn declaration(&mut self, node: Node<'t>) -> Walked {
        self.judged.insert(node.id());
        let mut words = Vec::new();
        let mut values = Vec::new();
        let children = all(node);
        check::words_stand_apart(&children, self.source)?;
        let doubt = self.doubting(|walk| {
            for child in children {
                match child.kind() {
                    "variable_assignment" => {
                        let (name, value, word) = walk.assignment_word(child)?;
                        let pieces = match word.literal {
                            true => vec![WordPart::Text(word.text)],
                            false => vec![WordPart::Text(format!("{name}=")), WordPart::Unknown { splits: false }],
                        };
                        words.push(Arg { pieces, raw: walk.text(child).to_owned() });
                        values.push((name, value));
                    }
                    "variable_name" => words.push(Arg::text(walk.text(child))),
                    _ if child.is_named() => words.extend(walk.word(child)?),
                    _ => words.push(Arg::text(walk.text(child))),
                }
            }
            Ok(())
        })?;
        let sets_plainly = ["export", "declare", "typeset"];
        let is_plain = words.first().is_some_and(|word| sets_plainly.iter().any(|name| word.is(name)))
            && !words.iter().any(|word| word.start().starts_with(['-', '+']));
        self.simple(words, doubt, self.text(node))?;
        // Only without options, and not in a function, do they certainly set the written value.
        for (name, value) in values {
            self.state.set(&name, (!doubt && is_plain).then_some(value));
        }
        Ok(())
    }

    /// `NAME=value` that a command exports, or sets for what it runs.
    pub(super) fn exported(&mut self, word: &Arg) {
        let name = word.start().split('=').next().unwrap_or_default().trim_end_matches('+').to_owned();
        let value = word.literal().and_then(|text| text.split_once('=')).map(|(_, value)| value);
        let is_harmless = variables::is_harmless_for_programs(&name, value);
        let plain = word.word();
        let target = shown(std::slice::from_ref(&plain));
        let variable = SimpleCommand::variable(&name, &target, is_harmless);
        let discards = self.places_of_variable(&name, value, &word.raw);
        self.found.push(LineItem::Command(SimpleCommand {
            discards,
            words: Some(vec![plain]),
            raw: vec![word.raw.clone()],
            ..variable
        }));
        self.file_of_variable(&name, value, &target);
    }
}

/// `[a]=1`
fn has_plain_index(element: &str) -> bool {
    let index = element.strip_prefix('[').and_then(|rest| rest.split_once("]="));
    index.is_some_and(|(index, _)| is_plain_index(index))
}

fn is_plain_index(index: &str) -> bool {
    !index.is_empty() && index.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/:".contains(c))
}

impl ShellWalk<'_, '_, '_> {
    /// Whether `name[index]` evaluates nothing: the index is digits, or the array is one of texts and the index plain, or one
    /// variable.
    pub(super) fn evaluates_no_index(&self, element: &str) -> bool {
        let Some((name, index)) = element.strip_suffix(']').and_then(|rest| rest.split_once('[')) else { return false };
        let unquoted = index.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(index);
        let variable = unquoted.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let variable = variable.or_else(|| unquoted.strip_prefix('$'));
        let is_number = !index.is_empty() && index.len() < 10 && index.bytes().all(|b| b.is_ascii_digit());
        let counts =
            variable.or(Some(index)).is_some_and(|variable| check::is_name(variable) && self.counts_in(variable));
        let is_text = is_plain_index(unquoted) || variable.is_some_and(check::is_name);
        check::is_name(name) && (is_number || counts || self.state.is_associative(name) && is_text)
    }
}

fn text_of(pieces: &[WordPart]) -> Option<&str> {
    match pieces {
        [] => Some(""),
        [WordPart::Text(text)] => Some(text),
        _ => None,
    }
}
