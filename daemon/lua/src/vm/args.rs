//! Reading the arguments of host functions, with errors that say which argument or field is wrong and what was
//! expected.

use std::time::Duration;

use mlua::{Function, Lua, MultiValue, Table, Value};
use serde_json::Value as Json;
use toold_proto::nearest::nearest;

use crate::vm::convert;

/// The arguments of one host function.
pub(crate) struct Args {
    /// Its name as scripts call it.
    pub(crate) function: &'static str,
    values: MultiValue,
}

impl Args {
    pub(crate) fn new(function: &'static str, values: MultiValue) -> Self {
        Self { function, values }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn value(&self, place: usize) -> &Value {
        self.values.get(place - 1).unwrap_or(&Value::Nil)
    }

    pub(crate) fn text(&self, place: usize, name: &str) -> Result<String, String> {
        text(self.value(place)).ok_or_else(|| self.mistake(place, name, "a string"))
    }

    pub(crate) fn optional_text(&self, place: usize, name: &str) -> Result<Option<String>, String> {
        if self.value(place).is_nil() { Ok(None) } else { self.text(place, name).map(Some) }
    }

    pub(crate) fn bytes(&self, place: usize, name: &str) -> Result<Vec<u8>, String> {
        match self.value(place) {
            Value::String(bytes) => Ok(bytes.as_bytes().to_vec()),
            other => text(other).map(String::into_bytes).ok_or_else(|| self.mistake(place, name, "a string")),
        }
    }

    pub(crate) fn fields(&self, place: usize, name: &str) -> Result<Fields, String> {
        match self.value(place) {
            Value::Table(table) => Ok(Fields { of: self.function, table: table.clone() }),
            _ => Err(self.mistake(place, name, "a table")),
        }
    }

    pub(crate) fn optional_fields(&self, place: usize, name: &str) -> Result<Option<Fields>, String> {
        if self.value(place).is_nil() { Ok(None) } else { self.fields(place, name).map(Some) }
    }

    pub(crate) fn function(&self, place: usize, name: &str) -> Result<Function, String> {
        match self.value(place) {
            Value::Function(function) => Ok(function.clone()),
            _ => Err(self.mistake(place, name, "a function")),
        }
    }

    pub(crate) fn duration(&self, place: usize, name: &str) -> Result<Duration, String> {
        duration(self.value(place)).ok_or_else(|| self.mistake(place, name, DURATION))
    }

    pub(crate) fn json(&self, lua: &Lua, place: usize, name: &str) -> Result<Json, String> {
        convert::to_json(lua, self.value(place))
            .map_err(|error| format!("{}: argument {place} '{name}': {error}", self.function))
    }

    pub(crate) fn mistake(&self, place: usize, name: &str, expected: &str) -> String {
        format!("{}: argument {place} '{name}': expected {expected}, got {}", self.function, shown(self.value(place)))
    }
}

/// The fields of a table that a host function takes. Reads are raw.
pub(crate) struct Fields {
    of: &'static str,
    pub(crate) table: Table,
}

impl Fields {
    /// `of` names the function that takes the table, for errors.
    pub(crate) fn new(of: &'static str, table: Table) -> Self {
        Self { of, table }
    }

    pub(crate) fn get(&self, field: &str) -> Result<Value, String> {
        self.table.raw_get(field).map_err(|error| error.to_string())
    }

    pub(crate) fn text(&self, field: &str) -> Result<String, String> {
        let value = self.get(field)?;
        text(&value).ok_or_else(|| self.mistake(field, "a string", &value))
    }

    pub(crate) fn optional_text(&self, field: &str) -> Result<Option<String>, String> {
        if self.get(field)?.is_nil() { Ok(None) } else { self.text(field).map(Some) }
    }

    pub(crate) fn function(&self, field: &str) -> Result<Function, String> {
        match self.get(field)? {
            Value::Function(function) => Ok(function),
            other => Err(self.mistake(field, "a function", &other)),
        }
    }

    /// An absent field is false.
    pub(crate) fn flag(&self, field: &str) -> Result<bool, String> {
        Ok(self.optional_flag(field)?.unwrap_or(false))
    }

    pub(crate) fn optional_flag(&self, field: &str) -> Result<Option<bool>, String> {
        match self.get(field)? {
            Value::Nil => Ok(None),
            Value::Boolean(flag) => Ok(Some(flag)),
            other => Err(self.mistake(field, "true or false", &other)),
        }
    }

