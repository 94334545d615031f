//! GLM: the name, and then each argument as `<arg_key>KEY</arg_key><arg_value>value</arg_value>`.

use super::Flow;
use super::gap::{Gap, GapStep};
use crate::mark::Mark;
use crate::parse::found_call::{FoundCall, RawArguments, RawKind, RawParameter};
use crate::parse::lenient_json::excerpt;
use crate::parse::markers::{Match, Matcher};

#[derive(Debug)]
pub(crate) struct KeyValueTags {
    name: String,
    state: KeyValueState,
    arguments: Vec<RawParameter>,
}

#[derive(Debug)]
enum KeyValueState {
    Key { text: String, matcher: Matcher },
    BetweenKeyAndValue { key: String, gap: Gap },
    Value { key: String, text: String, matcher: Matcher },
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
    /// After the first `<arg_key>`.
    pub(crate) fn new(name: String) -> Self {
        Self { name, state: key(), arguments: Vec::new() }
    }

    pub(crate) fn in_string(&self) -> bool {
        matches!(self.state, KeyValueState::Value { .. })
    }

    pub(crate) fn push(&mut self, c: char) -> KeyValueStep {
        match &mut self.state {
            KeyValueState::Key { text, matcher } => match matcher.push(c) {
                Match::Partial => KeyValueStep::More,
                Match::Full(Mark::KeyClose, _) => {
                    let key = text.trim().to_owned();
                    if key.is_empty() || self.arguments.iter().any(|argument| argument.key == key) {
                        return fail(format!("the argument `{}` has no name of its own", excerpt(&key)), "");
                    }
                    self.state = KeyValueState::BetweenKeyAndValue { key, gap: Gap::default() };
                    KeyValueStep::More
                }
                Match::None(held) if held.is_empty() && text.len() < LONGEST_KEY => {
                    text.push(c);
                    KeyValueStep::More
                }
                Match::Full(_, mark) => fail("expected </arg_key>", mark),
                Match::None(mut held) => {
                    held.push(c);
                    fail("expected </arg_key>", held)
                }
            },
            KeyValueState::BetweenKeyAndValue { key, gap } => match gap.push(c) {
                GapStep::More => KeyValueStep::More,
                GapStep::Mark(Mark::ValueOpen, _) => {
                    let (key, text, matcher) = (std::mem::take(key), String::new(), Matcher::default());
                    self.state = KeyValueState::Value { key, text, matcher };
                    KeyValueStep::More
                }
                GapStep::Mark(_, text) => fail("expected <arg_value>", text),
                GapStep::Other(held) => fail("expected <arg_value>", held),
                GapStep::Char(_) | GapStep::Mentioned => fail("expected <arg_value>", c),
            },
            KeyValueState::Value { key, text, matcher } => match matcher.push(c) {
                Match::Partial => KeyValueStep::More,
                Match::Full(Mark::ValueClose, _) => {
                    // Then its own close tag is missing, most likely.
                    if text.contains("<arg_key>") || text.contains("<arg_value>") {
                        let key = excerpt(key);
                        return fail(format!("the argument `{key}` holds another; is its </arg_value> missing?"), "");
                    }
                    let (key, text) = (std::mem::take(key), std::mem::take(text));
                    self.arguments.push(RawParameter { key, text, kind: RawKind::Unknown });
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

fn fail(reason: impl Into<String>, held: impl Into<String>) -> KeyValueStep {
    KeyValueStep::Fail(Flow::fail(reason, held))
}

const EXPECTED: &str = "expected <arg_key> or the close tag";
