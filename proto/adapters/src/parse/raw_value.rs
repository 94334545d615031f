//! Values between tags, `<parameter=KEY>VALUE</parameter>`, where `5` and `"5"` look the same.
//!
//! [`write`] and [`read`] are each other's inverse without a schema; with one, its type decides.

use serde_json::Value;

use crate::parse::found_call::RawKind;
use crate::parse::lenient_json;

/// Tags that would end a value early, or make its end look missing, where a value stands between `<parameter=KEY>` and
/// `</parameter>`.
pub(crate) const TAGS: [&str; 4] = ["</parameter>", "<parameter=", "</function>", "<function="];

/// The text of one value, without the line breaks around it.
pub(crate) fn write(value: &Value) -> String {
    match value {
        Value::String(text) if !needs_quotes(text) => text.clone(),
        other => quoted(other),
    }
}

/// The same where no line breaks stand around the value, and these tags would end it.
pub(crate) fn write_between(value: &Value, tags: &[&str]) -> String {
    match value {
        Value::String(text) if tags.iter().any(|tag| text.contains(tag)) => quoted(value),
        // Reading takes one line break from each end.
        Value::String(text) if text.starts_with('\n') || text.ends_with('\n') => match write(value) {
            plain if plain == *text => format!("\n{text}\n"),
            quoted => quoted,
        },
        Value::Array(_) | Value::Object(_) => quoted(value),
        other => write(other),
    }
}

/// No tag survives this: `<` only occurs in JSON's strings.
fn quoted(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// # Errors
///
/// In words, to follow "the parameter `x`", when the text cannot be of any of the types.
pub(crate) fn read(raw: &str, kind: RawKind, types: Option<&[String]>) -> Result<Value, String> {
    let string_fits = types.is_none_or(|types| types.iter().any(|one| one == "string"));
    match kind {
        // The schema knows better than the tag.
        RawKind::Text if string_fits => return Ok(Value::String(raw.to_owned())),
        RawKind::Json => match json(raw) {
            Some(value) => return Ok(value),
            None if types.is_some() && string_fits => return Ok(Value::String(raw.to_owned())),
            None => return Err("is not JSON".to_owned()),
        },
        RawKind::Text | RawKind::Unknown => {}
    }
    // One line break at each end belongs to the tags.
    let raw = raw.strip_prefix('\n').and_then(|rest| rest.strip_suffix('\n')).unwrap_or(raw);
    // Where a string or nothing is expected, digits are a string.
    let is_string = types.is_some_and(|types| string_fits && types.iter().all(|one| one == "string" || one == "null"));
    if string_fits && let Some(text) = unquoted(raw) {
        return Ok(Value::String(text));
    }
    match plain(raw) {
        Some(Value::Null) if is_string && !may_be_null(types) => {}
        Some(value) if !is_string || value.is_null() => return Ok(value),
        Some(_) | None => {}
    }
    match (string_fits, types) {
        (false, Some(types)) => Err(format!("must be of type {}", types.join(" or "))),
        (_, _) => Ok(Value::String(raw.to_owned())),
    }
}

fn json(raw: &str) -> Option<Value> {
    plain(raw).or_else(|| serde_json::from_str(raw).ok())
}

fn may_be_null(types: Option<&[String]>) -> bool {
    types.is_none_or(|types| types.iter().any(|one| one == "null"))
}

/// A string that could be taken for something else is written as JSON, in quotes.
fn needs_quotes(text: &str) -> bool {
    TAGS.iter().any(|tag| text.contains(tag)) || plain(text).is_some() || unquoted(text).is_some()
}

/// A value that [`write`] or [`write_between`] has put in quotes, and nothing else that looks like it.
fn unquoted(raw: &str) -> Option<String> {
    if !raw.starts_with('"') {
        return None;
    }
    let text: String = serde_json::from_str(raw).ok()?;
    let written = serde_json::to_string(&text).ok()?.replace('<', "\\u003c");
    // Only a string with some tag has this escape.
    (written == raw && (needs_quotes(&text) || raw.contains("\\u003c"))).then_some(text)
}

/// A JSON value that is no string, written as JSON demands it.
fn plain(raw: &str) -> Option<Value> {
    match raw.trim() {
        "null" => Some(Value::Null),
        "true" | "True" => Some(Value::Bool(true)),
        "false" | "False" => Some(Value::Bool(false)),
        text if text.starts_with(['{', '[']) => {
            serde_json::from_str::<serde::de::IgnoredAny>(text).ok().and_then(|_| lenient_json::read(text).ok())
        }
        text => lenient_json::number(text).map(Value::Number),
    }
}
