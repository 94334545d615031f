//! Errors of scripts as people read them: message, file and line, with the source line and a traceback that shows only
//! the script's own frames.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mlua::{Error, Function, Lua, Table, Value};
use parking_lot::Mutex;
use toold_proto::plugin::PluginError;

use crate::vm::dialect::unsupported_syntax;
use crate::vm::{args, convert, members};

/// A script can raise a message of any length.
const MAX_MESSAGE: usize = 4 * 1024;
const MAX_TRACEBACK: usize = 8 * 1024;
const MAX_SOURCE_LINE: usize = 200;
/// Luau has no tail calls, which Lua 5.1 has.
const TOO_DEEP: &str = ": calls nest at most about 20000 deep, and a call in `return f(...)` nests too: use a loop";

/// The source texts that a plugin has run, by the names that messages and tracebacks use for them.
#[derive(Default)]
pub(crate) struct SourceTexts(Mutex<TextsByName>);

type TextsByName = HashMap<String, (PathBuf, Arc<[u8]>)>;

impl SourceTexts {
    pub(crate) fn add(&self, shown: &str, path: &Path, text: Arc<[u8]>) {
        self.0.lock().insert(shown.to_owned(), (path.to_owned(), text));
    }

    /// The path of the text that has this name.
    pub(crate) fn path(&self, shown: &str) -> Option<PathBuf> {
        self.0.lock().get(shown).map(|(path, _)| path.clone())
    }

    /// Describes an error that a script raised.
    pub(crate) fn explain(&self, error: &Error) -> PluginError {
        let (text, traceback) = split(error);
        self.explain_text(&text, traceback.as_deref())
    }

    /// Describes a message that begins with `file:line:`.
    pub(crate) fn explain_text(&self, text: &str, traceback: Option<&str>) -> PluginError {
        let mut message = cut(text, MAX_MESSAGE);
        if message.ends_with("stack overflow") {
            message.push_str(TOO_DEEP);
        }
        let traceback = traceback.map(own_frames).filter(|frames| !frames.is_empty());
        let sources = self.0.lock();
        let place = place(&message, &sources)
            .or_else(|| traceback.as_deref()?.lines().find_map(|frame| place(frame.trim_start(), &sources)));
        let (file, line, source_line) = match place {
            Some((shown, line)) => {
                let (path, text) = &sources[shown];
                let head = format!("{shown}:{line}: ");
                if let Some(unknown) = message.strip_prefix(&head).and_then(|rest| members::explain(text, line, rest)) {
                    message = format!("{head}{unknown}");
                }
                (Some(path.display().to_string()), Some(line), source_line(text, line))
            }
            None => (None, None, None),
        };
        PluginError { message, file, line, source_line, traceback }
    }
}

/// The message and the traceback of an error.
fn split(error: &Error) -> (String, Option<String>) {
    match error {
        Error::CallbackError { traceback, cause } => {
            let (text, inner) = split(cause);
            (text, inner.or_else(|| Some(traceback.clone())))
        }
        Error::MemoryError(_) => ("not enough memory: the plugin's memory limit is exceeded".to_owned(), None),
        Error::RuntimeError(text) | Error::SyntaxError { message: text, .. } => {
            match text.split_once("\nstack traceback:\n") {
                // Luau itself ran out of memory where it could not make a memory error.
                Some(("not enough memory", _)) => split(&Error::MemoryError(String::new())),
                Some((text, traceback)) => (text.to_owned(), Some(traceback.to_owned())),
                None => (text.clone(), None),
            }
        }
        other => (other.to_string(), None),
    }
}

/// The name, in the registry of the Lua state, of the function that takes the last table that was raised.
pub(crate) const TAKE_RAISED: &str = "toold.take_raised";

/// An error of a script whose value is a table, with the text of the table instead of its address: its `message`, or the
/// table as JSON.
pub(crate) fn describe_raised(lua: &Lua, error: Error) -> Error {
    match error {
        Error::CallbackError { traceback, cause } => {
            let cause = Arc::new(describe_raised(lua, cause.as_ref().clone()));
            Error::CallbackError { traceback, cause }
        }
        Error::RuntimeError(text) => Error::RuntimeError(raised_text(lua, &text).unwrap_or(text)),
        other => other,
    }
}

