//! Commands with a grammar of their own: tests, loops, cases.

use toold_engine::need::Word;
use tree_sitter::Node;

use super::{Found, Lost, MAX_DEPTH, Walk, Walked, all, check, children_of_field, named, with_fields};

impl Walk<'_> {
    pub(super) fn test(&mut self, node: Node) -> Walked {
        if !check::word_ends(self.source, node.end_byte()) {
            return Err(Lost);
        }
        let mut words = Vec::new();
        let doubt = self.doubting(|walk| walk.test_words(node, &mut words))?;
        let double = words.first().is_some_and(|word| word.text == "[[");
        let doubt = doubt || check::test_evaluates(&words, double);
        self.simple(words, doubt, self.text(node))
    }

    fn test_words(&mut self, node: Node, words: &mut Vec<Word>) -> Walked {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Lost);
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
                    words.push(Word { text: self.text(child).to_owned(), literal: false });
                }
                "test_operator" => words.push(Word { text: self.text(child).to_owned(), literal: true }),
                _ if child.is_named() => words.push(self.word(child)?),
                // Inside `[` these are the shell's own: redirects and the like.
                "<" | ">" | "(" | ")" | "&&" | "||" if words.first().is_some_and(|word| word.text == "[") => {
                    return Err(Lost);
                }
                _ => words.push(Word { text: self.text(child).to_owned(), literal: true }),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    pub(super) fn for_loop(&mut self, node: Node) -> Walked {
        let name = node.child_by_field_name("variable").ok_or(Lost)?;
        if !check::is_harmless_name(self.text(name)) {
            let target = self.source[node.start_byte()..name.end_byte()].to_owned();
            self.found.push(Found::Command { target, words: None });
        }
        let values = children_of_field(node, "value");
        let doubt = self.doubting(|walk| values.iter().try_for_each(|value| walk.word(*value).map(drop)))?;
        if doubt {
            self.found.push(Found::Command { target: self.text(node).to_owned(), words: None });
        }
        self.statement(node.child_by_field_name("body").ok_or(Lost)?)
    }

    pub(super) fn case(&mut self, node: Node) -> Walked {
        let mut statements = Vec::new();
        let doubt = self.doubting(|walk| {
            let items: Vec<Node> = named(node).into_iter().filter(|child| child.kind() == "case_item").collect();
            for part in std::iter::once(node).chain(items) {
                for (child, field) in with_fields(part) {
                    match (child.kind(), field) {
                        ("extglob_pattern", _) => check::holds_no_substitution(walk.text(child))?,
                        (_, Some("value")) => drop(walk.word(child)?),
                        ("case_item", _) => {}
                        _ if child.is_named() => statements.push(child),
                        _ => {}
                    }
                }
            }
            Ok(())
        })?;
        if doubt {
            self.unsure(node)?;
        }
        statements.into_iter().try_for_each(|statement| self.statement(statement))
    }
}
