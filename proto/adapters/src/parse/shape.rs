//! The meaning of a value as calls: the keys that name the tool and its arguments.

use serde_json::{Map, Value};

use super::lenient_json::{self, excerpt};

/// A call as it stands in the text, before anyone asks whether there is such a tool.
#[derive(Debug)]
pub(crate) struct FoundCall {
    pub name: String,
    pub arguments: RawArguments,
}

#[derive(Debug)]
pub(crate) enum RawArguments {
    Object(Map<String, Value>),
    /// As they stand between tags; only the tool's schema knows which of them are strings.
    Raw(Vec<(String, String)>),
}

/// The keys under which models put the arguments.
const ARGUMENT_KEYS: [&str; 3] = ["args", "arguments", "parameters"];

/// Keys that say nothing of what is called with what.
const IDLE_KEYS: [&str; 4] = ["type", "id", "call_id", "index"];

/// The calls of one value: an object is one, a list holds several. One that cannot be read
/// does not hurt its siblings.
pub(crate) fn calls(value: Value) -> Vec<Result<FoundCall, String>> {
    match value {
        Value::Array(items) => items.into_iter().map(call).collect(),
        other => vec![call(other)],
    }
}

pub(crate) fn named(name: String, arguments: Value) -> Result<FoundCall, String> {
    Ok(FoundCall { arguments: RawArguments::Object(object(arguments)?), name })
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
    if !map.contains_key("name")
        && let Some(Value::Object(function)) = map.get_mut("function")
    {
        let function = std::mem::take(function);
        map.shift_remove("function");
        only_idle(&map)?;
        map = function;
    }
    let name = match map.shift_remove("name") {
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
