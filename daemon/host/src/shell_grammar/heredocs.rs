//! Heredocs (Bash manual, section 3.6.6; POSIX.1-2024, section 2.7.4): finds them as the shell does, and takes their
//! bodies out of a line before the grammar sees it.
//!
//! The shell reads bodies at the end of the line with the operator, whatever follows the operator there. Grammars want
//! them at certain places only. So in the text for the grammar each operator with its delimiter is a redirect of the
//! same length (`<<'EOF'` becomes `<______`), and each body with its end is blanks: all positions are those of the line.
//! The operators `<<<` and `<>`, which the grammar does not know everywhere, become `<` as well, and numbers of descriptors
//! lose their leading zeros: `0<` is `<`.
//!
//! [`lift`] finds quotes, comments, expansions and arithmetic by itself, and fails where it is not certain that every
//! shell reads them alike. Two readers must agree: [`LiftedText::agrees_with`] tells whether the grammar found a redirect
//! at exactly the place of each heredoc, and no other heredoc.

use std::borrow::Cow;
use std::ops::Range;

use toold_proto::cut;
use tree_sitter::Node;

use super::{MAX_BYTES, Unreadable, Walked, all};

/// More heredocs that wait for their bodies are not certain: Bash has a limit of 16.
const MAX_PENDING: usize = 8;
/// How deep quotes and expansions may nest.
const MAX_NESTED: usize = 60;

/// A line whose heredocs are lifted.
#[derive(Debug)]
pub(super) struct LiftedText<'s> {
    /// The line itself.
    pub(super) written: &'s str,
    /// The text for the grammar, as long as the line.
    pub(super) text: Cow<'s, str>,
    /// In order.
    redirects: Vec<LiftedRedirect>,
}

/// A part of a redirect that the text for the grammar has in another form.
#[derive(Debug)]
pub(super) struct LiftedRedirect {
    /// The operator, and the delimiter of a heredoc; the digits of a descriptor.
    place: Range<usize>,
    pub(super) kind: LiftedKind,
}

#[derive(Debug)]
pub(super) enum LiftedKind {
    Heredoc(Heredoc),
    /// `<<<`
    HereString,
    /// `<>`
    ReadWrite,
    /// A number of a descriptor with a leading zero, which the grammar takes for a word.
    Descriptor,
    /// `{name}` before an operator, which sets a variable to the number of a descriptor.
    NamedDescriptor,
    /// The `$` of `$"text"`, whose translation is the text itself unless `TEXTDOMAIN` is set.
    Translated,
}

#[derive(Debug)]
pub(super) struct Heredoc {
    /// The lines of the body and its end.
    lines: Range<usize>,
    /// The command's input before the shell expands it: without the tabs that `<<-` strips, and with continued lines
    /// joined if it is expanded.
    pub(super) body: String,
    /// No part of the delimiter is quoted, so the shell expands the body.
    pub(super) expands: bool,
}

impl Heredoc {
    /// The input, if the shell expands nothing in it.
    pub(super) fn text(&self) -> Option<&str> {
        (!self.expands || !self.body.contains(['$', '`', '\\'])).then_some(self.body.as_str())
    }

    /// The parts of the body that the shell may evaluate: substitutions, arithmetic, and variables in braces. Other
    /// variables run nothing.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is not certain where one ends.
    pub(super) fn expansions(&self) -> Walked<Vec<&str>> {
        let mut scanner = HeredocScanner::new(&self.body, Nesting::Body);
        let mut found = Vec::new();
        while self.expands && scanner.at < self.body.len() {
            let start = scanner.at;
            scanner.step()?;
            while scanner.nested.len() > 1 {
                scanner.step()?;
            }
            let text = cut::between(&self.body, start..scanner.at);
            if text.starts_with('`') || text.starts_with('$') && text.ends_with([')', '}', ']']) {
                found.push(text);
            }
        }
        Ok(found)
    }
}

impl<'s> LiftedText<'s> {
    /// The grammar gets the line itself.
    pub(super) fn as_it_is(text: &'s str) -> Self {
        Self { written: text, text: Cow::Borrowed(text), redirects: Vec::new() }
    }

