//! `<function=NAME>`: with JSON, or with one tag for each parameter.
//!
//! - `<function=NAME>{"key": ...}</function>`: Llama 3.1's custom tools
//!   (<https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/>, "User-defined custom
//!   tool calling") and Functionary 3.1.
//! - `<function=NAME><parameter=KEY>value</parameter></function>`, within `<tool_call>` or not:
//!   Qwen3-Coder (`chat_template` and `qwen3coder_tool_parser.py` in
//!   <https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct>).

use std::collections::HashSet;

use super::gap::{Gap, GapStep};
use super::{CUT_OFF, Flow, ParsedCalls};
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep, excerpt};
use crate::parse::markers::{Mark, Match, Matcher};
use crate::parse::raw_value;
use crate::parse::shape::{self, FoundCall, RawArguments};

#[derive(Debug, Default)]
pub(crate) struct Function {
    state: FunctionState,
    name: String,
    json: Option<Result<FoundCall, String>>,
    parameters: Vec<(String, String)>,
    keys: HashSet<String>,
}

#[derive(Debug, Default)]
enum FunctionState {
    #[default]
    Name,
    Gap(Gap),
    Json(JsonReader),
    Key(String),
    Value {
        key: String,
        text: String,
        matcher: Matcher,
    },
}

const LONGEST_KEY: usize = 256;

impl Function {
    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            FunctionState::Json(reader) => reader.in_string(),
            FunctionState::Value { .. } => true,
            FunctionState::Name | FunctionState::Gap(_) | FunctionState::Key(_) => false,
        }
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            FunctionState::Name if c == '>' && !self.name.is_empty() => self.gap(),
            FunctionState::Name if shape::is_name_char(c) && self.name.len() < LONGEST_KEY => {
                self.name.push(c);
                Flow::More
            }
            FunctionState::Name if c == '`' && self.name.is_empty() => Flow::Mentioned,
            FunctionState::Name => Flow::fail("expected the name of a tool and `>` after `<function=`", c),
            FunctionState::Gap(gap) => match gap.push(c) {
                GapStep::More => Flow::More,
                GapStep::Char('{') if self.json.is_none() && self.parameters.is_empty() => {
                    let mut reader = JsonReader::new(JsonDialect::Json);
                    // An opening bracket is always taken.
                    reader.push('{');
                    self.state = FunctionState::Json(reader);
                    Flow::More
                }
                GapStep::Mark(Mark::ParameterOpen, _) if self.json.is_none() => {
                    self.state = FunctionState::Key(String::new());
                    Flow::More
                }
                GapStep::Mark(Mark::FunctionClose, _) => Flow::Done(vec![self.close()]),
                GapStep::Mark(_, text) => Flow::fail(EXPECTED, text),
                GapStep::Mentioned | GapStep::Char(_) => Flow::fail(EXPECTED, c),
                GapStep::Other(held) => Flow::fail(EXPECTED, held),
            },
            FunctionState::Json(reader) => match reader.push(c) {
                JsonStep::More => Flow::More,
                JsonStep::Fail(reason) => Flow::fail(reason, reader.rejected(c)),
                JsonStep::Done(value) => {
                    self.json = Some(shape::named(self.name.clone(), value));
                    self.gap()
                }
            },
            FunctionState::Key(key) => {
                if c == '>' && !key.is_empty() {
                    let state = FunctionState::Value {
                        key: std::mem::take(key),
                        text: String::new(),
                        matcher: Matcher::default(),
                    };
                    self.state = state;
                    return Flow::More;
                }
                if c == '\n' || c == '<' || c == '>' || key.len() >= LONGEST_KEY {
                    return Flow::fail("expected a key and `>` after `<parameter=`", c);
                }
                key.push(c);
                Flow::More
            }
            FunctionState::Value { text, matcher, .. } => {
                match matcher.push(c) {
                    Match::Partial => return Flow::More,
                    Match::Full(Mark::ParameterClose, _) => return self.take(),
                    Match::Full(_, mark) => text.push_str(mark),
                    Match::None(held) if held.is_empty() => text.push(c),
                    Match::None(held) => {
                        text.push_str(&held);
                        // It may begin the next mark, and only that can hold it back again.
                        return self.push(c);
                    }
                }
                Flow::More
            }
        }
    }

    pub(crate) fn finish(self) -> Result<ParsedCalls, String> {
        Err(CUT_OFF.to_owned())
    }

    fn gap(&mut self) -> Flow {
        self.state = FunctionState::Gap(Gap::default());
        Flow::More
    }

    fn take(&mut self) -> Flow {
        let FunctionState::Value { key, text, .. } = std::mem::take(&mut self.state) else { return Flow::More };
        if !self.keys.insert(key.clone()) {
            return Flow::fail(format!("the parameter `{}` is given twice", excerpt(&key)), "");
        }
        // Then its own close tag is missing, most likely, and the value is not what was meant.
        if let Some(tag) = raw_value::TAGS.iter().find(|tag| text.contains(**tag)) {
            return Flow::fail(
                format!("the parameter `{}` holds `{tag}`; is its </parameter> missing?", excerpt(&key)),
                "",
            );
        }
        self.parameters.push((key, text));
        self.gap()
    }

    fn close(&mut self) -> Result<FoundCall, String> {
        match self.json.take() {
            Some(found) => found,
            None => {
                let parameters = std::mem::take(&mut self.parameters);
                Ok(FoundCall { name: std::mem::take(&mut self.name), arguments: RawArguments::Raw(parameters) })
            }
        }
    }
}

const EXPECTED: &str = "expected <parameter=KEY>, a JSON object or </function>";
