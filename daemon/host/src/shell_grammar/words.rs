//! Words: removes quotes as the shell does, and separates the text from the expansions.

use toold_proto::cut;
use tree_sitter::Node;

use super::arg::{self, Arg, WordPart, WordToken};
use super::programs::CommandOutput;
use super::state::{is_decimal, is_decimal_text};
use super::{ShellWalk, Unreadable, Walked, all, check, named, variables};

impl<'t> ShellWalk<'_, '_, '_> {
    /// The words that one written word expands to. Commands that it substitutes are analyzed too.
    pub(super) fn word(&mut self, node: Node<'t>) -> Walked<Vec<Arg>> {
        let tokens = self.tokens(node)?;
        let home = self.home();
        Ok(arg::words(&tokens, self.text(node), home.as_deref()))
    }

    pub(super) fn tokens(&mut self, node: Node<'t>) -> Walked<Vec<WordToken>> {
        let mut tokens = Vec::new();
        self.append(node, &mut tokens)?;
        if let [WordToken::Bare('~'), WordToken::Bare('+'), rest @ ..] = tokens.as_slice()
            && matches!(rest.first(), None | Some(WordToken::Bare('/')))
            && let [WordPart::Text(folder)] = self.variable("PWD", true).as_slice()
        {
            tokens.splice(..2, [WordToken::Whole(WordPart::Text(folder.clone()))]);
        }
        Ok(tokens)
    }

