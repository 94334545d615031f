//! A header names the channel and the recipient of a message: gpt-oss (OpenAI's harmony format), Muse and Inkling.
//!
//! `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>` is a call, a message of the
//! channel `analysis` is thinking, and any other one is the answer. Muse has no channels: a message to `self` is
//! thinking, and one to a tool holds tags. The template writes the beginning of the first header, so an answer may begin
//! with `to=NAME`. Inkling has a mark for each kind of message.

use super::gap::{Gap, GapStep};
use super::named_json::plain_name;
use super::section::CallSection;
use super::{CUT_OFF, Flow, MessageKind, ParsedCalls};
use crate::mark::Mark;
use crate::parse::found_call;
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep};
use crate::parse::markers::{Match, Matcher};

#[derive(Debug)]
pub(crate) struct ChannelMessage {
    state: ChannelMessageState,
    /// Its words, with each mark as a space.
    header: String,
    channel: Option<usize>,
    calls: ParsedCalls,
    /// Only `to=` says that this is a header, so far.
    bare: bool,
    /// A mark says which kind of message follows, as Inkling has it.
    is_kind_marked: bool,
}

#[derive(Debug)]
enum ChannelMessageState {
    Header(Matcher),
    Start(Gap),
    Json(JsonReader),
    Tags(Box<CallSection>),
    After(Gap),
}

/// Longer headers are none.
const LONGEST_HEADER: usize = 256;

impl ChannelMessage {
    /// `mark` is the mark that begins the message.
    pub(crate) fn opened_by(mark: &str) -> Self {
        Self {
            state: ChannelMessageState::Header(Matcher::default()),
            header: String::new(),
            channel: (mark == CHANNEL).then_some(0),
            calls: Vec::new(),
            bare: false,
            is_kind_marked: mark == MODEL,
        }
    }

    /// A header whose beginning the template has written. `None` if none begins with this character.
    pub(crate) fn bare(c: char) -> Option<Self> {
        TO.starts_with(c).then(|| Self { header: c.to_string(), bare: true, ..Self::opened_by("") })
    }

