//! JSON as models write it, read one character at a time.
//!
//! Taken beyond JSON: unquoted keys, trailing commas, single quotes, line breaks in strings,
//! `True`, `False`, `None`, comments (`//`, `/* */`, `#`), Gemma's string marks `<|"|>` and
//! `<escape>`, and Python's `(key=value, ...)`. Everything else is an error, and so is what has
//! two readings: a key that stands twice, a number that would lose digits.
//! The meaning of a value as a call is in `shape.rs`.

use serde_json::{Map, Number, Value};
use toold_proto::cut::cut_chars;

/// Deeper values are refused: code that walks or drops a value later may recurse.
pub(crate) const MAX_DEPTH: usize = 128;

/// Gemma 4 and FunctionGemma delimit strings with a token of their own, without escapes.
pub(crate) const STRING_MARKS: [&str; 2] = ["<|\"|>", "<escape>"];

/// A line of Python's calls must be told from prose within the line, so what could run on over
/// many lines is not taken there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonDialect {
    Json,
    /// No comments, no line breaks within strings.
    Python,
}

#[derive(Debug, PartialEq)]
pub(crate) enum JsonStep {
    More,
    Done(Value),
    Fail(String),
}

/// Reads one object, list or `(...)`, whose opening bracket is the first character it is given.
#[derive(Debug)]
pub(crate) struct JsonReader {
    dialect: JsonDialect,
    frames: Vec<Frame>,
    state: JsonState,
    /// The characters that `Fail` was about, when it was about more than the last.
    rejected: String,
}

#[derive(Debug)]
enum Frame {
    List(Vec<Value>),
    Object { map: Map<String, Value>, key: String, round: bool },
}

#[derive(Debug)]
enum JsonState {
    Start,
    /// A value must come; in a list its end may come instead when `end` says so.
    Value {
        end: bool,
    },
    /// A key or the object's end must come.
    Key {
        end: bool,
    },
    BareKey(String),
    AfterKey,
    AfterValue,
    Text(JsonString),
    /// A number or a word such as `true`.
    Word(String),
    /// The beginning of one of [`STRING_MARKS`].
    Mark {
        seen: String,
        key: bool,
    },
    Comment {
        kind: Comment,
        then: Box<JsonState>,
    },
}

#[derive(Debug)]
enum Comment {
    /// After a `/`.
    Slash,
    Line,
    Block {
        star: bool,
    },
}

#[derive(Debug)]
struct JsonString {
    out: String,
    key: bool,
    quote: Quote,
}

#[derive(Debug)]
enum Quote {
    Plain {
        quote: char,
        escape: Escape,
    },
    /// Ends with the same mark; `seen` is the beginning of it.
    Mark {
        mark: &'static str,
        seen: usize,
    },
}

#[derive(Debug)]
enum Escape {
    None,
    Backslash,
    /// `digits` of `\uXXXX` have come; `high` is the first half of a surrogate pair.
    Unicode {
        digits: u8,
        value: u32,
        high: Option<u32>,
    },
    /// A first half stands; `\u` must follow.
    Half {
        high: u32,
        backslash: bool,
    },
}

impl JsonReader {
    pub(crate) fn new(dialect: JsonDialect) -> Self {
        Self { dialect, frames: Vec::new(), state: JsonState::Start, rejected: String::new() }
    }

    /// Whether the next character is data, whatever it looks like.
    pub(crate) fn in_string(&self) -> bool {
        matches!(self.state, JsonState::Text(_))
    }

    /// The text that was not consumed when the reader failed at `c`: it may begin a close tag.
    pub(crate) fn rejected(&self, c: char) -> String {
        if self.rejected.is_empty() { c.to_string() } else { self.rejected.clone() }
    }

