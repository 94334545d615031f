//! Words: quotes removed as the shell does it, and told apart whether the shell would expand them.

use toold_engine::need::Word;
use tree_sitter::Node;

use super::{Lost, Walk, Walked, all, check, named};

/// A word while it is put together.
struct Built {
    text: String,
    literal: bool,
}

impl Walk<'_> {
    /// A word of a command. What it substitutes is walked too; a word that is not literal keeps the text
    /// that was written.
    pub(super) fn word(&mut self, node: Node) -> Walked<Word> {
        let mut built = Built { text: String::new(), literal: true };
        self.append(node, &mut built)?;
        let text = if built.literal { built.text } else { self.text(node).to_owned() };
        Ok(Word { text, literal: built.literal })
    }

    fn append(&mut self, node: Node, built: &mut Built) -> Walked {
        let raw = self.text(node);
        match node.kind() {
            "word" | "test_operator" | "variable_name" => unquoted(raw, built),
            "number" if node.child_count() == 0 => unquoted(raw, built),
            "raw_string" => {
                let inner = raw.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).ok_or(Lost)?;
                if inner.contains('\'') {
                    return Err(Lost);
                }
                built.text.push_str(inner);
                Ok(())
            }
            "string" => self.double_quoted(node, built),
            "ansi_c_string" => ansi_quoted(raw, built),
            "translated_string" => {
                built.literal = false;
                let string = node.named_child(0).filter(|child| child.kind() == "string").ok_or(Lost)?;
                self.double_quoted(string, built)
            }
            "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion" => {
                built.literal = false;
                self.expanded(node)
            }
            "brace_expression" => {
                built.literal = false;
                Ok(())
            }
            "concatenation" => {
                let mut at = node.start_byte();
                let parts = all(node);
                for (index, part) in parts.iter().enumerate() {
                    if part.start_byte() != at {
                        return Err(Lost);
                    }
                    at = part.end_byte();
                    // `{}` is no brace expansion.
                    let closed = parts.get(index + 1).is_some_and(|next| self.text(*next).starts_with('}'));
                    if self.text(*part) == "{" && closed {
                        built.text.push('{');
                    } else {
                        self.append(*part, built)?;
                    }
                }
                if at == node.end_byte() { Ok(()) } else { Err(Lost) }
            }
            "==" | "=~" => {
                built.text.push_str(raw);
                Ok(())
            }
            "$" => {
                built.literal = false;
                Ok(())
            }
            _ => Err(Lost),
        }
    }

    fn double_quoted(&mut self, node: Node, built: &mut Built) -> Walked {
        let inner = node.start_byte() + 1..node.end_byte() - 1;
        let raw = self.text(node);
        if raw.len() < 2 || !raw.starts_with('"') || !raw.ends_with('"') {
            return Err(Lost);
        }
        let expansions = self.expansions_in(node);
        let mut at = inner.start;
        while at < inner.end {
            if let Some(expansion) = expansions.iter().find(|expansion| expansion.start_byte() == at) {
                built.literal = false;
                self.expanded(*expansion)?;
                at = expansion.end_byte();
                continue;
            }
            let rest = &self.source[at..inner.end];
            let mut chars = rest.chars();
            let c = chars.next().ok_or(Lost)?;
            let next = chars.next();
            at += c.len_utf8();
            match (c, next) {
                ('\\', Some('\n')) => at += 1,
                ('\\', Some(escaped @ ('$' | '`' | '"' | '\\'))) => {
                    built.text.push(escaped);
                    at += 1;
                }
                ('\\', None) | ('`' | '"', _) => return Err(Lost),
                ('$', Some(next)) if check::begins_expansion(next) => return Err(Lost),
                _ => built.text.push(c),
            }
        }
        if at == inner.end { Ok(()) } else { Err(Lost) }
    }

    /// The body of a heredoc whose delimiter is not quoted.
    pub(super) fn heredoc_body(&mut self, node: Node) -> Walked {
        let expansions = self.expansions_in(node);
        let mut at = node.start_byte();
        while at < node.end_byte() {
            if let Some(expansion) = expansions.iter().find(|expansion| expansion.start_byte() == at) {
                self.expanded(*expansion)?;
                at = expansion.end_byte();
                continue;
            }
            let mut chars = self.source[at..node.end_byte()].chars();
            let c = chars.next().ok_or(Lost)?;
            let next = chars.next();
            at += c.len_utf8();
            match (c, next) {
                ('\\', Some(escaped)) => at += escaped.len_utf8(),
                ('`', _) | ('$', Some('(' | '{' | '[' | '`')) => return Err(Lost),
                _ => {}
            }
        }
        if at == node.end_byte() { Ok(()) } else { Err(Lost) }
    }

    fn expansions_in<'t>(&self, node: Node<'t>) -> Vec<Node<'t>> {
        let kinds = ["simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"];
        named(node).into_iter().filter(|child| kinds.contains(&child.kind())).collect()
    }

    /// What the shell would expand: walks the commands in it, doubts what it cannot tell.
    fn expanded(&mut self, node: Node) -> Walked {
        let raw = self.text(node);
        match node.kind() {
            // The grammar passes over blanks behind the `$`, which for the shell is text then.
            "simple_expansion" if !check::is_variable(raw) => Err(Lost),
            "simple_expansion" => Ok(()),
            "expansion" => {
                // Nested quotes and the operators that evaluate are where grammars and shells part.
                self.doubt |= !check::expands_simply(raw);
                self.inner_expansions(node)
            }
            "arithmetic_expansion" => {
                // A variable in arithmetic is evaluated, and its value may hold a command.
                self.doubt |= !raw.chars().all(|c| c.is_ascii_digit() || "$()+-*/% \t".contains(c));
                self.inner_expansions(node)
            }
            "command_substitution" | "process_substitution" => self.substitution(node),
            _ => Err(Lost),
        }
    }

    fn inner_expansions(&mut self, node: Node) -> Walked {
        self.depth += 1;
        if self.depth > super::MAX_DEPTH {
            return Err(Lost);
        }
        for child in named(node) {
            match child.kind() {
                "command_substitution" | "process_substitution" => self.substitution(child)?,
                _ if child.child_count() == 0 && child.kind() != "raw_string" => {
                    check::holds_no_substitution(self.text(child))?;
                }
                _ => self.inner_expansions(child)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn substitution(&mut self, node: Node) -> Walked {
        let raw = self.text(node);
        if raw.starts_with('`') && raw.contains('\\') {
            // Its inside is unescaped once before it is read.
            self.doubt = true;
            return Ok(());
        }
        if !["$(", "`", "<(", ">("].iter().any(|start| raw.starts_with(start)) || raw.starts_with("$((") {
            return Err(Lost);
        }
        let outer = std::mem::replace(&mut self.doubt, false);
        self.substitutions += 1;
        for child in named(node) {
            match child.kind() {
                "file_redirect" => {
                    if !self.redirect(child)?.is_empty() {
                        return Err(Lost);
                    }
                }
                _ => self.statement(child)?,
            }
        }
        self.substitutions -= 1;
        self.doubt |= outer;
        Ok(())
    }
}

fn unquoted(raw: &str, built: &mut Built) -> Walked {
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(escaped) => built.text.push(escaped),
                None => return Err(Lost),
            },
            '*' | '?' | '[' => built.literal = false,
            '{' if chars.peek() == Some(&'}') => built.text.push(c),
            '{' => built.literal = false,
            '~' if built.text.is_empty() || built.text.ends_with([':', '=']) => built.literal = false,
            '$' | '`' | '"' | '\'' | '(' | ')' | '<' | '>' | '|' | '&' | ';' => return Err(Lost),
            c if c.is_whitespace() || c.is_control() => return Err(Lost),
            c => built.text.push(c),
        }
    }
    Ok(())
}

/// `$'...'`. The grammar lets it end later than the shell does.
fn ansi_quoted(raw: &str, built: &mut Built) -> Walked {
    let inner = raw.strip_prefix("$'").and_then(|rest| rest.strip_suffix('\'')).ok_or(Lost)?;
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => return Err(Lost),
            '\\' => match chars.next().ok_or(Lost)? {
                'n' => built.text.push('\n'),
                't' => built.text.push('\t'),
                'r' => built.text.push('\r'),
                same @ ('\\' | '\'' | '"') => built.text.push(same),
                _ => built.literal = false,
            },
            c => built.text.push(c),
        }
    }
    Ok(())
}
