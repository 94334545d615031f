//! Applies the chunks of a patch to a text: all of them or none.

use toold_adapters::patch::{PatchChunk, PatchLine};

use crate::closest_match;
use crate::edits::NoFit;
use crate::loose::without_odd_spaces;

/// How many line numbers are listed when there are too many matches.
const MAX_LINES: usize = 10;

/// A line of the file, and its line end.
#[derive(Clone, Copy)]
struct FileLine<'a> {
    text: &'a str,
    end: &'a str,
}

/// The lines from `from` to `until`, without the latter, become `lines`.
struct PlacedChunk<'a> {
    from: usize,
    until: usize,
    lines: Vec<FileLine<'a>>,
}

/// A way to compare a line of the file with one of the patch.
type SameLine = fn(&str, &str) -> bool;

/// Applies the chunks. Lines that stay keep the file's own bytes.
///
/// # Errors
/// When a chunk fits nowhere, or at several places. Then the caller must change nothing.
pub(crate) fn apply(text: &str, chunks: &[PatchChunk]) -> Result<String, NoFit> {
    let lines: Vec<FileLine> = text.split_inclusive('\n').map(FileLine::of).collect();
    let mut placed: Vec<PlacedChunk> = Vec::new();
    let mut cursor = 0;
    for chunk in chunks {
        let at = place(text, &lines, chunk, cursor)?;
        let until = at + chunk.old().len();
        if placed.iter().any(|other| at < other.until && other.from < until) {
            return Err(NoFit(format!(
                "line {} of the patch: it changes lines that an earlier part of the patch changes already: join them",
                chunk.line
            )));
        }
        cursor = until;
        placed.push(PlacedChunk { from: at, until, lines: replaced(&lines, at, chunk) });
    }
    placed.sort_by_key(|chunk| (chunk.from, chunk.until));
    let mut result = Vec::with_capacity(lines.len());
    let mut next = 0;
    for PlacedChunk { from, until, lines: own } in placed {
        result.extend_from_slice(&lines[next..from]);
        result.extend(own);
        next = until;
    }
    result.extend_from_slice(&lines[next..]);
    Ok(joined(&result, &lines))
}

impl<'a> FileLine<'a> {
    fn of(line: &'a str) -> Self {
        let text = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        Self { text, end: &line[text.len()..] }
    }
}

/// The line at which the chunk applies. Later places than `cursor` come first: chunks are usually in the order of the
/// file.
fn place(text: &str, lines: &[FileLine], chunk: &PatchChunk, cursor: usize) -> Result<usize, NoFit> {
    let mut from = cursor;
    for anchor in &chunk.anchors {
        from = anchored(text, lines, chunk, anchor, from)?;
    }
    let old = chunk.old();
    if old.is_empty() {
        return Ok(if chunk.anchors.is_empty() { lines.len() } else { from + 1 });
    }
    let ways: [SameLine; 2] =
        [|a, b| a == b, |a, b| without_odd_spaces(a.trim_end()) == without_odd_spaces(b.trim_end())];
    for same in ways {
        let fits = |at: usize| {
            lines[at..].len() >= old.len() && old.iter().zip(&lines[at..]).all(|(old, line)| same(line.text, old))
        };
        if chunk.at_end && lines.len() >= old.len() && fits(lines.len() - old.len()) {
            return Ok(lines.len() - old.len());
        }
        let found: Vec<usize> = (0..lines.len()).filter(|at| fits(*at)).collect();
        let below: Vec<usize> = found.iter().copied().filter(|at| *at >= from).collect();
        let candidates = if below.is_empty() && chunk.anchors.is_empty() { found } else { below };
        match candidates.as_slice() {
            [] => {}
            [only] => return Ok(*only),
            [first, ..] if !chunk.anchors.is_empty() => return Ok(*first),
            many => return Err(ambiguous(chunk, many)),
        }
    }
    let subject = format!("line {} of the patch: the lines to change are", chunk.line);
    Err(NoFit(closest_match::help_for(&subject, text, &old.join("\n"))))
}

fn ambiguous(chunk: &PatchChunk, found: &[usize]) -> NoFit {
    let shown: Vec<String> = found.iter().take(MAX_LINES).map(|at| (at + 1).to_string()).collect();
    let more = if found.len() > MAX_LINES { ", ..." } else { "" };
    NoFit(format!(
        "line {} of the patch: the lines to change occur {} times, at lines {}{more} of the file: put `@@ ` and the line \
         of the function or class above the intended place before them, or include more of the lines around it",
        chunk.line,
        found.len(),
        shown.join(", ")
    ))
}

/// The line that an anchor names: the same text, or else the first one that contains it.
fn anchored(text: &str, lines: &[FileLine], chunk: &PatchChunk, anchor: &str, from: usize) -> Result<usize, NoFit> {
    let wanted = anchor.trim();
    let ways: [SameLine; 2] = [|a, b| a.trim() == b, |a, b| a.contains(b)];
    for same in ways {
        if let Some(at) = (from..lines.len()).find(|at| same(lines[*at].text, wanted)) {
            return Ok(at);
        }
    }
    // A chunk that is out of order.
    if let Some(at) = (0..lines.len()).find(|at| lines[*at].text.trim() == wanted) {
        return Ok(at);
    }
    let subject = format!("line {} of the patch: the line after @@ is", chunk.line);
    Err(NoFit(closest_match::help_for(&subject, text, wanted)))
}

