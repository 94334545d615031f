//! Types, values and properties in words.

use jsonschema::error::TypeKind;
use jsonschema::{JsonType, JsonTypeSet};
use serde_json::Value;
use toold_proto::nearest::nearest;

/// Characters of a value that are quoted.
const MAX_QUOTED: usize = 60;
/// Characters of all candidates of an enumeration.
const MAX_CANDIDATES: usize = 4_000;

pub(super) fn types_in(kind: &TypeKind) -> JsonTypeSet {
    match kind {
        TypeKind::Single(one) => JsonTypeSet::from(*one),
        TypeKind::Multiple(types) => *types,
    }
}

/// `expected an integer, got "ten"`, and what to do if that is clear.
pub(super) fn wrong_type(expected: JsonTypeSet, value: &Value) -> String {
    let advice = advice(expected, value).map(|advice| format!(": {advice}")).unwrap_or_default();
    format!("expected {}, got {}{advice}", or_list(expected.iter().map(name_of)), got(value))
}

fn name_of(kind: JsonType) -> String {
    let name = match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    };
    name.to_owned()
}

fn advice(expected: JsonTypeSet, value: &Value) -> Option<String> {
    let wants = |kind: JsonType| expected.contains(kind);
    let direct = match value {
        Value::String(text) => serde_json::from_str(text.trim()).ok().and_then(|meant: Value| {
            let (takes, json) = match &meant {
                Value::Bool(_) => (wants(JsonType::Boolean), false),
                Value::Number(number) => {
                    let whole = number.is_i64() || number.is_u64();
                    (wants(JsonType::Number) || wants(JsonType::Integer) && whole, false)
                }
                Value::Array(_) => (wants(JsonType::Array), true),
                Value::Object(_) => (wants(JsonType::Object), true),
                Value::Null | Value::String(_) => (false, false),
            };
            takes.then(|| match json {
                true => "send it as JSON, not within a string".to_owned(),
                false => format!("send {meant}, without quotes"),
            })
        }),
        Value::Number(_) | Value::Bool(_) if wants(JsonType::String) => Some(format!("send \"{value}\"")),
        Value::Bool(_) | Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    direct.or_else(|| {
        // A list as a text that is not JSON: as a list of one text, it would not be what is meant either.
        if let Value::String(text) = value
            && wants(JsonType::Array)
            && text.trim_start().starts_with(['[', '{'])
            && let Err(error) = serde_json::from_str::<Value>(text)
        {
            return Some(format!("it is a text that is not valid JSON ({error}): send a list"));
        }
        let single = wants(JsonType::Array) && !value.is_null() && !value.is_array();
        let text = Some(value.to_string()).filter(|text| single && text.chars().count() <= MAX_QUOTED);
        text.map(|text| format!("send a single one as [{text}]"))
    })
}

/// A value, if it is short; else its kind.
pub(super) fn got(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().nth(MAX_QUOTED).is_some() => {
            let head: String = text.chars().take(MAX_QUOTED).collect();
            format!("{}… ({} characters)", Value::from(head), text.chars().count())
        }
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        short => short.to_string(),
    }
}

/// All candidates of an enumeration, and the one that was probably meant.
pub(super) fn one_of(options: &[Value], value: &Value) -> String {
    let shown: Vec<String> = options.iter().map(Value::to_string).collect();
    let mut length = 0;
    let fitting = shown.iter().take_while(|text| {
        length += text.len();
        length <= MAX_CANDIDATES
    });
    let fitting = fitting.count();
    let mut candidates = shown[..fitting].join(", ");
    if fitting < shown.len() {
        candidates.push_str(&format!(" or one of {} more", shown.len() - fitting));
    }
    let near = value.as_str().and_then(|text| nearest(text, options.iter().filter_map(Value::as_str)));
    let near = near.map(|near| format!(": did you mean {near:?}?")).unwrap_or_default();
    let one_of = if options.len() == 1 { "" } else { "one of " };
    format!("expected {one_of}{candidates}, got {}{near}", got(value))
}

/// The type and the first sentence of the description of a property, such as `string, The file to read`.
pub(super) fn described(root: &Value, schema: &Value) -> Option<String> {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    let resolved = target.and_then(|target| root.pointer(target)).unwrap_or(schema);
    let kind = match resolved.get("type") {
        Some(Value::String(name)) => Some(name.clone()),
        Some(Value::Array(names)) => Some(or_list(names.iter().filter_map(Value::as_str).map(str::to_owned))),
        _ => None,
    };
    let options = resolved.get("enum").and_then(Value::as_array).map(|options| {
        let options: Vec<String> = options.iter().take(20).map(Value::to_string).collect();
        format!("one of {}", options.join(", "))
    });
    let text = schema.get("description").or_else(|| resolved.get("description")).and_then(Value::as_str);
    let sentence = text.map(|text| {
        let line = text.lines().next().unwrap_or_default();
        let end = line.find(". ").unwrap_or(line.len());
        line[..end].trim_end_matches('.').chars().take(200).collect::<String>()
    });
    let parts = [options.or(kind), sentence].into_iter().flatten().filter(|part| !part.is_empty());
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `a, b or c`
fn or_list(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => "nothing".to_owned(),
    }
}
