//! Markdown files with YAML between two lines of dashes at the top: skills, agents, memories.

use serde::de::DeserializeOwned;

/// A file's front matter and its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Split<T> {
    pub(crate) front: T,
    pub(crate) body: String,
}

/// An error in a front matter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct InvalidFrontMatter {
    pub(crate) message: String,
    /// The line in the file, from 1.
    pub(crate) line: Option<u64>,
}

/// Parses a file. Without a front matter, `T` is deserialized from an empty mapping.
///
/// Real files often contain values with a colon that YAML requires quotes for. If parsing fails, it is tried again with
/// such values quoted.
///
/// # Errors
/// When the front matter is not closed, is invalid YAML, or does not match `T`.
pub(crate) fn split<T: DeserializeOwned>(text: &str) -> Result<Split<T>, InvalidFrontMatter> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((front, body)) = parts(text)? else {
        return Ok(Split { front: read("{}")?, body: text.to_owned() });
    };
    let front = read(front).or_else(|broken| read(&quoted(front)).map_err(|_| broken))?;
    Ok(Split { front, body: body.to_owned() })
}

/// The text between the dashes and the rest; `None` if there are no dashes.
fn parts(text: &str) -> Result<Option<(&str, &str)>, InvalidFrontMatter> {
    let Some(rest) = text.strip_prefix("---").and_then(after_line_end) else { return Ok(None) };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok(Some((&rest[..at], &rest[at + line.len()..])));
        }
        at += line.len();
    }
    let message = "the front matter has no end: a line of three dashes is missing".to_owned();
    Err(InvalidFrontMatter { message, line: Some(1) })
}

fn after_line_end(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t', '\r']);
    text.strip_prefix('\n')
}

fn read<T: DeserializeOwned>(yaml: &str) -> Result<T, InvalidFrontMatter> {
    // White space alone is not a mapping.
    let yaml = if yaml.trim().is_empty() { "{}" } else { yaml };
    serde_saphyr::from_str(yaml).map_err(|error| {
        // The line of dashes comes before it.
        let line = error.location().map(|location| location.line() + 1);
        let message = error.to_string();
        InvalidFrontMatter { message: message.lines().next().unwrap_or("no YAML").to_owned(), line }
    })
}

/// Quotes the values of top-level keys that contain a colon or another character that is special in YAML.
fn quoted(yaml: &str) -> String {
    let line = |line: &str| {
        let plain = || line.to_owned();
        let Some((key, value)) = line.split_once(": ") else { return plain() };
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        let value = value.trim();
        let is_marked = value.starts_with(['"', '\'', '[', '{', '|', '>']);
        match is_key && !value.is_empty() && !is_marked {
            // A JSON string is also a YAML string.
            true => format!("{key}: {}", serde_json::Value::from(value)),
            false => plain(),
        }
    };
    yaml.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Front = BTreeMap<String, String>;

    #[track_caller]
    fn check(text: &str, front: &[(&str, &str)], body: &str) {
        let front: Front = front.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(split::<Front>(text), Ok(Split { front, body: body.to_owned() }), "{text}");
    }

    #[test]
    fn a_front_matter_and_a_text() {
        check("---\nname: a\n---\ntext\n", &[("name", "a")], "text\n");
        check("\u{feff}---\r\nname: a\r\n---\r\ntext", &[("name", "a")], "text");
        check("---\n---\ntext", &[], "text");
        check("text\n---\n", &[], "text\n---\n");
        check("", &[], "");
        check("---\nname: a\nabout: |\n  one\n  two\n---\n", &[("about", "one\ntwo\n"), ("name", "a")], "");
    }

    #[test]
    fn values_with_colons_are_read_all_the_same() {
        check("---\nname: a\nabout: Use this: always\n---\n", &[("about", "Use this: always"), ("name", "a")], "");
        check("---\nabout: say \"x\": @now\n---\n", &[("about", "say \"x\": @now")], "");
    }

    #[test]
    fn error_in_front_matter_has_a_line() {
        let broken = |text: &str| split::<Front>(text).unwrap_err();
        assert_eq!(broken("---\nname: a\n").line, Some(1));
        assert_eq!(broken("---\nname: a\nlist: [1,\n---\n").line.map(|line| line >= 3), Some(true));
        assert!(split::<Front>("---\nname: [a]\n---\n").is_err());
    }
}
