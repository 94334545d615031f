//! The text protocols by name.

use std::fmt;

/// A way of writing calls in text that this crate can teach and render. [`crate::parse`] reads all
/// of them, in any mix, without knowing which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// `<tool_call>{"name":"x","args":{}}</tool_call>`, as hugind has it.
    #[default]
    Tags,
    /// The same tags with `arguments`, as Hermes, Qwen2.5 and Qwen3 were trained.
    Hermes,
    /// `<|tool_call>call:x{key:<|"|>text<|"|>}<tool_call|>`.
    Gemma,
    /// `[TOOL_CALLS][{"name": "x", "arguments": {}}]`.
    Mistral,
    /// `<|python_tag|>{"name": "x", "parameters": {}}`.
    Llama,
    /// `[x(key="text")]`, as Llama 3.2 and 4 and Gemma 3 write it.
    Pythonic,
    /// `<function=x>{}</function>`.
    Function,
    /// `<tool_call><function=x><parameter=key>text</parameter></function></tool_call>`.
    QwenCoder,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no prompt format {0:?}; there are {list}", list = Family::ALL.map(Family::as_str).join(", "))]
pub struct UnknownFamily(String);

impl Family {
    pub const ALL: [Self; 8] = [
        Self::Tags,
        Self::Hermes,
        Self::Gemma,
        Self::Mistral,
        Self::Llama,
        Self::Pythonic,
        Self::Function,
        Self::QwenCoder,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tags => "tags",
            Self::Hermes => "hermes",
            Self::Gemma => "gemma",
            Self::Mistral => "mistral",
            Self::Llama => "llama",
            Self::Pythonic => "pythonic",
            Self::Function => "function",
            Self::QwenCoder => "qwen_coder",
        }
    }

    /// Also takes `qwen` for [`Family::Hermes`] and `function_tag` for [`Family::Function`].
    ///
    /// # Errors
    ///
    /// An unknown name; the error lists the names there are.
    pub fn parse(text: &str) -> Result<Self, UnknownFamily> {
        let name = match text {
            "qwen" => "hermes",
            "function_tag" => "function",
            other => other,
        };
        let shown = || UnknownFamily(text.chars().take(80).collect());
        Self::ALL.into_iter().find(|family| family.as_str() == name).ok_or_else(shown)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
