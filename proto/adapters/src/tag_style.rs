//! The tags of formats that name the tool and each argument in a tag.

/// A way of writing such tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagStyle {
    /// Qwen3-Coder and Llama's custom tools: the name follows an `=`.
    Equals,
    /// DeepSeek.
    Dsml,
    /// MiniMax M2 and Anthropic.
    Invoke,
    /// The same in a name space.
    NamespacedInvoke,
    /// MiniCPM.
    Function,
    /// Step 3.
    Step,
    /// Muse.
    Atem,
}

/// The tags of one style.
pub(crate) struct ToolTags {
    /// Before the name of the tool; with `=` at its end the name follows, else attributes do.
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
    /// Before the name of an argument, in the same way.
    pub(crate) parameter: &'static str,
    pub(crate) parameter_close: &'static str,
}

impl TagStyle {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 7] =
        [Self::Equals, Self::Dsml, Self::Invoke, Self::NamespacedInvoke, Self::Function, Self::Step, Self::Atem];

    pub(crate) const fn tags(self) -> ToolTags {
        match self {
            Self::Equals => tags("<function=", "</function>", "<parameter=", "</parameter>"),
            Self::Dsml => tags("<｜DSML｜invoke ", "</｜DSML｜invoke>", "<｜DSML｜parameter ", "</｜DSML｜parameter>"),
            Self::Invoke => tags("<invoke ", "</invoke>", "<parameter ", "</parameter>"),
            Self::NamespacedInvoke => tags(
                concat!("<", "ant", "ml:invoke "),
                concat!("</", "ant", "ml:invoke>"),
                concat!("<", "ant", "ml:parameter "),
                concat!("</", "ant", "ml:parameter>"),
            ),
            Self::Function => tags("<function ", "</function>", "<param ", "</param>"),
            Self::Step => tags("<steptml:invoke ", "</steptml:invoke>", "<steptml:parameter ", "</steptml:parameter>"),
            Self::Atem => tags("<atem:invoke ", "</atem:invoke>", "<atem:parameter ", "</atem:parameter>"),
        }
    }
}

const fn tags(
    open: &'static str,
    close: &'static str,
    parameter: &'static str,
    parameter_close: &'static str,
) -> ToolTags {
    ToolTags { open, close, parameter, parameter_close }
}
