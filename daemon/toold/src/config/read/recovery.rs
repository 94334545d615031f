//! Takes over as much of a configuration as can be read, and names each value that cannot.

use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toold_proto::cut::cut_chars;
use toold_proto::nearest::did_you_mean;

use crate::config::read::{ConfigText, join};
use crate::config::{Config, schema};

/// Characters of a value that are quoted.
const MAX_SHOWN: usize = 60;

/// Something that is wrong in a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Misreading {
    pub(in crate::config) span: Range<usize>,
    pub(in crate::config) message: String,
}

/// The values that can be read; each other one is left out, so that the next one is found too. At most `limit` are
/// reported.
pub(super) fn recover(source: &ConfigText, root: &Spanned<DeTable>, limit: usize) -> (Config, Vec<Misreading>) {
    let mut root = root.clone();
    let mut found = Vec::new();
    let mut left_out: Vec<LeftOut> = Vec::new();
    loop {
        let error = match Config::deserialize(toml::Deserializer::from(root.clone())) {
            Ok(config) => return (config, found),
            Err(error) => error,
        };
        let end = source.text.len();
        let span = error.span().unwrap_or(end..end);
        let taken = take_out(root.get_mut(), None, &span, "", &[schema::schema()]);
        let Some(taken) = taken.filter(|_| found.len() < limit) else {
            // It cannot be located, so nothing can be left out to go on.
            found.push(Misreading { span, message: error.message().to_owned() });
            return (Config::default(), found);
        };
        let missing = taken.missing();
        if missing.is_empty() {
            found.push(Misreading { span, message: taken.explain(error.message()) });
        } else {
            let was_there = |name: &&str| left_out.iter().any(|left| left.table == span.start && left.key == *name);
            let reported = missing.iter().filter(|name| !was_there(name));
            found.extend(
                reported.map(|name| Misreading {
                    span: span.clone(),
                    message: format!("{}: missing key {name}", taken.key),
                }),
            );
        }
        left_out.extend(taken.of_table());
    }
}

/// A value that was taken out of a table, which then lacks it without being wrong in that.
struct LeftOut {
    /// The start of the table's span.
    table: usize,
    key: String,
}

/// A value that was taken out.
struct TakenOut<'s> {
    /// Its whole key.
    key: String,
    schemas: Vec<&'s Value>,
    /// The keys that it has, if it is a table; its text, if it is one.
    keys: Option<Vec<String>>,
    text: Option<String>,
    /// The value as JSON, but for dates.
    value: Value,
    /// The table that it was taken from, and its key there.
    parent: Option<(usize, String)>,
}

impl TakenOut<'_> {
    /// The keys that a table needs and lacks.
    fn missing(&self) -> Vec<&str> {
        let Some(keys) = &self.keys else { return Vec::new() };
        let required = self.schemas.iter().filter_map(|schema| schema["required"].as_array()).flatten();
        let names = required.filter_map(Value::as_str);
        names.filter(|name| !keys.iter().any(|key| key == name)).collect()
    }

    fn explain(&self, message: &str) -> String {
        let choices = self.schemas.iter().flat_map(|schema| schema::choices(schema));
        let hint = self.text.as_deref().map(|text| did_you_mean(text, choices)).unwrap_or_default();
        match self.mismatch() {
            Some(mismatch) => format!("{}: {mismatch}", self.key),
            None => format!("{}: {message}{hint}", self.key),
        }
    }

    /// What the schema expects, and what came: the reader's own words name types of Rust.
    fn mismatch(&self) -> Option<String> {
        let types = types_of_all(&self.schemas);
        let is = |name: &str| types.contains(&name);
        let fits = match &self.value {
            Value::Null => true,
            Value::Bool(_) => is("boolean"),
            Value::Number(number) => is("number") || is("integer") && !number.is_f64(),
            Value::String(_) => is("string"),
            Value::Array(_) => is("array"),
            Value::Object(_) => is("object"),
        };
        if types.is_empty() {
            return None;
        }
        let expected = match (fits, self.bound()) {
            (false, _) => all_in_words(&types),
            (true, bound) => bound?,
        };
        Some(format!("expected {expected}, got {}", shown(&self.value)))
    }

    /// The bound that a number does not keep to.
    fn bound(&self) -> Option<String> {
        let number = self.value.as_f64()?;
        self.schemas.iter().find_map(|schema| {
            let (least, most) = (&schema["minimum"], &schema["maximum"]);
            match (least.as_f64(), most.as_f64()) {
                (Some(bound), _) if number < bound => Some(format!("a number from {}", bound)),
                (_, Some(bound)) if number > bound => Some(format!("a number up to {}", bound)),
                _ => None,
            }
        })
    }

    fn of_table(&self) -> Option<LeftOut> {
        let (table, key) = self.parent.clone()?;
        Some(LeftOut { table, key })
    }

    fn new<'s>(key: &str, schemas: &[&'s Value], value: &DeValue, parent: Option<(usize, String)>) -> TakenOut<'s> {
        let keys = match value {
            DeValue::Table(table) => Some(table.keys().map(|key| key.get_ref().to_string()).collect()),
            _ => None,
        };
        let schemas = schemas.iter().flat_map(|schema| schema::branches(schema)).collect();
        let text = value.as_str().map(str::to_owned);
        TakenOut { key: key.to_owned(), schemas, keys, text, value: as_json(value), parent }
    }
}