    /// Not to be called again after `Done` or `Fail`.
    pub(crate) fn push(&mut self, c: char) -> JsonStep {
        match std::mem::replace(&mut self.state, JsonState::AfterValue) {
            JsonState::Start => self.open(c),
            JsonState::Value { end } => self.value(c, end),
            JsonState::Key { end } => self.key(c, end),
            JsonState::BareKey(mut key) => {
                if is_key_char(c) {
                    key.push(c);
                    return self.more(JsonState::BareKey(key));
                }
                match self.take_key(key) {
                    Ok(()) => self.after_key(c),
                    Err(reason) => JsonStep::Fail(reason),
                }
            }
            JsonState::AfterKey => self.after_key(c),
            JsonState::AfterValue => self.after_value(c),
            JsonState::Text(text) => self.text(text, c),
            JsonState::Word(mut word) => {
                if c.is_alphanumeric() || matches!(c, '_' | '+' | '-' | '.') {
                    word.push(c);
                    return self.more(JsonState::Word(word));
                }
                match word_value(&word) {
                    Ok(value) => match self.take_value(value) {
                        JsonStep::More => self.push(c),
                        other => other,
                    },
                    Err(reason) => JsonStep::Fail(reason),
                }
            }
            JsonState::Mark { mut seen, key } => {
                seen.push(c);
                if let Some(mark) = STRING_MARKS.into_iter().find(|mark| **mark == *seen) {
                    let quote = Quote::Mark { mark, seen: 0 };
                    return self.more(JsonState::Text(JsonString { out: String::new(), key, quote }));
                }
                if STRING_MARKS.into_iter().any(|mark| mark.starts_with(&seen)) {
                    return self.more(JsonState::Mark { seen, key });
                }
                let reason = format!("expected a value or a key, found {seen:?}");
                self.rejected = seen;
                JsonStep::Fail(reason)
            }
            JsonState::Comment { kind, then } => self.comment(kind, then, c),
        }
    }

    fn more(&mut self, state: JsonState) -> JsonStep {
        self.state = state;
        JsonStep::More
    }

    fn open(&mut self, c: char) -> JsonStep {
        if self.frames.len() == MAX_DEPTH {
            return JsonStep::Fail(format!("it is nested deeper than {MAX_DEPTH} levels"));
        }
        match c {
            '[' => {
                self.frames.push(Frame::List(Vec::new()));
                self.more(JsonState::Value { end: true })
            }
            _ => {
                self.frames.push(Frame::Object { map: Map::new(), key: String::new(), round: c == '(' });
                self.more(JsonState::Key { end: true })
            }
        }
    }

    fn value(&mut self, c: char, end: bool) -> JsonStep {
        match c {
            '{' | '[' => self.open(c),
            ']' if end && matches!(self.frames.last(), Some(Frame::List(_))) => self.close(),
            '<' => self.more(JsonState::Mark { seen: "<".to_owned(), key: false }),
            '"' | '\'' => self.more(JsonState::Text(JsonString::plain(c, false))),
            _ if c.is_whitespace() => self.more(JsonState::Value { end }),
            _ if c.is_alphanumeric() || matches!(c, '-' | '_' | '+' | '.') => self.more(JsonState::Word(c.to_string())),
            _ => self.comment_or(c, JsonState::Value { end }, "expected a value"),
        }
    }

    fn key(&mut self, c: char, end: bool) -> JsonStep {
        let round = matches!(self.frames.last(), Some(Frame::Object { round: true, .. }));
        match c {
            '}' if end && !round => self.close(),
            ')' if end && round => self.close(),
            '<' => self.more(JsonState::Mark { seen: "<".to_owned(), key: true }),
            '"' | '\'' => self.more(JsonState::Text(JsonString::plain(c, true))),
            _ if c.is_whitespace() => self.more(JsonState::Key { end }),
            _ if is_key_char(c) => self.more(JsonState::BareKey(c.to_string())),
            _ => self.comment_or(c, JsonState::Key { end }, "expected a key"),
        }
    }

    fn after_key(&mut self, c: char) -> JsonStep {
        let separator = if matches!(self.frames.last(), Some(Frame::Object { round: true, .. })) { '=' } else { ':' };
        match c {
            _ if c == separator => self.more(JsonState::Value { end: false }),
            _ if c.is_whitespace() => self.more(JsonState::AfterKey),
            _ => self.comment_or(c, JsonState::AfterKey, &format!("expected `{separator}` after a key")),
        }
    }

    fn after_value(&mut self, c: char) -> JsonStep {
        match (c, self.frames.last()) {
            (',', Some(Frame::List(_))) => self.more(JsonState::Value { end: true }),
            (',', Some(Frame::Object { .. })) => self.more(JsonState::Key { end: true }),
            (']', Some(Frame::List(_)))
            | ('}', Some(Frame::Object { round: false, .. }))
            | (')', Some(Frame::Object { round: true, .. })) => self.close(),
            _ if c.is_whitespace() => self.more(JsonState::AfterValue),
            (_, Some(Frame::List(_))) => self.comment_or(c, JsonState::AfterValue, "expected `,` or `]`"),
            (_, Some(Frame::Object { round: true, .. })) => {
                self.comment_or(c, JsonState::AfterValue, "expected `,` or `)`")
            }
            (_, Some(Frame::Object { .. }) | None) => self.comment_or(c, JsonState::AfterValue, "expected `,` or `}`"),
        }
    }

