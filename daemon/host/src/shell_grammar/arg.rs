//! Words as a program gets them: the known parts of each after the shell's expansions.
//!
//! The order is the shell's (Bash manual, section 3.5): brace lists, tildes and variables, splitting, file names.

use std::rc::Rc;

use toold_proto::cut;

use super::names::NameSet;

/// The most words that one brace list may expand to here.
const MAX_WORDS: usize = 64;

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordPart {
    Text(String),
    /// `*`, `?` or a bracket expression that the shell matches with file names.
    Glob(String),
    /// Digits, possibly after a minus sign.
    Number,
    /// Digits.
    Digits,
    /// A name without blanks that does not begin with a dash, such as a commit.
    Plain,
    /// Digits, or no word at all.
    Maybe,
    /// Any number of these names, each a word of its own.
    Names(Rc<NameSet>),
    /// The name of a pipe (`<(...)`).
    Pipe,
    Unknown {
        /// It may become no word, or several.
        splits: bool,
    },
}

/// A word after the shell's expansions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arg {
    pub(super) pieces: Vec<WordPart>,
    /// As it was written.
    pub(super) raw: String,
}

impl Arg {
    pub(super) fn text(text: &str) -> Self {
        Self { pieces: vec![WordPart::Text(text.to_owned())], raw: text.to_owned() }
    }

    pub(super) fn unknown(raw: &str) -> Self {
        Self { pieces: vec![WordPart::Unknown { splits: true }], raw: raw.to_owned() }
    }

    /// The word, if all of it is known.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [WordPart::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.literal() == Some(text)
    }

    /// Its known prefix.
    pub(super) fn start(&self) -> &str {
        match self.pieces.first() {
            Some(WordPart::Text(text)) => text,
            _ => "",
        }
    }

    /// Whether a program might take it for an option.
    pub(super) fn may_be_option(&self) -> bool {
        match self.pieces.first() {
            None => false,
            Some(WordPart::Text(text)) => text.starts_with(['-', '+']),
            Some(WordPart::Plain | WordPart::Maybe | WordPart::Digits | WordPart::Pipe) => false,
            Some(WordPart::Names(names)) => names.has_dash,
            Some(WordPart::Glob(_) | WordPart::Number | WordPart::Unknown { .. }) => true,
        }
    }

    /// Whether it is exactly one word.
    pub(super) fn is_one(&self) -> bool {
        let splits = |piece: &WordPart| {
            matches!(piece, WordPart::Glob(_) | WordPart::Names(_) | WordPart::Unknown { splits: true })
        };
        let vanishes = !self.pieces.is_empty() && self.pieces.iter().all(|piece| *piece == WordPart::Maybe);
        !vanishes && !self.pieces.iter().any(splits)
    }

    /// Whether the shell may make an option of it, or of a further word that it becomes.
    pub(super) fn may_become_option(&self) -> bool {
        let has = |is: fn(&WordPart) -> bool| self.pieces.iter().any(is);
        let splits = |piece: &WordPart| match piece {
            WordPart::Unknown { splits } => *splits,
            WordPart::Names(names) => names.has_dash,
            _ => false,
        };
        // The names that a wildcard matches are looked up.
        let is_wildcard = matches!(self.pieces.first(), Some(WordPart::Glob(_)))
            && !has(|piece| matches!(piece, WordPart::Unknown { .. }));
        has(splits) || self.start().is_empty() && self.may_be_option() && !is_wildcard
    }

    pub(super) fn has_glob(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, WordPart::Glob(_)))
    }

    /// A name with wildcards, if it is one, as it was written.
    pub(super) fn wildcard(&self) -> Option<String> {
        let is_known = |piece: &WordPart| matches!(piece, WordPart::Text(_) | WordPart::Glob(_));
        Some(self.pattern()).filter(|pattern| self.pieces.iter().all(is_known) && !pattern.contains('/'))
    }

    /// Its known text, with wildcards as they were written.
    pub(super) fn pattern(&self) -> String {
        let text = self.pieces.iter().map(|piece| match piece {
            WordPart::Text(text) | WordPart::Glob(text) => text.as_str(),
            WordPart::Number
            | WordPart::Digits
            | WordPart::Plain
            | WordPart::Maybe
            | WordPart::Names(_)
            | WordPart::Pipe
            | WordPart::Unknown { .. } => "",
        });
        text.collect()
    }

    /// A word, a text and a wildcard.
    pub(super) fn joined(word: &Self, text: &str, wildcard: &str) -> Self {
        let mut pieces = word.pieces.clone();
        push_text(&mut pieces, text);
        pieces.push(WordPart::Glob(wildcard.to_owned()));
        Self { pieces, raw: format!("{}{text}{wildcard}", word.raw) }
    }

    /// All names that begin with it.
    pub(super) fn followed_by_any(&self) -> Self {
        let pieces = self.pieces.iter().cloned().chain([WordPart::Glob("*".to_owned())]).collect();
        Self { pieces, raw: format!("{}*", self.raw) }
    }

    /// Without the first bytes of its known text.
    pub(super) fn without_start(&self, bytes: usize) -> Self {
        let mut arg = self.clone();
        if let Some(WordPart::Text(text)) = arg.pieces.first_mut() {
            *text = cut::from(text, bytes).to_owned();
            if text.is_empty() && arg.pieces.len() > 1 {
                arg.pieces.remove(0);
            }
        }
        arg
    }

    /// The words that it stands for, in the form that the engine matches with patterns.
    pub(super) fn word(&self) -> toold_engine::need::Word {
        match self.literal() {
            Some(text) => toold_engine::need::Word { text: text.to_owned(), literal: true },
            None => toold_engine::need::Word { text: self.raw.clone(), literal: false },
        }
    }
}

