//! gpt-oss: a header names the channel and the recipient of a message (OpenAI's harmony format).
//!
//! `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>` is a call, a message of the
//! channel `analysis` is thinking, and any other one is the answer.

use super::gap::{Gap, GapStep};
use super::named_json::plain_name;
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
}

#[derive(Debug)]
enum ChannelMessageState {
    Header(Matcher),
    Start(Gap),
    Json(JsonReader),
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
        }
    }

    pub(crate) fn in_string(&self) -> bool {
        matches!(&self.state, ChannelMessageState::Json(reader) if reader.in_string())
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match &mut self.state {
            ChannelMessageState::Header(matcher) => match matcher.push(c) {
                Match::Partial => Flow::More,
                Match::Full(Mark::MessageBody, _) => self.body(),
                Match::Full(Mark::MessageStart, text) => {
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
                Match::None(held) if held.is_empty() && c != '`' && self.header.len() < LONGEST_HEADER => {
                    self.header.push(c);
                    Flow::More
                }
                Match::None(mut held) if self.recipient().is_some() => {
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

    /// The tool that the message is for.
    fn recipient(&self) -> Option<String> {
        let to = self.header.split_whitespace().find_map(|word| word.strip_prefix("to="))?;
        (to != "user" && to != "assistant").then(|| plain_name(to))
    }

    fn body(&mut self) -> Flow {
        if self.recipient().is_some() {
            self.state = ChannelMessageState::Start(Gap::default());
            return Flow::More;
        }
        let channel = self.channel.and_then(|start| self.header[start..].split_whitespace().next());
        Flow::Message(match channel {
            Some("analysis") => MessageKind::Thinking,
            Some(_) | None => MessageKind::Text,
        })
    }
}

const CHANNEL: &str = "<|channel|>";
const EXPECTED: &str = "expected the arguments as a JSON object";
const END: &str = "expected <|call|> after the arguments";
