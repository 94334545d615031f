//! `hygge.json`.

use mlua::{Table, Value};

use super::Module;
use crate::convert;

pub(super) fn offer(hygge: &Module) -> mlua::Result<()> {
    let json = hygge.within("json")?;
    json.table.raw_set("null", Value::NULL)?;
    json.function("encode", "hygge.json.encode", |lua, args, _| {
        let value = args.json(lua, 1, "value")?;
        match args.optional_fields(2, "options")? {
            Some(options) if options.flag("pretty")? => serde_json::to_string_pretty(&value),
            Some(_) | None => serde_json::to_string(&value),
        }
        .map_err(|error| format!("hygge.json.encode: {error}"))
    })?;
    json.function("decode", "hygge.json.decode", |lua, args, _| {
        let text = args.bytes(1, "text")?;
        let value = serde_json::from_slice(&text).map_err(|error| format!("hygge.json.decode: {error}"))?;
        convert::to_lua_exact(lua, &value).map_err(|error| error.to_string())
    })?;
    json.function("array", "hygge.json.array", |lua, args, _| {
        let table: Table = match args.value(1) {
            Value::Nil => lua.create_table().map_err(|error| error.to_string())?,
            Value::Table(table) => table.clone(),
            _ => return Err(args.mistake(1, "list", "a table")),
        };
        let array = convert::array_metatable(lua).map_err(|error| error.to_string())?;
        table.set_metatable(Some(array)).map_err(|error| error.to_string())?;
        Ok(table)
    })?;
    Ok(())
}
