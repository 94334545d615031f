//! The shapes of calls: one file each.
//!
//! A block is fed one character at a time, after the mark that opens it, and decides for itself
//! where it ends. What happens to a block that cannot be read is in `scan.rs`.

pub(crate) mod after;
pub(crate) mod gap;
pub(crate) mod header;
pub(crate) mod key_value_tags;
pub(crate) mod message;
pub(crate) mod mistral;
pub(crate) mod named_json;
pub(crate) mod pythonic;
pub(crate) mod section;
pub(crate) mod tool_tag;
pub(crate) mod tree;

use super::found_call::FoundCall;
use crate::mark::Mark;
use crate::tag_style::TagStyle;

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
    /// The block is no call: the text that follows is of this kind, up to the end of its message.
    Message(MessageKind),
}

/// The content of a message that is not a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Text,
    Thinking,
}

impl Flow {
    pub(crate) fn fail(reason: impl Into<String>, held: impl Into<String>) -> Self {
        Self::Fail { reason: reason.into(), held: held.into() }
    }
}

/// A block that has begun.
#[derive(Debug)]
pub(crate) enum CallBlock {
    Section(Box<section::CallSection>),
    ToolCalls(mistral::ToolCalls),
    Python(pythonic::Tagged),
    Message(message::ChannelMessage),
    Header(header::HeaderBlock),
}

impl CallBlock {
    /// `None` for marks that open nothing.
    pub(crate) fn opened_by(mark: Mark, text: &'static str) -> Option<Self> {
        match mark {
            // Muse writes it in messages to tools only.
            Mark::ElementOpen(TagStyle::Atem) => None,
            Mark::SectionOpen
            | Mark::CallOpen
            | Mark::KeyedSectionOpen
            | Mark::CallBegin
            | Mark::MessageCall
            | Mark::ElementOpen(_) => Some(Self::Section(Box::new(section::CallSection::opened_by(mark, text)))),
            Mark::ToolCalls => Some(Self::ToolCalls(mistral::ToolCalls::default())),
            Mark::PythonOpen => Some(Self::Python(pythonic::Tagged::default())),
            Mark::MessageStart => Some(Self::Message(message::ChannelMessage::opened_by(text))),
            Mark::HeaderOpen => Some(Self::Header(header::HeaderBlock::default())),
            _ => None,
        }
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        match self {
            Self::Section(block) => block.push(c),
            Self::ToolCalls(block) => block.push(c),
            Self::Python(block) => block.push(c),
            Self::Message(block) => block.push(c),
            Self::Header(block) => block.push(c),
        }
    }

    /// Whether the next character is data, whatever it looks like.
    pub(crate) fn in_string(&self) -> bool {
        match self {
            Self::Section(block) => block.in_string(),
            Self::ToolCalls(block) => block.in_string(),
            Self::Python(block) => block.in_string(),
            Self::Message(block) => block.in_string(),
            Self::Header(block) => block.in_string(),
        }
    }

    /// At the end of the text: the mark was only spoken of, see [`Flow::Mentioned`].
    pub(crate) fn is_mentioned(&self) -> bool {
        match self {
            Self::Section(block) => block.is_mentioned(),
            Self::Message(block) => block.is_mentioned(),
            // They need no second look.
            Self::ToolCalls(_) | Self::Python(_) | Self::Header(_) => false,
        }
    }

    /// How many close marks it waits for.
    pub(crate) fn depth(&self) -> isize {
        match self {
            Self::Section(block) => block.depth(),
            Self::ToolCalls(_) | Self::Python(_) | Self::Message(_) | Self::Header(_) => 1,
        }
    }

    /// The calls of the block at the end of the text.
    ///
    /// # Errors
    ///
    /// In words, when the text ends in the middle of a call.
    pub(crate) fn finish(self) -> Result<ParsedCalls, String> {
        match self {
            Self::Section(block) => block.finish(),
            Self::ToolCalls(block) => block.finish(),
            Self::Python(block) => block.finish(),
            Self::Message(block) => block.finish(),
            Self::Header(block) => block.finish(),
        }
    }

    /// Whether a close mark ends this block when it cannot be read: such a mark counts against those that open the
    /// same kind of block.
    pub(crate) fn ends(&self) -> Option<BlockEnds> {
        match self {
            Self::Section(block) => Some(block.ends()),
            Self::Header(_) => Some(BlockEnds::Header),
            Self::Message(_) => Some(BlockEnds::Message),
            Self::ToolCalls(_) | Self::Python(_) => None,
        }
    }
}

/// The marks that end a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockEnds {
    Section,
    Call,
    Element,
    Header,
    Message,
}

impl BlockEnds {
    /// How a mark changes the number of blocks of this kind that are open.
    pub(crate) fn depth(self, mark: Mark) -> isize {
        match (self, mark) {
            (Self::Section, Mark::SectionOpen | Mark::KeyedSectionOpen)
            | (Self::Call, Mark::CallBegin)
            | (Self::Element, Mark::ElementOpen(_))
            | (Self::Header, Mark::HeaderOpen) => 1,
            (Self::Section, Mark::SectionClose)
            | (Self::Call, Mark::CallEnd)
            | (Self::Element, Mark::ElementClose)
            | (Self::Header, Mark::HeaderClose)
            | (Self::Message, Mark::MessageEnd) => -1,
            _ => 0,
        }
    }
}

pub(crate) const CUT_OFF: &str = "the text ends in the middle of the call";
