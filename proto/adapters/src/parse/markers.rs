//! The marks between which calls stand, and how a mark is found in a stream.

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A block of calls in tags begins.
    TagOpen,
    TagClose,
    /// `<function=`, the name to follow.
    FunctionOpen,
    FunctionClose,
    /// `<parameter=`, the key to follow.
    ParameterOpen,
    ParameterClose,
    /// `[TOOL_CALLS]`.
    ToolCalls,
    /// `<|python_tag|>` or `<|python_start|>`.
    PythonOpen,
    /// `<|python_end|>` or a token that ends the model's turn.
    PythonClose,
}

/// Each begins with a character that does not occur in it again, and none begins another, so a
/// mark is found without going back: see [`Matcher`].
pub(crate) const MARKS: [(&str, Mark); 19] = [
    ("<tool_call>", Mark::TagOpen),
    ("</tool_call>", Mark::TagClose),
    ("<|tool_call>", Mark::TagOpen),
    ("<tool_call|>", Mark::TagClose),
    ("<|tool_call|>", Mark::TagOpen),
    ("<|/tool_call|>", Mark::TagClose),
    ("<start_function_call>", Mark::TagOpen),
    ("<end_function_call>", Mark::TagClose),
    ("<function=", Mark::FunctionOpen),
    ("</function>", Mark::FunctionClose),
    ("<parameter=", Mark::ParameterOpen),
    ("</parameter>", Mark::ParameterClose),
    ("[TOOL_CALLS]", Mark::ToolCalls),
    ("<|python_tag|>", Mark::PythonOpen),
    ("<|python_start|>", Mark::PythonOpen),
    ("<|python_end|>", Mark::PythonClose),
    ("<|eom_id|>", Mark::PythonClose),
    ("<|eot_id|>", Mark::PythonClose),
    ("<|eot|>", Mark::PythonClose),
];

/// Finds marks, one character at a time.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    held: String,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Match {
    /// The character may belong to a mark and is held.
    Partial,
    /// The mark and its text.
    Full(Mark, &'static str),
    /// No mark: what was held, if anything, and then the character itself, which may begin one.
    None(String),
}

impl Matcher {
    pub(crate) fn push(&mut self, c: char) -> Match {
        if self.held.is_empty() && c != '<' && c != '[' {
            return Match::None(String::new());
        }
        self.held.push(c);
        let mut partial = false;
        for (text, mark) in MARKS {
            if text == self.held {
                self.held.clear();
                return Match::Full(mark, text);
            }
            partial |= text.starts_with(self.held.as_str());
        }
        if partial {
            return Match::Partial;
        }
        self.held.pop();
        Match::None(std::mem::take(&mut self.held))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// The held text, released.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_needs_no_going_back() {
        for (text, _) in MARKS {
            let first = text.chars().next().unwrap();
            assert!(!text[1..].contains(first), "{text}");
            assert!(!text[1..].contains(['<']), "{text}");
            assert_eq!(MARKS.iter().filter(|(other, _)| other.starts_with(text)).count(), 1, "{text}");
        }
    }
}