/// The lines of the chunk as they are afterwards.
fn replaced<'a>(lines: &[FileLine<'a>], at: usize, chunk: &'a PatchChunk) -> Vec<FileLine<'a>> {
    let mut old = at;
    let mut result = Vec::new();
    for line in &chunk.lines {
        match line {
            PatchLine::Keep(_) => {
                result.push(lines[old]);
                old += 1;
            }
            PatchLine::Remove(_) => old += 1,
            PatchLine::Add(text) => {
                // As the line that it replaces or follows.
                let near = [old.checked_sub(1), Some(old)].into_iter().flatten().filter_map(|at| lines.get(at));
                let end = near.map(|line| line.end).find(|end| !end.is_empty()).unwrap_or("\n");
                result.push(FileLine { text, end });
            }
        }
    }
    result
}

/// A file that ended without a line end still does; all other lines have one.
fn joined(result: &[FileLine], before: &[FileLine]) -> String {
    let usual = before.iter().map(|line| line.end).find(|end| !end.is_empty()).unwrap_or("\n");
    let is_open = before.last().is_some_and(|line| line.end.is_empty());
    let mut text = String::new();
    for (at, line) in result.iter().enumerate() {
        text.push_str(line.text);
        let is_last = at + 1 == result.len();
        match (is_last, line.end) {
            (true, _) if is_open => {}
            (_, "") => text.push_str(usual),
            (_, end) => text.push_str(end),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use toold_adapters::patch::{PatchOperation, parse};

    fn patched(text: &str, changes: &str) -> Result<String, NoFit> {
        let sections = parse(&format!("*** Begin Patch\n*** Update File: f\n{changes}*** End Patch\n")).unwrap();
        let PatchOperation::Update { chunks, .. } = &sections[0].operation else { panic!("{sections:?}") };
        apply(text, chunks)
    }

    #[track_caller]
    fn check(text: &str, changes: &str, expected: &str) {
        match patched(text, changes) {
            Ok(text) => assert_eq!(text, expected),
            Err(NoFit(words)) => assert!(words.contains(expected), "{words}"),
        }
    }

    #[test]
    fn lines_are_replaced_added_and_removed() {
        check("a\nb\nc\n", " a\n-b\n+B\n", "a\nB\nc\n");
        check("a\nb\nc\n", "-a\n@@\n c\n+d\n", "b\nc\nd\n");
        check("", "+a\n", "a\n");
        check("a\n", "+b\n", "a\nb\n");
        check("a\nb", "-b\n+c\n+d\n", "a\nc\nd");
        check("c\nb\na\n", "-a\n+A\n@@\n-c\n+C\n", "C\nb\nA\n");
    }

    #[test]
    fn anchors_choose_the_place() {
        let text = "def f():\n    x\ndef g():\n    x\n";
        check(text, "@@ def g():\n-    x\n+    y\n", "def f():\n    x\ndef g():\n    y\n");
        check(text, "@@ def f():\n+    # new\n", "def f():\n    # new\n    x\ndef g():\n    x\n");
        check(text, "@@ def g():\n def g():\n-    x\n", "def f():\n    x\ndef g():\n");
        check(text, "-    x\n+    y\n", "occur 2 times, at lines 2, 4 of the file: put `@@ `");
        check(text, "-    x\n+    y\n*** End of File\n", "def f():\n    x\ndef g():\n    y\n");
        check(text, "@@ def h():\n-    x\n", "the line after @@ is not in the file");
    }

    #[test]
    fn line_ends_and_odd_spaces_are_the_file_s_own() {
        check("a\r\nb\nc\r\n", " a\n-b\n+B\n c\n", "a\r\nB\nc\r\n");
        check("a\u{a0}b  \nc\n", " a b\n-c\n+d\n", "a\u{a0}b  \nd\n");
    }

    #[test]
    fn a_chunk_that_fits_nowhere_is_reported_with_the_nearest_text() {
        check(
            "fn main() {\n    one();\n}\n",
            "-  one();\n+  two();\n",
            "differs only in indentation or spaces:\n2:     one();",
        );
        check("a\nb\n", " a\n-b\n+c\n@@\n-b\n", "changes lines that an earlier part");
    }

    proptest! {
        #[test]
        fn lines_outside_of_the_chunks_stay(before in "([a-c]{1,3}\r?\n){0,5}", old in "[d-f]{1,4}", after in "([a-c]{1,3}\r?\n){0,5}") {
            let text = format!("{before}{old}\n{after}");
            let changed = patched(&text, &format!("-{old}\n+new\n")).unwrap();
            prop_assert!(changed.starts_with(&before) && changed.ends_with(&after));
        }
    }
}
