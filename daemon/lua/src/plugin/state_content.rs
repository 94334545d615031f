//! The content of the tables of `hygge.state`, while it goes from one Lua state to the next.

use std::sync::Arc;

use mlua::{Lua, Table, Value};

use crate::vm::convert;

/// Bytes that all tables of a plugin may hold together, roughly as Lua counts them.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// How deep tables may nest.
const MAX_DEPTH: usize = 100;
/// Approximate size of one value.
const VALUE_BYTES: usize = 16;

/// The content of tables, by the names that the script gave them.
#[derive(Clone, Default)]
pub(crate) struct StateContent(Arc<Vec<(String, StateValue)>>);

/// A copy of a value that belongs to no Lua state.
enum StateValue {
    Null,
    Boolean(bool),
    Number(f64),
    Text(Vec<u8>),
    Table { is_array: bool, entries: Vec<(StateValue, StateValue)> },
}

impl StateContent {
    /// Copies these tables. A table that cannot be copied is left out and given to `refused` with the reason.
    pub(crate) fn read(lua: &Lua, tables: &[(String, Table)], mut refused: impl FnMut(&str, String)) -> Self {
        let mut left = MAX_BYTES;
        let mut content = Vec::new();
        for (name, table) in tables {
            match StateReader::new(lua, left).and_then(|mut reader| {
                let value = reader.value(&Value::Table(table.clone()))?;
                left = reader.left;
                Ok(value)
            }) {
                Ok(value) => content.push((name.clone(), value)),
                Err(why) => refused(name, why),
            }
        }
        Self(Arc::new(content))
    }

    /// Sets the fields of the tables with these names. Other fields stay.
    ///
    /// # Errors
    /// The memory limit of the Lua state, or a table that cannot be changed.
    pub(crate) fn fill(&self, lua: &Lua, tables: &[(String, Table)]) -> mlua::Result<()> {
        for (name, table) in tables {
            if let Some((_, StateValue::Table { entries, .. })) = self.0.iter().find(|(other, _)| other == name) {
                for (key, value) in entries {
                    table.raw_set(key.to_lua(lua)?, value.to_lua(lua)?)?;
                }
            }
        }
        Ok(())
    }
}

/// Checks that a table can be copied.
///
/// # Errors
/// The reason, with the path of the value.
pub(crate) fn check(lua: &Lua, table: &Table) -> Result<(), String> {
    StateReader::new(lua, MAX_BYTES)?.value(&Value::Table(table.clone())).map(drop)
}

struct StateReader {
    /// Marks a table as an array.
    array: Table,
    left: usize,
    /// The keys that lead to the current value.
    path: Vec<String>,
}

impl StateReader {
    fn new(lua: &Lua, left: usize) -> Result<Self, String> {
        let array = convert::array_metatable(lua).map_err(|error| error.to_string())?;
        Ok(Self { array, left, path: Vec::new() })
    }

    fn value(&mut self, value: &Value) -> Result<StateValue, String> {
        self.spend(VALUE_BYTES)?;
        match value {
            Value::Boolean(value) => Ok(StateValue::Boolean(*value)),
            Value::Integer(value) => Ok(StateValue::Number(*value as f64)),
            Value::Number(value) => Ok(StateValue::Number(*value)),
            Value::String(text) => {
                let bytes = text.as_bytes();
                self.spend(bytes.len())?;
                Ok(StateValue::Text(bytes.to_vec()))
            }
            Value::Table(table) => self.table(table),
            other if other.is_null() => Ok(StateValue::Null),
            other => Err(self.refuse(&format!("a {} cannot be kept", other.type_name()))),
        }
    }

    fn table(&mut self, table: &Table) -> Result<StateValue, String> {
        if self.path.len() >= MAX_DEPTH {
            return Err(self.refuse("it contains itself, or nests deeper than 100 levels"));
        }
        let mut entries = Vec::new();
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair.map_err(|error| error.to_string())?;
            let shown = match &key {
                Value::String(text) => text.to_string_lossy(),
                Value::Integer(number) => number.to_string(),
                Value::Number(number) => number.to_string(),
                Value::Boolean(value) => value.to_string(),
                other => return Err(self.refuse(&format!("a {} cannot be kept as a key", other.type_name()))),
            };
            self.path.push(shown.chars().take(40).collect());
            let entry = (self.value(&key)?, self.value(&value)?);
            self.path.pop();
            entries.push(entry);
        }
        let is_array = table.metatable().is_some_and(|meta| meta == self.array);
        Ok(StateValue::Table { is_array, entries })
    }

    fn spend(&mut self, bytes: usize) -> Result<(), String> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => return Err("the tables of hygge.state hold more than 1 MiB".to_owned()),
        }
        Ok(())
    }

    fn refuse(&self, why: &str) -> String {
        let path = &self.path[..self.path.len().min(10)];
        if path.is_empty() { why.to_owned() } else { format!("{why} (at {})", path.join(".")) }
    }
}

impl StateValue {
    fn to_lua(&self, lua: &Lua) -> mlua::Result<Value> {
        Ok(match self {
            Self::Null => Value::NULL,
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Number(value) => Value::Number(*value),
            Self::Text(bytes) => Value::String(lua.create_string(bytes)?),
            Self::Table { is_array, entries } => {
                let table = lua.create_table()?;
                for (key, value) in entries {
                    table.raw_set(key.to_lua(lua)?, value.to_lua(lua)?)?;
                }
                if *is_array {
                    table.set_metatable(Some(convert::array_metatable(lua)?))?;
                }
                Value::Table(table)
            }
        })
    }
}