    /// At the end of the text: it is prose.
    pub(crate) fn is_mentioned(&self) -> bool {
        self.bare && matches!(self.state, ChannelMessageState::Header(_))
    }

    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            ChannelMessageState::Json(reader) => reader.in_string(),
            ChannelMessageState::Tags(section) => section.in_string(),
            ChannelMessageState::Header(_) | ChannelMessageState::Start(_) | ChannelMessageState::After(_) => false,
        }
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            ChannelMessageState::Header(matcher) => match matcher.push(c) {
                Match::Partial => Flow::More,
                Match::Full(Mark::MessageBody, text) => self.body(text),
                Match::Full(mark @ Mark::MessageCall, text) => Flow::DoneAt(Vec::new(), mark, text),
                Match::Full(mark, text) if self.bare && mark.opens() && mark != Mark::MessageStart => {
                    Flow::DoneAt(Vec::new(), mark, text)
                }
                Match::Full(Mark::MessageStart, text) => {
                    self.bare = false;
                    self.header.push(' ');
                    if text == CHANNEL {
                        self.channel = Some(self.header.len());
                    }
                    Flow::More
                }
                Match::Full(Mark::MessagePart, _) => {
                    self.header.push(' ');
                    Flow::More
                }
                Match::Full(_, text) => Flow::fail("expected <|message|> after the header", text),
                Match::None(held) if self.bare && !(held.is_empty() && self.may_go_on(c)) => Flow::Mentioned,
                Match::None(held) if held.is_empty() && c != '`' && self.header.len() < LONGEST_HEADER => {
                    self.header.push(c);
                    Flow::More
                }
                Match::None(mut held) if self.recipient().is_some() || (self.is_kind_marked && c != '`') => {
                    held.push(c);
                    Flow::fail("expected <|message|> after the header", held)
                }
                // Without a header it is prose.
                Match::None(_) => Flow::Mentioned,
            },
            ChannelMessageState::Start(gap) => match gap.push(c) {
                GapStep::More => Flow::More,
                GapStep::Char('{') => {
                    let mut reader = JsonReader::new(JsonDialect::Json);
                    // An opening bracket is always taken.
                    reader.push('{');
                    self.state = ChannelMessageState::Json(reader);
                    Flow::More
                }
                GapStep::Mark(Mark::MessageEnd, _) => Flow::Done(vec![Err("the call has no arguments".to_owned())]),
                GapStep::Mark(Mark::MessageSection, text) => {
                    let section = CallSection::opened_by(Mark::SectionOpen, text);
                    self.state = ChannelMessageState::Tags(Box::new(section));
                    Flow::More
                }
                GapStep::Mark(_, text) => Flow::fail(EXPECTED, text),
                GapStep::Other(held) => Flow::fail(EXPECTED, held),
                GapStep::Char(_) | GapStep::Mentioned => Flow::fail(EXPECTED, c),
            },
            ChannelMessageState::Json(reader) => match reader.push(c) {
                JsonStep::More => Flow::More,
                JsonStep::Fail(reason) => Flow::fail(reason, reader.rejected(c)),
                JsonStep::Done(value) => {
                    let name = self.recipient().unwrap_or_default();
                    self.calls.push(found_call::named(name, value));
                    self.state = ChannelMessageState::After(Gap::default());
                    Flow::More
                }
            },
            ChannelMessageState::Tags(section) => match section.push(c) {
                Flow::Done(calls) => {
                    self.calls = calls;
                    self.state = ChannelMessageState::After(Gap::default());
                    Flow::More
                }
                Flow::Mentioned => Flow::fail(EXPECTED, c),
                other => other,
            },
            ChannelMessageState::After(gap) => match gap.push(c) {
                GapStep::More => Flow::More,
                GapStep::Mark(Mark::MessageEnd | Mark::End, _) => Flow::Done(std::mem::take(&mut self.calls)),
                GapStep::Mark(Mark::MessageStart, text) => {
                    Flow::DoneAt(std::mem::take(&mut self.calls), Mark::MessageStart, text)
                }
                GapStep::Mark(_, text) => Flow::fail(END, text),
                GapStep::Other(held) => Flow::fail(END, held),
                GapStep::Char(_) | GapStep::Mentioned => Flow::fail(END, c),
            },
        }
    }

    pub(crate) fn finish(self) -> Result<ParsedCalls, String> {
        if matches!(self.state, ChannelMessageState::After(_)) { Ok(self.calls) } else { Err(CUT_OFF.to_owned()) }
    }

    /// Whether a header that has only `to=` may go on with this character.
    fn may_go_on(&self, c: char) -> bool {
        match self.header.strip_prefix(TO) {
            Some(name) => found_call::is_name_char(c) || (c == ' ' && !name.is_empty()),
            None => TO[self.header.len()..].starts_with(c),
        }
    }

    fn to(&self) -> Option<&str> {
        self.header.split_whitespace().find_map(|word| word.strip_prefix(TO))
    }

    /// The tool that the message is for.
    fn recipient(&self) -> Option<String> {
        self.to().filter(|to| !NO_TOOLS.contains(to)).map(plain_name)
    }

    fn body(&mut self, mark: &str) -> Flow {
        if self.recipient().is_some() {
            self.state = ChannelMessageState::Start(Gap::default());
            return Flow::More;
        }
        let channel = self.channel.and_then(|start| self.header[start..].split_whitespace().next());
        let is_thinking = channel == Some("analysis") || self.to() == Some("self") || mark == THINKING;
        Flow::Message(if is_thinking { MessageKind::Thinking } else { MessageKind::Text })
    }
}

const CHANNEL: &str = "<|channel|>";
const MODEL: &str = "<|message_model|>";
const THINKING: &str = "<|content_thinking|>";
const TO: &str = "to=";
/// Recipients that are no tools.
const NO_TOOLS: [&str; 5] = ["user", "assistant", "self", "commentary", "developer"];
const EXPECTED: &str = "expected the arguments as a JSON object or tags";
const END: &str = "expected the end of the message after the arguments";
