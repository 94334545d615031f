//! `hygge.state`: a table whose content the next version of the plugin takes over.

use mlua::Value;

use crate::api::ApiTable;
use crate::api::register::add;
use crate::plugin::state_content::check;

/// How many tables a plugin may have.
const MAX_TABLES: usize = 16;
const MAX_NAME: usize = 64;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    hygge.function("state", "hygge.state", |lua, args, context| {
        let (name, place) = match args.value(1) {
            Value::Nil | Value::Table(_) => (String::new(), 1),
            _ => (args.text(1, "name")?, 2),
        };
        if name.len() > MAX_NAME {
            return Err(args.mistake(1, "name", "at most 64 bytes"));
        }
        let table = match args.optional_fields(place, "initial")? {
            Some(fields) => fields.table,
            None => lua.create_table().map_err(|error| error.to_string())?,
        };
        check(lua, &table).map_err(|why| format!("hygge.state: argument {place} 'initial': {why}"))?;
        add(args, context, |registered| {
            if registered.state_tables.iter().any(|(other, _)| *other == name) {
                let named = if name.is_empty() { "without a name".to_owned() } else { format!("named {name}") };
                return Err(format!("hygge.state: this plugin has a table {named} already: give each its own name"));
            }
            if registered.state_tables.len() >= MAX_TABLES {
                return Err(format!("hygge.state: a plugin may have at most {MAX_TABLES} tables"));
            }
            registered.state_tables.push((name, table.clone()));
            Ok(())
        })?;
        Ok(table)
    })?;
    Ok(())
}
