//! Commands with a grammar of their own: tests, loops, cases.

use tree_sitter::Node;

use super::arg::{Arg, WordPart};
use super::command::list_wildcards;
use super::programs::Reading;
use super::{
    LineItem, MAX_DEPTH, ShellWalk, Unreadable, Walked, all, check, children_of_field, named, variables, with_fields,
};

/// A loop over more values than this is analyzed once, for any value.
const MAX_VALUES: usize = 8;

impl<'t> ShellWalk<'_, '_, '_> {
    pub(super) fn test(&mut self, node: Node<'t>) -> Walked {
        self.judged.insert(node.id());
        if !check::word_ends(self.source, node.end_byte()) {
            return Err(Unreadable);
        }
        let mut words = Vec::new();
        let doubt = self.doubting(|walk| walk.test_words(node, &mut words))?;
        self.simple(words, doubt, self.text(node))
    }

    fn test_words(&mut self, node: Node<'t>, words: &mut Vec<Arg>) -> Walked {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unreadable);
        }
        let children = all(node);
        check::words_stand_apart(&children, self.source)?;
        for child in children {
            match child.kind() {
                "binary_expression" | "unary_expression" | "parenthesized_expression" => {
                    self.test_words(child, words)?;
                }
                "regex" | "extglob_pattern" => {
                    check::holds_no_substitution(self.text(child))?;
                    words.push(Arg {
                        pieces: vec![WordPart::Unknown { splits: false }],
                        raw: self.text(child).to_owned(),
                    });
                }
                "test_operator" => words.push(Arg::text(self.text(child))),
                _ if child.is_named() => words.extend(self.word(child)?),
                // Inside `[` these are shell syntax: redirects and the like.
                "<" | ">" | "(" | ")" | "&&" | "||" if words.first().is_some_and(|word| word.is("[")) => {
                    return Err(Unreadable);
                }
                _ => words.push(Arg::text(self.text(child))),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    pub(super) fn for_loop(&mut self, node: Node<'t>) -> Walked {
        let name = self.text(node.child_by_field_name("variable").ok_or(Unreadable)?).to_owned();
        if !self.is_the_shells_own(&name) {
            self.unsure(node, "the loop sets a variable that programs read")?;
        }
        let values = children_of_field(node, "value");
        let mut found = Vec::new();
        let doubt = self.doubting(|walk| {
            for value in &values {
                found.extend(walk.word(*value)?);
            }
            Ok(())
        })?;
        let doubt = doubt || variables::is_integer(&name);
        if doubt {
            self.unsure(node, "the shell may evaluate its values as code")?;
        }
        let mut listed = Reading::default();
        list_wildcards(&found, &mut listed);
        for file in self.named_files(&mut listed) {
            self.found.push(LineItem::File(file));
        }
        let body = node.child_by_field_name("body").ok_or(Unreadable)?;
        // `break` and `continue` leave an iteration in the middle.
        let text = self.text(body);
        let jumps = text.contains("break") || text.contains("continue");
        if !doubt
            && !jumps
            && !found.is_empty()
            && found.len() <= MAX_VALUES
            && found.iter().all(|arg| arg.literal().is_some())
        {
            let mut rounds: Vec<Vec<LineItem>> = Vec::new();
            let outer = std::mem::take(&mut self.found);
            let (start, beside) = (outer.len(), self.unordered.len());
            for value in found {
                self.state.set(&name, Some(value.pieces));
                self.statement(body)?;
                self.settle();
                self.land();
                rounds.push(std::mem::take(&mut self.found));
            }
            self.found = outer;
            merge(rounds, &mut self.found);
            // Something that stays in the background runs beside all that follows.
            let stays = self.unordered.drain(beside..).any(|range| range.end == usize::MAX);
            self.unordered.push(start..if stays { usize::MAX } else { self.found.len() });
            return Ok(());
        }
        let value = common(&found, doubt).and_then(|value| self.found_by(value));
        self.repeat(|walk| {
            walk.state.set(&name, value.clone());
            walk.statement(body)
        })
    }

    /// The value of a variable that iterates over the matches of a wildcard.
    fn found_by(&mut self, value: Vec<WordPart>) -> Option<Vec<WordPart>> {
        let word = Arg { pieces: value, raw: String::new() };
        if !word.has_glob() {
            return Some(word.pieces);
        }
        let folders = self.state.folders()?.to_vec();
        let [folder] = folders.as_slice() else { return None };
        let names = super::expand::expand(&word, folder, self.surroundings.may_read)?;
        match names.files.is_empty() {
            // Then the wildcard is an ordinary character.
            true => Some(vec![WordPart::Text(word.pattern())]),
            false => Some(vec![WordPart::Names(names.into())]),
        }
    }

    pub(super) fn case(&mut self, node: Node<'t>) -> Walked {
        let items: Vec<Node> = named(node).into_iter().filter(|child| child.kind() == "case_item").collect();
        let doubt = self.doubting(|walk| {
            for part in std::iter::once(node).chain(items.iter().copied()) {
                for (child, field) in with_fields(part) {
                    match (child.kind(), field) {
                        ("extglob_pattern", _) => check::holds_no_substitution(walk.text(child))?,
                        (_, Some("value")) => drop(walk.word(child)?),
                        _ => {}
                    }
                }
            }
            Ok(())
        })?;
        if doubt {
            self.unsure(node, "the shell may evaluate the word as code")?;
        }
        // Each item may be the matching one, and may be entered from the one before (`;&`).
        let mut end = self.state.clone();
        for item in items {
            self.state = end.clone();
            let is_pattern =
                |(child, field): &(Node, Option<&str>)| child.kind() == "extglob_pattern" || *field == Some("value");
            let body: Vec<Node> =
                with_fields(item).into_iter().filter(|part| !is_pattern(part)).map(|(child, _)| child).collect();
            self.sequence(&body)?;
            self.settle();
            end.or(&self.state);
        }
        self.state = end;
        Ok(())
    }
}

/// One description of many values.
fn common(values: &[Arg], doubt: bool) -> Option<Vec<WordPart>> {
    let is_plain = |arg: &Arg| !doubt && arg.literal().is_some_and(is_plain_name);
    match values {
        [only] if !doubt => Some(only.pieces.clone()),
        [_, ..] if values.iter().all(is_plain) => Some(vec![WordPart::Plain]),
        _ => None,
    }
}

/// One word that is not an option and stays one word without quotes.
fn is_plain_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && text.chars().all(|c| c.is_alphanumeric() || "_./:@%+,=-".contains(c))
}

/// Merges iterations that do the same with other words: the words that differ become unknown.
fn merge(rounds: Vec<Vec<LineItem>>, into: &mut Vec<LineItem>) {
    let same = |one: &LineItem, other: &LineItem| match (one, other) {
        (LineItem::Command(one), LineItem::Command(other)) => {
            let name = |command: &super::SimpleCommand| command.words.as_ref().and_then(|words| words.first().cloned());
            one.raw == other.raw && one.words.is_some() == other.words.is_some() && name(one) == name(other)
        }
        (LineItem::Redirect(_), LineItem::Redirect(_)) | (LineItem::File(_), LineItem::File(_)) => true,
        _ => false,
    };
    let commands = |round: &[LineItem]| round.iter().filter(|found| matches!(found, LineItem::Command(_))).count();
    let mut rounds = rounds.into_iter();
    let Some(mut first) = rounds.next() else { return };
    for round in rounds {
        let alike = commands(&first) == commands(&round) && {
            let of = |found: &&LineItem| matches!(found, LineItem::Command(_));
            first.iter().filter(of).zip(round.iter().filter(of)).all(|(one, other)| same(one, other))
        };
        if !alike {
            first.extend(round);
            continue;
        }
        let mut others = Vec::new();
        let mut commands = Vec::new();
        for found in round {
            match found {
                LineItem::Command(command) => commands.push(command),
                other => others.push(other),
            }
        }
        let mine = first.iter_mut().filter_map(|found| match found {
            LineItem::Command(command) => Some(command),
            LineItem::Redirect(_) | LineItem::File(_) => None,
        });
        let mut targets = Vec::new();
        for (one, other) in mine.zip(commands) {
            let before = (one.target.clone(), other.target.clone());
            one.join(other);
            targets.push((before, one.target.clone()));
        }
        first.extend(others);
        for found in &mut first {
            if let LineItem::File(file) = found
                && let Some((_, target)) =
                    targets.iter().find(|((one, other), _)| file.command == *one || file.command == *other)
            {
                file.command.clone_from(target);
            }
        }
    }
    into.extend(first);
}
