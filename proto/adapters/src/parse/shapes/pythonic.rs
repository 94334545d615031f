//! Calls as Python writes them, and Llama's `<|python_tag|>`.
//!
//! - `[name(key="value"), ...]` on a line of its own: Llama 3.2 and 4
//!   (<https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/>, "Zero-shot function
//!   calling"), Gemma 3 (<https://ai.google.dev/gemma/docs/capabilities/function-calling>).
//! - `name(key="value")` and `print(name(key="value"))`, one on a line, in a fence of `tool_code`: Gemma 3, as its guide has it.
//! - `<|python_tag|>{"name": ..., "parameters": {...}}`, several with `;` between them, and
//!   `<|python_tag|>name.call(key="value")`: Llama 3.1
//!   (<https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/>).
//! - `<|python_start|>[...]<|python_end|>`: Llama 4.
//!
//! Arguments have names: an argument by position says nothing without the function's source.

use serde_json::Value;

use super::after::After;
use super::{CUT_OFF, Flow, ParsedCalls};
use crate::parse::found_call;
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep, excerpt};

/// `[name(key=value), ...]`, whose first bracket has been read.
#[derive(Debug, Default)]
pub(crate) struct PythonList {
    state: ListState,
    calls: ParsedCalls,
    is_marked: bool,
}

#[derive(Debug, Default)]
enum ListState {
    #[default]
    Item,
    Call(PythonCall),
    AfterCall,
}

/// `name(key=value)`.
#[derive(Debug, Default)]
pub(crate) struct PythonCall {
    name: String,
    spaced: bool,
    arguments: Option<JsonReader>,
    /// It stands between marks, so its strings may run over several lines.
    is_marked: bool,
}

impl PythonList {
    /// A list between marks.
    pub(crate) fn marked() -> Self {
        Self { is_marked: true, ..Self::default() }
    }

    pub(crate) fn in_string(&self) -> bool {
        matches!(&self.state, ListState::Call(call) if call.in_string())
    }

    /// The name of a call that has been read up to its arguments, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.state {
            ListState::Call(call) if call.arguments.is_some() => Some(&call.name),
            ListState::Item | ListState::Call(_) | ListState::AfterCall => {
                self.calls.iter().flatten().map(|found| found.name.as_str()).next()
            }
        }
    }

    /// Never answers [`Flow::DoneBefore`], [`Flow::DoneAt`] or [`Flow::Mentioned`].
    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            ListState::Item | ListState::AfterCall if c.is_whitespace() => Flow::More,
            ListState::Item | ListState::AfterCall if c == ']' && !self.calls.is_empty() => {
                Flow::Done(std::mem::take(&mut self.calls))
            }
            ListState::AfterCall if c == ',' => {
                self.state = ListState::Item;
                Flow::More
            }
            ListState::Item => {
                let mut call = PythonCall { is_marked: self.is_marked, ..PythonCall::default() };
                let flow = call.push(c);
                self.state = ListState::Call(call);
                flow
            }
            ListState::AfterCall => Flow::fail("expected `,` or `]` after a call", c),
            ListState::Call(call) => match call.push(c) {
                Flow::Done(calls) => {
                    self.calls.extend(calls);
                    self.state = ListState::AfterCall;
                    Flow::More
                }
                other => other,
            },
        }
    }
}

impl PythonCall {
    /// A call between marks.
    pub(crate) fn marked() -> Self {
        Self { is_marked: true, ..Self::default() }
    }

    pub(crate) fn in_string(&self) -> bool {
        self.arguments.as_ref().is_some_and(JsonReader::in_string)
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        if let Some(reader) = &mut self.arguments {
            return match reader.push(c) {
                JsonStep::More => Flow::More,
                JsonStep::Fail(reason) => Flow::fail(reason, reader.rejected(c)),
                JsonStep::Done(value) => Flow::Done(vec![self.close(value)]),
            };
        }
        let first = self.name.is_empty();
        if c == '(' && !first {
            let dialect = if self.is_marked { JsonDialect::Json } else { JsonDialect::Python };
            let mut reader = JsonReader::new(dialect);
            // An opening bracket is always taken.
            reader.push(c);
            self.arguments = Some(reader);
            return Flow::More;
        }
        if c.is_whitespace() && !first {
            self.spaced = true;
            return Flow::More;
        }
        let fits =
            if first { c.is_ascii_alphabetic() || c == '_' } else { c.is_ascii_alphanumeric() || "_.-".contains(c) };
        if !fits || self.spaced {
            return Flow::fail(format!("`{}{c}` does not begin a call; write name(key=value)", excerpt(&self.name)), c);
        }
        self.name.push(c);
        Flow::More
    }

    fn close(&mut self, arguments: Value) -> Result<found_call::FoundCall, String> {
        let name = std::mem::take(&mut self.name);
        // Llama 3.1's built-in tools are objects with one method.
        let name = name.strip_suffix(".call").map(str::to_owned).unwrap_or(name);
        found_call::named(name, arguments)
    }
}

/// What may be calls and begins a line.
#[derive(Debug)]
pub(crate) enum PythonLine {
    List(PythonList),
    Statement(PythonStatement),
}

/// `name(key=value)`, or `print(name(key=value))`.
#[derive(Debug, Default)]
pub(crate) struct PythonStatement {
    call: PythonCall,
    is_printed: bool,
    /// The call is complete, and the bracket of `print` is open.
    printed: Option<ParsedCalls>,
}

