//! Calls between tags: JSON as Hermes and Qwen write it, or `call:NAME{...}` as Gemma does.
//!
//! - `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`: Hermes 2 Pro
//!   (<https://github.com/NousResearch/Hermes-Function-Calling>), Qwen2.5 and Qwen3
//!   (`chat_template` in <https://huggingface.co/Qwen/Qwen2.5-7B-Instruct/blob/main/tokenizer_config.json>);
//!   with `args` it is what the default prompt of this crate teaches.
//! - `<|tool_call>call:NAME{key:<|"|>text<|"|>}<tool_call|>`: Gemma 4
//!   (<https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4>).
//! - `<start_function_call>call:NAME{key:<escape>text<escape>}<end_function_call>`: FunctionGemma
//!   (<https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices>).
//! - `<|tool_call|>[{"name": ..., "arguments": {...}}]<|/tool_call|>`: Phi-4-mini
//!   (<https://huggingface.co/microsoft/Phi-4-mini-instruct>).
//!
//! Models mix tags and contents, so every content is taken in every tag, and any close tag ends
//! any block whose calls are complete. Qwen3-Coder puts `<function=NAME>` in `<tool_call>`.

use super::function_tag::Function;
use super::gap::{Gap, GapStep};
use super::{CUT_OFF, Flow, ParsedCalls};
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep, excerpt};
use crate::parse::markers::Mark;
use crate::parse::shape;

#[derive(Debug, Default)]
pub(crate) struct Tags {
    state: TagsState,
    calls: ParsedCalls,
    /// At least one value has been read, even if it held no call.
    any: bool,
}

#[derive(Debug)]
enum TagsState {
    Gap(Gap),
    /// `call:NAME`, so far.
    Call {
        text: String,
        spaced: bool,
    },
    Json {
        reader: JsonReader,
        name: Option<String>,
    },
    Function(Function),
}

impl Default for TagsState {
    fn default() -> Self {
        Self::Gap(Gap::default())
    }
}

const CALL: &str = "call:";

impl Tags {
    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            TagsState::Json { reader, .. } => reader.in_string(),
            TagsState::Function(function) => function.in_string(),
            TagsState::Gap(_) | TagsState::Call { .. } => false,
        }
    }

    pub(crate) fn is_mentioned(&self) -> bool {
        !self.any && matches!(&self.state, TagsState::Gap(gap) if gap.is_mentioned())
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            TagsState::Gap(gap) => match gap.push(c) {
                GapStep::More => Flow::More,
                GapStep::Char(c) => self.begin(c),
                GapStep::Mark(mark, text) => self.mark(mark, text),
                GapStep::Mentioned if !self.any => Flow::Mentioned,
                GapStep::Mentioned => Flow::fail(self.expected("`"), c),
                GapStep::Other(held) => Flow::fail(self.expected(&held), held),
            },
            TagsState::Call { text, spaced } => {
                if c == '{' && text.len() > CALL.len() {
                    let name = text[CALL.len()..].to_owned();
                    return self.json(c, Some(name));
                }
                if c.is_whitespace() && text.len() > CALL.len() {
                    *spaced = true;
                    return Flow::More;
                }
                text.push(c);
                let fits =
                    if text.len() > CALL.len() { shape::is_name_char(c) } else { CALL.starts_with(text.as_str()) };
                if fits && !*spaced {
                    return Flow::More;
                }
                Flow::fail(format!("`{}` does not begin a call; write call:NAME{{...}}", excerpt(text)), c)
            }
            TagsState::Json { reader, name } => match reader.push(c) {
                JsonStep::More => Flow::More,
                JsonStep::Fail(reason) => Flow::fail(reason, reader.rejected(c)),
                JsonStep::Done(value) => {
                    let calls = match name.take() {
                        Some(name) => vec![shape::named(name, value)],
                        None => shape::calls(value),
                    };
                    self.take(calls)
                }
            },
            TagsState::Function(function) => match function.push(c) {
                Flow::Done(calls) => self.take(calls),
                other => other,
            },
        }
    }

    pub(crate) fn finish(self) -> Result<ParsedCalls, String> {
        match self.state {
            TagsState::Gap(_) if self.any => Ok(self.calls),
            TagsState::Gap(_) => Err("the block is empty".to_owned()),
            TagsState::Call { .. } | TagsState::Json { .. } | TagsState::Function(_) => Err(CUT_OFF.to_owned()),
        }
    }

    fn begin(&mut self, c: char) -> Flow {
        match c {
            '{' | '[' => self.json(c, None),
            'c' => {
                self.state = TagsState::Call { text: c.to_string(), spaced: false };
                Flow::More
            }
            // Between calls, and only there.
            ',' | ';' if self.any => Flow::More,
            _ => Flow::fail(self.expected(c.encode_utf8(&mut [0; 4])), c),
        }
    }

    fn mark(&mut self, mark: Mark, text: &'static str) -> Flow {
        match mark {
            Mark::TagClose if self.any => Flow::Done(std::mem::take(&mut self.calls)),
            Mark::TagClose => Flow::Done(vec![Err("the block is empty".to_owned())]),
            Mark::TagOpen | Mark::ToolCalls | Mark::PythonOpen if self.any => {
                Flow::DoneAt(std::mem::take(&mut self.calls), mark, text)
            }
            Mark::FunctionOpen => {
                self.state = TagsState::Function(Function::default());
                Flow::More
            }
            Mark::TagOpen => Flow::fail("another block begins before this one holds a call", text),
            Mark::FunctionClose
            | Mark::ParameterOpen
            | Mark::ParameterClose
            | Mark::ToolCalls
            | Mark::PythonOpen
            | Mark::PythonClose => Flow::fail(self.expected(text), text),
        }
    }

    fn json(&mut self, c: char, name: Option<String>) -> Flow {
        let mut reader = JsonReader::new(JsonDialect::Json);
        // An opening bracket is always taken.
        reader.push(c);
        self.state = TagsState::Json { reader, name };
        Flow::More
    }

    fn take(&mut self, calls: ParsedCalls) -> Flow {
        self.calls.extend(calls);
        self.any = true;
        self.state = TagsState::default();
        Flow::More
    }

    fn expected(&self, held: &str) -> String {
        let place = if self.any { "the close tag" } else { "a call as JSON" };
        format!("expected {place}, found `{}`", excerpt(held))
    }
}
