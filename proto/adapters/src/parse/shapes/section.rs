//! Calls between the marks of a section, or calls that open with a mark of their own.
//!
//! Models mix marks and contents, so every content is read between all marks, and any close mark ends a section whose
//! calls are complete:
//!
//! - JSON, as one object, several, or a list;
//! - `call:NAME{...}` as Gemma writes it, and `NAME{...}`;
//! - `NAME` with tagged arguments (GLM), or alone if there is such a tool;
//! - `name(key=value)`, one on each line or in a list;
//! - tags that name the tool ([`ToolTag`]), and calls with a header ([`NamedJson`]).
//!
//! A section may hold a section for each call, with other marks: `<tool_calls><tool_call>...</tool_call></tool_calls>`.

use super::gap::{Gap, GapStep};
use super::key_value_tags::{KeyValueStep, KeyValueTags};
use super::named_json::{NamedJson, NamedStep, plain_name};
use super::pythonic::{PythonCall, PythonList};
use super::tool_tag::ToolTag;
use super::{BlockEnds, CUT_OFF, Flow, ParsedCalls};
use crate::mark::Mark;
use crate::parse::found_call::{self, FoundCall, RawArguments};
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep, excerpt};

#[derive(Debug)]
pub(crate) struct CallSection {
    state: CallSectionState,
    calls: ParsedCalls,
    /// At least one value has been read, even if it held no call.
    any: bool,
    ends: BlockEnds,
    /// Objects have the name of the tool as their only key.
    keyed: bool,
    /// No mark closes it: other text does.
    unclosed: bool,
    /// The mark that opened it.
    opened_by: &'static str,
    /// It holds sections, and one of them is open or not.
    inner: Option<bool>,
}

#[derive(Debug)]
enum CallSectionState {
    Gap(Gap),
    /// A word that is no JSON, so far: the name of a tool, perhaps after `call:`.
    Word {
        text: String,
        spaced: bool,
        /// The white space and marks after the word.
        gap: Gap,
        /// A mark has said that it is the name of a tool.
        is_name: bool,
    },
    /// A `[`: of calls, or of JSON.
    Bracket,
    Json {
        reader: JsonReader,
        name: Option<String>,
    },
    List(PythonList),
    Python(PythonCall),
    Element(ToolTag),
    Named(NamedJson),
    Pairs(KeyValueTags),
}

const CALL: &str = "call:";
const LONGEST_WORD: usize = 256;

impl CallSection {
    pub(crate) fn opened_by(mark: Mark, text: &'static str) -> Self {
        let (state, ends) = match mark {
            Mark::ElementOpen(style) => (CallSectionState::Element(ToolTag::new(style)), BlockEnds::Element),
            Mark::CallBegin => (CallSectionState::Named(NamedJson::new()), BlockEnds::Call),
            Mark::MessageCall => (CallSectionState::Gap(Gap::default()), BlockEnds::Message),
            _ => (CallSectionState::Gap(Gap::default()), BlockEnds::Section),
        };
        Self {
            state,
            calls: Vec::new(),
            any: false,
            ends,
            keyed: mark == Mark::KeyedSectionOpen,
            unclosed: mark == Mark::CallOpen,
            opened_by: text,
            inner: None,
        }
    }

    pub(crate) fn ends(&self) -> BlockEnds {
        self.ends
    }