    /// The grammar wants a command behind an assignment with a redirect (`x=1 >f; ls`), which the shell does not. A separator
    /// in the place of the blank between the two says the same: the shell assigns, and opens the file.
    fn with_assignments_apart(mut self) -> Self {
        if !self.text.contains('=') || !self.text.contains(['<', '>']) {
            return self;
        }
        while let Some(tree) = super::parse(&self.text).filter(|tree| tree.root_node().has_error()) {
            let blank = blank_before_redirect(tree.root_node(), &self.text);
            let parts = blank.and_then(|at| Some((self.text.get(..at)?, self.text.get(at + 1..)?)));
            let Some((before, behind)) = parts else { break };
            self.text = Cow::Owned(format!("{before};{behind}"));
        }
        self
    }

    /// What was lifted out, in order.
    pub(super) fn bodies(&self) -> impl Iterator<Item = &LiftedKind> {
        self.redirects.iter().map(|redirect| &redirect.kind)
    }

    /// As it was written, with the bodies of its heredocs also if they are behind it.
    pub(super) fn shown(&self, range: Range<usize>) -> Cow<'s, str> {
        let written = cut::between(self.written, range.clone());
        let first = self.redirects.partition_point(|redirect| redirect.place.start < range.start);
        let inside = self.redirects.iter().skip(first).take_while(|redirect| redirect.place.start < range.end);
        let behind = |redirect: &'_ LiftedRedirect| match &redirect.kind {
            LiftedKind::Heredoc(heredoc) if heredoc.lines.start >= range.end => Some(heredoc.lines.clone()),
            LiftedKind::Heredoc(_)
            | LiftedKind::HereString
            | LiftedKind::ReadWrite
            | LiftedKind::Descriptor
            | LiftedKind::NamedDescriptor
            | LiftedKind::Translated => None,
        };
        let bodies: String = inside
            .filter_map(behind)
            .flat_map(|lines| ["\n", cut::between(self.written, lines).trim_end_matches('\n')])
            .collect();
        if bodies.is_empty() { Cow::Borrowed(written) } else { Cow::Owned(format!("{written}{bodies}")) }
    }

    /// The heredoc, here-string or `<>` that was lifted, if a redirect of the grammar stands in its place.
    pub(super) fn lifted(&self, redirect: Node) -> Option<&LiftedRedirect> {
        let operator = all(redirect).into_iter().find(|child| child.kind() == "<")?.start_byte();
        let at = self.redirects.binary_search_by_key(&operator, |redirect| redirect.place.start).ok()?;
        self.redirects.get(at)
    }

    /// The heredoc that a redirect stands for.
    pub(super) fn heredoc(&self, redirect: Node) -> Option<&Heredoc> {
        match &self.lifted(redirect)?.kind {
            LiftedKind::Heredoc(heredoc) => Some(heredoc),
            LiftedKind::HereString
            | LiftedKind::ReadWrite
            | LiftedKind::Descriptor
            | LiftedKind::NamedDescriptor
            | LiftedKind::Translated => None,
        }
    }

    /// Whether some text counts as its own translation.
    pub(super) fn has_translations(&self) -> bool {
        self.redirects.iter().any(|lifted| matches!(lifted.kind, LiftedKind::Translated))
    }

    /// The variable that is set to the number of a redirect's descriptor.
    pub(super) fn descriptor_variable(&self, redirect: Node) -> Option<&str> {
        let operator = all(redirect).into_iter().find(|child| !child.is_named())?.start_byte();
        let is_it = |lifted: &&LiftedRedirect| {
            matches!(lifted.kind, LiftedKind::NamedDescriptor) && lifted.place.end == operator
        };
        let place = self.redirects.iter().find(is_it)?.place.clone();
        cut::between(self.written, place).strip_prefix('{')?.strip_suffix('}')
    }

    /// Whether a redirect opens no file: its text is in the line.
    pub(super) fn is_text(&self, redirect: Node) -> bool {
        let of_text =
            |redirect: &LiftedRedirect| matches!(redirect.kind, LiftedKind::Heredoc(_) | LiftedKind::HereString);
        self.lifted(redirect).is_some_and(of_text)
    }

    /// Whether the number of a descriptor stands directly before the operator.
    fn has_descriptor(&self, redirect: Node) -> bool {
        let operator = all(redirect).into_iter().find(|child| !child.is_named()).map(|child| child.start_byte());
        let is_it = |lifted: &LiftedRedirect| {
            let is_one = matches!(lifted.kind, LiftedKind::Descriptor | LiftedKind::NamedDescriptor);
            is_one && Some(lifted.place.end) == operator
        };
        self.redirects.iter().any(is_it)
    }

    /// Whether each of these redirects is one for the grammar, too, and there are no other heredocs.
    pub(super) fn agrees_with(&self, root: Node) -> bool {
        let mut found = 0;
        let mut waiting = vec![root];
        while let Some(node) = waiting.pop() {
            match node.kind() {
                "heredoc_redirect" => return false,
                "file_redirect" => {
                    if let Some(LiftedRedirect { place, kind }) = self.lifted(node) {
                        let filler = place.start + 1..place.end;
                        let target = node.child_by_field_name("destination").map(|target| target.byte_range());
                        if matches!(kind, LiftedKind::Heredoc(_)) && target != Some(filler) {
                            return false;
                        }
                        found += 1;
                    }
                    found += usize::from(self.has_descriptor(node));
                }
                "herestring_redirect" => found += usize::from(self.has_descriptor(node)),
                _ => {}
            }
            waiting.extend(all(node));
        }
        let is_redirect = |lifted: &&LiftedRedirect| !matches!(lifted.kind, LiftedKind::Translated);
        found == self.redirects.iter().filter(is_redirect).count()
    }
}

