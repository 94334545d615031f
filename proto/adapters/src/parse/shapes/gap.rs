//! The text that may surround a call within its block: white space, a code fence, marks.

use crate::mark::Mark;
use crate::parse::markers::{Match, Matcher};

#[derive(Debug, Default)]
pub(crate) struct Gap {
    state: GapState,
    matcher: Matcher,
    started: bool,
}

#[derive(Debug, Default)]
enum GapState {
    #[default]
    Space,
    /// So many backticks.
    Ticks { count: usize, first: bool },
    /// The word behind a fence's backticks.
    Info,
}

pub(crate) enum GapStep {
    More,
    /// A character that is none of a gap's business.
    Char(char),
    Mark(Mark, &'static str),
    /// Text that begins like a mark but is not one, or a stray backtick.
    Other(String),
    /// One or two backticks stand directly after the block's mark.
    Mentioned,
}

impl Gap {
    /// One or two backticks stand directly after the block's mark, so far.
    pub(crate) fn is_mentioned(&self) -> bool {
        matches!(self.state, GapState::Ticks { count: 1 | 2, first: true })
    }

    pub(crate) fn push(&mut self, c: char) -> GapStep {
        let first = !std::mem::replace(&mut self.started, true);
        match self.state {
            GapState::Ticks { count, first } if c == '`' => {
                self.state = GapState::Ticks { count: count + 1, first };
                return GapStep::More;
            }
            GapState::Ticks { count, first } if count < 3 => {
                self.state = GapState::Space;
                return if first { GapStep::Mentioned } else { GapStep::Other(c.to_string()) };
            }
            GapState::Ticks { .. } | GapState::Info if c.is_ascii_alphanumeric() || c == '_' => {
                self.state = GapState::Info;
                return GapStep::More;
            }
            GapState::Ticks { .. } | GapState::Info | GapState::Space => self.state = GapState::Space,
        }
        if self.matcher.is_idle() {
            if c.is_whitespace() {
                return GapStep::More;
            }
            if c == '`' {
                self.state = GapState::Ticks { count: 1, first };
                return GapStep::More;
            }
            if c != '<' && c != ']' {
                return GapStep::Char(c);
            }
        }
        match self.matcher.push(c) {
            Match::Partial => GapStep::More,
            Match::Full(mark, text) => GapStep::Mark(mark, text),
            Match::None(mut held) => {
                held.push(c);
                GapStep::Other(held)
            }
        }
    }
}
