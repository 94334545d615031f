//! `[TOOL_CALLS]`, as Mistral's tokenizers have it
//! (<https://github.com/mistralai/mistral-common>, `tokens/tokenizers/instruct.py`, and
//! <https://docs.mistral.ai/capabilities/function_calling/>).
//!
//! - v3 and v7: `[TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]`
//! - v11 and v13: `[TOOL_CALLS]NAME[ARGS]{...}`, with `[CALL_ID]...` before `[ARGS]` in some, and
//!   without `[ARGS]` as Magistral writes it; each call has its own `[TOOL_CALLS]`.
//!
//! There is no close tag: the block ends with the value, and `after.rs` sees that it does.

use super::after::After;
use super::{CUT_OFF, Calls, Flow};
use crate::parse::lenient_json::{Dialect, Reader, Step};
use crate::parse::shape;

#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    state: State,
    name: String,
    calls: Calls,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Start,
    Name,
    /// White space after the name.
    Named,
    /// `[ARGS]` or `[CALL_ID]`, so far.
    Bracket(String),
    CallId,
    /// After `[ARGS]`.
    Args,
    Json(Reader),
    After(After),
}

impl ToolCalls {
    pub(crate) fn in_string(&self) -> bool {
        matches!(&self.state, State::Json(reader) if reader.in_string())
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            State::Start if c == '`' => Flow::Mentioned,
            State::Start | State::Args if c.is_whitespace() => Flow::More,
            State::Start if c == '[' || c == '{' => self.json(c),
            State::Name | State::Named | State::Args if c == '{' => self.json(c),
            State::Name | State::Named if c == '[' => self.become_state(State::Bracket(c.to_string())),
            State::Name | State::Named if c.is_whitespace() => self.become_state(State::Named),
            State::Start | State::Name if shape::is_name_char(c) => {
                self.name.push(c);
                self.become_state(State::Name)
            }
            State::Bracket(text) => {
                text.push(c);
                match text.as_str() {
                    "[ARGS]" => self.become_state(State::Args),
                    "[CALL_ID]" => self.become_state(State::CallId),
                    text if "[ARGS]".starts_with(text) || "[CALL_ID]".starts_with(text) => Flow::More,
                    _ => Flow::fail(EXPECTED, c),
                }
            }
            State::CallId if c == '[' => self.become_state(State::Bracket(c.to_string())),
            State::CallId if !c.is_whitespace() => Flow::More,
            State::Json(reader) => match reader.push(c) {
                Step::More => Flow::More,
                Step::Fail(reason) => Flow::fail(reason, c),
                Step::Done(value) => {
                    self.calls = match self.name.is_empty() {
                        true => shape::calls(value),
                        false => vec![shape::named(std::mem::take(&mut self.name), value)],
                    };
                    self.become_state(State::After(After::default()))
                }
            },
            State::After(after) => after.push(c, &mut self.calls),
            State::Start | State::Name | State::Named | State::CallId | State::Args => Flow::fail(EXPECTED, c),
        }
    }

    pub(crate) fn finish(self) -> Result<Calls, String> {
        if matches!(self.state, State::After(_)) { Ok(self.calls) } else { Err(CUT_OFF.to_owned()) }
    }

    fn become_state(&mut self, state: State) -> Flow {
        self.state = state;
        Flow::More
    }

    fn json(&mut self, c: char) -> Flow {
        let mut reader = Reader::new(Dialect::Json);
        // An opening bracket is always taken.
        reader.push(c);
        self.become_state(State::Json(reader))
    }
}

const EXPECTED: &str = "[TOOL_CALLS] is not followed by a JSON list or by NAME[ARGS]{...}";