    fn append(&mut self, node: Node<'t>, tokens: &mut Vec<WordToken>) -> Walked {
        let raw = self.text(node);
        match node.kind() {
            "word" | "test_operator" | "variable_name" => unquoted(raw, tokens),
            "number" if node.child_count() == 0 => unquoted(raw, tokens),
            "raw_string" => {
                let inner = raw.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).ok_or(Unreadable)?;
                if inner.contains('\'') {
                    return Err(Unreadable);
                }
                tokens.push(WordToken::Empty);
                tokens.extend(inner.chars().map(WordToken::Quoted));
                Ok(())
            }
            "string" => self.double_quoted(node, tokens),
            "ansi_c_string" => ansi_quoted(raw, tokens),
            "translated_string" => {
                // Its translation is unknown.
                let string = node.named_child(0).filter(|child| child.kind() == "string").ok_or(Unreadable)?;
                self.double_quoted(string, &mut Vec::new())?;
                tokens.push(WordToken::Whole(WordPart::Unknown { splits: false }));
                Ok(())
            }
            "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion" => {
                let pieces = self.expanded(node, false)?;
                tokens.push(WordToken::Value(pieces));
                Ok(())
            }
            "brace_expression" => {
                tokens.extend(raw.chars().map(WordToken::Bare));
                Ok(())
            }
            "concatenation" => {
                let mut at = node.start_byte();
                for part in all(node) {
                    if part.start_byte() != at {
                        return Err(Unreadable);
                    }
                    at = part.end_byte();
                    self.append(part, tokens)?;
                }
                if at == node.end_byte() { Ok(()) } else { Err(Unreadable) }
            }
            "==" | "=~" => {
                tokens.extend(raw.chars().map(WordToken::Quoted));
                Ok(())
            }
            "$" => {
                tokens.push(WordToken::Whole(WordPart::Unknown { splits: true }));
                Ok(())
            }
            _ => Err(Unreadable),
        }
    }

    fn double_quoted(&mut self, node: Node<'t>, tokens: &mut Vec<WordToken>) -> Walked {
        let inner = node.start_byte() + 1..node.end_byte() - 1;
        let raw = self.text(node);
        if raw.len() < 2 || !raw.starts_with('"') || !raw.ends_with('"') {
            return Err(Unreadable);
        }
        let mut expansions = self.expansions_in(node).into_iter().peekable();
        tokens.push(WordToken::Empty);
        let mut at = inner.start;
        while at < inner.end {
            while expansions.next_if(|expansion| expansion.start_byte() < at).is_some() {}
            if let Some(expansion) = expansions.next_if(|expansion| expansion.start_byte() == at) {
                let raw = self.text(expansion);
                tokens.extend(cut::before(raw, raw.len() - raw.trim_start().len()).chars().map(WordToken::Quoted));
                let pieces = self.expanded(expansion, true)?;
                tokens.extend(pieces.into_iter().map(WordToken::Whole));
                at = expansion.end_byte();
                continue;
            }
            let rest = cut::between(self.source, at..inner.end);
            let mut chars = rest.chars();
            let c = chars.next().ok_or(Unreadable)?;
            let next = chars.next();
            at += c.len_utf8();
            match (c, next) {
                // The shell joins the lines first, so the surrounding text may form one expansion.
                ('\\', Some('\n')) => return Err(Unreadable),
                ('\\', Some(escaped @ ('$' | '`' | '"' | '\\'))) => {
                    tokens.push(WordToken::Quoted(escaped));
                    at += 1;
                }
                ('\\', None) | ('`' | '"', _) => return Err(Unreadable),
                ('$', Some(next)) if check::begins_expansion(next) => return Err(Unreadable),
                _ => tokens.push(WordToken::Quoted(c)),
            }
        }
        if at == inner.end { Ok(()) } else { Err(Unreadable) }
    }

    fn expansions_in(&self, node: Node<'t>) -> Vec<Node<'t>> {
        let kinds = ["simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"];
        named(node).into_iter().filter(|child| kinds.contains(&child.kind())).collect()
    }

    /// An expansion: analyzes its commands, adds doubts for what is unknown, and returns its value as far as it is
    /// known.
    fn expanded(&mut self, node: Node<'t>, is_quoted: bool) -> Walked<Vec<WordPart>> {
        // In a string, the grammar adds the blanks before it.
        let raw = match is_quoted {
            true => self.text(node).trim_start_matches([' ', '\t', '\n']),
            false => self.text(node),
        };
        match node.kind() {
            // The grammar skips blanks after the `$`; for the shell, the `$` is then plain text.
            "simple_expansion" if !check::is_variable(raw) => Err(Unreadable),
            "simple_expansion" => Ok(self.variable(cut::after_first(raw), is_quoted)),
            "expansion" => {
                // Grammars and shells differ on nested quotes and on operators that evaluate.
                let element = raw.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
                let element = element.strip_prefix('#').unwrap_or(element);
                let is_simple = check::expands_simply(raw) || self.evaluates_no_index(element);
                self.doubt |= !is_simple;
                self.inner_expansions(node)?;
                if !is_simple && raw.contains('=') {
                    // `${name:=value}` sets a variable.
                    self.state.lose();
                }
                Ok(if is_simple {
                    self.changed_variable(raw, is_quoted)
                } else {
                    vec![WordPart::Unknown { splits: true }]
                })
            }
            "arithmetic_expansion" => {
                // A variable in arithmetic is evaluated, and its value may contain a command.
                self.doubt |= !self.is_plain_arithmetic(raw.trim_start());
                self.inner_expansions(node)?;
                Ok(vec![WordPart::Number])
            }
            "process_substitution" => {
                self.substitution(node)?;
                Ok(vec![WordPart::Pipe])
            }
            "command_substitution" => {
                self.substitution(node)?;
                Ok(match std::mem::take(&mut self.output) {
                    // The command may fail, and then the result is empty.
                    CommandOutput::Pieces(pieces) if pieces == [WordPart::Number] && !is_quoted => {
                        vec![WordPart::Maybe]
                    }
                    CommandOutput::Pieces(pieces) => pieces,
                    CommandOutput::Lines(names) if !is_quoted && names.is_plain => vec![WordPart::Names(names)],
                    _ => match self.text_of_heredoc(node) {
                        Some(text) => vec![WordPart::Text(text)],
                        None => vec![WordPart::Unknown { splits: !is_quoted }],
                    },
                })
            }
            _ => Err(Unreadable),
        }
    }

    /// The value of a variable, by name.
    fn variable(&self, name: &str, is_quoted: bool) -> Vec<WordPart> {
        let unknown = vec![WordPart::Unknown { splits: !is_quoted }];
        match name {
            "?" | "#" | "$" | "RANDOM" | "SECONDS" | "LINENO" | "BASHPID" | "EPOCHSECONDS" | "UID" | "EUID"
            | "PPID"
                if !self.state.is_set(name) && !self.state.is_lost() =>
            {
                return vec![WordPart::Digits];
            }
            "@" | "*" => return vec![WordPart::Unknown { splits: true }],
            // Empty before a command runs in the background.
            "!" => return vec![if is_quoted { WordPart::Digits } else { WordPart::Maybe }],
            _ => {}
        }
        match self.state.variable(name) {
            Some(Some(value)) => value.to_vec(),
            Some(None) => unknown,
            None => {
                let of_environment = |name: &str| self.surroundings.environment.get(name)?.to_str().map(str::to_owned);
                let value = match name {
                    "HOME" | "TMPDIR" => of_environment(name),
                    "PWD" => match self.state.folders() {
                        Some([folder]) => folder.to_str().map(str::to_owned),
                        _ => None,
                    },
                    _ => None,
                };
                value.map_or(unknown, |value| vec![WordPart::Text(value)])
            }
        }
    }

    /// `${name}`, or with an operator that changes the value.
    fn changed_variable(&self, raw: &str, is_quoted: bool) -> Vec<WordPart> {
        let unknown = vec![WordPart::Unknown { splits: !is_quoted || raw.contains(['@', '*']) }];
        let body = cut::between(raw, 2..raw.len() - 1);
        if body.len() > 1 && body.starts_with('#') {
            return vec![WordPart::Number];
        }
        let name_end = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(body.len());
        let (name, operator) = body.split_at(name_end);
        if operator.starts_with('[') {
            return unknown;
        }
        if operator.is_empty() {
            return self.variable(name, is_quoted);
        }
        let value = self.variable(name, is_quoted);
        let [WordPart::Text(text)] = value.as_slice() else { return unknown };
        let is_plain = |pattern: &str| !pattern.is_empty() && !pattern.contains(['*', '?', '%', '#', '/', '\\', '[']);
        let changed = if let Some(pattern) = operator.strip_prefix('%').filter(|pattern| is_plain(pattern)) {
            text.strip_suffix(pattern).unwrap_or(text)
        } else if let Some(pattern) = operator.strip_prefix('#').filter(|pattern| is_plain(pattern)) {
            text.strip_prefix(pattern).unwrap_or(text)
        } else if operator == "##*/" {
            text.rsplit('/').next().unwrap_or_default()
        } else if operator == "%/*" {
            text.rsplit_once('/').map_or(text.as_str(), |(folder, _)| folder)
        } else if operator.starts_with([':', '-'])
            && !text.is_empty()
            && (operator.starts_with(":-") || operator.starts_with('-'))
        {
            text
        } else {
            return unknown;
        };
        vec![WordPart::Text(changed.to_owned())]
    }

    /// Whether a variable is a number in arithmetic: it contains one, or is unset, which is 0. A value from elsewhere may
    /// be an expression that runs commands.
    pub(super) fn counts_in(&self, name: &str) -> bool {
        is_decimal(&self.variable(name, true))
            // The shell itself sets none with such a name.
            || check::is_harmless_name(name)
                && variables::is_the_shells_own(name, self.surroundings.environment)
                && self.state.sets_only_numbers(name)
    }

    /// `$((expression))` and `$[expression]`
    fn is_plain_arithmetic(&self, raw: &str) -> bool {
        let inside = raw.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
        let inside = inside.or_else(|| raw.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')));
        inside.is_some_and(|inside| self.is_plain_expression(inside))
    }

    /// Digits, operators, and variables that contain digits: nothing here can contain a command. An invalid expression
    /// or a division by zero would end the line, so that the rest would not run as it seems.
    pub(super) fn is_plain_expression(&self, expression: &str) -> bool {
        let mut rest = expression.trim();
        let (mut wants_value, mut depth) = (true, 0_i32);
        while let Some(c) = rest.chars().next() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            if let Some(after) = behind_count(rest).or_else(|| behind_based_number(rest)).filter(|_| wants_value) {
                (wants_value, rest) = (false, after.trim_start());
                continue;
            }
            if end > 0 || c == '$' {
                let (word, after) = match c {
                    '$' => {
                        let named = cut::after_first(rest);
                        let end = named.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(named.len());
                        named.split_at(end)
                    }
                    _ => rest.split_at(end),
                };
                let is_value = match c {
                    '0'..='9' => is_decimal_text(word) || is_of_base(word),
                    // An unset variable leaves no operand.
                    '$' => check::is_name(word) && is_decimal(&self.variable(word, true)),
                    _ => check::is_name(word) && self.counts_in(word),
                };
                if !wants_value || !is_value {
                    return false;
                }
                (wants_value, rest) = (false, after.trim_start());
                continue;
            }
            let operators = ["<=", ">=", "==", "!=", "&&", "||", "<<", ">>", "+", "-", "*", "<", ">", "&", "|", "^"];
            let length = match c {
                '(' if wants_value => {
                    depth += 1;
                    1
                }
                ')' if !wants_value && depth > 0 => {
                    depth -= 1;
                    1
                }
                // A sign.
                '-' | '!' | '~' if wants_value => 1,
                // To a power that is not negative.
                '*' if !wants_value && rest.starts_with("**") => {
                    if !cut::from(rest, 2).trim_start().starts_with(|c: char| c.is_ascii_digit()) {
                        return false;
                    }
                    2
                }
                // By a number that is certainly not zero.
                '/' | '%'
                    if !wants_value
                        && cut::after_first(rest).trim_start().starts_with(|c: char| ('1'..='9').contains(&c)) =>
                {
                    1
                }
                _ if wants_value => return false,
                _ => match operators.iter().find(|operator| rest.starts_with(**operator)) {
                    Some(operator) => operator.len(),
                    None => return false,
                },
            };
            wants_value = c != ')';
            rest = cut::from(rest, length).trim_start();
        }
        !wants_value && depth == 0
    }

    /// `$(cat <<'EOF' ... EOF)`: the text without its trailing newlines.
    fn text_of_heredoc(&self, node: Node<'t>) -> Option<String> {
        let [statement] = named(node).try_into().ok()?;
        if statement.kind() != "redirected_statement" {
            return None;
        }
        let body = statement.child_by_field_name("body")?;
        let [redirect] =
            named(statement).into_iter().filter(|child| *child != body).collect::<Vec<_>>().try_into().ok()?;
        let destinations = super::children_of_field(redirect, "destination");
        let is_input = redirect.child(0).is_some_and(|operator| operator.kind() == "<") && destinations.len() == 1;
        let heredoc = self.lifted.heredoc(redirect).filter(|_| self.text(body) == "cat" && is_input)?;
        heredoc.text().map(|text| text.trim_end_matches('\n').to_owned())
    }

    pub(super) fn inner_expansions(&mut self, node: Node<'t>) -> Walked {
        self.depth += 1;
        if self.depth > super::MAX_DEPTH {
            return Err(Unreadable);
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

    fn substitution(&mut self, node: Node<'t>) -> Walked {
        let raw = self.text(node).trim_start();
        self.judged.insert(node.id());
        if check::is_escaped_substitution(node, self.source) {
            self.doubt = true;
            self.hides_file = true;
            self.state.lose();
            self.output = CommandOutput::Unknown;
            return Ok(());
        }
        if !["$(", "`", "<(", ">("].iter().any(|start| raw.starts_with(start)) || raw.starts_with("$((") {
            return Err(Unreadable);
        }
        let outer = std::mem::replace(&mut self.doubt, false);
        let shared = self.input.shared();
        let input = std::mem::replace(&mut self.input, shared);
        let failed = self.failed.take();
        self.substitutions += 1;
        let parts = all(node);
        let has_several = named(node).len() != 1;
        self.aside(|walk| {
            let mut statements = Vec::new();
            for child in parts {
                match child.kind() {
                    "file_redirect" => {
                        if !walk.redirect(child)?.is_empty() {
                            return Err(Unreadable);
                        }
                    }
                    _ => statements.push(child),
                }
            }
            walk.output = CommandOutput::Unknown;
            walk.sequence(&statements)
        })?;
        self.substitutions -= 1;
        self.input = input;
        self.failed = failed;
        if has_several {
            self.output = CommandOutput::Unknown;
        }
        self.doubt |= outer;
        Ok(())
    }
}

/// `0x1f`, `017`
fn is_of_base(word: &str) -> bool {
    let is_short = word.len() < 16;
    let of_sixteen = word
        .strip_prefix("0x")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    is_short && (of_sixteen || word.starts_with('0') && word.bytes().all(|b| (b'0'..=b'7').contains(&b)))
}

/// What follows `16#ff`: a base from 2 to 64, and digits of it (bash(1), "ARITHMETIC EVALUATION").
fn behind_based_number(expression: &str) -> Option<&str> {
    let (base, rest) = expression.split_once('#')?;
    let base = base.parse::<u32>().ok().filter(|number| (2..=64).contains(number) && base.len() < 3)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    let is_digit = |c: char| c.to_digit(36).is_some_and(|digit| digit < base.min(36));
    (1..12).contains(&digits.len()).then_some(())?;
    digits.chars().all(is_digit).then_some(after)
}

/// What follows the number of arguments, of elements or of characters, or the last status: `$#`, `${#name[@]}`, `$?`.
fn behind_count(expression: &str) -> Option<&str> {
    if let Some(rest) = expression.strip_prefix("$#").or_else(|| expression.strip_prefix("$?")) {
        return Some(rest);
    }
    let (inside, rest) = expression.strip_prefix("${#")?.split_once('}')?;
    let name = inside.strip_suffix("[@]").or_else(|| inside.strip_suffix("[*]")).unwrap_or(inside);
    check::is_name(name).then_some(rest)
}

fn unquoted(raw: &str, tokens: &mut Vec<WordToken>) -> Walked {
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => return Err(Unreadable),
                Some(escaped) => tokens.push(WordToken::Quoted(escaped)),
                None => return Err(Unreadable),
            },
            '$' | '`' | '"' | '\'' | '(' | ')' | '<' | '>' | '|' | '&' | ';' => return Err(Unreadable),
            c if c.is_whitespace() || c.is_control() => return Err(Unreadable),
            c => tokens.push(WordToken::Bare(c)),
        }
    }
    Ok(())
}

