//! `hygge.json`.

use std::fmt;
use std::sync::Arc;

use mlua::{Lua, Table, Value};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toold_proto::weight::weight;

use crate::api::ApiTable;
use crate::api::script_context::ScriptContext;
use crate::vm::args::Args;
use crate::vm::{convert, worker_thread};

/// Bytes of memory that a decoded text may take, unless the Lua state may use more.
const MAX_WEIGHT: u64 = 256 << 20;
/// The order of the members is kept for texts of up to this size, in bytes.
const MAX_ORDERED: usize = 1 << 20;

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
    let order = hygge.lua.create_table()?;
    let weak = hygge.lua.create_table()?;
    weak.raw_set("__mode", "k")?;
    order.set_metatable(Some(weak))?;
    json.table.raw_set("pairs", hygge.prelude.table.raw_get::<mlua::Function>("json_pairs")?.call::<Value>(&order)?)?;
    json.function("decode", "hygge.json.decode", move |lua, args, context| {
        let text = args.bytes(1, "text")?;
        worker_thread::replace_thread_for(text.len());
        // The value is made outside of the Lua state, whose memory limit does not cover it.
        let bytes = weight(&text);
        let limit = MAX_WEIGHT.max(context.plugin.memory() as u64);
        if bytes > limit {
            return Err(format!(
                "hygge.json.decode: the decoded values would take {} MiB of memory; the limit is {} MiB ([limits] \
                 memory_mib in plugin.toml moves it)",
                bytes >> 20,
                limit >> 20
            ));
        }
        let value = serde_json::from_slice(&text).map_err(|error| format!("hygge.json.decode: {error}"))?;
        let table = convert::to_lua_exact(lua, &value).map_err(|error| error.to_string())?;
        if text.len() <= MAX_ORDERED
            && let Ok(keys) = serde_json::from_slice::<KeyOrder>(&text)
        {
            keys.note(lua, &table, &order).map_err(|error| error.to_string())?;
        }
        Ok(table)
    })?;
    hygge.function("list", "hygge.list", array)?;
    json.function("array", "hygge.json.array", array)?;
    Ok(())
}

/// Marks a table as a list, also when it is empty.
fn array(lua: &Lua, args: &Args, _: &Arc<ScriptContext>) -> Result<Table, String> {
    let table: Table = match args.value(1) {
        Value::Nil => lua.create_table().map_err(|error| error.to_string())?,
        Value::Table(table) => table.clone(),
        _ => return Err(args.mistake(1, "list", "a table")),
    };
    let array = convert::array_metatable(lua).map_err(|error| error.to_string())?;
    table.set_metatable(Some(array)).map_err(|error| error.to_string())?;
    Ok(table)
}

/// The members of the objects of a text, in its order. Objects whose members are sorted have none.
#[derive(Default)]
struct KeyOrder {
    keys: Vec<String>,
    /// Members with such objects, by name.
    members: Vec<(String, KeyOrder)>,
    /// Elements with such objects, from 1.
    items: Vec<(usize, KeyOrder)>,
}

impl KeyOrder {
    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.members.is_empty() && self.items.is_empty()
    }

    /// Records the order of each table that the text became.
    fn note(&self, lua: &Lua, value: &Value, order: &Table) -> mlua::Result<()> {
        let Value::Table(table) = value else { return Ok(()) };
        if !self.keys.is_empty() {
            order.raw_set(table, lua.create_sequence_from(self.keys.iter().map(String::as_str))?)?;
        }
        for (name, inner) in &self.members {
            inner.note(lua, &table.raw_get(name.as_str())?, order)?;
        }
        for (place, inner) in &self.items {
            inner.note(lua, &table.raw_get(*place)?, order)?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for KeyOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyOrderVisitor)
    }
}

struct KeyOrderVisitor;

impl<'de> Visitor<'de> for KeyOrderVisitor {
    type Value = KeyOrder;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeyOrder, A::Error> {
        let mut found = KeyOrder::default();
        while let Some((name, inner)) = map.next_entry::<String, KeyOrder>()? {
            if !inner.is_empty() {
                found.members.push((name.clone(), inner));
            }
            found.keys.push(name);
        }
        if found.keys.is_sorted() {
            found.keys.clear();
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<KeyOrder, A::Error> {
        let mut found = KeyOrder::default();
        let mut place = 0;
        while let Some(inner) = list.next_element::<KeyOrder>()? {
            place += 1;
            if !inner.is_empty() {
                found.items.push((place, inner));
            }
        }
        Ok(found)
    }

    fn visit_unit<E>(self) -> Result<KeyOrder, E> {
        Ok(KeyOrder::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<KeyOrder, E> {
        Ok(KeyOrder::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<KeyOrder, E> {
        Ok(KeyOrder::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<KeyOrder, E> {
        Ok(KeyOrder::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<KeyOrder, E> {
        Ok(KeyOrder::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<KeyOrder, E> {
        Ok(KeyOrder::default())
    }
}
