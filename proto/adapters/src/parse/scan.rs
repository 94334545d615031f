//! Tells calls from text, one character at a time, after thinking has been taken out.
//!
//! A block that cannot be read is skipped up to the close tag that matches its open tag, and what
//! looks like a call in it is not made: it may stand in a string that could not be read. Without
//! such a tag the rest of the text is skipped. What is skipped and never closed stays text.

use super::ParsedPiece;
use super::known::KnownTools;
use super::lenient_json::excerpt;
use super::markers::{Match, Matcher};
use super::prose_call::ProseCall;
use super::quoting::MarkdownCode;
use super::shapes::message::ChannelMessage;
use super::shapes::pythonic::{PythonLine, PythonStatement};
use super::shapes::{BlockEnds, CallBlock, Flow, MessageKind, ParsedCalls};
use super::whole_answer::{AnswerEnd, AnswerStep, WholeAnswer};
use crate::families::{FORMATS, Family};
use crate::mark::Mark;

#[derive(Debug)]
pub(crate) struct Scanner {
    known: KnownTools,
    state: ScanState,
    /// Nothing but white space stands between here and the beginning of the line.
    blank: bool,
    quoting: MarkdownCode,
    /// Nothing but white space has been read, and perhaps the line that opens a fence.
    fresh: bool,
    /// The last thing but white space was a call.
    after_call: bool,
    /// Tokens that end the model's turn, and white space: text if more text follows.
    ending: String,
    /// Calls in a fence, which are prose if the fence holds anything else.
    fenced: Option<FencedCalls>,
    prose_call: ProseCall,
    /// An error has been said about the text that comes now.
    is_refused: bool,
}

#[derive(Debug, Default)]
struct FencedCalls {
    pieces: Vec<ParsedPiece>,
    raw: String,
}

#[derive(Debug)]
enum ScanState {
    Text {
        matcher: Matcher,
        /// The held text began a line.
        begins_line: bool,
    },
    Line(Box<ProseLine>),
    Prose(Prose),
    Block {
        block: Box<CallBlock>,
        raw: String,
    },
    Broken(BrokenBlock),
    /// A message of a channel that is no call.
    Message {
        kind: MessageKind,
        matcher: Matcher,
    },
    /// After `<|close|>`: up to `<|sep|>`.
    CloseHeader {
        raw: String,
        matcher: Matcher,
    },
    Answer(WholeAnswer),
    /// An answer that begins like JSON and cannot be read.
    Unreadable {
        reason: String,
        raw: String,
    },
}

/// A line that may be calls as Python writes them. If it is not, it is text.
#[derive(Debug, Default)]
struct ProseLine {
    python: PythonLine,
    raw: String,
    /// It is complete; only white space may follow on its line, or a mark.
    calls: Option<ParsedCalls>,
    matcher: Matcher,
}

/// The rest of a line of calls that cannot be read. It is text, and what looks like a call in it
/// is none: it may stand in a string.
#[derive(Debug)]
struct Prose {
    begins: String,
    /// It names a tool there is, or something in it looks like a call.
    suspect: bool,
    reason: &'static str,
    matcher: Matcher,
}

#[derive(Debug)]
struct BrokenBlock {
    reason: String,
    ends: Option<BlockEnds>,
    depth: isize,
    matcher: Matcher,
    raw: String,
}

/// Longer headers of Kimi K3 are none.
const LONGEST_CLOSE_HEADER: usize = 32;

impl Scanner {
    pub(crate) fn new(known: KnownTools) -> Self {
        Self {
            known,
            state: ScanState::text(),
            blank: true,
            quoting: MarkdownCode::new(),
            fresh: true,
            after_call: false,
            ending: String::new(),
            fenced: None,
            prose_call: ProseCall::default(),
            is_refused: false,
        }
    }

