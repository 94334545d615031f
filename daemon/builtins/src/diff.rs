//! Unified diffs, for users who are asked for permission and for models that check their changes.

use similar::DiffOp;

use crate::bad_bytes;
use crate::comparison::{lines, steps, unified};
use crate::document::{Document, TextForm};

/// Longer diffs are truncated: nobody reads them.
const MAX_BYTES: usize = 64 * 1024;

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
    fn long_diffs_are_cut_at_a_line() {
        let text = diff(None, Some(&"line\n".repeat(100_000)), "f").text;
        assert!(text.len() < MAX_BYTES + 100 && text.ends_with("bytes of the diff cut]\n"));
    }
}