    pub(crate) fn optional_number(&self, field: &str) -> Result<Option<f64>, String> {
        match self.get(field)? {
            Value::Nil => Ok(None),
            Value::Integer(number) => Ok(Some(number as f64)),
            Value::Number(number) => Ok(Some(number)),
            other => Err(self.mistake(field, "a number", &other)),
        }
    }

    /// A number that JSON has a form for.
    pub(crate) fn optional_finite(&self, field: &str) -> Result<Option<f64>, String> {
        let number = self.optional_number(field)?;
        match number.filter(|number| !number.is_finite()) {
            Some(number) => Err(self.mistake(field, "a finite number", &Value::Number(number))),
            None => Ok(number),
        }
    }

    pub(crate) fn optional_duration(&self, field: &str) -> Result<Option<Duration>, String> {
        let value = self.get(field)?;
        if value.is_nil() {
            return Ok(None);
        }
        duration(&value).map(Some).ok_or_else(|| self.mistake(field, DURATION, &value))
    }

    pub(crate) fn optional_fields(&self, field: &str) -> Result<Option<Fields>, String> {
        match self.get(field)? {
            Value::Nil => Ok(None),
            Value::Table(table) => Ok(Some(Fields { of: self.of, table })),
            other => Err(self.mistake(field, "a table", &other)),
        }
    }

    /// A list of strings; one string is a list of one.
    pub(crate) fn optional_texts(&self, field: &str) -> Result<Option<Vec<String>>, String> {
        match self.get(field)? {
            Value::Nil => Ok(None),
            Value::Table(list) => {
                let mut texts = Vec::new();
                for item in list.sequence_values::<Value>() {
                    let item = item.map_err(|error| error.to_string())?;
                    texts.push(text(&item).ok_or_else(|| self.mistake(field, "a list of strings", &item))?);
                }
                Ok(Some(texts))
            }
            one => {
                let text = text(&one).ok_or_else(|| self.mistake(field, "a list of strings", &one))?;
                Ok(Some(vec![text]))
            }
        }
    }

    /// Names the field that is spelt nearly like one that is missing.
    pub(crate) fn mistake(&self, field: &str, expected: &str, got: &Value) -> String {
        let mut words = format!("{}: field '{field}': expected {expected}, got {}", self.of, shown(got));
        if got.is_nil() {
            let names = self.table.pairs::<Value, Value>().filter_map(|pair| text(&pair.ok()?.0));
            let names: Vec<String> = names.collect();
            if let Some(near) = nearest(field, names.iter().map(String::as_str)) {
                words.push_str(&format!("; there is a field '{near}'"));
            }
        }
        words
    }

    pub(crate) fn wrong(&self, field: &str, why: impl std::fmt::Display) -> String {
        format!("{}: field '{field}': {why}", self.of)
    }
}

const DURATION: &str = "a duration such as \"30s\", \"500ms\", or a number of milliseconds";

/// Strings, and numbers as Lua prints them.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string_lossy()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Number(number) => Some(number_text(*number)),
        _ => None,
    }
}

/// A number as Lua 5.1 prints it: an integral one without a fraction.
pub(crate) fn number_text(number: f64) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT { format!("{}", number as i64) } else { format!("{number}") }
}

/// A number of milliseconds, or a text of numbers and units such as `1m30s`.
fn duration(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Integer(ms) => *ms as f64 / 1e3,
        Value::Number(ms) => ms / 1e3,
        Value::String(text) => {
            let text = text.to_string_lossy();
            let mut rest = text.trim();
            let mut seconds = 0.0;
            while !rest.is_empty() {
                let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
                let number: f64 = rest[..unit].parse().ok()?;
                rest = rest[unit..].trim_start();
                let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
                let scale = match rest[..end].trim_end() {
                    "ns" => 1e-9,
                    "us" | "µs" => 1e-6,
                    "ms" => 1e-3,
                    "s" => 1.0,
                    "m" => 60.0,
                    "h" => 3_600.0,
                    _ => return None,
                };
                rest = &rest[end..];
                seconds += number * scale;
            }
            (!text.trim().is_empty()).then_some(seconds)?
        }
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// A value in an error message: its kind, and a short text itself.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Nil => "nothing".to_owned(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Integer(number) => format!("the number {number}"),
        Value::Number(number) => format!("the number {}", number_text(*number)),
        Value::String(text) => {
            let text = text.to_string_lossy();
            match text.char_indices().nth(60) {
                Some((end, _)) => format!("{:?}...", &text[..end]),
                None => format!("{text:?}"),
            }
        }
        Value::Table(_) => "a table".to_owned(),
        Value::Function(_) => "a function".to_owned(),
        Value::Thread(_) => "a coroutine".to_owned(),
        _ => "a userdata".to_owned(),
    }
}