/// A word under construction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordToken {
    /// A character that may be special to the shell.
    Bare(char),
    Quoted(char),
    /// Empty quotes: the word exists even if it is empty.
    Empty,
    /// Within quotes, or of a form that is never split.
    Whole(WordPart),
    /// The value of a variable outside quotes.
    Value(Vec<WordPart>),
}

/// The words that the tokens of one word expand to.
pub(super) fn words(tokens: &[WordToken], raw: &str, home: Option<&str>) -> Vec<Arg> {
    let Some(lists) = braces(tokens) else { return vec![Arg::unknown(raw)] };
    // Brace lists come before variables, so letters of a list may belong to a variable's name.
    if lists.len() > 1 && tokens.iter().any(|token| matches!(token, WordToken::Value(_))) {
        return vec![Arg::unknown(raw)];
    }
    let written = if lists.len() == 1 { Some(raw) } else { None };
    lists.iter().flat_map(|tokens| WordBuilder::of(tokens, written.unwrap_or(raw), home)).collect()
}

/// The value of an assignment: no splitting, file names or brace lists.
pub(super) fn value(tokens: &[WordToken], home: Option<&str>) -> Vec<WordPart> {
    let mut pieces = Vec::new();
    let mut tokens = tokens.iter().peekable();
    let mut previous = None;
    while let Some(token) = tokens.next() {
        match token {
            WordToken::Bare('~') if matches!(previous, None | Some(&WordToken::Bare(':'))) => {
                let ends = matches!(tokens.peek(), None | Some(WordToken::Bare('/' | ':')));
                match home.filter(|_| ends) {
                    Some(home) => push_text(&mut pieces, home),
                    None => pieces.push(WordPart::Unknown { splits: false }),
                }
            }
            WordToken::Bare(c) | WordToken::Quoted(c) => push_text(&mut pieces, c.encode_utf8(&mut [0; 4])),
            WordToken::Empty => {}
            WordToken::Whole(piece) => push(&mut pieces, piece.clone()),
            WordToken::Value(value) => value.iter().for_each(|piece| push(&mut pieces, piece.clone())),
        }
        previous = Some(token);
    }
    pieces
}

pub(super) fn push(pieces: &mut Vec<WordPart>, piece: WordPart) {
    match piece {
        WordPart::Text(text) => push_text(pieces, &text),
        other => pieces.push(other),
    }
}

fn push_text(pieces: &mut Vec<WordPart>, text: &str) {
    match pieces.last_mut() {
        Some(WordPart::Text(last)) => last.push_str(text),
        _ => pieces.push(WordPart::Text(text.to_owned())),
    }
}

/// The words, with the last one under construction.
struct WordBuilder<'a> {
    done: Vec<Arg>,
    pieces: Vec<WordPart>,
    /// There is a word, possibly an empty one.
    is_there: bool,
    raw: &'a str,
}