/// Lifts the heredocs of a line, in linear time.
///
/// # Errors
///
/// [`Unreadable`] if it is not certain where a heredoc begins or ends.
pub(super) fn lift(line: &str) -> Walked<LiftedText<'_>> {
    if line.len() > MAX_BYTES {
        return Err(Unreadable);
    }
    // Without a second line there is no body.
    let may_have_heredoc = line.contains('\n') && may_have_operator(line);
    let has_operator =
        ["<<<", "<>", "}<", "}>", "$\""].iter().any(|part| line.contains(part)) || may_have_descriptor(line);
    if !may_have_heredoc && !has_operator {
        return Ok(LiftedText::as_it_is(line).with_assignments_apart());
    }
    let mut scanner = HeredocScanner::new(line, Nesting::Commands { is_substitution: false, has_case: false });
    if scanner.run().is_err() {
        return match may_have_heredoc {
            true => Err(Unreadable),
            false => Ok(LiftedText::as_it_is(line).with_assignments_apart()),
        };
    }
    let mut redirects = scanner.found;
    redirects.sort_by_key(|redirect| redirect.place.start);
    let mut masked: Vec<(Range<usize>, &str, char)> = Vec::new();
    for LiftedRedirect { place, kind } in &redirects {
        match kind {
            LiftedKind::Heredoc(heredoc) => {
                masked.push((place.clone(), "<", '_'));
                masked.push((heredoc.lines.clone(), "", ' '));
            }
            LiftedKind::HereString | LiftedKind::ReadWrite => masked.push((place.clone(), "<", ' ')),
            LiftedKind::NamedDescriptor | LiftedKind::Translated => masked.push((place.clone(), "", ' ')),
            LiftedKind::Descriptor => {
                let digits = cut::between(line, place.clone());
                masked.push((place.start..place.end - digits.trim_start_matches('0').len(), "", ' '));
            }
        }
    }
    masked.sort_by_key(|(range, ..)| range.start);
    let mut text = String::with_capacity(line.len());
    for (range, start, filler) in masked {
        text.push_str(line.get(text.len()..range.start).ok_or(Unreadable)?);
        text.push_str(start);
        text.extend(std::iter::repeat_n(filler, range.end - text.len()));
    }
    text.push_str(cut::from(line, text.len()));
    Ok(LiftedText { written: line, text: Cow::Owned(text), redirects }.with_assignments_apart())
}

/// The blank between assignments and a redirect, in a command that has nothing else and is followed by a separator.
fn blank_before_redirect(root: Node, text: &str) -> Option<usize> {
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        let children = all(node);
        let assigned = children.iter().take_while(|child| child.kind() == "variable_assignment").count();
        let redirects = children.iter().skip(assigned).take_while(|child| child.kind() == "file_redirect").count();
        let behind = children.get(assigned + redirects);
        let separates = |node: &Node| {
            let text = cut::between(text, node.byte_range()).trim_start();
            node.is_error() && text.starts_with([';', '&', '|', '\n'])
        };
        if node.kind() == "command" && assigned > 0 && redirects > 0 && behind.is_some_and(separates) {
            let redirect = children.get(assigned)?.start_byte();
            return cut::before(text, redirect).ends_with(' ').then(|| redirect - 1);
        }
        waiting.extend(children.into_iter().filter(Node::has_error));
    }
    None
}

