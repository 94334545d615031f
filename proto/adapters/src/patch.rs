//! The text of a patch in the form that `apply_patch` takes: files to add, to delete and to update, between
//! `*** Begin Patch` and `*** End Patch`.

/// The grammar of a patch, for models that write it as plain text.
pub const GRAMMAR: &str = r#"start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
"#;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
/// A line that begins so ends the changes of a file.
const HEADER: &str = "*** ";
/// The limit of sections. Each file of a patch is asked about on its own.
const MAX_SECTIONS: usize = 100;

/// A text that is not a patch: the line, and the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatchSyntaxError(String);

/// Leaves the function with a [`PatchSyntaxError`].
macro_rules! refuse {
    ($($message:tt)*) => {
        return Err(PatchSyntaxError(format!($($message)*)))
    };
}

/// The changes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchSection {
    pub path: String,
    pub operation: PatchOperation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchOperation {
    Add { content: String },
    Delete,
    Update { move_to: Option<String>, chunks: Vec<PatchChunk> },
}

/// Changes of adjacent lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchChunk {
    /// Its first line in the patch, from 1.
    pub line: usize,
    /// The texts after `@@`: lines above the change, the outermost first.
    pub anchors: Vec<String>,
    pub lines: Vec<PatchLine>,
    /// The changed lines are the last ones of the file.
    pub at_end: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchLine {
    Keep(String),
    Remove(String),
    Add(String),
}

/// Reads a patch.
///
/// # Errors
/// Names the line of the patch, and the expected form.
pub fn parse(input: &str) -> Result<Vec<PatchSection>, PatchSyntaxError> {
    let lines: Vec<&str> = input.lines().collect();
    let (first, end) = envelope(&lines)?;
    let mut reader = PatchReader { lines: &lines[..end], at: first + 1 };
    let mut sections = Vec::new();
    while let Some(line) = reader.next() {
        if line.trim().is_empty() {
            continue;
        }
        if sections.len() == MAX_SECTIONS {
            refuse!("a patch changes at most {MAX_SECTIONS} files: make several of it");
        }
        sections.push(reader.section(line)?);
    }
    if sections.is_empty() {
        refuse!("the patch is empty: expected {ADD} PATH, {UPDATE} PATH or {DELETE} PATH");
    }
    Ok(sections)
}

/// Where the first and the last line of the patch are. A fence and a shell's here-document around it are skipped.
fn envelope(lines: &[&str]) -> Result<(usize, usize), PatchSyntaxError> {
    let Some(first) = lines.iter().position(|line| line.trim() == BEGIN) else {
        if lines.iter().any(|line| line.starts_with("+++ ") || line.starts_with("diff --git ")) {
            refuse!(
                "this is a unified diff: write it between {BEGIN} and {END} with {UPDATE} PATH instead of the lines \
                 --- and +++, or apply it with `git apply` in bash"
            );
        }
        refuse!("the first line of a patch is {BEGIN}, and the last one is {END}");
    };
    let is_wrapping = |line: &&str| {
        let line = line.trim();
        line.is_empty() || line.starts_with("```") || line.contains("<<") || line == "apply_patch" || line == "EOF"
    };
    if let Some(odd) = lines[..first].iter().position(|line| !is_wrapping(line)) {
        refuse!("line {}: expected nothing before {BEGIN}, found {:?}", odd + 1, lines[odd]);
    }
    let Some(end) = lines.iter().skip(first).position(|line| line.trim_end() == END).map(|end| first + end) else {
        refuse!("the patch is cut off: its last line must be {END}; nothing was changed");
    };
    if let Some(odd) = (end + 1..lines.len()).find(|at| !is_wrapping(&lines[*at])) {
        refuse!("line {}: expected nothing after {END}, found {:?}", odd + 1, lines[odd]);
    }
    Ok((first, end))
}

