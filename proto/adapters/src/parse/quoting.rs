//! Markdown's code, in the text that a model writes: what stands in it is spoken of, and not done.
//!
//! An inline span lasts until as many backticks close it, or to the end of its line. A fence lasts until a line of
//! backticks. In a fence that holds nothing else, a call is a call: many models write theirs so.

/// Follows a text, one character at a time.
#[derive(Debug, Default)]
pub(crate) struct MarkdownCode {
    /// Backticks that have just come.
    run: usize,
    /// The run began a line.
    begins_line: bool,
    /// Nothing but white space stands on the line so far.
    blank: bool,
    /// The length of the run that opened the inline span.
    span: Option<usize>,
    fence: Option<CodeFence>,
}

#[derive(Debug)]
struct CodeFence {
    ticks: usize,
    /// The rest of the line that opened it.
    info: String,
    /// The line that opened it has ended, or calls came.
    open: bool,
    /// It holds something but calls.
    prose: bool,
}

impl MarkdownCode {
    pub(crate) fn new() -> Self {
        Self { blank: true, ..Self::default() }
    }

    pub(crate) fn push(&mut self, c: char) {
        if c == '`' {
            if self.run == 0 {
                self.begins_line = self.blank;
            }
            self.run += 1;
            self.blank = false;
            return;
        }
        self.end_run(c);
        if let Some(fence) = &mut self.fence {
            match c {
                '\n' => fence.open = true,
                c if !fence.open => fence.info.push(c),
                c if !c.is_whitespace() => fence.prose = true,
                _ => {}
            }
        }
        self.blank = c == '\n' || (self.blank && c.is_whitespace());
        if c == '\n' {
            self.span = None;
        }
    }

    fn end_run(&mut self, next: char) {
        let run = std::mem::take(&mut self.run);
        if run == 0 {
            return;
        }
        match &mut self.fence {
            Some(fence) if self.begins_line && run >= fence.ticks && next.is_whitespace() => self.fence = None,
            Some(fence) => fence.prose = true,
            None if self.begins_line && run >= 3 => {
                self.fence = Some(CodeFence { ticks: run, info: String::new(), open: next == '\n', prose: false });
            }
            None => match self.span {
                Some(open) if open == run => self.span = None,
                Some(_) => {}
                None => self.span = Some(run),
            },
        }
    }

    /// Whether the backticks that have just come begin their line, as those of a fence do.
    pub(crate) fn may_begin_fence(&self) -> bool {
        self.run > 0 && self.begins_line
    }

    /// Whether a mark that comes now is spoken of.
    pub(crate) fn is_quoted(&self) -> bool {
        if self.run > 0 {
            // A mark after the backticks of a fence is in the fence.
            let fence = self.fence.is_none() && self.begins_line && self.run >= 3;
            return !fence && self.span != Some(self.run);
        }
        self.span.is_some() || self.is_prose()
    }

    /// Whether the fence that is open holds anything but calls.
    pub(crate) fn is_prose(&self) -> bool {
        self.fence.as_ref().is_some_and(|fence| fence.prose)
    }

    /// Whether a call that comes now stands in a fence, and may turn out to be prose.
    pub(crate) fn in_fence(&self) -> bool {
        self.fence.is_some() || (self.run >= 3 && self.begins_line)
    }

    /// Whether a statement that comes now stands in a fence of `tool_code`, which holds no prose.
    pub(crate) fn in_tool_code(&self) -> bool {
        let is_so = |fence: &CodeFence| fence.open && !fence.prose && fence.info.trim() == "tool_code";
        self.run == 0 && self.fence.as_ref().is_some_and(is_so)
    }

    /// A call has come.
    pub(crate) fn note_call(&mut self) {
        self.end_run('<');
        self.blank = true;
        if let Some(fence) = &mut self.fence {
            fence.open = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, quoted: bool, in_fence: bool) {
        let mut quoting = MarkdownCode::new();
        text.chars().for_each(|c| quoting.push(c));
        assert_eq!((quoting.is_quoted(), quoting.in_fence()), (quoted, in_fence), "{text:?}");
    }

    #[test]
    fn marks_in_code_are_quoted() {
        check("", false, false);
        check("see `", true, false);
        check("see `a`", false, false);
        check("see `a ", true, false);
        check("see `a\n", false, false);
        check("see ``a` ", true, false);
        check("```json\n", false, true);
        check("```", false, true);
        check("```json\nx ", true, true);
        check("```json\nx\n```\n", false, false);
        check("a ```", true, false);
    }
}
