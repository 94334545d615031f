//! Jupyter notebooks (nbformat 4 and 3.x's `cells`) as text: the cells with their outputs, without the JSON around them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::plain_output::plain;

/// Unknown members are skipped, so that a notebook takes little more memory than its text.
#[derive(Deserialize)]
struct Notebook {
    cells: Vec<NotebookCell>,
}

#[derive(Deserialize)]
struct NotebookCell {
    cell_type: String,
    #[serde(default)]
    source: JoinedText,
    #[serde(default)]
    outputs: Vec<CellOutput>,
}

#[derive(Deserialize)]
struct CellOutput {
    /// The text of a stream, such as what was printed.
    #[serde(default)]
    text: JoinedText,
    /// By media type.
    #[serde(default)]
    data: BTreeMap<String, JoinedText>,
    #[serde(default)]
    ename: String,
    #[serde(default)]
    evalue: String,
    #[serde(default)]
    traceback: Vec<String>,
}

/// A text, or a list of its parts; nothing if it is something else.
#[derive(Default)]
struct JoinedText(String);

/// A notebook as text.
pub(crate) struct NotebookText {
    pub(crate) text: String,
    pub(crate) cells: usize,
}

/// The text of a notebook; `None` if the bytes are none.
pub(crate) fn text_of(bytes: &[u8]) -> Option<NotebookText> {
    let Notebook { cells } = serde_json::from_slice(bytes).ok()?;
    let mut text = String::new();
    for (at, cell) in cells.iter().enumerate() {
        text.push_str(&format!("[cell {}, {}]\n", at + 1, cell.cell_type));
        push_lines(&mut text, &cell.source.0);
        for output in &cell.outputs {
            push_output(&mut text, output);
        }
    }
    Some(NotebookText { text, cells: cells.len() })
}

fn push_output(text: &mut String, output: &CellOutput) {
    if !output.ename.is_empty() {
        text.push_str("[error]\n");
        let error = match output.traceback.is_empty() {
            true => format!("{}: {}", output.ename, output.evalue),
            false => output.traceback.join("\n"),
        };
        return push_lines(text, &plain(&error));
    }
    let shown = output.data.get("text/plain").unwrap_or(&output.text);
    if !shown.0.is_empty() {
        text.push_str("[output]\n");
        push_lines(text, &plain(&shown.0));
    }
    for (kind, data) in output.data.iter().filter(|(kind, _)| *kind != "text/plain") {
        text.push_str(&format!("[{kind}, {} characters: not shown]\n", data.0.len()));
    }
}

fn push_lines(text: &mut String, lines: &str) {
    text.push_str(lines);
    if !lines.is_empty() && !lines.ends_with('\n') {
        text.push('\n');
    }
}

impl<'de> Deserialize<'de> for JoinedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PartsVisitor)
    }
}

struct PartsVisitor;

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = JoinedText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<JoinedText, E> {
        Ok(JoinedText(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<JoinedText, E> {
        Ok(JoinedText::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<JoinedText, E> {
        Ok(JoinedText::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<JoinedText, E> {
        Ok(JoinedText::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<JoinedText, E> {
        Ok(JoinedText::default())
    }

    fn visit_unit<E>(self) -> Result<JoinedText, E> {
        Ok(JoinedText::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<JoinedText, A::Error> {
        let mut text = JoinedText::default();
        while let Some(JoinedText(part)) = parts.next_element()? {
            text.0.push_str(&part);
        }
        Ok(text)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JoinedText, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(JoinedText::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_and_outputs_are_shown() {
        let notebook = json!({"cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "Text"], "metadata": {}},
            {"cell_type": "code", "source": "print(1)\n1/0", "execution_count": 3, "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "display_data", "data": {"image/png": "aGVsbG8=", "text/plain": "<Figure>"}},
                {"output_type": "execute_result", "data": {"application/json": {"a": [1, {}]}}},
                {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "x", "traceback": ["\u{1b}[31mTraceback\u{1b}[0m", "\u{1b}[0mend"]},
            ]},
        ], "nbformat": 4});
        let found = text_of(notebook.to_string().as_bytes()).unwrap();
        assert_eq!(
            found.text,
            "[cell 1, markdown]\n# Title\nText\n[cell 2, code]\nprint(1)\n1/0\n[output]\n1\n[output]\n<Figure>\n\
             [image/png, 8 characters: not shown]\n[application/json, 0 characters: not shown]\n[error]\nTraceback\nend\n"
        );
        assert_eq!(found.cells, 2);
    }

    #[test]
    fn other_files_are_no_notebooks() {
        for text in ["", "{}", "[]", "{\"cells\": 1}", "{\"cells\": [{}]}", &"[".repeat(10_000)] {
            assert!(text_of(text.as_bytes()).is_none(), "{text}");
        }
    }
}