/// `0` and other digits before a redirect, behind something else than a digit.
fn may_have_descriptor(line: &str) -> bool {
    line.split_inclusive(['<', '>']).any(|part| {
        let before = part.trim_end_matches(['<', '>']);
        let digits = cut::from(before, before.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        digits.starts_with('0')
    })
}

/// `<<` that is not a part of `<<<`.
fn may_have_operator(line: &str) -> bool {
    let mut run = 0;
    for byte in line.bytes().chain([b' ']) {
        match byte {
            b'<' => run += 1,
            _ if run == 2 || run > 3 => return true,
            _ => run = 0,
        }
    }
    false
}

/// A heredoc whose body has not begun.
struct PendingHeredoc {
    place: Range<usize>,
    delimiter: String,
    strips_tabs: bool,
    expands: bool,
    level: usize,
}

enum Nesting {
    /// The body of a heredoc, which is expanded.
    Body,
    /// The line itself, `( )`, or a substitution.
    Commands {
        is_substitution: bool,
        has_case: bool,
    },
    DoubleQuotes,
    /// `${ }`
    Braces {
        is_quoted: bool,
    },
    /// `(( ))`, with the number of open parentheses.
    Arithmetic {
        open: usize,
        is_expansion: bool,
    },
    /// `$[ ]`, with the number of open brackets.
    Brackets {
        open: usize,
    },
}

struct HeredocScanner<'s> {
    line: &'s str,
    at: usize,
    /// Never empty: the first is the whole text.
    nested: Vec<Nesting>,
    /// A `#` would belong to a word.
    in_word: bool,
    pending: Vec<PendingHeredoc>,
    found: Vec<LiftedRedirect>,
}

impl<'s> HeredocScanner<'s> {
    fn new(line: &'s str, whole: Nesting) -> Self {
        Self { line, at: 0, nested: vec![whole], in_word: false, pending: Vec::new(), found: Vec::new() }
    }

    fn run(&mut self) -> Walked {
        while self.at < self.line.len() {
            self.step()?;
        }
        if self.nested.len() == 1 && self.pending.is_empty() { Ok(()) } else { Err(Unreadable) }
    }

    /// A character, or a longer part that nothing can be nested in.
    fn step(&mut self) -> Walked {
        let c = self.rest().chars().next().ok_or(Unreadable)?;
        if c == '\n' && !self.pending.is_empty() && !matches!(self.nested.last(), Some(Nesting::Commands { .. })) {
            return Err(Unreadable);
        }
        match self.nested.last_mut().ok_or(Unreadable)? {
            Nesting::Body if c == '"' => self.at += 1,
            Nesting::Body | Nesting::DoubleQuotes => self.in_double_quotes(c)?,
            Nesting::Commands { .. } => self.in_commands(c)?,
            Nesting::Braces { is_quoted } => {
                let is_quoted = *is_quoted;
                self.in_braces(c, is_quoted)?;
            }
            Nesting::Arithmetic { open, is_expansion } => match c {
                '(' => {
                    *open += 1;
                    self.at += 1;
                }
                ')' if *open > 2 => {
                    *open -= 1;
                    self.at += 1;
                }
                // Anything else than `))` makes it nested commands.
                ')' => {
                    let is_expansion = *is_expansion;
                    if !self.rest().starts_with("))") {
                        return Err(Unreadable);
                    }
                    self.leave(2, is_expansion);
                }
                _ => self.in_expression(c)?,
            },
            Nesting::Brackets { open } => match c {
                '[' => {
                    *open += 1;
                    self.at += 1;
                }
                ']' if *open > 1 => {
                    *open -= 1;
                    self.at += 1;
                }
                ']' => self.leave(1, true),
                _ => self.in_expression(c)?,
            },
        }
        if self.nested.len() > MAX_NESTED { Err(Unreadable) } else { Ok(()) }
    }