/// What is expected in the place of a list; `None` where a list may stand.
pub(super) fn mismatch_of_list(schemas: &[&Value]) -> Option<String> {
    let branches: Vec<&Value> = schemas.iter().flat_map(|schema| schema::branches(schema)).collect();
    let types = types_of_all(&branches);
    let is_wrong = !types.is_empty() && !types.contains(&"array");
    is_wrong.then(|| format!("expected {}, got a list", all_in_words(&types)))
}

/// The same for a value where only a table may stand.
pub(super) fn not_a_table(value: &DeValue) -> String {
    format!("expected a table, got {}", shown(&as_json(value)))
}

fn types_of_all<'s>(schemas: &[&'s Value]) -> Vec<&'s str> {
    schemas.iter().flat_map(|schema| types_of(schema)).collect()
}

fn types_of(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn all_in_words(types: &[&str]) -> String {
    let mut words: Vec<&str> = types.iter().filter_map(|name| in_words(name)).collect();
    words.dedup();
    words.join(" or ")
}

fn in_words(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a table",
        _ => return None,
    })
}

/// A value, if it is short; else its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
        value => cut_chars(&value.to_string(), MAX_SHOWN, "…").into_owned(),
    }
}

/// Without the members of tables and lists. A date is no type of the configuration's.
fn as_json(value: &DeValue) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => number.to_string().parse::<i64>().map(Value::from).unwrap_or_default(),
        DeValue::Float(number) => number.to_string().parse::<f64>().map(Value::from).unwrap_or_default(),
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Datetime(_) => Value::Null,
        DeValue::Array(_) => Value::Array(Vec::new()),
        DeValue::Table(_) => Value::Object(serde_json::Map::new()),
    }
}

/// Removes the innermost value that begins at the span or contains its start, or whose key has it. `of`: the start of the
/// table's own span.
fn take_out<'s>(
    table: &mut DeTable,
    of: Option<usize>,
    span: &Range<usize>,
    path: &str,
    schemas: &[&'s Value],
) -> Option<TakenOut<'s>> {
    let mut wrong = None;
    for (key, value) in table.iter_mut() {
        let name = key.get_ref().to_string();
        let key_path = join(path, &name);
        let below: Vec<&Value> = schemas.iter().flat_map(|schema| schema::below(schema, &name, true)).collect();
        let value_span = value.span();
        let is_here = value_span.contains(&span.start) || value_span.start == span.start || key.span() == *span;
        let inner = match value.get_mut() {
            DeValue::Table(inner) => take_out(inner, Some(value_span.start), span, &key_path, &below),
            DeValue::Array(items) => take_out_of_list(items, span, &key_path, &below),
            _ => None,
        };
        if inner.is_some() {
            return inner;
        }
        if is_here {
            wrong = Some((name.clone(), TakenOut::new(&key_path, &below, value.get_ref(), of.map(|of| (of, name)))));
            break;
        }
    }
    let (name, taken) = wrong?;
    table.remove(name.as_str());
    Some(taken)
}

fn take_out_of_list<'s>(
    items: &mut toml::de::DeArray,
    span: &Range<usize>,
    path: &str,
    schemas: &[&'s Value],
) -> Option<TakenOut<'s>> {
    let of_items: Vec<&Value> = schemas
        .iter()
        .flat_map(|schema| schema::branches(schema))
        .map(|schema| &schema["items"])
        .filter(|schema| !schema.is_null())
        .collect();
    let mut wrong = None;
    for (at, item) in items.iter_mut().enumerate() {
        let item_span = item.span();
        let inner = match item.get_mut() {
            DeValue::Table(inner) => take_out(inner, Some(item_span.start), span, path, &of_items),
            DeValue::Array(inner) => take_out_of_list(inner, span, path, &of_items),
            _ => None,
        };
        if inner.is_some() {
            return inner;
        }
        if item_span.start == span.start {
            wrong = Some((at, TakenOut::new(path, &of_items, item.get_ref(), None)));
            break;
        }
    }
    let (at, taken) = wrong?;
    let all = items.clone().into_iter().enumerate();
    *items = all.filter(|(number, _)| *number != at).map(|(_, item)| item).collect();
    Some(taken)
}