struct PatchReader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> PatchReader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.at += 1;
        Some(line)
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn section(&mut self, header: &str) -> Result<PatchSection, PatchSyntaxError> {
        let number = self.at;
        let name = |path: &str| {
            let path = trim(path);
            if path.is_empty() {
                refuse!("line {number}: the path is missing after {:?}", header.trim());
            }
            Ok(path.to_owned())
        };
        if let Some(path) = header.trim_start().strip_prefix(ADD) {
            return Ok(PatchSection { path: name(path)?, operation: PatchOperation::Add { content: self.content()? } });
        }
        if let Some(path) = header.trim_start().strip_prefix(DELETE) {
            return Ok(PatchSection { path: name(path)?, operation: PatchOperation::Delete });
        }
        let Some(path) = header.trim_start().strip_prefix(UPDATE) else {
            if ["diff --git ", "index ", "--- ", "+++ "].iter().any(|known| header.starts_with(known)) {
                refuse!(
                    "line {number}: {header:?} is a line of a unified diff: write {UPDATE} PATH instead of its lines diff, index, \
                     --- and +++"
                );
            }
            refuse!("line {number}: expected {ADD} PATH, {UPDATE} PATH or {DELETE} PATH, found {header:?}");
        };
        let path = name(path)?;
        let mut move_to = None;
        if let Some(target) = self.peek().and_then(|line| line.trim_start().strip_prefix(MOVE)) {
            self.at += 1;
            move_to = Some(name(target)?);
        }
        let chunks = self.chunks()?;
        if move_to.is_none() && !chunks.iter().any(PatchChunk::changes) {
            refuse!("line {number}: nothing changes in {path}: begin removed lines with - and added lines with +");
        }
        Ok(PatchSection { path, operation: PatchOperation::Update { move_to, chunks } })
    }

    /// The lines of a new file.
    fn content(&mut self) -> Result<String, PatchSyntaxError> {
        let mut content = String::new();
        while let Some(line) = self.peek().filter(|line| !line.starts_with(HEADER)) {
            // An empty line inside the file whose `+` was forgotten; after the last line it separates sections.
            let is_inside =
                || self.lines[self.at..].iter().find(|line| !line.is_empty()).is_some_and(|line| line.starts_with('+'));
            match line.strip_prefix('+') {
                Some(text) => content.push_str(text),
                None if line.is_empty() && is_inside() => {}
                None if line.trim().is_empty() => break,
                None => refuse!("line {}: every line of a new file begins with +, found {line:?}", self.at + 1),
            }
            content.push('\n');
            self.at += 1;
        }
        Ok(content)
    }

    fn chunks(&mut self) -> Result<Vec<PatchChunk>, PatchSyntaxError> {
        let mut chunks = Vec::new();
        let mut chunk = PatchChunk { line: self.at + 1, ..PatchChunk::default() };
        // Empty lines at the end separate sections.
        let mut blank = 0;
        while let Some(line) = self.peek() {
            let number = self.at + 1;
            if line.trim_end() == END_OF_FILE {
                chunk.at_end = true;
            } else if line.starts_with(HEADER) {
                break;
            } else if let Some(anchor) = line.strip_prefix("@@") {
                if !chunk.lines.is_empty() {
                    chunks.push(std::mem::replace(&mut chunk, PatchChunk { line: number, ..PatchChunk::default() }));
                }
                chunk.anchors.extend(anchor_of(anchor));
            } else if line.is_empty() {
                blank += 1;
                self.at += 1;
                continue;
            } else {
                let kept = std::iter::repeat_with(|| PatchLine::Keep(String::new())).take(std::mem::take(&mut blank));
                chunk.lines.extend(kept);
                match line.split_at_checked(1) {
                    Some((" ", text)) => chunk.lines.push(PatchLine::Keep(text.to_owned())),
                    Some(("-", text)) => chunk.lines.push(PatchLine::Remove(text.to_owned())),
                    Some(("+", text)) => chunk.lines.push(PatchLine::Add(text.to_owned())),
                    _ if line.starts_with("\\ No newline") => {}
                    _ => refuse!(
                        "line {number}: {line:?} begins with neither a space, - nor +: begin lines that stay as they \
                         are with a space"
                    ),
                }
            }
            blank = 0;
            self.at += 1;
        }
        if !chunk.lines.is_empty() {
            chunks.push(chunk);
        }
        Ok(chunks)
    }
}

impl PatchChunk {
    fn changes(&self) -> bool {
        self.lines.iter().any(|line| !matches!(line, PatchLine::Keep(_)))
    }

    /// The lines that the file must contain.
    pub fn old(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| match line {
                PatchLine::Keep(text) | PatchLine::Remove(text) => Some(text.as_str()),
                PatchLine::Add(_) => None,
            })
            .collect()
    }
}