fn raised_text(lua: &Lua, text: &str) -> Option<String> {
    let address = text.strip_prefix("table: 0x")?;
    let digits = address.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(address.len());
    let take: Function = lua.named_registry_value(TAKE_RAISED).ok()?;
    let table: Table = take.call(()).ok()?;
    let message = match table.raw_get::<Value>("message") {
        Ok(Value::Nil) | Err(_) => match convert::to_json(lua, &Value::Table(table)) {
            Ok(json) => json.to_string(),
            Err(why) => format!("a table without a message was raised as an error ({why})"),
        },
        Ok(message) => args::text(&message).unwrap_or_else(|| args::shown(&message)),
    };
    Some(format!("{}{}", cut(&message, MAX_MESSAGE), &address[digits..]))
}

/// `file:line:` at the start of a text, if it names a known file.
fn place<'a>(text: &str, sources: &'a TextsByName) -> Option<(&'a str, u32)> {
    sources.keys().find_map(|shown| {
        let rest = text.strip_prefix(shown.as_str())?.strip_prefix(':')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[digits..].starts_with(':').then_some(())?;
        Some((shown.as_str(), rest[..digits].parse().ok()?))
    })
}

pub(crate) fn source_line(text: &[u8], line: u32) -> Option<String> {
    let line = text.split(|byte| *byte == b'\n').nth(line.checked_sub(1)? as usize)?;
    Some(cut(String::from_utf8_lossy(line).trim_end(), MAX_SOURCE_LINE))
}

/// A traceback without the frames of the host and of C functions.
fn own_frames(traceback: &str) -> String {
    let frames = traceback.trim_start_matches("stack traceback:").lines().map(str::trim).filter(|frame| {
        !frame.is_empty() && !["[toold]", "[C]", "__mlua", "=[C]"].iter().any(|host| frame.starts_with(host))
    });
    cut(&frames.collect::<Vec<_>>().join("\n"), MAX_TRACEBACK)
}

fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(max / 2), text.ceil_char_boundary(text.len() - max / 2));
    format!("{} [... {} bytes cut ...] {}", &text[..head], tail - head, &text[tail..])
}

/// For syntax of other Lua dialects: names the construct, instead of where the parser failed.
pub(crate) fn explain_syntax(message: String, source: &[u8]) -> String {
    let line = message.split(':').find_map(|part| part.parse::<u32>().ok());
    let Some(found) = unsupported_syntax(source).into_iter().find(|found| Some(found.line) == line) else {
        return message;
    };
    let shown = message.split(&format!(":{}:", found.line)).next().unwrap_or_default();
    format!("{shown}:{}: {}", found.line, found.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> SourceTexts {
        let sources = SourceTexts::default();
        sources.add("a.lua", Path::new("/p/a.lua"), Arc::from(&b"one\n  two()\n"[..]));
        sources
    }

    #[test]
    fn a_message_is_traced_to_its_line() {
        let error = Error::RuntimeError(
            "a.lua:2: boom\nstack traceback:\n\t[C] in function error\n\ta.lua:2: in main\n\t[toold]:3: x".into(),
        );
        let shaped = sources().explain(&error);
        assert_eq!(shaped.message, "a.lua:2: boom");
        assert_eq!(shaped.file.as_deref(), Some("/p/a.lua"));
        assert_eq!((shaped.line, shaped.source_line.as_deref()), (Some(2), Some("  two()")));
        assert_eq!(shaped.traceback.as_deref(), Some("a.lua:2: in main"));
    }

    #[test]
    fn a_message_without_a_place_takes_it_from_the_traceback() {
        let shaped = sources().explain_text("boom", Some("\t[C]: in error\n\ta.lua:1: in f"));
        assert_eq!(shaped.line, Some(1));
        assert_eq!(shaped.source_line.as_deref(), Some("one"));
    }

    #[test]
    fn giant_messages_are_cut() {
        let shaped = sources().explain_text(&"é".repeat(1_000_000), None);
        assert!(shaped.message.len() < 5_000 && shaped.message.contains("bytes cut"));
    }

    #[test]
    fn goto_is_named() {
        let text = explain_syntax("a.lua:2: Incomplete statement".into(), b"x()\n  goto continue\n");
        assert!(text.starts_with("a.lua:2: goto"), "{text}");
    }
}
