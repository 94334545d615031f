//! Answers that are calls as a whole, without marks: JSON as Llama 3 and xLAM write it, and two literals.
//!
//! - `{"name": ..., "parameters": {...}}`, several with `;` between them: Llama 3.1 and 3.2;
//! - `[{"name": ..., "arguments": {...}}]`: xLAM;
//! - `functools[...]`: Phi-4-mini; `function call<|role_sep|>{...}`: GigaChat 3; `-> tool/function_call` and a list:
//!   HyperCLOVA X.
//!
//! Nothing but the names says that this is no answer in JSON, so the tools must be known, and nothing else may stand in
//! the answer.

use super::found_call::{self, FoundCall};
use super::known::KnownTools;
use super::lenient_json::{JsonDialect, JsonReader, JsonStep};
use super::markers::{Match, Matcher};
use super::shapes::ParsedCalls;
use crate::mark::Mark;

#[derive(Debug)]
pub(crate) struct WholeAnswer {
    raw: String,
    state: AnswerState,
    calls: Vec<FoundCall>,
    /// Bytes up to the end of the last value.
    read: usize,
}

#[derive(Debug)]
enum AnswerState {
    /// One of [`LITERALS`], so far.
    Literal,
    /// Before the next value.
    Between(Matcher),
    Json(Box<JsonReader>),
    /// The backticks that close the fence.
    Fence,
}

const LITERALS: [&str; 3] = ["functools", "function call", "-> tool/function_call"];

pub(crate) enum AnswerStep {
    More,
    /// It is no call: everything so far is text, and what follows may be one.
    Text,
    /// It begins like JSON and cannot be read: it is text to its end, since what looks like a call in it may stand in a
    /// string.
    Unreadable(String),
}

pub(crate) enum AnswerEnd {
    /// The calls, and the fence around them that is to be closed.
    Calls(ParsedCalls, String),
    /// It is no call.
    Text(WholeAnswer),
    /// It begins like JSON and ends within it.
    Unreadable(String),
}

impl WholeAnswer {
    pub(crate) fn may_begin(c: char) -> bool {
        c == '{' || c == '[' || LITERALS.iter().any(|literal| literal.starts_with(c))
    }

    pub(crate) fn begin(c: char) -> Self {
        let state = match c {
            '{' | '[' => AnswerState::Between(Matcher::default()),
            _ => AnswerState::Literal,
        };
        let mut answer = Self { raw: String::new(), state, calls: Vec::new(), read: 0 };
        answer.push(c);
        answer
    }

    pub(crate) fn in_string(&self) -> bool {
        matches!(&self.state, AnswerState::Json(reader) if reader.in_string())
    }

    pub(crate) fn push(&mut self, c: char) -> AnswerStep {
        self.raw.push(c);
        match &mut self.state {
            AnswerState::Literal => {
                if LITERALS.contains(&&*self.raw) {
                    self.state = AnswerState::Between(Matcher::default());
                } else if !LITERALS.iter().any(|literal| literal.starts_with(&*self.raw)) {
                    return AnswerStep::Text;
                }
                AnswerStep::More
            }
            AnswerState::Between(matcher) if matcher.is_idle() && (c == '{' || c == '[') => {
                let mut reader = JsonReader::new(JsonDialect::Json);
                // An opening bracket is always taken.
                reader.push(c);
                self.state = AnswerState::Json(Box::new(reader));
                AnswerStep::More
            }
            AnswerState::Between(matcher) if matcher.is_idle() && c != '<' => match c {
                c if c.is_whitespace() => AnswerStep::More,
                ';' | ',' if !self.calls.is_empty() => AnswerStep::More,
                '`' if !self.calls.is_empty() => {
                    self.state = AnswerState::Fence;
                    AnswerStep::More
                }
                _ => AnswerStep::Text,
            },
            AnswerState::Between(matcher) => match matcher.push(c) {
                Match::Partial => AnswerStep::More,
                Match::Full(
                    Mark::End
                    | Mark::MessageEnd
                    | Mark::MessageSeparator
                    | Mark::PythonClose
                    | Mark::SectionClose
                    | Mark::Wrapper,
                    _,
                ) => AnswerStep::More,
                Match::Full(..) | Match::None(_) => AnswerStep::Text,
            },
            AnswerState::Json(reader) => match reader.push(c) {
                JsonStep::More => AnswerStep::More,
                JsonStep::Fail(reason) if self.looks_like_json() => AnswerStep::Unreadable(reason),
                JsonStep::Fail(_) => AnswerStep::Text,
                JsonStep::Done(value) => {
                    self.state = AnswerState::Between(Matcher::default());
                    self.read = self.raw.len();
                    if !found_call::has_arguments(&value) {
                        return AnswerStep::Text;
                    }
                    for call in found_call::calls(value) {
                        let Ok(call) = call else { return AnswerStep::Text };
                        self.calls.push(call);
                    }
                    AnswerStep::More
                }
            },
            AnswerState::Fence if c == '`' || c.is_whitespace() => AnswerStep::More,
            AnswerState::Fence => AnswerStep::Text,
        }
    }

    /// The text ends here: the calls, if all of them are of known tools.
    pub(crate) fn finish(self, known: &KnownTools) -> AnswerEnd {
        let is_complete = match &self.state {
            AnswerState::Between(matcher) => matcher.is_idle(),
            AnswerState::Fence => true,
            AnswerState::Json(_) if self.looks_like_json() => return AnswerEnd::Unreadable(self.raw),
            AnswerState::Json(_) | AnswerState::Literal => false,
        };
        let are_known = self.calls.iter().all(|call| known.lists(&call.name));
        if !is_complete || !are_known || self.calls.is_empty() {
            return AnswerEnd::Text(self);
        }
        let fence = if matches!(self.state, AnswerState::Fence) { "\n```".to_owned() } else { String::new() };
        AnswerEnd::Calls(self.calls.into_iter().map(Ok).collect(), fence)
    }

    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    /// Quotes or further brackets after its first bracket.
    fn looks_like_json(&self) -> bool {
        let start = self.raw.find(['{', '[']).unwrap_or_default();
        self.raw[start..].trim_start_matches(['{', '[', ' ', '\t', '\r', '\n']).starts_with(['"', '\''])
    }

    /// The part that was read as JSON, whose strings hold no calls, and the rest.
    pub(crate) fn into_parts(mut self) -> (String, String) {
        let rest = self.raw.split_off(self.read);
        (self.raw, rest)
    }
}
