//! Answers that are calls as a whole, without marks: JSON as Llama 3 and xLAM write it, and two literals.
//!
//! - `{"name": ..., "parameters": {...}}`, several with `;` between them: Llama 3.1 and 3.2;
//! - `[{"name": ..., "arguments": {...}}]`: xLAM;
//! - `functools[...]`: Phi-4-mini; `function call<|role_sep|>{...}`: GigaChat 3.
//!
//! Nothing but the names says that this is no answer in JSON, so the tools must be known, and nothing else may stand in
//! the answer.

use super::found_call::{self, FoundCall};
use super::known::KnownTools;
use super::lenient_json::{JsonDialect, JsonReader, JsonStep};
use super::markers::{Mark, Match, Matcher};
use super::shapes::ParsedCalls;

#[derive(Debug)]
pub(crate) struct WholeAnswer {
    raw: String,
    state: AnswerState,
    calls: Vec<FoundCall>,
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

const LITERALS: [&str; 2] = ["functools", "function call<|role_sep|>"];

pub(crate) enum AnswerStep {
    More,
    /// It is no call: everything so far is text.
    Text,
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
        let mut answer = Self { raw: String::new(), state, calls: Vec::new() };
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
                Match::Full(Mark::End | Mark::MessageEnd | Mark::PythonClose | Mark::SectionClose, _) => {
                    AnswerStep::More
                }
                Match::Full(..) | Match::None(_) => AnswerStep::Text,
            },
            AnswerState::Json(reader) => match reader.push(c) {
                JsonStep::More => AnswerStep::More,
                JsonStep::Fail(_) => AnswerStep::Text,
                JsonStep::Done(value) => {
                    self.state = AnswerState::Between(Matcher::default());
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

    /// The calls at the end of the text, if all of them are of known tools.
    ///
    /// # Errors
    ///
    /// The text, which is no call.
    pub(crate) fn calls(self, known: &KnownTools) -> Result<ParsedCalls, String> {
        let is_between = matches!(&self.state, AnswerState::Between(matcher) if matcher.is_idle());
        let is_complete = is_between || matches!(self.state, AnswerState::Fence);
        let are_known = self.calls.iter().all(|call| known.lists(&call.name));
        match is_complete && are_known && !self.calls.is_empty() {
            true => Ok(self.calls.into_iter().map(Ok).collect()),
            false => Err(self.raw),
        }
    }

    pub(crate) fn into_raw(self) -> String {
        self.raw
    }
}