    /// Whether the next character is data, whatever it looks like.
    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            ScanState::Line(line) => line.python.in_string(),
            ScanState::Block { block, .. } => block.in_string(),
            ScanState::Answer(answer) => answer.in_string(),
            ScanState::Text { .. }
            | ScanState::Prose(_)
            | ScanState::Broken(_)
            | ScanState::Message { .. }
            | ScanState::CloseHeader { .. }
            | ScanState::Unreadable { .. } => false,
        }
    }

    pub(crate) fn is_in_text(&self) -> bool {
        matches!(self.state, ScanState::Text { .. })
    }

    /// Something was taken out here: what stands before and after it must not grow together.
    pub(crate) fn part(&mut self, out: &mut Vec<ParsedPiece>) -> String {
        match &mut self.state {
            ScanState::Text { matcher, .. } => {
                let held = matcher.take();
                self.text(&held, out);
                String::new()
            }
            ScanState::Prose(_) | ScanState::Message { .. } => String::new(),
            ScanState::Line(_)
            | ScanState::Block { .. }
            | ScanState::Broken(_)
            | ScanState::CloseHeader { .. }
            | ScanState::Answer(_)
            | ScanState::Unreadable { .. } => self.push(' ', out),
        }
    }

    /// As if nothing had been read.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(std::mem::take(&mut self.known));
    }

    /// Answers what is to be read again.
    pub(crate) fn push(&mut self, c: char, out: &mut Vec<ParsedPiece>) -> String {
        match &mut self.state {
            ScanState::Text { matcher, begins_line } => {
                if matcher.is_idle() {
                    if self.blank && PythonStatement::may_begin(c) && self.quoting.in_tool_code() {
                        let python = PythonLine::Statement(PythonStatement::default());
                        self.state = ScanState::Line(Box::new(ProseLine { python, ..ProseLine::default() }));
                        return self.push(c, out);
                    }
                    let may_be_answer = self.fresh && self.known.is_list() && !self.quoting.is_quoted();
                    if may_be_answer && WholeAnswer::may_begin(c) {
                        self.state = ScanState::Answer(WholeAnswer::begin(c));
                        return String::new();
                    }
                    if self.fresh
                        && !self.quoting.is_quoted()
                        && let Some(message) = ChannelMessage::bare(c)
                    {
                        let block = Box::new(CallBlock::Message(message));
                        self.state = ScanState::Block { block, raw: c.to_string() };
                        return String::new();
                    }
                    *begins_line = self.blank;
                }
                match matcher.push(c) {
                    Match::Partial => String::new(),
                    Match::Full(mark, text) => self.open(mark, text, out),
                    Match::None(held) if held.is_empty() => {
                        self.text(c.encode_utf8(&mut [0; 4]), out);
                        String::new()
                    }
                    Match::None(held) if *begins_line && held.starts_with('[') && !self.quoting.is_quoted() => {
                        self.state =
                            ScanState::Line(Box::new(ProseLine { raw: "[".to_owned(), ..ProseLine::default() }));
                        // Only the last character of the mark can be no part of a name.
                        held[1..].chars().for_each(|c| {
                            self.push(c, out);
                        });
                        self.push(c, out)
                    }
                    Match::None(held) => {
                        self.text(&held, out);
                        self.push(c, out)
                    }
                }
            }
            ScanState::Line(line) => match line.push(c) {
                LineStep::More => String::new(),
                LineStep::Calls(calls, rest) if any_known(&self.known, &calls) => {
                    let raw = line.raw[..line.raw.len() - rest.len()].to_owned();
                    self.close(calls, &raw, out);
                    rest
                }
                LineStep::Calls(_, rest) | LineStep::Text(rest) => {
                    self.give_up_line(rest.len(), out);
                    rest
                }
            },
            ScanState::Prose(prose) => {
                if c == '\n' {
                    self.end_prose(out);
                } else {
                    prose.look(c);
                }
                self.text(c.encode_utf8(&mut [0; 4]), out);
                String::new()
            }
            ScanState::Block { block, raw } => {
                raw.push(c);
                let flow = block.push(c);
                self.follow(flow, c, out)
            }
            ScanState::Broken(broken) => {
                broken.raw.push(c);
                if broken.skip(c) {
                    self.close_broken(out);
                }
                String::new()
            }
            ScanState::Message { kind, matcher } => {
                let kind = *kind;
                match matcher.push(c) {
                    Match::Partial => String::new(),
                    Match::Full(mark, text) => self.in_message(kind, mark, text, out),
                    Match::None(held) if held.is_empty() => {
                        self.message(kind, c.encode_utf8(&mut [0; 4]), out);
                        String::new()
                    }
                    Match::None(held) => {
                        self.message(kind, &held, out);
                        self.push(c, out)
                    }
                }
            }
            ScanState::CloseHeader { raw, matcher } => {
                raw.push(c);
                let is_over = raw.len() > LONGEST_CLOSE_HEADER;
                match matcher.push(c) {
                    Match::Full(Mark::HeaderEnd, _) => self.state = ScanState::text(),
                    Match::Partial if !is_over => {}
                    Match::None(held)
                        if held.is_empty() && !is_over && (c.is_ascii_alphabetic() || c.is_whitespace()) => {}
                    Match::Full(..) | Match::Partial | Match::None(_) => {
                        let raw = std::mem::take(raw);
                        self.state = ScanState::text();
                        self.text(&raw, out);
                    }
                }
                String::new()
            }
            ScanState::Answer(answer) => match answer.push(c) {
                AnswerStep::More => String::new(),
                AnswerStep::Text => match std::mem::replace(&mut self.state, ScanState::text()) {
                    ScanState::Answer(answer) => self.give_up_answer(answer, out),
                    _ => String::new(),
                },
                AnswerStep::Unreadable(reason) => {
                    let raw = answer.raw().to_owned();
                    self.state = ScanState::Unreadable { reason, raw };
                    String::new()
                }
            },
            ScanState::Unreadable { raw, .. } => {
                raw.push(c);
                String::new()
            }
        }
    }

    /// The text ends here.
    pub(crate) fn finish(&mut self, out: &mut Vec<ParsedPiece>) {
        match std::mem::replace(&mut self.state, ScanState::text()) {
            ScanState::Text { mut matcher, .. } => self.text(&matcher.take(), out),
            ScanState::Line(line) if line.is_over_and(|calls| any_known(&self.known, calls)) => {
                self.close(line.calls.unwrap_or_default(), &line.raw, out);
            }
            ScanState::Line(line) => {
                self.state = ScanState::Line(line);
                self.give_up_line(0, out);
                self.end_prose(out);
            }
            ScanState::Prose(prose) => {
                self.state = ScanState::Prose(prose);
                self.end_prose(out);
            }
            ScanState::Block { block, raw } if block.is_mentioned() => self.text(&raw, out),
            ScanState::Block { block, raw } => match block.finish() {
                Ok(calls) => self.close(calls, &raw, out),
                Err(reason) => {
                    out.push(refused(&raw, &reason));
                    self.is_refused = true;
                    self.text(&raw, out);
                }
            },
            ScanState::Broken(broken) => {
                out.push(refused(&broken.raw, &broken.reason));
                self.is_refused = true;
                self.text(&broken.raw, out);
            }
            ScanState::Message { kind, mut matcher } => {
                let held = matcher.take();
                self.message(kind, &held, out);
            }
            ScanState::CloseHeader { .. } => {}
            ScanState::Answer(answer) => match answer.finish(&self.known) {
                AnswerEnd::Calls(calls, fence) => {
                    self.close(calls, "", out);
                    self.text(&fence, out);
                }
                AnswerEnd::Unreadable(raw) => self.end_unreadable(&raw, "it ends in the middle of the JSON", out),
                AnswerEnd::Text(answer) => {
                    let mut again = self.give_up_answer(answer, out);
                    while !again.is_empty() {
                        let mut rest = again.chars();
                        again = rest.next().map(|c| self.push(c, out)).unwrap_or_default() + rest.as_str();
                    }
                    return self.finish(out);
                }
            },
            ScanState::Unreadable { reason, raw } => self.end_unreadable(&raw, &reason, out),
        }
        if let Some(fenced) = self.fenced.take() {
            out.extend(fenced.pieces);
        }
    }

    fn open(&mut self, mark: Mark, text: &'static str, out: &mut Vec<ParsedPiece>) -> String {
        if self.quoting.is_quoted() {
            self.text(text, out);
            return String::new();
        }
        if let Some(block) = CallBlock::opened_by(mark, text) {
            self.state = ScanState::Block { block: Box::new(block), raw: text.to_owned() };
            return String::new();
        }
        self.state = ScanState::text();
        match mark {
            // They belong to calls that were there already, or that never were.
            Mark::SectionClose
            | Mark::CallEnd
            | Mark::ElementClose
            | Mark::PythonClose
            | Mark::Wrapper
            | Mark::Namespace => {}
            Mark::HeaderClose => {
                self.state = ScanState::CloseHeader { raw: text.to_owned(), matcher: Matcher::default() };
            }
            Mark::MessageSeparator => {
                if !self.after_call {
                    self.ending.push_str(text);
                }
                self.fresh = true;
            }
            Mark::End | Mark::MessageEnd if self.after_call => {}
            Mark::End | Mark::MessageEnd => self.ending.push_str(text),
            _ => self.text(text, out),
        }
        String::new()
    }

    /// A mark in a message that is no call.
    fn in_message(&mut self, kind: MessageKind, mark: Mark, text: &'static str, out: &mut Vec<ParsedPiece>) -> String {
        match mark {
            Mark::MessageEnd | Mark::MessageSeparator | Mark::End => {
                self.state = ScanState::text();
                String::new()
            }
            Mark::MessageStart | Mark::HeaderOpen | Mark::HeaderClose => {
                self.state = ScanState::text();
                self.open(mark, text, out)
            }
            mark if kind == MessageKind::Text && mark.opens() => self.open(mark, text, out),
            _ => {
                self.message(kind, text, out);
                String::new()
            }
        }
    }

    fn message(&mut self, kind: MessageKind, text: &str, out: &mut Vec<ParsedPiece>) {
        match (kind, out.last_mut()) {
            _ if text.is_empty() => {}
            (MessageKind::Text, _) => self.text(text, out),
            (MessageKind::Thinking, Some(ParsedPiece::Thinking(last))) => last.push_str(text),
            (MessageKind::Thinking, _) => out.push(ParsedPiece::Thinking(text.to_owned())),
        }
    }

    fn follow(&mut self, flow: Flow, c: char, out: &mut Vec<ParsedPiece>) -> String {
        if matches!(flow, Flow::More) {
            return String::new();
        }
        let ScanState::Block { block, mut raw } = std::mem::replace(&mut self.state, ScanState::text()) else {
            return String::new();
        };
        match flow {
            Flow::More => String::new(),
            Flow::Done(calls) => {
                self.close(calls, &raw, out);
                String::new()
            }
            Flow::DoneBefore(calls, rest) => {
                raw.truncate(raw.len() - rest.len());
                self.close(calls, &raw, out);
                rest
            }
            Flow::DoneAt(calls, mark, text) => {
                raw.truncate(raw.len() - text.len());
                self.close(calls, &raw, out);
                self.open(mark, text, out)
            }
            Flow::Mentioned => {
                raw.pop();
                self.text(&raw, out);
                c.to_string()
            }
            Flow::Message(kind) => {
                self.state = ScanState::Message { kind, matcher: Matcher::default() };
                String::new()
            }
            Flow::Fail { reason, held } => {
                let mut broken =
                    BrokenBlock { reason, ends: block.ends(), depth: block.depth(), matcher: Matcher::default(), raw };
                let closed = held.chars().any(|c| broken.skip(c));
                self.state = ScanState::Broken(broken);
                if closed {
                    self.close_broken(out);
                }
                String::new()
            }
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<ParsedPiece>) {
        if text.is_empty() {
            return;
        }
        if !self.ending.is_empty() {
            if text.chars().all(char::is_whitespace) {
                self.ending.push_str(text);
                return;
            }
            // More text follows, so the model spoke of these tokens.
            let ending = std::mem::take(&mut self.ending);
            self.plain_text(&ending, out);
        }
        self.plain_text(text, out);
    }

    fn plain_text(&mut self, text: &str, out: &mut Vec<ParsedPiece>) {
        for c in text.chars() {
            self.look_for_call(c, out);
            self.blank = c == '\n' || (self.blank && c.is_whitespace());
            self.quoting.push(c);
            self.after_call &= c.is_whitespace();
            self.fresh &= c.is_whitespace() || self.quoting.in_fence() || self.quoting.may_begin_fence();
            match &mut self.fenced {
                Some(fenced) => {
                    fenced.raw.push(c);
                    push_text(c.encode_utf8(&mut [0; 4]), &mut fenced.pieces);
                    let (is_prose, is_over) = (self.quoting.is_prose(), !self.quoting.in_fence());
                    if (is_prose || is_over)
                        && let Some(fenced) = self.fenced.take()
                    {
                        match is_over {
                            true => out.extend(fenced.pieces),
                            false => push_text(&fenced.raw, out),
                        }
                    }
                }
                None => push_text(c.encode_utf8(&mut [0; 4]), out),
            }
        }
    }

    /// Says so if a call stands in prose. At the beginning of a line, [`ProseLine`] looks for lists of calls.
    fn look_for_call(&mut self, c: char, out: &mut Vec<ParsedPiece>) {
        if self.is_refused || !self.known.is_list() || self.quoting.is_quoted() || self.quoting.in_fence() {
            self.prose_call = ProseCall::default();
        } else if !(c == '[' && self.blank)
            && let Some((begins, reason)) = self.prose_call.push(c, &self.known)
        {
            out.push(refused(&begins, reason));
        }
    }

    /// Makes the calls of a block, which ends here.
    fn close(&mut self, calls: ParsedCalls, raw: &str, out: &mut Vec<ParsedPiece>) {
        self.state = ScanState::text();
        self.blank = calls.is_empty();
        self.fresh = false;
        self.after_call = true;
        self.ending.clear();
        let in_fence = self.quoting.in_fence();
        self.quoting.note_call();
        let pieces = match in_fence {
            true => {
                let fenced = self.fenced.get_or_insert_default();
                fenced.raw.push_str(raw);
                &mut fenced.pieces
            }
            false => out,
        };
        for call in calls {
            pieces.push(match call.and_then(|found| self.known.admit(found)) {
                Ok(call) => ParsedPiece::Call(call),
                Err(reason) => refused(raw, &reason),
            });
        }
    }

    fn close_broken(&mut self, out: &mut Vec<ParsedPiece>) {
        if let ScanState::Broken(broken) = &self.state {
            out.push(refused(&broken.raw, &broken.reason));
        }
        self.state = ScanState::text();
        self.blank = true;
        self.after_call = true;
    }

    fn end_unreadable(&mut self, raw: &str, reason: &str, out: &mut Vec<ParsedPiece>) {
        if raw.contains("name") {
            out.push(refused(raw, reason));
            self.is_refused = true;
        }
        self.text(raw, out);
    }

    /// The answer is no call. What was read as JSON is text, and the rest is read again: at least its first character is
    /// text.
    fn give_up_answer(&mut self, answer: WholeAnswer, out: &mut Vec<ParsedPiece>) -> String {
        self.fresh = false;
        let (json, rest) = answer.into_parts();
        self.text(&json, out);
        if !json.is_empty() {
            return rest;
        }
        let mut rest = rest.chars();
        rest.next().map(|first| self.push(first, out)).unwrap_or_default() + rest.as_str()
    }

    /// Hands out the line as text, but for the last `rest` bytes, which are to be read again.
    fn give_up_line(&mut self, rest: usize, out: &mut Vec<ParsedPiece>) {
        let ScanState::Line(mut line) = std::mem::replace(&mut self.state, ScanState::text()) else { return };
        line.raw.truncate(line.raw.len() - rest);
        self.text(&line.raw, out);
        let called: Vec<&str> = line
            .python
            .name()
            .into_iter()
            .chain(line.calls.iter().flatten().flatten().map(|found| &*found.name))
            .collect();
        // Before the first arguments there are no strings, and what begins a line is no part of this.
        if called.is_empty() || self.blank {
            return;
        }
        let suspect = called.iter().any(|name| self.known.lists(name));
        let mut prose =
            Prose { begins: excerpt(&line.raw), suspect, reason: line.python.expected(), matcher: Matcher::default() };
        line.raw.chars().for_each(|c| prose.look(c));
        self.state = ScanState::Prose(prose);
    }

    fn end_prose(&mut self, out: &mut Vec<ParsedPiece>) {
        if let ScanState::Prose(prose) = std::mem::replace(&mut self.state, ScanState::text())
            && prose.suspect
        {
            out.push(refused(&prose.begins, prose.reason));
        }
    }
}

