//! The return value of a tool's function, as a result.

use mlua::{Lua, Value as LuaValue};
use serde_json::{Map, Value};
use toold_engine::tool::{ToolOutput, ToolSpec};
use toold_proto::tool::Block;

use crate::vm::args::{shown, text};
use crate::vm::convert;

/// A string, number, boolean or nil; `{content, is_error?, metadata?, structured?}`; any other table
/// is shown as JSON, and is the structured result of a tool that has an output schema.
pub(crate) fn output(lua: &Lua, value: &LuaValue, spec: &ToolSpec) -> Result<ToolOutput, String> {
    match value {
        LuaValue::Nil => Ok(ToolOutput::text("")),
        LuaValue::Boolean(flag) => Ok(ToolOutput::text(flag.to_string())),
        LuaValue::Table(table) => {
            let is_result = ["content", "is_error", "metadata", "structured"]
                .iter()
                .any(|field| table.raw_get::<LuaValue>(*field).is_ok_and(|value| !value.is_nil()));
            let json = convert::to_json(lua, value).map_err(|error| error.to_string())?;
            match json {
                Value::Object(fields) if is_result => of_fields(fields),
                other => Ok(of_value(other, spec)),
            }
        }
        other => match text(other) {
            Some(text) => Ok(ToolOutput::text(text)),
            None => Err(format!("expected a string, a number, a boolean, nil or a table, got {}", shown(other))),
        },
    }
}

fn of_value(value: Value, spec: &ToolSpec) -> ToolOutput {
    let text = value.to_string();
    ToolOutput { structured: spec.output.is_some().then_some(value), ..ToolOutput::text(text) }
}

fn of_fields(mut fields: Map<String, Value>) -> Result<ToolOutput, String> {
    let structured = fields.remove("structured");
    let content = match fields.remove("content") {
        // A result with only `structured` also gets a text, for models that read text.
        None | Some(Value::Null) => structured.iter().map(|value| Block::text(value.to_string())).collect(),
        Some(Value::String(text)) => vec![Block::text(text)],
        Some(Value::Array(blocks)) => {
            (1..).zip(blocks).map(|(place, value)| block(place, value)).collect::<Result<_, _>>()?
        }
        Some(Value::Object(empty)) if empty.is_empty() => Vec::new(),
        Some(Value::Object(one)) => vec![block(1, Value::Object(one))?],
        Some(other @ (Value::Number(_) | Value::Bool(_))) => vec![Block::text(other.to_string())],
    };
    let is_error = match fields.remove("is_error") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is_error)) => is_error,
        Some(other) => return Err(format!("field 'is_error': expected true or false, got {other}")),
    };
    let metadata = match fields.remove("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return Err("field 'metadata': expected a table with string keys".to_owned()),
    };
    Ok(ToolOutput { content, is_error, metadata, structured })
}

pub(crate) fn block(place: usize, value: Value) -> Result<Block, String> {
    match value {
        Value::String(text) => Ok(Block::text(text)),
        value => serde_json::from_value(value).map_err(|error| format!("field 'content[{place}]': {error}")),
    }
}
