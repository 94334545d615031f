//! Unified diffs, for users who are asked for permission and for models that check their changes.

use std::ops::Range;

use similar::DiffOp;

use crate::bad_bytes;
use crate::comparison::{lines, steps, unified};
use crate::document::{Document, TextForm};

/// Longer diffs are truncated: nobody reads them.
const MAX_BYTES: usize = 64 * 1024;
/// Longer lines, in bytes, are shown only around what a change makes of them.
const LONG_LINE: usize = 1000;
/// How much of such a line is shown beside its change, in bytes.
const BESIDE: usize = 100;
/// How much is shown of one version of a changed part, in bytes, if the whole is too long.
const MAX_PART: usize = 8 * 1024;

/// A change, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) text: String,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// Changes of encoding, byte order mark and line ends, such as `line ends: CRLF -> LF`.
    pub(crate) form: Vec<String>,
}

/// The change of a file's content. Where it alters the encoding, the byte order mark or the line ends, the text says so
/// first, in lines between `diff --git` and `---`: a diff of characters cannot show it.
pub(crate) fn of_contents(old: Option<&[u8]>, new: Option<&[u8]>, name: &str) -> Diff {
    let before = old.map(Document::decode).transpose();
    let after = new.map(|new| match &before {
        Ok(Some(before)) => before.decode_later(new),
        Ok(None) | Err(_) => Document::decode(new),
    });
    let of_text = match (&before, after.transpose()) {
        (Ok(before), Ok(after)) => {
            let [old, new] = [before, &after].map(|document| document.as_ref().map(|document| &*document.text));
            diff(old, new, name)
        }
        _ => Diff { text: format!("Binary file {name} differs\n"), ..Diff::default() },
    };
    let form = old.zip(new).map(|(old, new)| TextForm::differences(old, new)).unwrap_or_default();
    if form.is_empty() {
        return of_text;
    }
    let form_text = format!("diff --git a/{name} b/{name}\n{}\n", form.join("\n"));
    Diff { text: form_text + &of_text.text, form, ..of_text }
}

/// The change from `old` to `new` of the file displayed as `name`; `old` is `None` for a new file, `new` for a removed
/// one.
pub(crate) fn diff(old: Option<&str>, new: Option<&str>, name: &str) -> Diff {
    let [before, after] = [old, new].map(|text| lines(text.unwrap_or_default()));
    let steps = steps(&before, &after);
    let changes = || steps.iter().filter(|step| !matches!(step, DiffOp::Equal { .. }));
    let added = changes().map(|step| step.new_range().len()).sum();
    let removed = changes().map(|step| step.old_range().len()).sum();
    let header = |side: &str, is_there: bool| if is_there { format!("{side}/{name}") } else { "/dev/null".to_owned() };
    let mut text =
        bad_bytes::shown(&unified(&before, &after, steps, [&header("a", old.is_some()), &header("b", new.is_some())]))
            .into_owned();
    if text.lines().any(|line| line.len() > LONG_LINE) {
        let whole = with_short_lines(&text, usize::MAX);
        text = if whole.len() > MAX_BYTES { with_short_lines(&text, MAX_PART) } else { whole };
    }
    if text.len() > MAX_BYTES {
        let mut end = text.floor_char_boundary(MAX_BYTES);
        end = text[..end].rfind('\n').map_or(end, |line| line + 1);
        let cut = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("[... {cut} bytes of the diff cut]\n"));
        // Asks and the audit keep diffs; without this, they would keep the memory of the whole text.
        text.shrink_to_fit();
    }
    Diff { text, added, removed, form: Vec::new() }
}

/// The diff with what is the same in both versions of a long line left out, and of what differs at most `most` bytes shown:
/// otherwise the old version alone may fill a diff, and nobody sees the new one.
fn with_short_lines(text: &str, most: usize) -> String {
    let body = text.find("\n@@ ").map_or(text.len(), |at| at + 1);
    let mut short = text[..body].to_owned();
    let (mut removed, mut added): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in text[body..].split_inclusive('\n') {
        match line.as_bytes().first() {
            Some(b'-') => removed.push(line),
            Some(b'+') => added.push(line),
            // It says that the line before it has no line feed.
            Some(b'\\') if !added.is_empty() => added.push(line),
            Some(b'\\') if !removed.is_empty() => removed.push(line),
            _ => {
                push_changed(&mut short, &removed, &added, most);
                removed.clear();
                added.clear();
                push_part(&mut short, line, (0..line.len().min(LONG_LINE), ""));
            }
        }
    }
    push_changed(&mut short, &removed, &added, most);
    short
}

