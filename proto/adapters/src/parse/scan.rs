//! Tells calls from text, one character at a time, after thinking has been taken out.
//!
//! A block that cannot be read is skipped up to the close tag that matches its open tag, and what
//! looks like a call in it is not made: it may stand in a string that could not be read. Without
//! such a tag the rest of the text is skipped. What is skipped and never closed stays text.

use super::ParsedPiece;
use super::families::pythonic::PythonList;
use super::families::{CallBlock, Flow, ParsedCalls};
use super::known::KnownTools;
use super::lenient_json::excerpt;
use super::markers::{Mark, Match, Matcher};

#[derive(Debug)]
pub(crate) struct Scanner {
    known: KnownTools,
    state: ScanState,
    /// Nothing but white space stands between here and the beginning of the line.
    blank: bool,
}

#[derive(Debug)]
enum ScanState {
    Text {
        matcher: Matcher,
        /// The held text began a line.
        begins_line: bool,
    },
    Line(ProseLine),
    Prose(Prose),
    Block {
        block: CallBlock,
        raw: String,
    },
    Broken(BrokenBlock),
}

/// A line that may be Python's list of calls. If it is not, it is text.
#[derive(Debug, Default)]
struct ProseLine {
    list: PythonList,
    raw: String,
    /// The list is complete; only white space may follow on its line, or a mark.
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
    matcher: Matcher,
}

#[derive(Debug)]
struct BrokenBlock {
    reason: String,
    tags: Option<(Mark, Mark)>,
    depth: usize,
    matcher: Matcher,
    raw: String,
}

impl Scanner {
    pub(crate) fn new(known: KnownTools) -> Self {
        Self { known, state: ScanState::text(), blank: true }
    }

