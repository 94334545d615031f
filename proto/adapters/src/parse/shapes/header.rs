//! Kimi K3: everything stands between a header that opens it and one that closes it.
//!
//! `<|open|>tools<|sep|>`, in it `<|open|>call tool="NAME" index="1"<|sep|>`, in it
//! `<|open|>argument key="KEY" type="string"<|sep|>value<|close|>argument<|sep|>`. Thinking and the answer have headers
//! too.

use super::gap::{Gap, GapStep};
use super::{CUT_OFF, Flow, MessageKind, ParsedCalls};
use crate::mark::Mark;
use crate::parse::found_call::{FoundCall, RawArguments, RawKind, RawParameter};
use crate::parse::lenient_json::excerpt;
use crate::parse::markers::{Match, Matcher};

/// `name="value"` pairs, read one character at a time.
#[derive(Debug, Default)]
pub(crate) struct TagAttributes {
    pairs: Vec<(String, String)>,
    state: TagAttributesState,
    length: usize,
}

#[derive(Debug, Default)]
enum TagAttributesState {
    #[default]
    Space,
    Name(String),
    Equals(String),
    Value {
        name: String,
        quote: char,
        text: String,
    },
}

/// Longer headers are none.
const MAX_LENGTH: usize = 1_024;

impl TagAttributes {
    pub(crate) fn in_quotes(&self) -> bool {
        matches!(self.state, TagAttributesState::Value { .. })
    }

    /// No attribute has begun.
    pub(crate) fn are_empty(&self) -> bool {
        self.pairs.is_empty() && matches!(self.state, TagAttributesState::Space | TagAttributesState::Name(_))
    }

    /// # Errors
    ///
    /// In words, when this is no list of attributes.
    pub(crate) fn push(&mut self, c: char) -> Result<(), String> {
        self.length += c.len_utf8();
        if self.length > MAX_LENGTH {
            return Err(format!("its attributes have more than {MAX_LENGTH} bytes"));
        }
        let wrong = |c: char| format!("expected name=\"value\", found `{c}`");
        self.state = match std::mem::take(&mut self.state) {
            TagAttributesState::Space if c.is_whitespace() => TagAttributesState::Space,
            TagAttributesState::Space if c.is_ascii_alphabetic() => TagAttributesState::Name(c.to_string()),
            TagAttributesState::Space => return Err(wrong(c)),
            TagAttributesState::Name(name) if c == '=' => TagAttributesState::Equals(name),
            TagAttributesState::Name(mut name) if c.is_ascii_alphanumeric() || c == '_' || c == '-' => {
                name.push(c);
                TagAttributesState::Name(name)
            }
            TagAttributesState::Name(_) => return Err(wrong(c)),
            TagAttributesState::Equals(name) if c == '"' || c == '\'' => {
                TagAttributesState::Value { name, quote: c, text: String::new() }
            }
            TagAttributesState::Equals(_) => return Err(wrong(c)),
            TagAttributesState::Value { name, quote, text } if c == quote => {
                self.pairs.push((name, unescaped(&text)));
                TagAttributesState::Space
            }
            TagAttributesState::Value { name, quote, mut text } => {
                text.push(c);
                TagAttributesState::Value { name, quote, text }
            }
        };
        Ok(())
    }

    /// The value of an attribute, which is empty for none.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let place = self.pairs.iter().position(|(other, _)| other == name)?;
        Some(self.pairs.remove(place).1).filter(|value| !value.is_empty())
    }
}

fn unescaped(text: &str) -> String {
    let escapes = [("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'"), ("&amp;", "&")];
    escapes.into_iter().fold(text.to_owned(), |text, (escape, c)| text.replace(escape, c))
}

/// A block that a header opened.
#[derive(Debug, Default)]
pub(crate) struct HeaderBlock {
    state: HeaderBlockState,
    /// The call that is read.
    call: Option<(String, Vec<RawParameter>)>,
    in_tools: bool,
    calls: ParsedCalls,
}

