//! GLM: the name, and then each argument as `<arg_key>KEY</arg_key><arg_value>value</arg_value>`, and its like.
//!
//! K2 Horizon may put the type between them: `<ifm|arg_type>integer</ifm|arg_type>`. Solar has one mark between key and
//! value.

use super::Flow;
use super::gap::{Gap, GapStep};
use crate::mark::Mark;
use crate::parse::found_call::{FoundCall, RawArguments, RawKind, RawParameter};
use crate::parse::lenient_json::excerpt;
use crate::parse::markers::{Match, Matcher};

#[derive(Debug)]
pub(crate) struct KeyValueTags {
    name: String,
    tags: PairTags,
    state: KeyValueState,
    arguments: Vec<RawParameter>,
}

/// The tags of one family.
#[derive(Clone, Copy, Debug)]
struct PairTags {
    key: &'static str,
    value: &'static str,
    value_close: &'static str,
}

const PAIR_TAGS: [PairTags; 4] = [
    PairTags { key: "<arg_key>", value: "<arg_value>", value_close: "</arg_value>" },
    PairTags { key: "<arg_key:opensource>", value: "<arg_value:opensource>", value_close: "</arg_value:opensource>" },
    PairTags { key: "<ifm|arg_key>", value: "<ifm|arg_value>", value_close: "</ifm|arg_value>" },
    PairTags { key: "<|tool_arg:start|>", value: "<|tool_arg:value|>", value_close: "<|tool_arg:end|>" },
];

#[derive(Debug)]
enum KeyValueState {
    Key {
        text: String,
        matcher: Matcher,
    },
    BetweenKeyAndValue {
        key: String,
        kind: RawKind,
        gap: Gap,
    },
    /// The type of the value.
    Type {
        key: String,
        text: String,
        matcher: Matcher,
    },
    Value {
        key: String,
        kind: RawKind,
        text: String,
        matcher: Matcher,
    },
    Gap(Gap),
}

/// The effect of a character on the arguments.
pub(crate) enum KeyValueStep {
    More,
    /// Another mark has come, which none of the arguments has.
    Done(FoundCall, Mark, &'static str),
    Fail(Flow),
}

const LONGEST_KEY: usize = 256;

impl KeyValueTags {
    /// After the first tag of a key.
    pub(crate) fn new(name: String, key_tag: &str) -> Self {
        let tags = PAIR_TAGS.into_iter().find(|tags| tags.key == key_tag).unwrap_or(PAIR_TAGS[0]);
        Self { name, tags, state: key(), arguments: Vec::new() }
    }

    pub(crate) fn in_string(&self) -> bool {
        matches!(self.state, KeyValueState::Value { .. })
    }