/// The text without the blanks at its ends that JavaScript's `String.prototype.trim` removes: other than Rust's, it removes
/// U+FEFF and keeps U+0085.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c == '\u{feff}' || c.is_whitespace() && c != '\u{85}')
}

/// The text after `@@`, without the line numbers of unified diffs.
fn anchor_of(rest: &str) -> Option<String> {
    let text = rest.trim();
    let is_range = |word: &str| {
        let numbers = word.strip_prefix(['-', '+']).unwrap_or("x");
        numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
    };
    let without_numbers = match text.split_once("@@") {
        Some((ranges, rest)) if ranges.split_whitespace().all(is_range) => rest.trim(),
        _ if !text.is_empty() && text.split_whitespace().all(is_range) => "",
        _ => text,
    };
    (!without_numbers.is_empty()).then(|| without_numbers.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(input: &str, expected: &str) {
        let error = parse(input).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[track_caller]
    fn updates(input: &str) -> Vec<PatchChunk> {
        match parse(input).unwrap().remove(0).operation {
            PatchOperation::Update { chunks, .. } => chunks,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_sections_are_read() {
        let sections = parse(
            "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n+two\n*** Delete File: b.txt\n*** Update File: c.txt\n\
             *** Move to: d.txt\n@@ class C\n@@ def f():\n stay\n-old\n+new\n*** End of File\n*** End Patch\n",
        )
        .unwrap();
        assert_eq!(sections[0].operation, PatchOperation::Add { content: "one\n\ntwo\n".to_owned() });
        assert_eq!(sections[1], PatchSection { path: "b.txt".to_owned(), operation: PatchOperation::Delete });
        let PatchOperation::Update { move_to, chunks } = &sections[2].operation else { panic!("{sections:?}") };
        assert_eq!(move_to.as_deref(), Some("d.txt"));
        assert_eq!(chunks[0].anchors, ["class C", "def f():"]);
        assert_eq!(chunks[0].old(), ["stay", "old"]);
        assert!(chunks[0].at_end);
    }

    #[test]
    fn slips_of_models_are_read_as_meant() {
        let chunks = updates(
            "```\napply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n@@ -1,2 +1,2 @@ fn main()\n-a\n+b\n\n c\n\n\
             *** End Patch\nEOF\n```",
        );
        assert_eq!(chunks[0].anchors, ["fn main()"]);
        assert_eq!(chunks[0].old(), ["a", "", "c"]);
        assert!(
            updates("*** Begin Patch\r\n*** Update File: a\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n*** End Patch")[0]
                .anchors
                .is_empty()
        );
    }

    #[test]
    fn names_are_trimmed_as_javascript_does() {
        for (name, expected) in [
            (" a ", "a"),
            ("\u{feff}a", "a"),
            ("a\u{feff} ", "a"),
            ("\u{a0}a\u{2028}\t", "a"),
            ("\u{85}a", "\u{85}a"),
            ("a\u{200b}", "a\u{200b}"),
        ] {
            let sections = parse(&format!("*** Begin Patch\n*** Delete File:{name}\n*** End Patch")).unwrap();
            assert_eq!(sections[0].path, expected, "{name:?}");
        }
    }

    #[test]
    fn errors_name_the_line_and_the_expected_form() {
        refused("*** Begin Patch\n*** Update File: a\n-a\n+b\n", "cut off");
        refused("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "unified diff");
        refused(
            "*** Begin Patch\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n*** End Patch",
            "a unified diff",
        );
        refused(
            "*** Begin Patch\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n*** End Patch",
            "instead of its lines diff, index, ---",
        );
        refused("-a\n+b\n", "the first line of a patch is *** Begin Patch");
        refused("*** Begin Patch\n*** Update File: a\n-a\nb\n*** End Patch", "line 4: \"b\" begins with neither");
        refused("*** Begin Patch\n*** Add File: a\nb\n*** End Patch", "line 3: every line of a new file begins with +");
        refused("*** Begin Patch\n*** Change File: a\n*** End Patch", "line 2: expected *** Add File: PATH");
        refused("*** Begin Patch\n*** Update File: a\n a\n*** End Patch", "line 2: nothing changes in a");
        refused("*** Begin Patch\n*** Update File:\n-a\n*** End Patch", "the path is missing");
        refused("*** Begin Patch\n*** End Patch", "the patch is empty");
        refused("*** Begin Patch\n*** Delete File: a\n*** End Patch\nmore", "line 4: expected nothing after");
    }
}