#[derive(Debug)]
enum HeaderBlockState {
    /// The word of a header, and its attributes.
    Open {
        word: String,
        attributes: Option<TagAttributes>,
        matcher: Matcher,
    },
    Close {
        word: String,
        matcher: Matcher,
    },
    Gap(Gap),
    Value {
        key: String,
        kind: RawKind,
        text: String,
        matcher: Matcher,
        closing: Option<String>,
    },
}

impl Default for HeaderBlockState {
    fn default() -> Self {
        Self::Open { word: String::new(), attributes: None, matcher: Matcher::default() }
    }
}

const VALUE_CLOSE: &str = "<|close|>argument<|sep|>";

impl HeaderBlock {
    pub(crate) fn in_string(&self) -> bool {
        matches!(self.state, HeaderBlockState::Value { .. })
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            HeaderBlockState::Open { word, attributes, matcher } => {
                if matcher.is_idle() && c != '<' || attributes.as_ref().is_some_and(TagAttributes::in_quotes) {
                    return match attributes {
                        Some(attributes) => match attributes.push(c) {
                            Ok(()) => Flow::More,
                            Err(reason) => Flow::fail(reason, c),
                        },
                        None if c == '`' && word.is_empty() => Flow::Mentioned,
                        None if c.is_ascii_alphabetic() && word.len() < 16 => {
                            word.push(c);
                            Flow::More
                        }
                        None if c.is_whitespace() && word.is_empty() => Flow::More,
                        None if c.is_whitespace() => {
                            *attributes = Some(TagAttributes::default());
                            Flow::More
                        }
                        None => Flow::fail("expected the name of a channel after <|open|>", c),
                    };
                }
                match matcher.push(c) {
                    Match::Partial => Flow::More,
                    Match::Full(Mark::HeaderEnd, _) => self.opened(),
                    Match::Full(_, text) => Flow::fail("expected <|sep|>", text),
                    Match::None(mut held) => {
                        held.push(c);
                        Flow::fail("expected <|sep|>", held)
                    }
                }
            }
            HeaderBlockState::Close { word, matcher } => {
                if matcher.is_idle() && c.is_ascii_alphabetic() && word.len() < 16 {
                    word.push(c);
                    return Flow::More;
                }
                if matcher.is_idle() && c.is_whitespace() {
                    return Flow::More;
                }
                match matcher.push(c) {
                    Match::Partial => Flow::More,
                    Match::Full(Mark::HeaderEnd, _) => self.closed(),
                    Match::Full(_, text) => Flow::fail("expected <|sep|>", text),
                    Match::None(mut held) => {
                        held.push(c);
                        Flow::fail("expected <|sep|>", held)
                    }
                }
            }
            HeaderBlockState::Gap(gap) => match gap.push(c) {
                GapStep::More => Flow::More,
                GapStep::Mark(Mark::HeaderOpen, _) => {
                    self.state = HeaderBlockState::default();
                    Flow::More
                }
                GapStep::Mark(Mark::HeaderClose, _) => {
                    self.state = HeaderBlockState::Close { word: String::new(), matcher: Matcher::default() };
                    Flow::More
                }
                GapStep::Mark(Mark::End, _) if self.call.is_none() && !self.calls.is_empty() => {
                    Flow::Done(std::mem::take(&mut self.calls))
                }
                GapStep::Mark(_, text) => Flow::fail(EXPECTED, text),
                GapStep::Mentioned | GapStep::Char(_) => Flow::fail(EXPECTED, c),
                GapStep::Other(held) => Flow::fail(EXPECTED, held),
            },
            HeaderBlockState::Value { .. } => self.value(c),
        }
    }

    pub(crate) fn finish(self) -> Result<ParsedCalls, String> {
        match (self.call, self.state) {
            (None, HeaderBlockState::Gap(_)) if !self.calls.is_empty() => Ok(self.calls),
            _ => Err(CUT_OFF.to_owned()),
        }
    }

    fn opened(&mut self) -> Flow {
        let HeaderBlockState::Open { word, attributes, .. } = std::mem::replace(&mut self.state, gap()) else {
            return Flow::More;
        };
        let mut attributes = attributes.unwrap_or_default();
        match (word.as_str(), &mut self.call) {
            ("think", None) if !self.in_tools => Flow::Message(MessageKind::Thinking),
            ("response" | "message", None) if !self.in_tools => Flow::Message(MessageKind::Text),
            ("tools", None) if !self.in_tools => {
                self.in_tools = true;
                Flow::More
            }
            ("call", None) => match attributes.take("tool") {
                Some(name) => {
                    self.call = Some((name, Vec::new()));
                    Flow::More
                }
                None => Flow::fail("expected <|open|>call tool=\"NAME\"<|sep|>", ""),
            },
            ("argument", Some((_, arguments))) => {
                let Some(key) = attributes.take("key") else {
                    return Flow::fail("expected <|open|>argument key=\"KEY\" type=\"TYPE\"<|sep|>", "");
                };
                if arguments.iter().any(|argument| argument.key == key) {
                    return Flow::fail(format!("the argument `{}` is given twice", excerpt(&key)), "");
                }
                let kind = match attributes.take("type").as_deref() {
                    Some("string") => RawKind::Text,
                    Some(_) => RawKind::Json,
                    None => RawKind::Unknown,
                };
                let (text, matcher) = (String::new(), Matcher::default());
                self.state = HeaderBlockState::Value { key, kind, text, matcher, closing: None };
                Flow::More
            }
            _ => Flow::fail(format!("<|open|>{} is out of place", excerpt(&word)), ""),
        }
    }

    fn closed(&mut self) -> Flow {
        let HeaderBlockState::Close { word, .. } = std::mem::replace(&mut self.state, gap()) else { return Flow::More };
        match word.as_str() {
            "call" => match self.call.take() {
                Some((name, arguments)) => {
                    let arguments = RawArguments::Raw(arguments);
                    self.calls.push(Ok(FoundCall { name, arguments, only_name: false }));
                    match self.in_tools {
                        true => Flow::More,
                        false => Flow::Done(std::mem::take(&mut self.calls)),
                    }
                }
                None => Flow::fail("<|close|>call is out of place", ""),
            },
            "tools" if self.call.is_none() => Flow::Done(std::mem::take(&mut self.calls)),
            _ => Flow::fail(format!("<|close|>{} is out of place", excerpt(&word)), ""),
        }
    }

    /// A value ends with [`VALUE_CLOSE`], and holds anything else.
    fn value(&mut self, c: char) -> Flow {
        let HeaderBlockState::Value { key, kind, text, matcher, closing } = &mut self.state else { return Flow::More };
        if let Some(so_far) = closing {
            so_far.push(c);
            if so_far == VALUE_CLOSE {
                let argument = RawParameter { key: std::mem::take(key), text: std::mem::take(text), kind: *kind };
                if let Some((_, arguments)) = &mut self.call {
                    arguments.push(argument);
                }
                self.state = gap();
            } else if !VALUE_CLOSE.starts_with(so_far.as_str()) {
                // The last character may begin the next mark.
                so_far.pop();
                text.push_str(so_far);
                *closing = None;
                return self.value(c);
            }
            return Flow::More;
        }
        match matcher.push(c) {
            Match::Partial => {}
            Match::Full(Mark::HeaderClose, mark) => *closing = Some(mark.to_owned()),
            Match::Full(_, mark) => text.push_str(mark),
            Match::None(held) if held.is_empty() => text.push(c),
            Match::None(held) => {
                text.push_str(&held);
                return self.value(c);
            }
        }
        Flow::More
    }
}

fn gap() -> HeaderBlockState {
    HeaderBlockState::Gap(Gap::default())
}

const EXPECTED: &str = "expected <|open|>call, <|open|>argument or a close header";
