//! The return value of a tool's function, as a result.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mlua::{Lua, Value as LuaValue};
use serde_json::{Map, Value};
use toold_engine::tool::{ToolOutput, ToolSpec};
use toold_proto::tool::Block;

use crate::plugin::schema_shape::empty_lists;
use crate::vm::args::{shown, text};
use crate::vm::convert::{self, BYTES, bytes_of};

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
            let has_blocks = table.raw_get::<LuaValue>("content").is_ok_and(|content| content.is_table());
            let convert = if has_blocks { convert::to_json_with_bytes } else { convert::to_json };
            let json = convert(lua, value).map_err(|error| error.to_string())?;
            match json {
                Value::Object(fields) if is_result => of_fields(fields, spec),
                other => Ok(of_value(other, spec)),
            }
        }
        other => match text(other) {
            Some(text) => Ok(ToolOutput::text(text)),
            None => Err(format!("expected a string, a number, a boolean, nil or a table, got {}", shown(other))),
        },
    }
}

fn of_value(mut value: Value, spec: &ToolSpec) -> ToolOutput {
    if let Some(schema) = &spec.output {
        empty_lists(&mut value, schema.as_value());
    }
    let text = value.to_string();
    ToolOutput { structured: spec.output.is_some().then_some(value), ..ToolOutput::text(text) }
}

fn of_fields(mut fields: Map<String, Value>, spec: &ToolSpec) -> Result<ToolOutput, String> {
    let mut structured = fields.remove("structured").map(without_bytes);
    if let (Some(structured), Some(schema)) = (&mut structured, &spec.output) {
        empty_lists(structured, schema.as_value());
    }
    let content = match fields.remove("content") {
        // A result with only `structured` also gets a text, for models that read text.
        None | Some(Value::Null) => structured.iter().map(|value| Block::text(value.to_string())).collect(),
        Some(Value::String(text)) => vec![Block::text(text)],
        Some(Value::Array(blocks)) => {
            (1..).zip(blocks).map(|(place, value)| block(place, value)).collect::<Result<_, _>>()?
        }
        Some(Value::Object(empty)) if empty.is_empty() => Vec::new(),
        Some(Value::Object(bytes)) if bytes.contains_key(BYTES) => {
            vec![Block::text(without_bytes(Value::Object(bytes)).as_str().unwrap_or_default().to_owned())]
        }
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
        Some(metadata @ Value::Object(_)) => match without_bytes(metadata) {
            Value::Object(metadata) => metadata,
            _ => Map::new(),
        },
        Some(_) => return Err("field 'metadata': expected a table with string keys".to_owned()),
    };
    Ok(ToolOutput { content, is_error, metadata, structured })
}

/// A text, or a block; an image or a sound has `data` in Base64, or `bytes`.
///
/// # Errors
/// It is no block, or its data is not Base64.
pub(crate) fn block(place: usize, value: Value) -> Result<Block, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("field 'content[{place}]': {why}");
    let mut value = match value {
        Value::String(text) => return Ok(Block::text(text)),
        value => match bytes_of(&value) {
            Some(text) => return Ok(Block::text(String::from_utf8_lossy(&text).into_owned())),
            None => value,
        },
    };
    if let Some(block) = value.as_object_mut() {
        if !block.contains_key("data")
            && let Some(bytes) = block.remove("bytes")
        {
            let bytes = bytes_of(&bytes).or_else(|| Some(bytes.as_str()?.as_bytes().to_vec()));
            let bytes = bytes.ok_or_else(|| wrong(&"bytes: expected a string"))?;
            block.insert("data".to_owned(), STANDARD.encode(bytes).into());
        }
        if !block.contains_key("mime_type")
            && let Some(mime) = block.remove("mime")
        {
            block.insert("mime_type".to_owned(), mime);
        }
        if let Some(data) = block.get("data") {
            must_be_base64(data).map_err(|why| wrong(&format!("data {why}")))?;
        }
        if let Some(blob) = block.get("resource").and_then(|resource| resource.get("blob")) {
            must_be_base64(blob).map_err(|why| wrong(&format!("resource.blob {why}")))?;
        }
    }
    serde_json::from_value(without_bytes(value)).map_err(|error| wrong(&error))
}

fn must_be_base64(data: &Value) -> Result<(), String> {
    let is_base64 = data.as_str().is_some_and(|text| STANDARD.decode(text).is_ok());
    let expected = "is not Base64: give the bytes as bytes, or encode them with hygge.base64.encode";
    if is_base64 { Ok(()) } else { Err(expected.to_owned()) }
}

/// Bytes outside of the places that are for them become texts, with U+FFFD for what is none.
fn without_bytes(value: Value) -> Value {
    if let Some(bytes) = bytes_of(&value) {
        return String::from_utf8_lossy(&bytes).into_owned().into();
    }
    match value {
        Value::Array(items) => items.into_iter().map(without_bytes).collect(),
        Value::Object(members) => members.into_iter().map(|(name, member)| (name, without_bytes(member))).collect(),
        plain => plain,
    }
}