impl Default for PythonLine {
    fn default() -> Self {
        Self::List(PythonList::default())
    }
}

impl PythonLine {
    pub(crate) fn in_string(&self) -> bool {
        match self {
            Self::List(list) => list.in_string(),
            Self::Statement(statement) => statement.call.in_string(),
        }
    }

    /// See [`PythonList::name`].
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::List(list) => list.name(),
            Self::Statement(statement) => statement.name(),
        }
    }

    /// Why no call is made of such a line.
    pub(crate) fn expected(&self) -> &'static str {
        match self {
            Self::List(_) => "it is not a list of calls such as [name(key=value)] on a line of its own",
            Self::Statement(_) => {
                "a tool_code fence holds only calls such as name(key=value), each on lines of its own"
            }
        }
    }

    /// See [`PythonList::push`].
    pub(crate) fn push(&mut self, c: char) -> Flow {
        match self {
            Self::List(list) => list.push(c),
            Self::Statement(statement) => statement.push(c),
        }
    }
}

impl PythonStatement {
    /// Whether a line may begin so.
    pub(crate) fn may_begin(c: char) -> bool {
        c.is_ascii_alphabetic() || c == '_'
    }

    fn name(&self) -> Option<&str> {
        match &self.printed {
            Some(calls) => calls.iter().flatten().map(|found| found.name.as_str()).next(),
            None => self.call.arguments.as_ref().map(|_| self.call.name.as_str()),
        }
    }

    fn push(&mut self, c: char) -> Flow {
        if let Some(calls) = &mut self.printed {
            return match c {
                ')' => Flow::Done(std::mem::take(calls)),
                ' ' | '\t' => Flow::More,
                _ => Flow::fail("expected the `)` of print", c),
            };
        }
        match self.call.push(c) {
            Flow::More if !self.is_printed && self.call.name == "print" && self.call.arguments.is_some() => {
                *self = Self { is_printed: true, ..Self::default() };
                Flow::More
            }
            Flow::Done(calls) if self.is_printed => {
                self.printed = Some(calls);
                Flow::More
            }
            flow => flow,
        }
    }
}

/// The block after `<|python_tag|>` or `<|python_start|>`.
#[derive(Debug, Default)]
pub(crate) struct Tagged {
    state: TaggedState,
    calls: ParsedCalls,
}

#[derive(Debug, Default)]
enum TaggedState {
    #[default]
    Start,
    /// A `[`: of calls, or of JSON.
    Bracket,
    Json(JsonReader),
    List(PythonList),
    Call(PythonCall),
    /// A value has been read.
    After(After),
}

impl Tagged {
    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            TaggedState::Json(reader) => reader.in_string(),
            TaggedState::List(list) => list.in_string(),
            TaggedState::Call(call) => call.in_string(),
            TaggedState::Start | TaggedState::Bracket | TaggedState::After(_) => false,
        }
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            TaggedState::Start if c == '`' => Flow::Mentioned,
            TaggedState::Start | TaggedState::Bracket if c.is_whitespace() => Flow::More,
            TaggedState::Start => match c {
                '{' => self.json("{"),
                '[' => self.become_state(TaggedState::Bracket),
                _ => {
                    let mut call = PythonCall::default();
                    let flow = call.push(c);
                    self.state = TaggedState::Call(call);
                    flow
                }
            },
            TaggedState::Bracket => match c {
                '{' | ']' => {
                    self.json("[");
                    self.push(c)
                }
                _ => {
                    self.state = TaggedState::List(PythonList::default());
                    self.push(c)
                }
            },
            TaggedState::Json(reader) => match reader.push(c) {
                JsonStep::More => Flow::More,
                JsonStep::Fail(reason) => Flow::fail(reason, c),
                JsonStep::Done(value) => self.take(found_call::calls(value)),
            },
            TaggedState::List(list) => match list.push(c) {
                Flow::Done(calls) => self.take(calls),
                other => other,
            },
            TaggedState::Call(call) => match call.push(c) {
                Flow::Done(calls) => self.take(calls),
                other => other,
            },
            TaggedState::After(after) if c == ';' && after.is_idle() => self.become_state(TaggedState::Start),
            TaggedState::After(after) => after.push(c, &mut self.calls),
        }
    }

    pub(crate) fn finish(self) -> Result<ParsedCalls, String> {
        match self.state {
            TaggedState::After(_) => Ok(self.calls),
            TaggedState::Start if !self.calls.is_empty() => Ok(self.calls),
            TaggedState::Start
            | TaggedState::Bracket
            | TaggedState::Json(_)
            | TaggedState::List(_)
            | TaggedState::Call(_) => Err(CUT_OFF.to_owned()),
        }
    }

    fn become_state(&mut self, state: TaggedState) -> Flow {
        self.state = state;
        Flow::More
    }

    fn json(&mut self, bracket: &str) -> Flow {
        let mut reader = JsonReader::new(JsonDialect::Json);
        // Opening brackets are always taken.
        bracket.chars().for_each(|c| {
            reader.push(c);
        });
        self.become_state(TaggedState::Json(reader))
    }

    fn take(&mut self, calls: ParsedCalls) -> Flow {
        self.calls.extend(calls);
        self.become_state(TaggedState::After(After::default()))
    }
}