    fn rest(&self) -> &'s str {
        cut::from(self.line, self.at)
    }

    fn enter(&mut self, bytes: usize, nesting: Nesting) {
        self.at += bytes;
        self.in_word = false;
        self.nested.push(nesting);
    }

    fn leave(&mut self, bytes: usize, is_in_word: bool) {
        self.at += bytes;
        self.in_word = is_in_word;
        self.nested.pop();
    }

    /// The number of substitutions around this place: each is parsed on its own.
    fn level(&self) -> usize {
        let is_own = |nesting: &&Nesting| matches!(nesting, Nesting::Commands { is_substitution: true, .. });
        self.nested.iter().filter(is_own).count()
    }

    fn in_commands(&mut self, c: char) -> Walked {
        let rest = self.rest();
        let next = rest.chars().nth(1);
        match c {
            ' ' | '\t' | ';' | '&' | '|' => {
                self.at += 1;
                self.in_word = false;
            }
            '\n' => {
                self.at += 1;
                self.in_word = false;
                self.take_bodies()?;
            }
            '\\' if next == Some('\n') => {
                // Beside a blank. Alone, it could join two parts of an operator.
                let before = cut::before(self.line, self.at);
                let after = rest.chars().nth(2);
                if !before.ends_with([' ', '\t']) && !matches!(after, Some(' ' | '\t')) {
                    return Err(Unreadable);
                }
                self.at += 2;
            }
            '\\' => {
                self.at += 1 + next.ok_or(Unreadable)?.len_utf8();
                self.in_word = true;
            }
            '\'' => self.skip_single_quotes()?,
            '"' => self.enter(1, Nesting::DoubleQuotes),
            '`' => self.skip_backquotes()?,
            '$' if next == Some('\'') => self.skip_ansi_quotes()?,
            '$' if next == Some('"') && !self.in_word => self.replace(1, LiftedKind::Translated),
            '$' => self.dollar(false)?,
            '#' if !self.in_word => self.at += rest.find('\n').unwrap_or(rest.len()),
            '(' if next == Some('(') && !self.in_word => {
                self.enter(2, Nesting::Arithmetic { open: 2, is_expansion: false });
            }
            // In a pattern, this is no comment.
            '(' if next == Some('#') => return Err(Unreadable),
            '(' => self.enter(1, Nesting::Commands { is_substitution: false, has_case: false }),
            ')' => self.close()?,
            '0' if !self.in_word && self.descriptor() => {}
            '{' if !self.in_word && self.named_descriptor() => {}
            '<' if rest.starts_with("<<<") => {
                if rest.starts_with("<<<<") {
                    return Err(Unreadable);
                }
                self.replace(3, LiftedKind::HereString);
            }
            '<' if next == Some('<') => self.operator()?,
            '<' if next == Some('>') => self.replace(2, LiftedKind::ReadWrite),
            '<' | '>' if next == Some('(') => {
                self.enter(2, Nesting::Commands { is_substitution: true, has_case: false });
            }
            '<' | '>' if next == Some('\\') => return Err(Unreadable),
            '<' | '>' => {
                self.at += 1;
                self.in_word = false;
            }
            _ => {
                let is_case = !self.in_word
                    && rest.strip_prefix("case").is_some_and(|rest| rest.starts_with([' ', '\t', '\\', '\n']));
                if is_case && let Some(Nesting::Commands { has_case, .. }) = self.nested.last_mut() {
                    *has_case = true;
                }
                self.at += c.len_utf8();
                self.in_word = true;
            }
        }
        Ok(())
    }

    /// The digits before a redirect, at the start of a word. False if they are a part of a word.
    fn descriptor(&mut self) -> bool {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let behind = cut::from(rest, digits);
        // In `0<(...)`, too, they are a word of their own.
        let is_one = behind.starts_with(['<', '>']) && !cut::after_first(behind).starts_with('(');
        if is_one {
            self.replace(digits, LiftedKind::Descriptor);
        }
        is_one
    }

    /// `{name}` before a redirect, at the start of a word.
    fn named_descriptor(&mut self) -> bool {
        let Some((name, behind)) = self.rest().strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            return false;
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let is_one = is_name && behind.starts_with(['<', '>']) && !cut::after_first(behind).starts_with(['(', '<']);
        if is_one {
            self.replace(name.len() + 2, LiftedKind::NamedDescriptor);
        }
        is_one
    }

    fn replace(&mut self, bytes: usize, kind: LiftedKind) {
        self.found.push(LiftedRedirect { place: self.at..self.at + bytes, kind });
        self.at += bytes;
        self.in_word = false;
    }

    /// `)`
    fn close(&mut self) -> Walked {
        let is_last = self.nested.len() == 1;
        let Some(Nesting::Commands { is_substitution, has_case }) = self.nested.last() else { return Err(Unreadable) };
        match (is_last, is_substitution) {
            // Behind a pattern of `case`.
            (true, _) => {
                self.at += 1;
                self.in_word = false;
            }
            // It may be behind a pattern of `case`.
            (false, _) if *has_case => return Err(Unreadable),
            (false, true) => {
                let level = self.level();
                if self.pending.iter().any(|pending| pending.level == level) {
                    return Err(Unreadable);
                }
                self.leave(1, true);
            }
            (false, false) => {
                self.leave(1, false);
                // Behind a pattern, this is no comment.
                if self.rest().starts_with('#') {
                    return Err(Unreadable);
                }
            }
        }
        Ok(())
    }

    fn in_double_quotes(&mut self, c: char) -> Walked {
        match c {
            '"' => self.leave(1, true),
            '\\' => self.skip_escaped()?,
            '`' => self.skip_backquotes()?,
            '$' => self.dollar(true)?,
            c => self.at += c.len_utf8(),
        }
        Ok(())
    }

    fn in_braces(&mut self, c: char, is_quoted: bool) -> Walked {
        let next = self.rest().chars().nth(1);
        match c {
            '}' => self.leave(1, true),
            '\\' => self.skip_escaped()?,
            '`' => self.skip_backquotes()?,
            '$' if next == Some('\'') => return Err(Unreadable),
            '$' => self.dollar(is_quoted)?,
            // Whether these quote depends on the operator.
            '\'' | '"' if is_quoted => return Err(Unreadable),
            '\'' => self.skip_single_quotes()?,
            '"' => self.enter(1, Nesting::DoubleQuotes),
            '<' | '>' if next == Some('(') => return Err(Unreadable),
            c => self.at += c.len_utf8(),
        }
        Ok(())
    }

    /// Arithmetic, without its parentheses.
    fn in_expression(&mut self, c: char) -> Walked {
        match c {
            '"' | '\'' | '`' | '\\' => Err(Unreadable),
            '$' => self.dollar(true),
            c => {
                self.at += c.len_utf8();
                Ok(())
            }
        }
    }

    /// `$` and what it begins.
    fn dollar(&mut self, is_quoted: bool) -> Walked {
        let rest = self.rest();
        if rest.starts_with("$((") {
            self.enter(3, Nesting::Arithmetic { open: 2, is_expansion: true });
        } else if rest.starts_with("$(") {
            self.enter(2, Nesting::Commands { is_substitution: true, has_case: false });
        } else if let Some(inside) = rest.strip_prefix("${") {
            // `${ command; }` is a substitution in newer shells.
            if inside.starts_with([' ', '\t', '\n', '|', '\\']) {
                return Err(Unreadable);
            }
            self.enter(2, Nesting::Braces { is_quoted });
        } else if rest.starts_with("$[") {
            self.enter(2, Nesting::Brackets { open: 1 });
        } else {
            self.at += 1;
            // `$$`, `$#` and the like.
            if let Some(special @ ('$' | '#' | '?' | '!' | '*' | '@' | '-')) = self.rest().chars().next() {
                self.at += special.len_utf8();
            }
            self.in_word = true;
        }
        Ok(())
    }

    fn skip_escaped(&mut self) -> Walked {
        let escaped = self.rest().chars().nth(1).ok_or(Unreadable)?;
        if escaped == '\n' && !self.pending.is_empty() {
            return Err(Unreadable);
        }
        self.at += 1 + escaped.len_utf8();
        Ok(())
    }

    /// A text between two quotes that begins here.
    fn skip(&mut self, inside: &str) -> Walked {
        if inside.contains('\n') && !self.pending.is_empty() {
            return Err(Unreadable);
        }
        self.at += inside.len() + 2;
        self.in_word = true;
        Ok(())
    }

    fn skip_single_quotes(&mut self) -> Walked {
        let (inside, _) = cut::after_first(self.rest()).split_once('\'').ok_or(Unreadable)?;
        self.skip(inside)
    }

    /// `$'...'`
    fn skip_ansi_quotes(&mut self) -> Walked {
        let inside = self.rest().strip_prefix("$'").ok_or(Unreadable)?;
        let mut is_escaped = false;
        let is_end = |c: char| {
            let ends = c == '\'' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        };
        let end = inside.find(is_end).ok_or(Unreadable)?;
        self.at += 1;
        self.skip(cut::before(inside, end))
    }

    /// The shell parses what is inside when it runs it.
    fn skip_backquotes(&mut self) -> Walked {
        let (inside, _) = cut::after_first(self.rest()).split_once('`').ok_or(Unreadable)?;
        if inside.contains(['\\', '#']) || inside.contains("<<") {
            return Err(Unreadable);
        }
        self.skip(inside)
    }

    /// `<<` or `<<-`, and its delimiter.
    fn operator(&mut self) -> Walked {
        let start = self.at;
        self.at += 2;
        let strips_tabs = self.rest().starts_with('-');
        self.at += usize::from(strips_tabs);
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        let (delimiter, is_quoted) = self.delimiter()?;
        let level = self.level();
        let is_plain = delimiter.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        // The shell may print the content of a substitution in another form, and older shells look for its end by themselves.
        let is_certain = level == 0 || is_plain && self.pending.is_empty();
        if !is_certain
            || delimiter.is_empty()
            || self.pending.len() >= MAX_PENDING
            || self.pending.iter().any(|pending| pending.level != level)
        {
            return Err(Unreadable);
        }
        self.in_word = false;
        let place = start..self.at;
        self.pending.push(PendingHeredoc { place, delimiter, strips_tabs, expands: !is_quoted, level });
        Ok(())
    }

    /// The delimiter without its quotes, and whether it has any.
    fn delimiter(&mut self) -> Walked<(String, bool)> {
        let is_printable = |text: &str| text.bytes().all(|b| (b' '..=b'~').contains(&b));
        let (mut delimiter, mut is_quoted) = (String::new(), false);
        while let Some(c) = self.rest().chars().next() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' | '"' => {
                    let (inside, _) = cut::after_first(self.rest()).split_once(c).ok_or(Unreadable)?;
                    if !is_printable(inside) || c == '"' && inside.contains(['\\', '$', '`']) {
                        return Err(Unreadable);
                    }
                    delimiter.push_str(inside);
                    self.at += inside.len() + 2;
                    is_quoted = true;
                }
                '\\' => {
                    let escaped = self.rest().chars().nth(1).filter(char::is_ascii_graphic).ok_or(Unreadable)?;
                    delimiter.push(escaped);
                    self.at += 2;
                    is_quoted = true;
                }
                c if c.is_ascii_alphanumeric() || "_-.,:@%+=/!".contains(c) => {
                    delimiter.push(c);
                    self.at += 1;
                }
                _ => return Err(Unreadable),
            }
        }
        Ok((delimiter, is_quoted))
    }

    /// At the start of a line: the bodies of the heredocs whose operators are on the line before.
    fn take_bodies(&mut self) -> Walked {
        let level = self.level();
        let ends_in_operator =
            || cut::before(self.line, self.at - 1).ends_with([' ', '\t', ';', '&', '|', '(', ')', '<', '>']);
        if self.pending.iter().any(|pending| pending.level != level || level > 0 && ends_in_operator()) {
            return Err(Unreadable);
        }
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let mut body = String::new();
            loop {
                let (line, is_joined) = self.body_line(pending.expands)?;
                let text = if pending.strips_tabs { line.trim_start_matches('\t') } else { &line };
                match text == pending.delimiter {
                    true if is_joined => return Err(Unreadable),
                    true => break,
                    // Bash ends a heredoc in a substitution at `EOF)`, too.
                    false if level > 0 && text.starts_with(&pending.delimiter) => return Err(Unreadable),
                    false => {
                        body.push_str(text);
                        body.push('\n');
                    }
                }
            }
            let heredoc = Heredoc { lines: start..self.at, body, expands: pending.expands };
            self.found.push(LiftedRedirect { place: pending.place, kind: LiftedKind::Heredoc(heredoc) });
        }
        Ok(())
    }

    /// The next line, and whether it consists of several: if the body is expanded, a backslash joins it to the next one.
    fn body_line(&mut self, is_expanded: bool) -> Walked<(Cow<'s, str>, bool)> {
        let mut joined: Option<String> = None;
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Err(Unreadable);
            }
            let line = rest.split('\n').next().unwrap_or_default();
            self.at = self.line.len().min(self.at + line.len() + 1);
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            if is_expanded && backslashes % 2 == 1 {
                joined.get_or_insert_default().push_str(cut::before(line, line.len() - 1));
                continue;
            }
            return Ok(match joined {
                None => (Cow::Borrowed(line), false),
                Some(joined) => (Cow::Owned(joined + line), true),
            });
        }
    }
}