/// A line that names no tool at all is prose or a program, not a mistaken call.
fn any_known(known: &KnownTools, calls: &ParsedCalls) -> bool {
    calls.iter().flatten().any(|found| known.has(&found.name))
}

fn push_text(text: &str, out: &mut Vec<ParsedPiece>) {
    match out.last_mut() {
        _ if text.is_empty() => {}
        Some(ParsedPiece::Text(last)) => last.push_str(text),
        _ => out.push(ParsedPiece::Text(text.to_owned())),
    }
}

impl ScanState {
    fn text() -> Self {
        Self::Text { matcher: Matcher::default(), begins_line: true }
    }
}

enum LineStep {
    More,
    /// Also the text after the calls.
    Calls(ParsedCalls, String),
    /// Text that may begin something else.
    Text(String),
}

impl ProseLine {
    /// Whether it holds a list of calls, and nothing after it, and the calls are so.
    fn is_over_and(&self, are_so: impl Fn(&ParsedCalls) -> bool) -> bool {
        self.matcher.is_idle() && self.calls.as_ref().is_some_and(are_so)
    }

    fn push(&mut self, c: char) -> LineStep {
        self.raw.push(c);
        let Some(calls) = &mut self.calls else {
            return match self.python.push(c) {
                Flow::More => LineStep::More,
                Flow::Done(calls) => {
                    self.calls = Some(calls);
                    LineStep::More
                }
                Flow::Fail { held, .. } => LineStep::Text(held),
                Flow::DoneBefore(..) | Flow::DoneAt(..) | Flow::Mentioned | Flow::Message(_) => {
                    LineStep::Text(String::new())
                }
            };
        };
        if self.matcher.is_idle() && matches!(c, ' ' | '\t' | '\r') {
            return LineStep::More;
        }
        if self.matcher.is_idle() && c == '\n' {
            return LineStep::Calls(std::mem::take(calls), c.to_string());
        }
        match self.matcher.push(c) {
            // This is some token, and not prose.
            Match::Partial if self.raw.ends_with("<|") => LineStep::Calls(std::mem::take(calls), "<|".to_owned()),
            Match::Partial => LineStep::More,
            Match::Full(_, text) => LineStep::Calls(std::mem::take(calls), text.to_owned()),
            Match::None(mut held) => {
                held.push(c);
                LineStep::Text(held)
            }
        }
    }
}