    pub(crate) fn depth(&self) -> isize {
        if self.inner == Some(true) { 2 } else { 1 }
    }

    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            CallSectionState::Json { reader, .. } => reader.in_string(),
            CallSectionState::List(list) => list.in_string(),
            CallSectionState::Python(call) => call.in_string(),
            CallSectionState::Element(element) => element.in_string(),
            CallSectionState::Named(named) => named.in_string(),
            CallSectionState::Pairs(pairs) => pairs.in_string(),
            CallSectionState::Gap(_) | CallSectionState::Word { .. } | CallSectionState::Bracket => false,
        }
    }

    pub(crate) fn is_mentioned(&self) -> bool {
        !self.any && matches!(&self.state, CallSectionState::Gap(gap) if gap.is_mentioned())
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            CallSectionState::Gap(gap) => match gap.push(c) {
                GapStep::More => Flow::More,
                GapStep::Char(c) if self.is_over(c) => Flow::DoneBefore(std::mem::take(&mut self.calls), c.to_string()),
                GapStep::Char(c) => self.begin(c),
                GapStep::Mark(mark, text) => self.mark(mark, text),
                GapStep::Mentioned if !self.any => Flow::Mentioned,
                GapStep::Mentioned => Flow::fail(self.expected("`"), c),
                GapStep::Other(held) => Flow::fail(self.expected(&held), held),
            },
            CallSectionState::Word { .. } => self.word(c),
            CallSectionState::Bracket if c.is_whitespace() => Flow::More,
            CallSectionState::Bracket if c.is_ascii_alphabetic() || c == '_' => {
                self.state = CallSectionState::List(PythonList::marked());
                self.push(c)
            }
            CallSectionState::Bracket => {
                self.json('[', None);
                self.push(c)
            }
            CallSectionState::Json { reader, name } => match reader.push(c) {
                JsonStep::More => Flow::More,
                JsonStep::Fail(reason) => Flow::fail(reason, reader.rejected(c)),
                JsonStep::Done(value) => {
                    let calls = match name.take() {
                        Some(name) => vec![found_call::named(name, value)],
                        None if self.keyed => found_call::keyed_calls(value),
                        None => found_call::calls(value),
                    };
                    self.take(calls)
                }
            },
            CallSectionState::List(list) => match list.push(c) {
                Flow::Done(calls) => self.take(calls),
                other => other,
            },
            CallSectionState::Python(call) => match call.push(c) {
                Flow::Done(calls) => self.take(calls),
                other => other,
            },
            CallSectionState::Element(element) => match element.push(c) {
                Flow::Done(calls) if self.ends == BlockEnds::Element => Flow::Done(calls),
                Flow::Done(calls) => self.take(calls),
                Flow::Mentioned if self.ends != BlockEnds::Element => Flow::fail(self.expected("a tag"), c),
                other => other,
            },
            CallSectionState::Named(named) => {
                if self.ends == BlockEnds::Call && named.is_mentioned_by(c) {
                    return Flow::Mentioned;
                }
                match named.push(c) {
                    NamedStep::More => Flow::More,
                    NamedStep::Fail(flow) => flow,
                    NamedStep::Done(call, None) if self.ends == BlockEnds::Call => Flow::Done(vec![call]),
                    NamedStep::Done(call, None) => self.take(vec![call]),
                    NamedStep::Done(call, Some((mark, text))) => {
                        self.take(vec![call]);
                        self.mark(mark, text)
                    }
                }
            }
            CallSectionState::Pairs(pairs) => match pairs.push(c) {
                KeyValueStep::More => Flow::More,
                KeyValueStep::Fail(flow) => flow,
                KeyValueStep::Done(call, mark, text) => {
                    self.take(vec![Ok(call)]);
                    self.mark(mark, text)
                }
            },
        }
    }

    pub(crate) fn finish(mut self) -> Result<ParsedCalls, String> {
        match self.state {
            CallSectionState::Gap(_) if self.any => Ok(self.calls),
            CallSectionState::Gap(_) => Err("the block is empty".to_owned()),
            CallSectionState::Named(named) => {
                self.calls.push(Ok(named.finish()?));
                Ok(self.calls)
            }
            // Further arguments may have followed.
            CallSectionState::Pairs(_)
            | CallSectionState::Word { .. }
            | CallSectionState::Bracket
            | CallSectionState::Json { .. }
            | CallSectionState::List(_)
            | CallSectionState::Python(_)
            | CallSectionState::Element(_) => Err(CUT_OFF.to_owned()),
        }
    }

    /// Whether this character ends a section that no mark closes.
    fn is_over(&self, c: char) -> bool {
        self.unclosed && self.any && !"{[,;:=}])\"'".contains(c)
    }

    fn begin(&mut self, c: char) -> Flow {
        match c {
            '{' => self.json(c, None),
            '[' => {
                self.state = CallSectionState::Bracket;
                Flow::More
            }
            // Between calls, and only there.
            ',' | ';' if self.any => Flow::More,
            c if c.is_ascii_alphanumeric() || c == '_' => {
                self.state =
                    CallSectionState::Word { text: c.to_string(), spaced: false, gap: Gap::default(), is_name: false };
                Flow::More
            }
            _ => Flow::fail(self.expected(c.encode_utf8(&mut [0; 4])), c),
        }
    }

    fn word(&mut self, c: char) -> Flow {
        let CallSectionState::Word { text, spaced, gap, is_name } = &mut self.state else { return Flow::More };
        // `call:` may have a space after it.
        if c.is_whitespace() && text == CALL {
            return Flow::More;
        }
        let named = text.strip_prefix(CALL).unwrap_or(text);
        if !named.is_empty() && !*is_name && (c == '{' || c == '(') {
            let (name, is_call) = (plain_name(named), text.starts_with(CALL));
            return match c {
                '{' => self.json(c, Some(name)),
                _ if is_call => Flow::fail(format!("write call:{}{{...}}", excerpt(&name)), c),
                _ => {
                    let mut call = PythonCall::marked();
                    let flow = name.chars().chain([c]).map(|c| call.push(c)).last().unwrap_or(Flow::More);
                    self.state = CallSectionState::Python(call);
                    flow
                }
            };
        }
        if !*spaced && found_call::is_name_char(c) && text.len() < LONGEST_WORD {
            text.push(c);
            return Flow::More;
        }
        *spaced = true;
        let wrong =
            |text: &str, c: &str| format!("`{}{c}` does not begin a call; write call:NAME{{...}}", excerpt(text));
        match gap.push(c) {
            GapStep::More => Flow::More,
            GapStep::Mark(Mark::KeyOpen, mark) => {
                let name = std::mem::take(text);
                self.state = CallSectionState::Pairs(KeyValueTags::new(name, mark));
                Flow::More
            }
            GapStep::Mark(Mark::NameEnd, _) if !text.starts_with(CALL) => {
                *is_name = true;
                *gap = Gap::default();
                Flow::More
            }
            GapStep::Mark(mark, mark_text) if !text.starts_with(CALL) && mark == Mark::SectionClose => {
                let (name, only_name) = (std::mem::take(text), !*is_name);
                let arguments = RawArguments::Object(Default::default());
                self.take(vec![Ok(FoundCall { name, arguments, only_name })]);
                self.mark(mark, mark_text)
            }
            GapStep::Mark(_, mark) => Flow::fail(wrong(text, mark), mark),
            GapStep::Other(held) => Flow::fail(wrong(text, &held), held),
            GapStep::Char(_) | GapStep::Mentioned => Flow::fail(wrong(text, c.encode_utf8(&mut [0; 4])), c),
        }
    }

    fn mark(&mut self, mark: Mark, text: &'static str) -> Flow {
        match mark {
            Mark::SectionOpen if self.may_hold(text) => {
                self.inner = Some(true);
                self.state = CallSectionState::Gap(Gap::default());
                Flow::More
            }
            Mark::SectionClose if self.any && self.inner == Some(true) => {
                self.inner = Some(false);
                self.state = CallSectionState::Gap(Gap::default());
                Flow::More
            }
            // A call that opened without a section is followed by others, or by the section's close mark.
            Mark::SectionClose | Mark::CallEnd if self.any => Flow::Done(std::mem::take(&mut self.calls)),
            Mark::SectionClose => Flow::fail("the block is empty", text),
            Mark::MessageEnd if self.any && self.ends == BlockEnds::Message => {
                Flow::Done(std::mem::take(&mut self.calls))
            }
            Mark::CallSeparator if self.any => {
                self.state = CallSectionState::Gap(Gap::default());
                Flow::More
            }
            Mark::Wrapper | Mark::Namespace => {
                self.state = CallSectionState::Gap(Gap::default());
                Flow::More
            }
            Mark::ElementOpen(style) => {
                self.state = CallSectionState::Element(ToolTag::new(style));
                Flow::More
            }
            Mark::CallBegin => {
                self.state = CallSectionState::Named(NamedJson::new());
                Flow::More
            }
            Mark::End | Mark::MessageSeparator if self.any => Flow::DoneAt(std::mem::take(&mut self.calls), mark, text),
            mark if mark.opens() && self.any => Flow::DoneAt(std::mem::take(&mut self.calls), mark, text),
            mark if mark.opens() => Flow::fail("another block begins before this one holds a call", text),
            _ => Flow::fail(self.expected(text), text),
        }
    }

    /// Whether a section with this mark may be one call of this section.
    fn may_hold(&self, text: &str) -> bool {
        match self.inner {
            None => !self.any && self.ends == BlockEnds::Section && !self.unclosed && text != self.opened_by,
            Some(is_open) => !is_open,
        }
    }

    fn json(&mut self, c: char, name: Option<String>) -> Flow {
        let mut reader = JsonReader::new(JsonDialect::Json);
        // An opening bracket is always taken.
        reader.push(c);
        self.state = CallSectionState::Json { reader, name };
        Flow::More
    }

    fn take(&mut self, calls: ParsedCalls) -> Flow {
        self.calls.extend(calls);
        self.any = true;
        self.state = CallSectionState::Gap(Gap::default());
        Flow::More
    }

    fn expected(&self, held: &str) -> String {
        let place = if self.any { "the close tag" } else { "a call as JSON" };
        format!("expected {place}, found `{}`", excerpt(held))
    }
}