impl<'a> WordBuilder<'a> {
    fn of(tokens: &[WordToken], raw: &'a str, home: Option<&str>) -> Vec<Arg> {
        let mut words = Self { done: Vec::new(), pieces: Vec::new(), is_there: false, raw };
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                WordToken::Bare('~') if at == 1 => {
                    let ends = matches!(tokens.get(at), None | Some(WordToken::Bare('/')));
                    match home.filter(|_| ends) {
                        Some(home) => words.text(home),
                        None => words.push(WordPart::Unknown { splits: false }),
                    }
                }
                // After `NAME=` and `:` the shell may expand it as well.
                WordToken::Bare('~') if matches!(tokens[at - 2], WordToken::Bare('=' | ':')) => {
                    words.push(WordPart::Unknown { splits: false });
                }
                WordToken::Bare(c @ ('*' | '?')) => words.push(WordPart::Glob(c.to_string())),
                WordToken::Bare('[') => match bracket(&tokens[at - 1..]) {
                    Some((glob, length)) => {
                        words.push(glob);
                        at += length - 1;
                    }
                    None => words.text("["),
                },
                WordToken::Bare(c) | WordToken::Quoted(c) => words.text(c.encode_utf8(&mut [0; 4])),
                WordToken::Empty => words.is_there = true,
                WordToken::Whole(piece) => words.push(piece.clone()),
                WordToken::Value(value) => words.value(value),
            }
        }
        words.end();
        words.done
    }

    fn text(&mut self, text: &str) {
        self.is_there = true;
        push_text(&mut self.pieces, text);
    }

    fn push(&mut self, piece: WordPart) {
        self.is_there = true;
        push(&mut self.pieces, piece);
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_there) {
            self.done.push(Arg { pieces: std::mem::take(&mut self.pieces), raw: self.raw.to_owned() });
        }
    }

    /// Outside quotes: blanks end words, and wildcards are matched with file names.
    fn value(&mut self, value: &[WordPart]) {
        for piece in value {
            let WordPart::Text(text) = piece else {
                match piece {
                    WordPart::Unknown { .. } => self.push(WordPart::Unknown { splits: true }),
                    WordPart::Plain => self.push(WordPart::Maybe),
                    // The names that a wildcard matched are split like any text.
                    WordPart::Names(names) if !names.is_plain => self.push(WordPart::Unknown { splits: true }),
                    other => self.push(other.clone()),
                }
                continue;
            };
            // A backslash prevents the next character from being a wildcard, and stays if that is not one.
            if text.contains('\\') {
                self.push(WordPart::Unknown { splits: true });
                continue;
            }
            for c in text.chars() {
                match c {
                    ' ' | '\t' | '\n' => self.end(),
                    '*' | '?' => self.push(WordPart::Glob(c.to_string())),
                    '[' => self.push(WordPart::Unknown { splits: true }),
                    c => self.text(c.encode_utf8(&mut [0; 4])),
                }
            }
        }
    }
}

/// A bracket expression at the start of the tokens, and its number of tokens; `None` if `[` is an ordinary character.
fn bracket(tokens: &[WordToken]) -> Option<(WordPart, usize)> {
    let end = tokens.iter().skip(2).position(|token| *token == WordToken::Bare(']'))? + 2;
    let mut text = String::new();
    for token in &tokens[..=end] {
        match token {
            WordToken::Bare(c) if !matches!(c, '\\' | '/') => text.push(*c),
            // Quotes and classes within brackets: the matching names are unknown.
            _ => return Some((WordPart::Unknown { splits: true }, end + 1)),
        }
    }
    let is_plain = !cut::after_first(&text).contains('[');
    let piece = if is_plain { WordPart::Glob(text) } else { WordPart::Unknown { splits: true } };
    Some((piece, end + 1))
}