impl Prose {
    fn look(&mut self, c: char) {
        match self.matcher.push(c) {
            Match::Full(mark, _) => self.suspect |= mark.opens(),
            Match::None(held) if !held.is_empty() => self.look(c),
            Match::Partial | Match::None(_) => {}
        }
    }
}

impl BrokenBlock {
    /// Whether the block's own close tag is complete with this character.
    fn skip(&mut self, c: char) -> bool {
        let Some(ends) = self.ends else { return false };
        match self.matcher.push(c) {
            Match::Full(mark, _) => self.depth += ends.depth(mark),
            Match::None(held) if !held.is_empty() => return self.skip(c),
            Match::Partial | Match::None(_) => {}
        }
        self.depth <= 0
    }
}

/// In words that can be sent back to the model.
fn refused(raw: &str, reason: &str) -> ParsedPiece {
    let begins = |text: &&(&str, Mark)| text.1.opens() && raw.starts_with(text.0);
    let family = FORMATS.iter().find(|format| format.marks.iter().any(|mark| begins(&mark)));
    let family = family.map(|format| format.family).or_else(|| without_mark(raw));
    let family = family.map(|family| within(raw, family));
    let family = family.map(|family| format!(" (format {family})")).unwrap_or_default();
    ParsedPiece::Error(format!("the call that begins `{}`{family} was not made: {reason}", excerpt(raw)))
}

