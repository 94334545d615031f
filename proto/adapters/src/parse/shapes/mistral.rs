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
use super::{CUT_OFF, Flow, ParsedCalls};
use crate::parse::found_call;
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep};

#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    state: ToolCallsState,
    name: String,
    calls: ParsedCalls,
}

#[derive(Debug, Default)]
enum ToolCallsState {
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
    Json(JsonReader),
    After(After),
}

impl ToolCalls {
    pub(crate) fn in_string(&self) -> bool {
        matches!(&self.state, ToolCallsState::Json(reader) if reader.in_string())
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            ToolCallsState::Start if c == '`' => Flow::Mentioned,
            ToolCallsState::Start | ToolCallsState::Args if c.is_whitespace() => Flow::More,
            ToolCallsState::Start if c == '[' || c == '{' => self.json(c),
            ToolCallsState::Name | ToolCallsState::Named | ToolCallsState::Args if c == '{' => self.json(c),
            ToolCallsState::Name | ToolCallsState::Named if c == '[' => {
                self.become_state(ToolCallsState::Bracket(c.to_string()))
            }
            ToolCallsState::Name | ToolCallsState::Named if c.is_whitespace() => {
                self.become_state(ToolCallsState::Named)
            }
            ToolCallsState::Start | ToolCallsState::Name if found_call::is_name_char(c) => {
                self.name.push(c);
                self.become_state(ToolCallsState::Name)
            }
            ToolCallsState::Bracket(text) => {
                text.push(c);
                match text.as_str() {
                    "[ARGS]" => self.become_state(ToolCallsState::Args),
                    "[CALL_ID]" => self.become_state(ToolCallsState::CallId),
                    text if "[ARGS]".starts_with(text) || "[CALL_ID]".starts_with(text) => Flow::More,
                    _ => Flow::fail(EXPECTED, c),
                }
            }
            ToolCallsState::CallId if c == '[' => self.become_state(ToolCallsState::Bracket(c.to_string())),
            ToolCallsState::CallId if !c.is_whitespace() => Flow::More,
            ToolCallsState::Json(reader) => match reader.push(c) {
                JsonStep::More => Flow::More,
                JsonStep::Fail(reason) => Flow::fail(reason, c),
                JsonStep::Done(value) => {
                    self.calls = match self.name.is_empty() {
                        true => found_call::calls(value),
                        false => vec![found_call::named(std::mem::take(&mut self.name), value)],
                    };
                    self.become_state(ToolCallsState::After(After::default()))
                }
            },
            ToolCallsState::After(after) => after.push(c, &mut self.calls),
            ToolCallsState::Start
            | ToolCallsState::Name
            | ToolCallsState::Named
            | ToolCallsState::CallId
            | ToolCallsState::Args => Flow::fail(EXPECTED, c),
        }
    }

    pub(crate) fn finish(self) -> Result<ParsedCalls, String> {
        if matches!(self.state, ToolCallsState::After(_)) { Ok(self.calls) } else { Err(CUT_OFF.to_owned()) }
    }

    fn become_state(&mut self, state: ToolCallsState) -> Flow {
        self.state = state;
        Flow::More
    }

    fn json(&mut self, c: char) -> Flow {
        let mut reader = JsonReader::new(JsonDialect::Json);
        // An opening bracket is always taken.
        reader.push(c);
        self.become_state(ToolCallsState::Json(reader))
    }
}

const EXPECTED: &str = "expected a JSON list or NAME[ARGS]{...} after [TOOL_CALLS]";
