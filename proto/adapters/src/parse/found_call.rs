//! The meaning of a value as calls: the keys that name the tool and its arguments.

use serde_json::{Map, Value};

use super::lenient_json::{self, excerpt};

/// A call as it stands in the text, before anyone asks whether there is such a tool.
#[derive(Debug)]
pub(crate) struct FoundCall {
    pub name: String,
    pub arguments: RawArguments,
    /// Nothing but the name says that this is a call: it is one only if there is such a tool.
    pub only_name: bool,
}

#[derive(Debug)]
pub(crate) enum RawArguments {
    Object(Map<String, Value>),
    /// As they stand between tags.
    Raw(Vec<RawParameter>),
}

/// An argument as it stands between tags.
#[derive(Debug)]
pub(crate) struct RawParameter {
    pub key: String,
    pub text: String,
    pub kind: RawKind,
}

/// The type of an argument between tags, as far as its tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawKind {
    /// Nothing: only the tool's schema tells strings from other values.
    Unknown,
    /// A string.
    Text,
    /// JSON that is no string.
    Json,
}

/// The keys under which models put the name.
const NAME_KEYS: [&str; 2] = ["name", "tool_name"];

/// The keys under which models put the arguments.
pub(crate) const ARGUMENT_KEYS: [&str; 3] = ["args", "arguments", "parameters"];

/// Keys that say nothing of what is called with what.
const IDLE_KEYS: [&str; 5] = ["type", "id", "call_id", "tool_call_id", "index"];

/// The calls of one value: an object is one, a list holds several. One that cannot be read
/// does not hurt its siblings.
pub(crate) fn calls(value: Value) -> Vec<Result<FoundCall, String>> {
    match value {
        Value::Array(items) => items.into_iter().map(call).collect(),
        other => vec![call(other)],
    }
}

/// Whether every object of the value has arguments, be they empty: without marks, a name alone is no call.
pub(crate) fn has_arguments(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(has_arguments),
        Value::Object(map) => {
            let map = map.get("function").and_then(Value::as_object).unwrap_or(map);
            ARGUMENT_KEYS.iter().any(|key| map.contains_key(*key))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The calls of objects whose only key is the name of a tool, and whose value is its arguments.
pub(crate) fn keyed_calls(value: Value) -> Vec<Result<FoundCall, String>> {
    let items = match value {
        Value::Array(items) => items,
        other => vec![other],
    };
    items.into_iter().map(keyed_call).collect()
}

fn keyed_call(value: Value) -> Result<FoundCall, String> {
    match value {
        Value::Object(map) if map.len() == 1 && !map.contains_key("name") => {
            let (name, arguments) = map.into_iter().next().expect("it has one key");
            named(name, arguments)
        }
        other => call(other),
    }
}

pub(crate) fn named(name: String, arguments: Value) -> Result<FoundCall, String> {
    Ok(FoundCall { arguments: RawArguments::Object(object(arguments)?), name, only_name: false })
}

/// Whether a name that is not quoted may look like this.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':')
}

fn call(value: Value) -> Result<FoundCall, String> {
    let Value::Object(mut map) = value else {
        return Err("a call is an object with a name and arguments".to_owned());
    };
    // The chat completions' way: everything but the id is one level down.
    if !NAME_KEYS.iter().any(|key| map.contains_key(*key))
        && let Some(Value::Object(function)) = map.get_mut("function")
    {
        let function = std::mem::take(function);
        map.shift_remove("function");
        only_idle(&map)?;
        map = function;
    }
    let named_by = NAME_KEYS.into_iter().find(|key| map.contains_key(*key));
    let name = match named_by.and_then(|key| map.shift_remove(key)) {
        Some(Value::String(name)) if !name.trim().is_empty() => name.trim().to_owned(),
        Some(_) => return Err("`name` must be the name of a tool".to_owned()),
        None => return Err("it has no `name`".to_owned()),
    };
    let mut arguments = None;
    for key in ARGUMENT_KEYS {
        if let Some(value) = map.shift_remove(key)
            && arguments.replace(value).is_some()
        {
            return Err(format!("its arguments are under several keys; use one of {}", ARGUMENT_KEYS.join(", ")));
        }
    }
    only_idle(&map)?;
    named(name, arguments.unwrap_or(Value::Null))
}

/// Arguments may have been put beside the name by mistake; to drop them would change the call.
fn only_idle(map: &Map<String, Value>) -> Result<(), String> {
    match map.keys().find(|key| !IDLE_KEYS.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!("the key `{}` belongs in its arguments", excerpt(key))),
    }
}

fn object(arguments: Value) -> Result<Map<String, Value>, String> {
    match arguments {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => match lenient_json::read(&text) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => Err("the arguments must be an object".to_owned()),
            Err(reason) => Err(format!("the arguments are a string that is not a JSON object: {reason}")),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err("the arguments must be an object".to_owned()),
    }
}
