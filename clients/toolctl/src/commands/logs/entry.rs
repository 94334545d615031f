//! Parses the lines of a log, in its text format and in JSON.

use std::time::SystemTime;

use anstyle::Style;
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::clock::date_and_time;
use crate::output::{BAD, DIM, ERROR, GOOD, NAME, WARN, plain};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    fn parse(text: &str) -> Option<Self> {
        LogLevel::from_str(text, true).ok()
    }

    fn style(self) -> Style {
        match self {
            Self::Error => ERROR,
            Self::Warn => WARN,
            Self::Info => GOOD,
            Self::Debug => NAME,
            Self::Trace => DIM,
        }
    }
}

/// One log entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LogEntry {
    /// RFC 3339; empty for lines that no logger wrote, such as the last output of a crashing program.
    pub(super) time: String,
    pub(super) level: Option<LogLevel>,
    /// The module that logged it.
    target: String,
    /// The message, which in the text format has the fields as `key=value` at its end. May have several lines.
    text: String,
    /// The fields of a JSON line.
    fields: Map<String, Value>,
}

/// Joins lines to entries: a line that does not begin an entry continues the one before.
#[derive(Default)]
pub(super) struct EntryAssembler(Option<LogEntry>);

impl EntryAssembler {
    /// Adds a line; returns the entry that is complete now, if any.
    pub(super) fn take(&mut self, line: &str) -> Option<LogEntry> {
        match (LogEntry::parse(line), &mut self.0) {
            (Some(entry), open) => open.replace(entry),
            (None, Some(open)) => {
                open.text.push('\n');
                open.text.push_str(line);
                None
            }
            (None, open @ None) => {
                *open = Some(LogEntry::alone(line));
                None
            }
        }
    }

    /// The last entry.
    pub(super) fn end(&mut self) -> Option<LogEntry> {
        self.0.take()
    }
}

impl LogEntry {
    fn parse(line: &str) -> Option<Self> {
        if line.starts_with('{') {
            return Self::of_json(line);
        }
        let (time, rest) = line.split_once(' ')?;
        humantime::parse_rfc3339(time).ok()?;
        let (level, rest) = rest.trim_start().split_once(' ')?;
        let level = Some(LogLevel::parse(level)?);
        // Spans and then the target: none has a space after a colon, except in quotes.
        let (target, text) = rest.split_once(": ").unwrap_or(("", rest));
        Some(Self {
            time: time.to_owned(),
            level,
            target: target.to_owned(),
            text: text.to_owned(),
            fields: Map::new(),
        })
    }

    fn of_json(line: &str) -> Option<Self> {
        let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else { return None };
        let mut text = |key: &str| match fields.shift_remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (time, level) = (text("timestamp")?, LogLevel::parse(&text("level")?));
        Some(Self { time, level, target: text("target")?, text: text("message").unwrap_or_default(), fields })
    }

    fn alone(line: &str) -> Self {
        let (time, target) = (String::new(), String::new());
        Self { time, level: None, target, text: line.to_owned(), fields: Map::new() }
    }

    pub(super) fn at(&self) -> Option<SystemTime> {
        humantime::parse_rfc3339(&self.time).ok()
    }

    /// Whether a field of the entry or of one of its spans has this value.
    pub(super) fn names(&self, key: &str, value: &str) -> bool {
        let is_it = |field: &Value| field.as_str() == Some(value);
        let in_spans = || {
            let spans = self.fields.get("spans").and_then(Value::as_array);
            spans.is_some_and(|spans| spans.iter().any(|span| span.get(key).is_some_and(is_it)))
        };
        if self.fields.get(key).is_some_and(is_it) || in_spans() {
            return true;
        }
        let in_text = |text: &str| {
            let wanted = [format!("{key}={value}"), format!("{key}=\"{value}\"")];
            text.split([' ', '{', '}', '\n']).any(|word| wanted.iter().any(|wanted| wanted == word))
        };
        in_text(&self.target) || in_text(&self.text)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut entry = Map::new();
        if !self.time.is_empty() {
            entry.insert("timestamp".to_owned(), json!(self.time));
        }
        if let Some(level) = self.level {
            let name = level.to_possible_value().map(|value| value.get_name().to_uppercase());
            entry.insert("level".to_owned(), json!(name));
        }
        if !self.target.is_empty() {
            entry.insert("target".to_owned(), json!(self.target));
        }
        entry.insert("message".to_owned(), json!(self.text));
        entry.extend(self.fields.clone());
        Value::Object(entry)
    }

    /// The entry as a line for people, with styles.
    pub(super) fn render(&self) -> String {
        let text = plain(&self.text);
        let Some(level) = self.level else { return format!("{BAD}{text}{BAD:#}") };
        let name = level.to_possible_value().map(|value| value.get_name().to_uppercase()).unwrap_or_default();
        let style = level.style();
        let fields: String =
            self.fields.iter().map(|(key, value)| format!(" {DIM}{key}={DIM:#}{}", shown(value))).collect();
        let time = date_and_time(&self.time);
        format!("{DIM}{}{DIM:#} {style}{name:<5}{style:#} {DIM}{}{DIM:#} {text}{fields}", time, plain(&self.target))
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text).into_owned(),
        other => plain(&other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "2026-01-02T03:04:05.678901Z  WARN call{id=c1}: toold_engine::execute: too slow tool=bash session=s1";
    const JSON: &str = r#"{"timestamp":"2026-01-02T03:04:05.678901Z","level":"ERROR","message":"broke","tool":"read","target":"toold"}"#;

    fn entries(lines: &[&str]) -> Vec<LogEntry> {
        let mut made = EntryAssembler::default();
        let mut entries: Vec<LogEntry> = lines.iter().filter_map(|line| made.take(line)).collect();
        entries.extend(made.end());
        entries
    }

    fn shown(entry: &LogEntry) -> String {
        anstream::adapter::strip_str(&entry.render()).to_string()
    }

    #[test]
    fn both_formats_are_read() {
        let read = entries(&[TEXT, JSON]);
        assert_eq!(
            shown(&read[0]),
            "2026-01-02 03:04:05Z WARN  call{id=c1} toold_engine::execute: too slow tool=bash session=s1"
        );
        assert_eq!(shown(&read[1]), "2026-01-02 03:04:05Z ERROR toold broke tool=read");
        assert!(read[0].names("tool", "bash") && read[0].names("session", "s1") && read[0].names("id", "c1"));
        assert!(!read[0].names("tool", "bas") && read[1].names("tool", "read"));
        assert_eq!(read[1].to_json(), serde_json::from_str::<Value>(JSON).unwrap());
        assert_eq!(read[0].to_json()["level"], "WARN");
        assert!(read[0].level < Some(LogLevel::Info) && read[0].at().is_some());
    }

    #[test]
    fn a_line_that_begins_no_entry_continues_the_one_before() {
        let read = entries(&["last words", "of an old one", TEXT, "  and more", "{no json", JSON]);
        assert_eq!(read.len(), 3);
        assert_eq!(shown(&read[0]), "last words\nof an old one");
        assert!(read[1].text.ends_with("\n  and more\n{no json"), "{:?}", read[1]);
    }

    #[test]
    fn a_line_cannot_steer_the_terminal() {
        let line = format!("{TEXT} \u{1b}[2Jx");
        assert!(!shown(&entries(&[&line])[0]).contains('\u{1b}'));
    }
}
