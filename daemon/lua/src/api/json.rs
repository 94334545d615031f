//! `hygge.json`.

use mlua::{Table, Value};
use toold_proto::weight::weight;

use crate::api::ApiTable;
use crate::vm::{convert, worker_thread};

/// Bytes of memory that a decoded text may take.
const MAX_WEIGHT: u64 = 256 << 20;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
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
        worker_thread::replace_thread_for(text.len());
        // The value is made outside of the Lua state, whose memory limit does not cover it.
        let bytes = weight(&text);
        if bytes > MAX_WEIGHT {
            return Err(format!(
                "hygge.json.decode: the decoded values would take {} MiB of memory; the limit is {} MiB",
                bytes >> 20,
                MAX_WEIGHT >> 20
            ));
        }
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
