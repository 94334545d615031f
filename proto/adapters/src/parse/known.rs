//! The tools that a parser knows of.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toold_proto::prompt::ParsedCall;
use toold_proto::tool::Tool;

use super::found_call::{FoundCall, RawArguments, RawParameter};
use super::lenient_json::{self, excerpt};
use crate::parse::raw_value;

/// The tools that a model may call. Calls of others become errors that name some there are.
#[derive(Clone, Debug, Default)]
pub struct KnownTools {
    /// The schema is that of the tool's arguments.
    tools: BTreeMap<String, Option<Value>>,
    /// Other names are no tools.
    only_these: bool,
}

impl KnownTools {
    /// Any name will do.
    pub fn any() -> Self {
        Self::default()
    }

    /// Any name will do. The schemas of these tools say which arguments are strings, and an answer that is a call as a
    /// whole may be one of them.
    pub fn any_with(tools: &[Tool]) -> Self {
        Self { only_these: false, ..Self::tools(tools) }
    }

    pub fn names(names: &[String]) -> Self {
        Self { tools: names.iter().map(|name| (name.clone(), None)).collect(), only_these: true }
    }

    /// As [`KnownTools::names`]; the schemas also say which arguments are strings where a model's
    /// syntax does not (`<parameter=KEY>`).
    pub fn tools(tools: &[Tool]) -> Self {
        let pairs = tools.iter().map(|tool| (tool.name.as_str().to_owned(), Some(tool.input_schema.clone())));
        Self { tools: pairs.collect(), only_these: true }
    }

    /// As [`KnownTools::names`], with the schemas of those names that stand among the tools too.
    pub fn listed(names: &[String], tools: &[Tool]) -> Self {
        let schema =
            |name: &String| tools.iter().find(|tool| tool.name.as_str() == name).map(|tool| tool.input_schema.clone());
        Self { tools: names.iter().map(|name| (name.clone(), schema(name))).collect(), only_these: true }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        !self.only_these || self.tools.contains_key(name)
    }

    /// Whether some tools are known for certain.
    pub(crate) fn is_list(&self) -> bool {
        !self.tools.is_empty()
    }

    /// Whether it is known for certain that there is such a tool.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// # Errors
    ///
    /// In words, when there is no such tool or an argument does not fit its type.
    pub(crate) fn admit(&self, mut found: FoundCall) -> Result<ParsedCall, String> {
        // Muse doubles the name of a tool that has no name space.
        if let Some((first, second)) = found.name.split_once('.')
            && first == second
            && !self.lists(&found.name)
            && self.lists(first)
        {
            found.name = first.to_owned();
        }
        if !self.has(&found.name) {
            return Err(self.unknown(&found.name));
        }
        if found.only_name && !self.lists(&found.name) {
            return Err(format!("`{}` alone is no call; add the arguments", excerpt(&found.name)));
        }
        let arguments = match found.arguments {
            RawArguments::Object(map) => map,
            RawArguments::Raw(pairs) => self.typed(&found.name, pairs)?,
        };
        Ok(ParsedCall { name: found.name, arguments: Value::Object(arguments) })
    }

    fn unknown(&self, name: &str) -> String {
        const SHOWN: usize = 20;
        let names: Vec<&str> = self.tools.keys().map(String::as_str).take(SHOWN + 1).collect();
        let list = match names.len() {
            0 => "there are no tools".to_owned(),
            n if n > SHOWN => format!("some of them are: {}", names[..SHOWN].join(", ")),
            _ => format!("there are: {}", names.join(", ")),
        };
        format!("there is no tool `{}`; {list}", excerpt(name))
    }

    fn typed(&self, tool: &str, parameters: Vec<RawParameter>) -> Result<Map<String, Value>, String> {
        let schema = self.tools.get(tool).and_then(Option::as_ref);
        let properties = schema.and_then(|schema| schema.get("properties"));
        if let Some(map) = wrapped(&parameters, properties) {
            return Ok(map);
        }
        let mut map = Map::new();
        for RawParameter { key, text, kind } in parameters {
            let types = properties.and_then(|properties| properties.get(&key)).and_then(|schema| types(schema, 0));
            let value = raw_value::read(&text, kind, types.as_deref())
                .map_err(|reason| format!("the parameter `{}` {reason}", excerpt(&key)))?;
            map.insert(key, value);
        }
        Ok(map)
    }
}

/// Arguments that a model has put into one argument, of a name that the tool has not.
fn wrapped(parameters: &[RawParameter], properties: Option<&Value>) -> Option<Map<String, Value>> {
    const NAMES: [&str; 5] = ["args", "arguments", "input", "parameters", "properties"];
    let properties = properties?.as_object()?;
    let [RawParameter { key, text, .. }] = parameters else { return None };
    if !NAMES.contains(&key.as_str()) || properties.contains_key(key) {
        return None;
    }
    match lenient_json::read(text) {
        Ok(Value::Object(map)) if map.keys().all(|key| properties.contains_key(key)) => Some(map),
        Ok(_) | Err(_) => None,
    }
}

/// Schemas may be nested, and `anyOf` in `anyOf` says nothing new.
const MAX_DEPTH: usize = 8;

/// The types that a property's schema allows, when it says so plainly.
fn types(schema: &Value, depth: usize) -> Option<Vec<String>> {
    if depth > MAX_DEPTH {
        return None;
    }
    match schema.get("type") {
        Some(Value::String(one)) => return Some(vec![one.clone()]),
        Some(Value::Array(several)) => return several.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => {}
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return Some(choices.iter().map(|choice| type_of(choice).to_owned()).collect());
    }
    let branches = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array())?;
    let branches: Option<Vec<Vec<String>>> = branches.iter().map(|branch| types(branch, depth + 1)).collect();
    Some(branches?.concat())
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