/// Many families share the marks of these; then the marks in the block say which one it is.
fn within(raw: &str, family: Family) -> Family {
    if !matches!(family, Family::Hermes | Family::GptOss | Family::Hunyuan | Family::Olmo3) {
        return family;
    }
    let begins = excerpt(raw);
    let place = |(text, mark): &(&str, Mark)| match mark {
        Mark::KeyOpen | Mark::NameEnd | Mark::ElementOpen(_) | Mark::Namespace | Mark::MessageSection => {
            begins.find(text)
        }
        _ => None,
    };
    let inner = FORMATS.iter().filter_map(|format| Some((format.marks.iter().filter_map(place).min()?, format.family)));
    inner.min_by_key(|(place, _)| *place).map_or(family, |(_, family)| family)
}

/// The family of a call that no mark opens.
fn without_mark(raw: &str) -> Option<Family> {
    let raw = raw.trim_start();
    let bracket = || raw.strip_prefix('[').map(str::trim_start);
    let beginnings = [
        (raw.starts_with("functools"), Family::Phi4Mini),
        (raw.starts_with("function call"), Family::Gigachat),
        (raw.starts_with("-> tool/"), Family::HyperclovaX),
        (raw.starts_with("to="), Family::GptOss),
        (raw.starts_with('{'), Family::Llama3),
        (bracket().is_some_and(|rest| rest.starts_with('{')), Family::Xlam),
        (bracket().is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())), Family::Pythonic),
    ];
    beginnings.into_iter().find_map(|(is_so, family)| is_so.then_some(family))
}
