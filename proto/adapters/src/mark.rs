//! The marks between which calls stand.

use crate::tag_style::TagStyle;

/// The meaning of a mark. Which texts have it is in [`crate::families`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A section of calls begins.
    SectionOpen,
    /// The same, where no mark closes it.
    CallOpen,
    /// The same, but only in a message to a tool.
    MessageSection,
    /// The same, of objects whose only key is the name of a tool.
    KeyedSectionOpen,
    SectionClose,
    /// The header of one call begins, up to the separator: the name, or something like `function`.
    CallBegin,
    CallSeparator,
    CallEnd,
    /// The name of the tool ends here, and its tagged arguments follow.
    NameEnd,
    /// A message begins that is one call, up to [`Mark::MessageEnd`].
    MessageCall,
    /// A tag that names a tool, of this style.
    ElementOpen(TagStyle),
    ElementClose,
    /// A tag that names an argument, of this style.
    ParameterOpen(TagStyle),
    ParameterClose,
    /// `<arg_key>` and its like: the key of an argument.
    KeyOpen,
    KeyClose,
    /// The type of the value, between the key and the value.
    TypeOpen,
    TypeClose,
    ValueOpen,
    /// The key ends and the value begins.
    KeyValueSeparator,
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
    /// A message has ended; the next may be a call as a whole.
    MessageSeparator,
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
            | Self::MessageCall
            | Self::ElementOpen(_)
            | Self::ToolCalls
            | Self::PythonOpen
            | Self::MessageStart
            | Self::HeaderOpen => true,
            Self::SectionClose
            | Self::MessageSection
            | Self::CallSeparator
            | Self::CallEnd
            | Self::NameEnd
            | Self::ElementClose
            | Self::ParameterOpen(_)
            | Self::ParameterClose
            | Self::KeyOpen
            | Self::KeyClose
            | Self::TypeOpen
            | Self::TypeClose
            | Self::ValueOpen
            | Self::KeyValueSeparator
            | Self::ValueClose
            | Self::PythonClose
            | Self::MessagePart
            | Self::MessageBody
            | Self::MessageEnd
            | Self::HeaderClose
            | Self::HeaderEnd
            | Self::Namespace
            | Self::Wrapper
            | Self::MessageSeparator
            | Self::End => false,
        }
    }
}
