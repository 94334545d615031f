//! One call with a header: the name stands before the separator or after it, and the arguments are JSON.
//!
//! - DeepSeek V3: `function`, the separator, the name, and a fence with JSON; V3.1: the name, the separator, JSON.
//! - Kimi K2: `functions.NAME:0`, the separator, JSON.
//! - Step 3: `function`, the separator, and a tag that names the tool.
//! - PLaMo 3: the name, the separator, a header that says `json`, JSON.

use super::gap::{Gap, GapStep};
use super::tool_tag::ToolTag;
use super::{CUT_OFF, Flow};
use crate::mark::Mark;
use crate::parse::found_call::{self, FoundCall};
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep, excerpt};
use crate::parse::markers::{Match, Matcher};

#[derive(Debug)]
pub(crate) struct NamedJson {
    state: NamedState,
    name: String,
    call: Option<Result<FoundCall, String>>,
}

#[derive(Debug)]
enum NamedState {
    /// Up to the separator.
    Header(Matcher),
    /// After the separator.
    Start(Gap),
    /// The header of the arguments, which says that they are JSON.
    Format(Matcher),
    Name(String),
    /// Between the name and the JSON.
    Named(Gap),
    Json(JsonReader),
    Element(Box<ToolTag>),
    /// After the arguments.
    After(Gap),
}

/// The effect of a character on a call with a header.
pub(crate) enum NamedStep {
    More,
    /// The call has ended, and with it this mark has come, if it is not the call's own.
    Done(Result<FoundCall, String>, Option<(Mark, &'static str)>),
    Fail(Flow),
}

const LONGEST_NAME: usize = 256;

impl NamedJson {
    pub(crate) fn new() -> Self {
        Self { state: NamedState::Header(Matcher::default()), name: String::new(), call: None }
    }

    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            NamedState::Json(reader) => reader.in_string(),
            NamedState::Element(element) => element.in_string(),
            NamedState::Header(_)
            | NamedState::Start(_)
            | NamedState::Format(_)
            | NamedState::Name(_)
            | NamedState::Named(_)
            | NamedState::After(_) => false,
        }
    }

    /// Nothing has been read after the mark.
    pub(crate) fn is_mentioned_by(&self, c: char) -> bool {
        c == '`' && self.name.is_empty() && matches!(&self.state, NamedState::Header(matcher) if matcher.is_idle())
    }

    pub(crate) fn push(&mut self, c: char) -> NamedStep {
        match &mut self.state {
            NamedState::Header(matcher) => match matcher.push(c) {
                Match::Partial => NamedStep::More,
                Match::Full(Mark::CallSeparator, _) => self.become_state(NamedState::Start(Gap::default())),
                Match::Full(Mark::ElementOpen(style), _) => {
                    self.become_state(NamedState::Element(Box::new(ToolTag::new(style))))
                }
                Match::Full(_, text) => fail("expected the separator after the name of the call", text),
                Match::None(held) if held.is_empty() && c != '`' && self.name.len() < LONGEST_NAME => {
                    self.name.push(c);
                    NamedStep::More
                }
                Match::None(mut held) => {
                    held.push(c);
                    fail("expected the name of the call and a separator", held)
                }
            },
            NamedState::Start(gap) => match gap.push(c) {
                GapStep::More => NamedStep::More,
                GapStep::Char('{') => self.json(),
                GapStep::Char(c) if found_call::is_name_char(c) => self.become_state(NamedState::Name(c.to_string())),
                GapStep::Mark(Mark::ElementOpen(style), _) => {
                    self.become_state(NamedState::Element(Box::new(ToolTag::new(style))))
                }
                GapStep::Mark(Mark::Wrapper, _) => self.become_state(NamedState::Start(Gap::default())),
                GapStep::Mark(Mark::MessagePart, _) => self.become_state(NamedState::Format(Matcher::default())),
                step => gap_failed(step, "expected the name or the arguments of the call", c),
            },
            NamedState::Format(matcher) => match matcher.push(c) {
                Match::Partial => NamedStep::More,
                Match::Full(Mark::MessageBody, _) => self.become_state(NamedState::Start(Gap::default())),
                Match::None(held) if held.is_empty() && c.is_ascii_alphabetic() => NamedStep::More,
                Match::Full(_, text) => fail("expected the arguments of the call", text),
                Match::None(mut held) => {
                    held.push(c);
                    fail("expected the arguments of the call", held)
                }
            },
            NamedState::Name(name) => {
                if found_call::is_name_char(c) && name.len() < LONGEST_NAME {
                    name.push(c);
                    return NamedStep::More;
                }
                self.name = std::mem::take(name);
                self.state = NamedState::Named(Gap::default());
                self.push(c)
            }
            NamedState::Named(gap) => match gap.push(c) {
                GapStep::More => NamedStep::More,
                GapStep::Char('{') => self.json(),
                step => gap_failed(step, "expected the arguments of the call as JSON", c),
            },
            NamedState::Json(reader) => match reader.push(c) {
                JsonStep::More => NamedStep::More,
                JsonStep::Fail(reason) => fail(reason, reader.rejected(c)),
                JsonStep::Done(value) => {
                    self.call = Some(found_call::named(plain_name(&self.name), value));
                    self.become_state(NamedState::After(Gap::default()))
                }
            },
            NamedState::Element(element) => match element.push(c) {
                Flow::More => NamedStep::More,
                Flow::Done(mut calls) => {
                    self.call = calls.pop();
                    self.become_state(NamedState::After(Gap::default()))
                }
                other => NamedStep::Fail(other),
            },
            NamedState::After(gap) => match gap.push(c) {
                GapStep::More => NamedStep::More,
                GapStep::Mark(Mark::CallEnd, _) => self.done(None),
                GapStep::Mark(mark, text) if mark == Mark::CallBegin || mark == Mark::SectionClose => {
                    self.done(Some((mark, text)))
                }
                step => gap_failed(step, "expected the mark that ends the call", c),
            },
        }
    }

    /// The call at the end of the text.
    pub(crate) fn finish(self) -> Result<FoundCall, String> {
        match (self.call, self.state) {
            (Some(call), NamedState::After(_)) => call,
            _ => Err(CUT_OFF.to_owned()),
        }
    }

    fn become_state(&mut self, state: NamedState) -> NamedStep {
        self.state = state;
        NamedStep::More
    }

    fn json(&mut self) -> NamedStep {
        let mut reader = JsonReader::new(JsonDialect::Json);
        // An opening bracket is always taken.
        reader.push('{');
        self.become_state(NamedState::Json(reader))
    }

    fn done(&mut self, mark: Option<(Mark, &'static str)>) -> NamedStep {
        match self.call.take() {
            Some(call) => NamedStep::Done(call, mark),
            None => fail("expected the arguments of the call", ""),
        }
    }
}

fn gap_failed(step: GapStep, reason: &str, c: char) -> NamedStep {
    match step {
        GapStep::Mark(_, text) => fail(reason, text),
        GapStep::Other(held) => fail(format!("{reason}, found `{}`", excerpt(&held)), held),
        GapStep::More | GapStep::Char(_) | GapStep::Mentioned => fail(reason, c),
    }
}

fn fail(reason: impl Into<String>, held: impl Into<String>) -> NamedStep {
    NamedStep::Fail(Flow::fail(reason, held))
}

/// The name of the tool in `functions.NAME:0`.
pub(crate) fn plain_name(text: &str) -> String {
    let name = text.trim();
    let name = name.strip_prefix("functions.").unwrap_or(name);
    match name.rsplit_once(':') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => name.to_owned(),
        Some(_) | None => name.to_owned(),
    }
}