    /// Whether the next character is data, whatever it looks like.
    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            ScanState::Line(line) => line.list.in_string(),
            ScanState::Block { block, .. } => block.in_string(),
            ScanState::Text { .. } | ScanState::Prose(_) | ScanState::Broken(_) => false,
        }
    }

    /// Something was taken out here: what stands before and after it must not grow together.
    pub(crate) fn part(&mut self, out: &mut Vec<ParsedPiece>) -> String {
        match &mut self.state {
            ScanState::Text { matcher, .. } => {
                let held = matcher.take();
                self.text(&held, out);
                String::new()
            }
            ScanState::Prose(_) => String::new(),
            ScanState::Line(_) | ScanState::Block { .. } | ScanState::Broken(_) => self.push(' ', out),
        }
    }

    /// As if nothing had been read.
    pub(crate) fn forget(&mut self) {
        self.state = ScanState::text();
        self.blank = true;
    }

    /// Answers what is to be read again.
    pub(crate) fn push(&mut self, c: char, out: &mut Vec<ParsedPiece>) -> String {
        match &mut self.state {
            ScanState::Text { matcher, begins_line } => {
                if matcher.is_idle() {
                    *begins_line = self.blank;
                }
                match matcher.push(c) {
                    Match::Partial => String::new(),
                    Match::Full(mark, text) => self.open(mark, text, out),
                    Match::None(held) if held.is_empty() => {
                        self.text(c.encode_utf8(&mut [0; 4]), out);
                        String::new()
                    }
                    Match::None(held) if *begins_line && held.starts_with('[') => {
                        self.state = ScanState::Line(ProseLine { raw: "[".to_owned(), ..ProseLine::default() });
                        // Of the mark's characters only the last can be no part of a name.
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
                LineStep::Calls(calls, rest) if self.any_known(&calls) => {
                    self.close(calls, "[", out);
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
        }
    }

    /// The text ends here.
    pub(crate) fn finish(&mut self, out: &mut Vec<ParsedPiece>) {
        match std::mem::replace(&mut self.state, ScanState::text()) {
            ScanState::Text { mut matcher, .. } => self.text(&matcher.take(), out),
            ScanState::Line(ProseLine { calls: Some(calls), matcher, .. })
                if matcher.is_idle() && self.any_known(&calls) =>
            {
                self.close(calls, "[", out);
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
                    self.text(&raw, out);
                }
            },
            ScanState::Broken(broken) => {
                out.push(refused(&broken.raw, &broken.reason));
                self.text(&broken.raw, out);
            }
        }
    }

    fn open(&mut self, mark: Mark, text: &str, out: &mut Vec<ParsedPiece>) -> String {
        match CallBlock::opened_by(mark) {
            Some(block) => self.state = ScanState::Block { block, raw: text.to_owned() },
            None => self.text(text, out),
        }
        String::new()
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
                self.close(calls, &raw, out);
                rest
            }
            Flow::DoneAt(calls, mark, text) => {
                self.close(calls, &raw, out);
                self.open(mark, text, out)
            }
            Flow::Mentioned => {
                raw.pop();
                self.text(&raw, out);
                c.to_string()
            }
            Flow::Fail { reason, held } => {
                let mut broken = BrokenBlock { reason, tags: block.tags(), depth: 1, matcher: Matcher::default(), raw };
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
        for c in text.chars() {
            self.blank = c == '\n' || (self.blank && c.is_whitespace());
        }
        match out.last_mut() {
            _ if text.is_empty() => {}
            Some(ParsedPiece::Text(last)) => last.push_str(text),
            _ => out.push(ParsedPiece::Text(text.to_owned())),
        }
    }

    /// Makes the calls of a block, which ends here.
    fn close(&mut self, calls: ParsedCalls, raw: &str, out: &mut Vec<ParsedPiece>) {
        self.forget();
        for call in calls {
            out.push(match call.and_then(|found| self.known.admit(found)) {
                Ok(call) => ParsedPiece::Call(call),
                Err(reason) => refused(raw, &reason),
            });
        }
    }

    fn close_broken(&mut self, out: &mut Vec<ParsedPiece>) {
        if let ScanState::Broken(broken) = &self.state {
            out.push(refused(&broken.raw, &broken.reason));
        }
        self.forget();
    }

    /// Hands out the line as text, but for the last `rest` bytes, which are to be read again.
    fn give_up_line(&mut self, rest: usize, out: &mut Vec<ParsedPiece>) {
        let ScanState::Line(mut line) = std::mem::replace(&mut self.state, ScanState::text()) else { return };
        line.raw.truncate(line.raw.len() - rest);
        self.text(&line.raw, out);
        let called: Vec<&str> = line
            .list
            .name()
            .into_iter()
            .chain(line.calls.iter().flatten().flatten().map(|found| &*found.name))
            .collect();
        // Before the first arguments there are no strings, and what begins a line is no part of this.
        if called.is_empty() || self.blank {
            return;
        }
        let suspect = called.iter().any(|name| self.known.lists(name));
        let mut prose = Prose { begins: excerpt(&line.raw), suspect, matcher: Matcher::default() };
        line.raw.chars().for_each(|c| prose.look(c));
        self.state = ScanState::Prose(prose);
    }

    fn end_prose(&mut self, out: &mut Vec<ParsedPiece>) {
        if let ScanState::Prose(prose) = std::mem::replace(&mut self.state, ScanState::text())
            && prose.suspect
        {
            out.push(refused(
                &prose.begins,
                "it is not a list of calls such as [name(key=value)] on a line of its own",
            ));
        }
    }

    /// A line that names no tool at all is prose or a program, not a mistaken call.
    fn any_known(&self, calls: &ParsedCalls) -> bool {
        calls.iter().flatten().any(|found| self.known.has(&found.name))
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
    fn push(&mut self, c: char) -> LineStep {
        self.raw.push(c);
        let Some(calls) = &mut self.calls else {
            return match self.list.push(c) {
                Flow::More => LineStep::More,
                Flow::Done(calls) => {
                    self.calls = Some(calls);
                    LineStep::More
                }
                Flow::Fail { held, .. } => LineStep::Text(held),
                Flow::DoneBefore(..) | Flow::DoneAt(..) | Flow::Mentioned => LineStep::Text(String::new()),
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
            Match::Full(mark, _) => self.suspect |= CallBlock::opened_by(mark).is_some(),
            Match::None(held) if !held.is_empty() => self.look(c),
            Match::Partial | Match::None(_) => {}
        }
    }
}

impl BrokenBlock {
    /// Whether the block's own close tag is complete with this character.
    fn skip(&mut self, c: char) -> bool {
        let Some((open, close)) = self.tags else { return false };
        match self.matcher.push(c) {
            Match::Full(mark, _) if mark == open => self.depth += 1,
            Match::Full(mark, _) if mark == close => self.depth -= 1,
            Match::None(held) if !held.is_empty() => return self.skip(c),
            Match::Full(..) | Match::Partial | Match::None(_) => {}
        }
        self.depth == 0
    }
}

/// In words that can be sent back to the model.
fn refused(raw: &str, reason: &str) -> ParsedPiece {
    ParsedPiece::Error(format!("the call that begins `{}` was not made: {reason}", excerpt(raw)))
}
