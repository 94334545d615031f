//! Calls between the marks of a section, or calls that open with a mark of their own.
//!
//! Models mix marks and contents, so every content is read between all marks, and any close mark ends a section whose
//! calls are complete:
//!
//! - JSON, as one object, several, or a list;
//! - `call:NAME{...}` as Gemma writes it, and `NAME{...}`;
//! - `NAME` with tagged arguments (GLM), or alone if there is such a tool;
//! - `name(key=value)`, one on each line or in a list;
//! - tags that name the tool ([`Element`]), and calls with a header ([`NamedJson`]).

use super::element::Element;
use super::gap::{Gap, GapStep};
use super::named_json::{NamedJson, NamedStep, plain_name};
use super::pairs::{Pairs, PairsStep};
use super::pythonic::{PythonCall, PythonList};
use super::{BlockEnds, CUT_OFF, Flow, ParsedCalls};
use crate::mark::Mark;
use crate::parse::found_call::{self, FoundCall, RawArguments};
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep, excerpt};

#[derive(Debug)]
pub(crate) struct Section {
    state: SectionState,
    calls: ParsedCalls,
    /// At least one value has been read, even if it held no call.
    any: bool,
    ends: BlockEnds,
    /// Objects have the name of the tool as their only key.
    keyed: bool,
    /// No mark closes it: other text does.
    unclosed: bool,
}

#[derive(Debug)]
enum SectionState {
    Gap(Gap),
    /// A word that is no JSON, so far: the name of a tool, perhaps after `call:`.
    Word {
        text: String,
        spaced: bool,
        /// What comes after the word.
        gap: Gap,
    },
    /// A `[`: of calls, or of JSON.
    Bracket,
    Json {
        reader: JsonReader,
        name: Option<String>,
    },
    List(PythonList),
    Python(PythonCall),
    Element(Element),
    Named(NamedJson),
    Pairs(Pairs),
}

const CALL: &str = "call:";
const LONGEST_WORD: usize = 256;

impl Section {
    pub(crate) fn opened_by(mark: Mark) -> Self {
        let (state, ends) = match mark {
            Mark::ElementOpen(style) => (SectionState::Element(Element::new(style)), BlockEnds::Element),
            Mark::CallBegin => (SectionState::Named(NamedJson::new()), BlockEnds::Call),
            _ => (SectionState::Gap(Gap::default()), BlockEnds::Section),
        };
        Self {
            state,
            calls: Vec::new(),
            any: false,
            ends,
            keyed: mark == Mark::KeyedSectionOpen,
            unclosed: mark == Mark::CallOpen,
        }
    }