/// Lines that replace each other: the first of the one by the first of the other, and so on.
fn push_changed(text: &mut String, removed: &[&str], added: &[&str], most: usize) {
    for (lines, others) in [(removed, added), (added, removed)] {
        for (at, line) in lines.iter().enumerate() {
            match others.get(at).filter(|other| line.len().max(other.len()) > LONG_LINE) {
                Some(other) => push_part(text, line, changed_part(line, other, most)),
                None => text.push_str(line),
            }
        }
    }
}

/// The part of a line of a diff that is not the same in its other version, with something beside it; and a word about the rest, if
/// that is not the same either.
fn changed_part(line: &str, other: &str, most: usize) -> (Range<usize>, &'static str) {
    let same = |one: &mut dyn Iterator<Item = char>, two: &mut dyn Iterator<Item = char>| -> usize {
        one.zip(two).take_while(|(one, two)| one == two).map(|(c, _)| c.len_utf8()).sum()
    };
    let before = 1 + same(&mut line.chars().skip(1), &mut other.chars().skip(1));
    let room = line.len().min(other.len()) - before.min(line.len()).min(other.len());
    let after = same(&mut line.chars().rev(), &mut other.chars().rev()).min(room);
    let (whole, cut) = (line.len() - after, before.saturating_add(most));
    let (end, rest) = if whole > cut { (cut, ", changed too") } else { (whole + BESIDE, "") };
    (line.floor_char_boundary(before.saturating_sub(BESIDE))..line.ceil_char_boundary(end), rest)
}

/// A part of a line of a diff, with its sign and its line end, and a word about the rest of it.
fn push_part(text: &mut String, line: &str, (part, rest): (Range<usize>, &str)) {
    let content = line.strip_suffix('\n').unwrap_or(line);
    let (start, end) = (part.start.max(1), content.ceil_char_boundary(part.end.min(content.len())));
    if content.len() <= LONG_LINE || start >= end {
        return text.push_str(line);
    }
    text.push_str(&content[..1]);
    if start > 1 {
        text.push_str(&format!("[{} bytes ...]", start - 1));
    }
    text.push_str(&content[start..end]);
    if end < content.len() {
        text.push_str(&format!("[... {} bytes{rest}]", content.len() - end));
    }
    text.push_str(&line[content.len()..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_context_and_counted() {
        let diff = diff(Some("a\nb\nc\n"), Some("a\nB\nc\nd\n"), "f");
        assert_eq!(diff.text, "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n");
        assert_eq!((diff.added, diff.removed), (2, 1));
    }

    #[test]
    fn new_files_and_missing_line_ends_are_marked() {
        assert_eq!(
            diff(None, Some("a"), "f").text,
            "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"
        );
        assert_eq!(diff(Some("a"), Some("a"), "f").text, "");
        assert_eq!(
            diff(Some("a\nb\r"), Some("a\nB\r"), "f").text,
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\r\n\\ No newline at end of file\n+B\r\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn a_change_in_a_long_line_is_shown_with_both_versions() {
        let line = |middle: &str| format!("{}{middle}{}\nnext\n", "a".repeat(90_000), "z".repeat(90_000));
        let shown = diff(Some(&line("[old]")), Some(&line("[new]")), "f").text;
        let side = |sign: &str, middle: &str| {
            let (before, after) = ("a".repeat(99), "z".repeat(99));
            format!("{sign}[89901 bytes ...]{before}{middle}{after}[... 89901 bytes]\n")
        };
        let expected = [side("-", "[old]"), side("+", "[new]")].concat();
        assert_eq!(shown, format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n{expected} next\n"));
    }

    #[test]
    fn nothing_of_what_differs_is_left_out_where_there_is_room() {
        let (old, new) = ("x".repeat(3_000), format!("{}y\u{fc}", "z".repeat(20_000)));
        let shown = diff(Some(&format!("{old}\n")), Some(&format!("{new}\n")), "f").text;
        assert_eq!(shown, format!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-{old}\n+{new}\n"));
        // A context line tells where a change is, and its beginning does.
        let shown = diff(Some(&format!("{old}\na\n")), Some(&format!("{old}\nb\n")), "f").text;
        assert!(shown.contains(&format!(" {}[... 2001 bytes]\n-a\n+b\n", "x".repeat(999))), "{shown}");
        let long = |c: &str| format!("{}\n", c.repeat(200_000));
        let shown = diff(Some(&long("o")), Some(&long("n")), "f").text;
        assert!(shown.contains("-oooo") && shown.contains("+nnnn") && shown.len() < MAX_BYTES, "{}", shown.len());
        // That it is not shown does not look as if it had not changed.
        assert_eq!(shown.matches("[... 191808 bytes, changed too]").count(), 2, "{}", &shown[shown.len() - 200..]);
    }

    #[test]
    fn long_diffs_are_cut_at_a_line() {
        let text = diff(None, Some(&"line\n".repeat(100_000)), "f").text;
        assert!(text.len() < MAX_BYTES + 100 && text.ends_with("bytes of the diff cut]\n"));
    }
}