    fn comment_or(&mut self, c: char, then: JsonState, expected: &str) -> JsonStep {
        let kind = match c {
            '/' => Comment::Slash,
            '#' => Comment::Line,
            _ => return JsonStep::Fail(format!("{expected}, found {c:?}")),
        };
        if self.dialect == JsonDialect::Python {
            return JsonStep::Fail(format!("{expected}, found {c:?}"));
        }
        self.more(JsonState::Comment { kind, then: Box::new(then) })
    }

    fn comment(&mut self, kind: Comment, then: Box<JsonState>, c: char) -> JsonStep {
        let kind = match (kind, c) {
            (Comment::Slash, '/') => Comment::Line,
            (Comment::Slash, '*') => Comment::Block { star: false },
            (Comment::Slash, _) => return JsonStep::Fail("there is a single `/` outside of a string".to_owned()),
            (Comment::Line, '\n') | (Comment::Block { star: true }, '/') => return self.more(*then),
            (Comment::Line, _) => Comment::Line,
            (Comment::Block { .. }, _) => Comment::Block { star: c == '*' },
        };
        self.more(JsonState::Comment { kind, then })
    }

    fn text(&mut self, mut text: JsonString, c: char) -> JsonStep {
        let is_python = matches!(self.frames.first(), Some(Frame::Object { round: true, .. }));
        match text.push(c, self.dialect, is_python) {
            Ok(false) => self.more(JsonState::Text(text)),
            Ok(true) if text.key => match self.take_key(text.out) {
                Ok(()) => self.more(JsonState::AfterKey),
                Err(reason) => JsonStep::Fail(reason),
            },
            Ok(true) => self.take_value(Value::String(text.out)),
            Err(reason) => JsonStep::Fail(reason),
        }
    }

    fn take_key(&mut self, name: String) -> Result<(), String> {
        if let Some(Frame::Object { map, key, .. }) = self.frames.last_mut() {
            if map.contains_key(&name) {
                return Err(format!("the key {:?} is given twice in one object", excerpt(&name)));
            }
            *key = name;
        }
        Ok(())
    }

    fn take_value(&mut self, value: Value) -> JsonStep {
        match self.frames.last_mut() {
            None => return JsonStep::Done(value),
            Some(Frame::List(items)) => items.push(value),
            Some(Frame::Object { map, key, .. }) => {
                map.insert(std::mem::take(key), value);
            }
        }
        self.more(JsonState::AfterValue)
    }

    fn close(&mut self) -> JsonStep {
        let value = match self.frames.pop() {
            Some(Frame::List(items)) => Value::Array(items),
            Some(Frame::Object { map, .. }) => Value::Object(map),
            None => Value::Null,
        };
        self.take_value(value)
    }
}

impl JsonString {
    fn plain(quote: char, key: bool) -> Self {
        Self { out: String::new(), key, quote: Quote::Plain { quote, escape: Escape::None } }
    }