    pub(crate) fn ends(&self) -> BlockEnds {
        self.ends
    }

    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            SectionState::Json { reader, .. } => reader.in_string(),
            SectionState::List(list) => list.in_string(),
            SectionState::Python(call) => call.in_string(),
            SectionState::Element(element) => element.in_string(),
            SectionState::Named(named) => named.in_string(),
            SectionState::Pairs(pairs) => pairs.in_string(),
            SectionState::Gap(_) | SectionState::Word { .. } | SectionState::Bracket => false,
        }
    }

    pub(crate) fn is_mentioned(&self) -> bool {
        !self.any && matches!(&self.state, SectionState::Gap(gap) if gap.is_mentioned())
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            SectionState::Gap(gap) => match gap.push(c) {
                GapStep::More => Flow::More,
                GapStep::Char(c) if self.is_over(c) => Flow::DoneBefore(std::mem::take(&mut self.calls), c.to_string()),
                GapStep::Char(c) => self.begin(c),
                GapStep::Mark(mark, text) => self.mark(mark, text),
                GapStep::Mentioned if !self.any => Flow::Mentioned,
                GapStep::Mentioned => Flow::fail(self.expected("`"), c),
                GapStep::Other(held) => Flow::fail(self.expected(&held), held),
            },
            SectionState::Word { .. } => self.word(c),
            SectionState::Bracket if c.is_whitespace() => Flow::More,
            SectionState::Bracket if c.is_ascii_alphabetic() || c == '_' => {
                self.state = SectionState::List(PythonList::default());
                self.push(c)
            }
            SectionState::Bracket => {
                self.json('[', None);
                self.push(c)
            }
            SectionState::Json { reader, name } => match reader.push(c) {
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
            SectionState::List(list) => match list.push(c) {
                Flow::Done(calls) => self.take(calls),
                other => other,
            },
            SectionState::Python(call) => match call.push(c) {
                Flow::Done(calls) => self.take(calls),
                other => other,
            },
            SectionState::Element(element) => match element.push(c) {
                Flow::Done(calls) if self.ends == BlockEnds::Element => Flow::Done(calls),
                Flow::Done(calls) => self.take(calls),
                Flow::Mentioned if self.ends != BlockEnds::Element => Flow::fail(self.expected("a tag"), c),
                other => other,
            },
            SectionState::Named(named) => {
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
            SectionState::Pairs(pairs) => match pairs.push(c) {
                PairsStep::More => Flow::More,
                PairsStep::Fail(flow) => flow,
                PairsStep::Done(call, mark, text) => {
                    self.take(vec![Ok(call)]);
                    self.mark(mark, text)
                }
            },
        }
    }

    pub(crate) fn finish(mut self) -> Result<ParsedCalls, String> {
        match self.state {
            SectionState::Gap(_) if self.any => Ok(self.calls),
            SectionState::Gap(_) => Err("the block is empty".to_owned()),
            SectionState::Named(named) => {
                self.calls.push(Ok(named.finish()?));
                Ok(self.calls)
            }
            // Further arguments may have followed.
            SectionState::Pairs(_)
            | SectionState::Word { .. }
            | SectionState::Bracket
            | SectionState::Json { .. }
            | SectionState::List(_)
            | SectionState::Python(_)
            | SectionState::Element(_) => Err(CUT_OFF.to_owned()),
        }
    }

    /// Whether this character ends a section that no mark closes.
    fn is_over(&self, c: char) -> bool {
        self.unclosed && self.any && !matches!(c, '{' | '[' | ',' | ';')
    }

    fn begin(&mut self, c: char) -> Flow {
        match c {
            '{' => self.json(c, None),
            '[' => {
                self.state = SectionState::Bracket;
                Flow::More
            }
            // Between calls, and only there.
            ',' | ';' if self.any => Flow::More,
            c if c.is_ascii_alphanumeric() || c == '_' => {
                self.state = SectionState::Word { text: c.to_string(), spaced: false, gap: Gap::default() };
                Flow::More
            }
            _ => Flow::fail(self.expected(c.encode_utf8(&mut [0; 4])), c),
        }
    }

    fn word(&mut self, c: char) -> Flow {
        let SectionState::Word { text, spaced, gap } = &mut self.state else { return Flow::More };
        // `call:` may have a space after it.
        if c.is_whitespace() && text == CALL {
            return Flow::More;
        }
        let named = text.strip_prefix(CALL).unwrap_or(text);
        if !named.is_empty() && (c == '{' || c == '(') {
            let (name, is_call) = (plain_name(named), text.starts_with(CALL));
            return match c {
                '{' => self.json(c, Some(name)),
                _ if is_call => Flow::fail(format!("write call:{}{{...}}", excerpt(&name)), c),
                _ => {
                    let mut call = PythonCall::default();
                    let flow = name.chars().chain([c]).map(|c| call.push(c)).last().unwrap_or(Flow::More);
                    self.state = SectionState::Python(call);
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
            GapStep::Mark(Mark::KeyOpen, _) => {
                let name = std::mem::take(text);
                self.state = SectionState::Pairs(Pairs::new(name));
                Flow::More
            }
            GapStep::Mark(mark, mark_text) if !text.starts_with(CALL) && mark == Mark::SectionClose => {
                let name = std::mem::take(text);
                let arguments = RawArguments::Object(Default::default());
                self.take(vec![Ok(FoundCall { name, arguments, only_name: true })]);
                self.mark(mark, mark_text)
            }
            GapStep::Mark(_, mark) => Flow::fail(wrong(text, mark), mark),
            GapStep::Other(held) => Flow::fail(wrong(text, &held), held),
            GapStep::Char(_) | GapStep::Mentioned => Flow::fail(wrong(text, c.encode_utf8(&mut [0; 4])), c),
        }
    }

    fn mark(&mut self, mark: Mark, text: &'static str) -> Flow {
        match mark {
            // A call that opened without a section is followed by others, or by the section's close mark.
            Mark::SectionClose | Mark::CallEnd if self.any => Flow::Done(std::mem::take(&mut self.calls)),
            Mark::SectionClose => Flow::Done(vec![Err("the block is empty".to_owned())]),
            Mark::Wrapper | Mark::Namespace => {
                self.state = SectionState::Gap(Gap::default());
                Flow::More
            }
            Mark::ElementOpen(style) => {
                self.state = SectionState::Element(Element::new(style));
                Flow::More
            }
            Mark::CallBegin => {
                self.state = SectionState::Named(NamedJson::new());
                Flow::More
            }
            Mark::End if self.any => Flow::DoneAt(std::mem::take(&mut self.calls), mark, text),
            mark if mark.opens() && self.any => Flow::DoneAt(std::mem::take(&mut self.calls), mark, text),
            mark if mark.opens() => Flow::fail("another block begins before this one holds a call", text),
            _ => Flow::fail(self.expected(text), text),
        }
    }

    fn json(&mut self, c: char, name: Option<String>) -> Flow {
        let mut reader = JsonReader::new(JsonDialect::Json);
        // An opening bracket is always taken.
        reader.push(c);
        self.state = SectionState::Json { reader, name };
        Flow::More
    }

    fn take(&mut self, calls: ParsedCalls) -> Flow {
        self.calls.extend(calls);
        self.any = true;
        self.state = SectionState::Gap(Gap::default());
        Flow::More
    }

    fn expected(&self, held: &str) -> String {
        let place = if self.any { "the close tag" } else { "a call as JSON" };
        format!("expected {place}, found `{}`", excerpt(held))
    }
}