/// Expands the brace lists; `None` if the result is unknown.
fn braces(tokens: &[WordToken]) -> Option<Vec<Vec<WordToken>>> {
    let Some(open) = tokens.iter().position(|token| *token == WordToken::Bare('{')) else {
        return Some(vec![tokens.to_vec()]);
    };
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    let mut close = None;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            WordToken::Bare('{') => depth += 1,
            WordToken::Bare('}') => {
                depth -= 1;
                if depth == 0 {
                    close = Some(at);
                    break;
                }
            }
            WordToken::Bare(',') if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    // An unmatched brace is a character, but which later characters still form lists is not certain.
    let Some(close) = close else {
        let rest = &tokens[open + 1..];
        let has_more = rest.iter().any(|token| matches!(token, WordToken::Bare('{' | '}')));
        return (!has_more).then(|| vec![tokens.to_vec()]);
    };
    let inside = &tokens[open + 1..close];
    let alternatives: Vec<Vec<WordToken>> = if commas.is_empty() {
        match sequence(inside) {
            Sequence::Words(words) => words,
            Sequence::Unknown => return None,
            // `{}`, and forms like `stash@{0}`, are plain characters.
            Sequence::None => {
                if inside.iter().any(|token| matches!(token, WordToken::Bare('{' | '}'))) {
                    return None;
                }
                let rest = braces(&tokens[close + 1..])?;
                let start = &tokens[..=close];
                return Some(rest.into_iter().map(|rest| [start, &rest].concat()).collect());
            }
        }
    } else {
        let mut alternatives = Vec::new();
        let mut from = open + 1;
        for end in commas.into_iter().chain([close]) {
            alternatives.extend(braces(&tokens[from..end])?);
            from = end + 1;
        }
        alternatives
    };
    let mut words = Vec::new();
    let rest = braces(&tokens[close + 1..])?;
    for alternative in &alternatives {
        for rest in &rest {
            words.push([&tokens[..open], alternative, rest].concat());
        }
    }
    (words.len() <= MAX_WORDS).then_some(words)
}

enum Sequence {
    Words(Vec<Vec<WordToken>>),
    None,
    Unknown,
}

/// `1..5`
fn sequence(inside: &[WordToken]) -> Sequence {
    let mut text = String::new();
    for token in inside {
        match token {
            WordToken::Bare(c) => text.push(*c),
            // With `..` from elsewhere, it might be a sequence.
            _ => return if text.contains('.') || inside.len() > 1 { Sequence::Unknown } else { Sequence::None },
        }
    }
    let Some((first, last)) = text.split_once("..") else { return Sequence::None };
    let is_number = |text: &str| !text.is_empty() && text.len() < 6 && text.bytes().all(|b| b.is_ascii_digit());
    let has_zeros = |text: &str| text.len() > 1 && text.starts_with('0');
    match (first.parse::<i64>(), last.parse::<i64>()) {
        (Ok(a), Ok(b)) if is_number(first) && is_number(last) && !has_zeros(first) && !has_zeros(last) => {
            let numbers: Vec<i64> = if a <= b { (a..=b).collect() } else { (b..=a).rev().collect() };
            if numbers.len() > MAX_WORDS {
                return Sequence::Unknown;
            }
            let tokens = |number: &i64| number.to_string().chars().map(WordToken::Quoted).collect();
            Sequence::Words(numbers.iter().map(tokens).collect())
        }
        _ => Sequence::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> Vec<WordToken> {
        text.chars().map(WordToken::Bare).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = words(&bare(text), text, Some("/home/u"));
        let shown: Vec<String> = found
            .iter()
            .map(|arg| match arg.literal() {
                Some(text) => text.to_owned(),
                None => format!("{:?}", arg.pieces),
            })
            .collect();
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn brace_lists_become_words() {
        check("a{b,c}d", &["abd", "acd"]);
        check("{a,b}{c,d}", &["ac", "ad", "bc", "bd"]);
        check("{a,b{c,d}}", &["a", "bc", "bd"]);
        check("{1..3}", &["1", "2", "3"]);
        check("stash@{0}", &["stash@{0}"]);
        check("{}", &["{}"]);
        check("{-exec,touch,P}", &["-exec", "touch", "P"]);
        check("~/x", &["/home/u/x"]);
        check("a~", &["a~"]);
        check("[", &["["]);
        for unknown in ["{a..z}", "{01..03}", "{a,b", "{1..99999}", "{{a}"] {
            let found = words(&bare(unknown), unknown, None);
            assert!(found.iter().all(|arg| arg.literal().is_none()) || unknown == "{a,b", "{unknown}: {found:?}");
        }
    }
}