    /// Whether the string has ended.
    fn push(&mut self, c: char, dialect: JsonDialect, is_python: bool) -> Result<bool, String> {
        let (quote, escape) = match &mut self.quote {
            Quote::Plain { quote, escape } => (*quote, escape),
            Quote::Mark { mark, seen } => {
                // A mark begins with the only `<` in it, so a mismatch can begin a new one at once.
                if mark.as_bytes()[*seen] as char == c {
                    *seen += 1;
                    return Ok(*seen == mark.len());
                }
                self.out.push_str(&mark[..*seen]);
                *seen = usize::from(c == '<');
                if *seen == 0 {
                    self.out.push(c);
                }
                return if dialect == JsonDialect::Python && c == '\n' { Err(line_break()) } else { Ok(false) };
            }
        };
        match std::mem::replace(escape, Escape::None) {
            Escape::None if c == quote => return Ok(true),
            Escape::None if c == '\\' => *escape = Escape::Backslash,
            Escape::None if c == '\n' && dialect == JsonDialect::Python => return Err(line_break()),
            Escape::None => self.out.push(c),
            Escape::Backslash if c == 'u' => *escape = Escape::Unicode { digits: 0, value: 0, high: None },
            // In Python, a backslash before anything else stands for itself.
            Escape::Backslash if is_python && !"\"'\\/ntrbfuUxNav01234567\r\n".contains(c) => {
                self.out.push('\\');
                self.out.push(c);
            }
            Escape::Backslash => self.out.push(match c {
                '"' | '\'' | '\\' | '/' => c,
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                _ => return Err(format!("`\\{c}` is not an escape in a string; write a backslash as `\\\\`")),
            }),
            Escape::Half { high, backslash: false } if c == '\\' => *escape = Escape::Half { high, backslash: true },
            Escape::Half { high, backslash: true } if c == 'u' => {
                *escape = Escape::Unicode { digits: 0, value: 0, high: Some(high) };
            }
            Escape::Half { .. } => return Err("a string contains half of a surrogate pair".to_owned()),
            Escape::Unicode { digits, value, high } => {
                let digit =
                    c.to_digit(16).ok_or_else(|| "`\\u` in a string needs four hexadecimal digits".to_owned())?;
                let value = value * 16 + digit;
                if digits < 3 {
                    *escape = Escape::Unicode { digits: digits + 1, value, high };
                    return Ok(false);
                }
                match (high, value) {
                    (None, 0xD800..=0xDBFF) => *escape = Escape::Half { high: value, backslash: false },
                    (Some(high), 0xDC00..=0xDFFF) => {
                        let value = 0x10000 + ((high - 0xD800) << 10) + (value - 0xDC00);
                        self.out.extend(char::from_u32(value));
                    }
                    (None, _) if char::from_u32(value).is_some() => self.out.extend(char::from_u32(value)),
                    _ => return Err("a string contains half of a surrogate pair".to_owned()),
                }
            }
        }
        Ok(false)
    }
}

fn line_break() -> String {
    "a string continues after the end of its line".to_owned()
}

pub(crate) fn is_key_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.')
}

fn word_value(word: &str) -> Result<Value, String> {
    match word {
        "true" | "True" => return Ok(Value::Bool(true)),
        "false" | "False" => return Ok(Value::Bool(false)),
        "null" | "None" => return Ok(Value::Null),
        _ => {}
    }
    if !word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return Err(format!("`{}` is neither quoted nor true, false, null or a number", excerpt(word)));
    }
    number(word).map(Value::Number).ok_or_else(|| format!("`{}` is not a JSON number", excerpt(word)))
}

/// `None` for what is no number in JSON, and for one that would not keep its value.
pub(crate) fn number(word: &str) -> Option<Number> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let whole: &str = &digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())];
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let rest = &digits[whole.len()..];
    if rest.is_empty() && word != "-0" {
        return word.parse::<i64>().map(Number::from).or_else(|_| word.parse::<u64>().map(Number::from)).ok();
    }
    let exponent = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => {
            let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
            if end == 0 {
                return None;
            }
            &fraction[end..]
        }
    };
    if let Some(power) = exponent.strip_prefix(['e', 'E']) {
        let power = power.strip_prefix(['+', '-']).unwrap_or(power);
        if power.is_empty() || !power.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
    } else if !exponent.is_empty() {
        return None;
    }
    // Not through serde_json, whose quick way of reading floats may be off in the last digit.
    word.parse::<f64>().ok().and_then(Number::from_f64)
}

/// Reads a text that is one object or list and nothing else.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return Err(format!("`{}` is not a JSON object", excerpt(text)));
    }
    let mut reader = JsonReader::new(JsonDialect::Json);
    let mut chars = text.chars();
    for c in chars.by_ref() {
        match reader.push(c) {
            JsonStep::More => {}
            JsonStep::Fail(reason) => return Err(reason),
            JsonStep::Done(value) => {
                let rest = chars.as_str();
                return match rest.is_empty() {
                    true => Ok(value),
                    false => Err(format!("`{}` follows the end of the JSON", excerpt(rest))),
                };
            }
        }
    }
    Err("it ends in the middle of the JSON".to_owned())
}

/// The beginning of a text, for an error in words.
pub(crate) fn excerpt(text: &str) -> String {
    cut_chars(text, 60, "…").into_owned()
}
