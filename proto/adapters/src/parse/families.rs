//! The ways in which open model families write calls: one file each, which names its source.
//!
//! A block is fed one character at a time, after the mark that opens it, and decides for itself
//! where it ends. What happens to a block that cannot be read is in `scan.rs`.

pub(crate) mod after;
pub(crate) mod function_tag;
pub(crate) mod gap;
pub(crate) mod mistral;
pub(crate) mod pythonic;
pub(crate) mod tags;

use super::markers::Mark;
use super::shape::FoundCall;

pub(crate) type ParsedCalls = Vec<Result<FoundCall, String>>;

/// The effect of a character on a block.
#[derive(Debug)]
pub(crate) enum Flow {
    More,
    /// The block ends here.
    Done(ParsedCalls),
    /// The block has ended before these characters, which are text or begin something else.
    DoneBefore(ParsedCalls, String),
    /// The block has ended because another begins with this mark, whose text comes with it.
    DoneAt(ParsedCalls, Mark, &'static str),
    /// The block cannot be read. `held` is the end of it that has not been taken for data, so
    /// that a close tag in it is not overlooked.
    Fail {
        reason: String,
        held: String,
    },
    /// The mark was only spoken of, as in `` `<tool_call>` ``: all of it is text.
    Mentioned,
}

impl Flow {
    pub(crate) fn fail(reason: impl Into<String>, held: impl Into<String>) -> Self {
        Self::Fail { reason: reason.into(), held: held.into() }
    }
}

/// A block that has begun.
#[derive(Debug)]
pub(crate) enum CallBlock {
    Tags(tags::Tags),
    Function(function_tag::Function),
    ToolCalls(mistral::ToolCalls),
    Python(pythonic::Tagged),
}

impl CallBlock {
    /// `None` for marks that open nothing.
    pub(crate) fn opened_by(mark: Mark) -> Option<Self> {
        match mark {
            Mark::TagOpen => Some(Self::Tags(tags::Tags::default())),
            Mark::FunctionOpen => Some(Self::Function(function_tag::Function::default())),
            Mark::ToolCalls => Some(Self::ToolCalls(mistral::ToolCalls::default())),
            Mark::PythonOpen => Some(Self::Python(pythonic::Tagged::default())),
            Mark::TagClose | Mark::FunctionClose | Mark::ParameterOpen | Mark::ParameterClose | Mark::PythonClose => {
                None
            }
        }
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match self {
            Self::Tags(block) => block.push(c),
            Self::Function(block) => block.push(c),
            Self::ToolCalls(block) => block.push(c),
            Self::Python(block) => block.push(c),
        }
    }

    /// Whether the next character is data, whatever it looks like.
    pub(crate) fn in_string(&self) -> bool {
        match self {
            Self::Tags(block) => block.in_string(),
            Self::Function(block) => block.in_string(),
            Self::ToolCalls(block) => block.in_string(),
            Self::Python(block) => block.in_string(),
        }
    }

    /// At the end of the text: the mark was only spoken of, see [`Flow::Mentioned`].
    pub(crate) fn is_mentioned(&self) -> bool {
        match self {
            Self::Tags(block) => block.is_mentioned(),
            // They need no second look.
            Self::Function(_) | Self::ToolCalls(_) | Self::Python(_) => false,
        }
    }

    /// The calls of the block at the end of the text.
    ///
    /// # Errors
    ///
    /// In words, when the text ends in the middle of a call.
    pub(crate) fn finish(self) -> Result<ParsedCalls, String> {
        match self {
            Self::Tags(block) => block.finish(),
            Self::Function(block) => block.finish(),
            Self::ToolCalls(block) => block.finish(),
            Self::Python(block) => block.finish(),
        }
    }

    /// The marks that open and close this sort of block; `None` for one that has no close tag.
    pub(crate) fn tags(&self) -> Option<(Mark, Mark)> {
        match self {
            Self::Tags(_) => Some((Mark::TagOpen, Mark::TagClose)),
            Self::Function(_) => Some((Mark::FunctionOpen, Mark::FunctionClose)),
            Self::ToolCalls(_) | Self::Python(_) => None,
        }
    }
}

pub(crate) const CUT_OFF: &str = "the text ends in the middle of the call";