/// `$'...'` (Bash manual, section 3.1.2.4). The grammar ends it later than the shell does.
fn ansi_quoted(raw: &str, tokens: &mut Vec<WordToken>) -> Walked {
    let inner = raw.strip_prefix("$'").and_then(|rest| rest.strip_suffix('\'')).ok_or(Unreadable)?;
    let mut chars = inner.chars().peekable();
    tokens.push(WordToken::Empty);
    while let Some(c) = chars.next() {
        if c == '\'' {
            return Err(Unreadable);
        }
        if c != '\\' {
            tokens.push(WordToken::Quoted(c));
            continue;
        }
        // Bytes above 127 are parts of characters, and a NUL ends the word.
        let ascii = |value: Option<u32>| value.filter(|value| (1..128).contains(value)).and_then(char::from_u32);
        let escape = chars.next().ok_or(Unreadable)?;
        let mut number = |radix: u32, most: usize, first: Option<u32>| {
            let (mut value, mut digits) = (first, usize::from(first.is_some()));
            while digits < most
                && let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix))
            {
                value = Some(value.unwrap_or_default() * radix + digit);
                digits += 1;
                chars.next();
            }
            value
        };
        let decoded = match escape {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\x07'),
            'b' => Some('\x08'),
            'e' | 'E' => Some('\x1b'),
            'f' => Some('\x0c'),
            'v' => Some('\x0b'),
            same @ ('\\' | '\'' | '"' | '?') => Some(same),
            'x' => ascii(number(16, 2, None)),
            'u' => ascii(number(16, 4, None)),
            'U' => ascii(number(16, 8, None)),
            digit @ '0'..='7' => ascii(number(8, 3, digit.to_digit(8))),
            _ => None,
        };
        tokens.push(match decoded {
            Some(c) => WordToken::Quoted(c),
            None => WordToken::Whole(WordPart::Unknown { splits: false }),
        });
    }
    Ok(())
}