    pub(crate) fn push(&mut self, c: char) -> KeyValueStep {
        match &mut self.state {
            KeyValueState::Key { text, matcher } => match matcher.push(c) {
                Match::Partial => KeyValueStep::More,
                Match::Full(mark @ (Mark::KeyClose | Mark::KeyValueSeparator), _) => {
                    let key = text.trim().to_owned();
                    if key.is_empty() || self.arguments.iter().any(|argument| argument.key == key) {
                        return fail(format!("the argument `{}` has no name of its own", excerpt(&key)), "");
                    }
                    self.state = match mark {
                        Mark::KeyClose => between(key, RawKind::Unknown),
                        _ => value(key, RawKind::Unknown),
                    };
                    KeyValueStep::More
                }
                Match::None(held) if held.is_empty() && text.len() < LONGEST_KEY => {
                    text.push(c);
                    KeyValueStep::More
                }
                Match::Full(_, mark) => fail("expected the end of the key", mark),
                Match::None(mut held) => {
                    held.push(c);
                    fail("expected the end of the key", held)
                }
            },
            KeyValueState::BetweenKeyAndValue { key, kind, gap } => {
                let expected = || format!("expected {}", self.tags.value);
                match gap.push(c) {
                    GapStep::More => KeyValueStep::More,
                    GapStep::Mark(Mark::ValueOpen, _) => {
                        self.state = value(std::mem::take(key), *kind);
                        KeyValueStep::More
                    }
                    GapStep::Mark(Mark::TypeOpen, _) => {
                        let (key, text, matcher) = (std::mem::take(key), String::new(), Matcher::default());
                        self.state = KeyValueState::Type { key, text, matcher };
                        KeyValueStep::More
                    }
                    GapStep::Mark(_, text) => fail(expected(), text),
                    GapStep::Other(held) => fail(expected(), held),
                    GapStep::Char(_) | GapStep::Mentioned => fail(expected(), c),
                }
            }
            KeyValueState::Type { key, text, matcher } => match matcher.push(c) {
                Match::Partial => KeyValueStep::More,
                Match::Full(Mark::TypeClose, _) => {
                    let kind = if text.trim() == "string" { RawKind::Text } else { RawKind::Unknown };
                    self.state = between(std::mem::take(key), kind);
                    KeyValueStep::More
                }
                Match::None(held) if held.is_empty() && text.len() < LONGEST_KEY => {
                    text.push(c);
                    KeyValueStep::More
                }
                Match::Full(_, mark) => fail("expected the end of the type", mark),
                Match::None(mut held) => {
                    held.push(c);
                    fail("expected the end of the type", held)
                }
            },
            KeyValueState::Value { key, kind, text, matcher } => match matcher.push(c) {
                Match::Partial => KeyValueStep::More,
                Match::Full(Mark::ValueClose, mark) if mark == self.tags.value_close => {
                    // Then its own close tag is missing, most likely.
                    if text.contains(self.tags.key) || text.contains(self.tags.value) {
                        let (key, close) = (excerpt(key), self.tags.value_close);
                        return fail(format!("the argument `{key}` holds another; is its {close} missing?"), "");
                    }
                    let (key, text, kind) = (std::mem::take(key), std::mem::take(text), *kind);
                    self.arguments.push(RawParameter { key, text, kind });
                    self.state = KeyValueState::Gap(Gap::default());
                    KeyValueStep::More
                }
                Match::Full(_, mark) => {
                    text.push_str(mark);
                    KeyValueStep::More
                }
                Match::None(held) if held.is_empty() => {
                    text.push(c);
                    KeyValueStep::More
                }
                Match::None(held) => {
                    text.push_str(&held);
                    self.push(c)
                }
            },
            KeyValueState::Gap(gap) => match gap.push(c) {
                GapStep::More => KeyValueStep::More,
                GapStep::Mark(Mark::KeyOpen, _) => {
                    self.state = key();
                    KeyValueStep::More
                }
                GapStep::Mark(mark, text) => KeyValueStep::Done(self.close(), mark, text),
                GapStep::Other(held) => fail(EXPECTED, held),
                GapStep::Char(_) | GapStep::Mentioned => fail(EXPECTED, c),
            },
        }
    }

    fn close(&mut self) -> FoundCall {
        let arguments = RawArguments::Raw(std::mem::take(&mut self.arguments));
        FoundCall { name: std::mem::take(&mut self.name), arguments, only_name: false }
    }
}

fn key() -> KeyValueState {
    KeyValueState::Key { text: String::new(), matcher: Matcher::default() }
}

fn between(key: String, kind: RawKind) -> KeyValueState {
    KeyValueState::BetweenKeyAndValue { key, kind, gap: Gap::default() }
}

fn value(key: String, kind: RawKind) -> KeyValueState {
    KeyValueState::Value { key, kind, text: String::new(), matcher: Matcher::default() }
}

fn fail(reason: impl Into<String>, held: impl Into<String>) -> KeyValueStep {
    KeyValueStep::Fail(Flow::fail(reason, held))
}

const EXPECTED: &str = "expected an argument or the close tag";
