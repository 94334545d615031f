//! The text after a call in a family without close tags.
//!
//! White space, a mark or the end of the text ends such a call. Anything that goes on like JSON
//! says that the value has ended too early, with a bracket too many, and is not what was meant.

use super::{Flow, ParsedCalls};
use crate::mark::Mark;
use crate::parse::markers::{Match, Matcher};

#[derive(Debug, Default)]
pub(crate) struct After {
    space: String,
    matcher: Matcher,
}

impl After {
    /// No mark has begun.
    pub(crate) fn is_idle(&self) -> bool {
        self.matcher.is_idle()
    }

    /// `calls` are taken when the block has ended.
    pub(crate) fn push(&mut self, c: char, calls: &mut ParsedCalls) -> Flow {
        if self.matcher.is_idle() && c.is_whitespace() {
            self.space.push(c);
            return Flow::More;
        }
        match self.matcher.push(c) {
            Match::Partial => Flow::More,
            Match::Full(Mark::PythonClose | Mark::End | Mark::MessageEnd | Mark::MessageSeparator, _) => {
                Flow::Done(std::mem::take(calls))
            }
            Match::Full(mark, text) if mark.opens() => Flow::DoneAt(std::mem::take(calls), mark, text),
            Match::Full(_, text) => self.end(text, calls),
            Match::None(held) if held.is_empty() && (self.space.is_empty() || ",:;=}])\"'".contains(c)) => {
                Flow::fail(format!("`{c}` follows the end of the call"), c)
            }
            Match::None(mut held) => {
                held.push(c);
                self.end(&held, calls)
            }
        }
    }

    fn end(&mut self, rest: &str, calls: &mut ParsedCalls) -> Flow {
        Flow::DoneBefore(std::mem::take(calls), std::mem::take(&mut self.space) + rest)
    }
}
