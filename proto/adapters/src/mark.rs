//! The marks between which calls stand.

use crate::tag_style::TagStyle;

/// The meaning of a mark. Which texts have it is in [`crate::families`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A section of calls begins.
    SectionOpen,
    /// The same, where no mark closes it.
    CallOpen,
    /// The same, of objects whose only key is the name of a tool.
    KeyedSectionOpen,
    SectionClose,
    /// The header of one call begins, up to the separator: the name, or something like `function`.
    CallBegin,
    CallSeparator,
    CallEnd,
    /// A tag that names a tool, of this style.
    ElementOpen(TagStyle),
    ElementClose,
    /// A tag that names an argument, of this style.
    ParameterOpen(TagStyle),
    ParameterClose,
    /// `<arg_key>` and its like: the key of an argument.
    KeyOpen,
    KeyClose,
    ValueOpen,
    ValueClose,
    /// `[TOOL_CALLS]`.
    ToolCalls,
    /// `<|python_tag|>` or `<|python_start|>`.
    PythonOpen,
    PythonClose,
    /// A message of a channel begins, with its header.
    MessageStart,
    /// Within the header.
    MessagePart,
    /// The header ends and the message follows.
    MessageBody,
    MessageEnd,
    /// Kimi K3: a header that opens something, up to [`Mark::HeaderEnd`].
    HeaderOpen,
    /// The same of one that closes something.
    HeaderClose,
    HeaderEnd,
    /// MiniMax M3 has it before each of its tags.
    Namespace,
    /// A token that says nothing about calls and is no text either.
    Wrapper,
    /// The model has ended its turn.
    End,
}

impl Mark {
    /// Whether a call, or several, may follow.
    pub(crate) fn opens(self) -> bool {
        match self {
            Self::SectionOpen
            | Self::CallOpen
            | Self::KeyedSectionOpen
            | Self::CallBegin
            | Self::ElementOpen(_)
            | Self::ToolCalls
            | Self::PythonOpen
            | Self::MessageStart
            | Self::HeaderOpen => true,
            Self::SectionClose
            | Self::CallSeparator
            | Self::CallEnd
            | Self::ElementClose
            | Self::ParameterOpen(_)
            | Self::ParameterClose
            | Self::KeyOpen
            | Self::KeyClose
            | Self::ValueOpen
            | Self::ValueClose
            | Self::PythonClose
            | Self::MessagePart
            | Self::MessageBody
            | Self::MessageEnd
            | Self::HeaderClose
            | Self::HeaderEnd
            | Self::Namespace
            | Self::Wrapper
            | Self::End => false,
        }
    }
}
