//! Reading what the functions of resources and prompts return.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mlua::{Lua, Table, Value as LuaValue};
use serde_json::Value;
use toold_proto::offer::{Completion, PromptMessage, Rendered, ResourceContents, Speaker};
use toold_proto::tool::Block;

use crate::plugin::tool_result::block;
use crate::vm::args::{Fields, shown, text};
use crate::vm::convert;

/// A text, `{text | blob | bytes, mime_type?, uri?}`, or a list of these.
pub(crate) fn contents(value: &LuaValue, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>, String> {
    match value {
        LuaValue::Table(list) if list.raw_len() > 0 => {
            let items = list.sequence_values::<LuaValue>();
            items.map(|item| content(&item.map_err(|error| error.to_string())?, uri, mime_type)).collect()
        }
        one => Ok(vec![content(one, uri, mime_type)?]),
    }
}

fn content(value: &LuaValue, uri: &str, mime_type: Option<&str>) -> Result<ResourceContents, String> {
    let (uri, mut mime_type) = (uri.to_owned(), mime_type.map(str::to_owned));
    let LuaValue::Table(table) = value else {
        let expected = || format!("expected a string, or a table with text, blob or bytes, got {}", shown(value));
        return match value {
            // JSON can hold bytes that are not text only as Base64.
            LuaValue::String(bytes) if bytes.to_str().is_err() => Ok(of_bytes(&bytes.as_bytes(), uri, mime_type)),
            value => {
                let text = Some(text(value).ok_or_else(expected)?);
                let mime_type = mime_type.or_else(|| Some("text/plain".to_owned()));
                Ok(ResourceContents { uri, mime_type, text, ..ResourceContents::default() })
            }
        };
    };
    let fields = Fields::new("read", table.clone());
    let uri = fields.optional_text("uri")?.unwrap_or(uri);
    mime_type = fields.optional_text("mime_type")?.or(mime_type);
    if let LuaValue::String(bytes) = fields.get("bytes")? {
        return Ok(of_bytes(&bytes.as_bytes(), uri, mime_type));
    }
    let (text, blob) = (fields.optional_text("text")?, fields.optional_text("blob")?);
    if text.is_some() == blob.is_some() {
        return Err("expected a table with one of text, blob (Base64) or bytes".to_owned());
    }
    Ok(ResourceContents { uri, mime_type, text, blob, meta: None })
}

fn of_bytes(bytes: &[u8], uri: String, mime_type: Option<String>) -> ResourceContents {
    let mime_type = mime_type.or_else(|| Some("application/octet-stream".to_owned()));
    ResourceContents { uri, mime_type, blob: Some(STANDARD.encode(bytes)), ..ResourceContents::default() }
}

/// A text, a list of messages, or `{messages, description?}`.
pub(crate) fn rendered(lua: &Lua, value: &LuaValue) -> Result<Rendered, String> {
    if let Some(text) = text(value) {
        let message = PromptMessage { role: Speaker::User, content: Block::text(text) };
        return Ok(Rendered { description: None, messages: vec![message] });
    }
    let LuaValue::Table(table) = value else {
        return Err(format!("expected a string, a list of messages, or a table with messages, got {}", shown(value)));
    };
    let fields = Fields::new("render", table.clone());
    match fields.get("messages")? {
        LuaValue::Nil => Ok(Rendered { description: None, messages: messages(lua, "render", value)? }),
        list => Ok(Rendered {
            description: fields.optional_text("description")?,
            messages: messages(lua, "render", &list)?,
        }),
    }
}

/// Messages as scripts write them: texts, or `{role?, content}` with a text, a block, or a list of blocks.
pub(crate) fn messages(lua: &Lua, of: &'static str, value: &LuaValue) -> Result<Vec<PromptMessage>, String> {
    let LuaValue::Table(list) = value else {
        return Err(format!("{of}: expected a list of messages, got {}", shown(value)));
    };
    let mut all = Vec::new();
    for item in list.sequence_values::<LuaValue>() {
        let item = item.map_err(|error| error.to_string())?;
        if let Some(text) = text(&item) {
            all.push(PromptMessage { role: Speaker::User, content: Block::text(text) });
            continue;
        }
        let LuaValue::Table(message) = &item else {
            return Err(format!("{of}: expected a message, got {}", shown(&item)));
        };
        let fields = Fields::new(of, message.clone());
        let named = fields.get("role")?;
        let role = match text(&named).as_deref() {
            None if named.is_nil() => Speaker::User,
            Some("user") => Speaker::User,
            Some("assistant") => Speaker::Assistant,
            Some(_) | None => return Err(fields.mistake("role", "\"user\" or \"assistant\"", &named)),
        };
        let content = convert::to_json(lua, &fields.get("content")?).map_err(|error| fields.wrong("content", error))?;
        let blocks = match content {
            Value::Array(blocks) => {
                (1..).zip(blocks).map(|(place, value)| block(place, value)).collect::<Result<_, _>>()?
            }
            Value::Null => return Err(fields.wrong("content", "expected a text, a block, or a list of blocks")),
            one => vec![block(1, one)?],
        };
        all.extend(blocks.into_iter().map(|content| PromptMessage { role, content }));
    }
    Ok(all)
}

/// A list of texts, or `{values, total?, has_more?}`.
pub(crate) fn completion(value: &LuaValue) -> Result<Completion, String> {
    let table = match value {
        LuaValue::Nil => return Ok(Completion::default()),
        LuaValue::Table(table) => table,
        _ => return Err(format!("expected a list of strings, got {}", shown(value))),
    };
    let fields = Fields::new("complete", table.clone());
    match fields.optional_fields("values")? {
        None => Ok(Completion { values: texts(table)?, ..Completion::default() }),
        Some(values) => Ok(Completion {
            values: texts(&values.table)?,
            total: fields.optional_number("total")?.map(|total| total as u64),
            has_more: fields.flag("has_more")?,
        }),
    }
}

pub(crate) fn texts(list: &Table) -> Result<Vec<String>, String> {
    let items = list.sequence_values::<LuaValue>().map(|item| {
        let item = item.map_err(|error| error.to_string())?;
        text(&item).ok_or_else(|| format!("expected a list of strings, got {} in it", shown(&item)))
    });
    items.collect()
}
