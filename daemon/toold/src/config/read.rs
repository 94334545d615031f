//! Parses a configuration: reports every unknown key and the first wrong value, with their
//! locations.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toold_proto::config::ConfigEntry;

use crate::config::nearest::perhaps;
use crate::config::overrides::Override;
use crate::config::{Config, names, schema};

/// The number of errors that are reported: a text with more of them is not a configuration.
const MAX_PROBLEMS: usize = 50;

/// The parsed configuration, or its errors.
pub struct ReadConfig {
    pub config: Result<Config, Vec<String>>,
    /// The keys that are set, in the order of the schema.
    pub entries: Vec<ConfigEntry>,
}

/// A TOML text and its overrides.
#[derive(Clone, Copy)]
pub struct ConfigText<'t> {
    /// Its name for the user: the file's path.
    pub name: &'t str,
    pub text: &'t str,
    pub overrides: &'t [Override],
    /// The top-level keys that are allowed in it; all when `None`.
    pub sections: Option<&'t [&'t str]>,
}

pub fn read(source: ConfigText) -> ReadConfig {
    let (mut root, mistakes) = DeTable::parse_recoverable(source.text);
    if !mistakes.is_empty() {
        let describe = |error: &toml::de::Error| format!("{}: {}", source.place(error.span()), error.message());
        let mut problems: Vec<String> = mistakes.iter().take(MAX_PROBLEMS).map(describe).collect();
        if mistakes.len() > MAX_PROBLEMS {
            problems.push(format!("{}: {} more errors", source.name, mistakes.len() - MAX_PROBLEMS));
        }
        return ReadConfig { config: Err(problems), entries: Vec::new() };
    }
    for (number, over) in source.overrides.iter().enumerate() {
        lay_over(root.get_mut(), over, source.text.len() + 1 + number);
    }
    let mut problems = Vec::new();
    let mut entries = Vec::new();
    // Most people have no file, and making the schema takes longer than reading one.
    if !root.get_ref().is_empty() {
        source.check_sections(root.get_ref(), &mut problems);
        source.check_keys(root.get_ref(), &[schema::schema()], "", &mut problems);
        if problems.len() < MAX_PROBLEMS {
            source.collect(root.get_ref(), schema::schema(), "", &mut entries);
        }
    }
    if !problems.is_empty() {
        return ReadConfig { config: Err(problems), entries };
    }
    names::check(&source, root.get_ref(), &mut problems);
    if !problems.is_empty() {
        return ReadConfig { config: Err(problems), entries };
    }
    let wrong = |error: toml::de::Error, root: &DeTable| vec![source.wrong_value(&error, root)];
    let config = Config::deserialize(toml::Deserializer::from(root.clone()));
    ReadConfig { config: config.map_err(|error| wrong(error, root.get_ref())), entries }
}

impl ConfigText<'_> {
    /// The file and line of something in the text, or the source of an override.
    pub fn place(&self, span: Option<Range<usize>>) -> String {
        let Some(span) = span else { return self.name.to_owned() };
        match span.start.checked_sub(self.text.len() + 1).and_then(|number| self.overrides.get(number)) {
            Some(over) => over.origin.clone(),
            None => {
                let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
                format!("{}:{}", self.name, 1 + memchr::memchr_iter(b'\n', before).count())
            }
        }
    }

    fn check_sections(&self, root: &DeTable, problems: &mut Vec<String>) {
        let Some(sections) = self.sections else { return };
        for key in root.keys().filter(|key| !sections.contains(&key.get_ref().as_ref())).take(MAX_PROBLEMS) {
            if schema::keys(schema::schema()).contains(&key.get_ref().as_ref()) {
                let place = self.place(Some(key.span()));
                problems.push(format!(
                    "{place}: {} is for the user's configuration; a project's has {}",
                    key.get_ref(),
                    sections.join(", ")
                ));
            }
        }
    }

    fn check_keys(&self, table: &DeTable, schemas: &[&Value], path: &str, problems: &mut Vec<String>) {
        for (key, value) in table {
            if problems.len() >= MAX_PROBLEMS {
                return;
            }
            let name = key.get_ref().as_ref();
            let is_table = matches!(value.get_ref(), DeValue::Table(_));
            let below: Vec<&Value> = schemas.iter().flat_map(|schema| schema::below(schema, name, is_table)).collect();
            if below.is_empty() {
                let known: Vec<&str> = schemas.iter().flat_map(|schema| schema::keys(schema)).collect();
                let place = self.place(Some(key.span()));
                let within = if path.is_empty() { String::new() } else { format!(" in [{path}]") };
                let hint = match perhaps(name, known.iter().copied()) {
                    hint if hint.is_empty() => format!(": expected one of {}", known.join(", ")),
                    hint => hint,
                };
                problems.push(format!("{place}: unknown key {name}{within}{hint}"));
                continue;
            }
            self.check_value(value.get_ref(), &below, &join(path, name), problems);
        }
    }

    fn check_value(&self, value: &DeValue, schemas: &[&Value], path: &str, problems: &mut Vec<String>) {
        // An empty schema accepts anything.
        if schemas.iter().any(|schema| schema.is_null()) {
            return;
        }
        match value {
            DeValue::Table(table) => self.check_keys(table, schemas, path, problems),
            DeValue::Array(items) => {
                let of_items: Vec<&Value> = schemas
                    .iter()
                    .flat_map(|schema| schema::branches(schema))
                    .map(|schema| &schema["items"])
                    .filter(|items| !items.is_null())
                    .collect();
                for item in items.iter().filter(|_| !of_items.is_empty()) {
                    self.check_value(item.get_ref(), &of_items, path, problems);
                }
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
    }

    fn wrong_value(&self, error: &toml::de::Error, root: &DeTable) -> String {
        let place = self.place(error.span());
        let found = error.span().and_then(|span| find(root, span.start, String::new(), vec![schema::schema()]));
        let Some((key, schemas, value)) = found else { return format!("{place}: {}", error.message()) };
        let choices = schemas.iter().flat_map(|schema| schema::choices(schema));
        let hint = value.map(|value| perhaps(value, choices)).unwrap_or_default();
        format!("{place}: {key}: {}{hint}", error.message())
    }

    /// The values that the text sets, as `config show` prints them.
    fn collect(&self, table: &DeTable, schema: &Value, path: &str, entries: &mut Vec<ConfigEntry>) {
        for (key, value) in table {
            let key_path = join(path, key.get_ref());
            let below = &schema["properties"][key.get_ref().as_ref()];
            let entry = |key: String, span: Range<usize>, value: &DeValue| ConfigEntry {
                value: hide(&key, to_json(value)),
                key,
                origin: self.place(Some(span)),
            };
            match value.get_ref() {
                DeValue::Table(table) if below.get("properties").is_some() => {
                    self.collect(table, below, &key_path, entries);
                }
                DeValue::Array(items) if items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_))) => {
                    let numbered = items.iter().enumerate();
                    entries.extend(
                        numbered.map(|(n, item)| entry(format!("{key_path}[{n}]"), item.span(), item.get_ref())),
                    );
                }
                other => {
                    // An override has no location in the text; its value has.
                    let span = if value.span().start > self.text.len() { value.span() } else { key.span() };
                    entries.push(entry(key_path, span, other));
                }
            }
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Overrides a value of the text. `mark` stands for its location.
fn lay_over<'o>(root: &mut DeTable<'o>, over: &'o Override, mark: usize) {
    let value = match over.text {
        true => DeValue::String(Cow::Borrowed(over.value.as_str())),
        // A value that is not TOML is taken as text, which the key then rejects with a message.
        false => match DeValue::parse(&over.value) {
            Ok(value) => value.into_inner(),
            Err(_) => DeValue::String(Cow::Borrowed(over.value.as_str())),
        },
    };
    let mut parts = over.key.split('.').collect::<Vec<_>>();
    let last = parts.pop().unwrap_or_default();
    let mut table = root;
    for part in parts {
        if !matches!(table.get(part).map(Spanned::get_ref), Some(DeValue::Table(_))) {
            let empty = Spanned::new(mark..mark, DeValue::Table(DeTable::new()));
            table.insert(Spanned::new(mark..mark, Cow::Borrowed(part)), empty);
        }
        match table.get_mut(part).map(Spanned::get_mut) {
            Some(DeValue::Table(below)) => table = below,
            _ => return,
        }
    }
    table.insert(Spanned::new(mark..mark, Cow::Borrowed(last)), Spanned::new(mark..mark, marked(value, mark)));
}

/// The same value, with one location for all of it.
fn marked(value: DeValue, mark: usize) -> DeValue {
    match value {
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| Spanned::new(mark..mark, marked(item.into_inner(), mark)));
            DeValue::Array(items.collect())
        }
        other => other,
    }
}

type FoundValue<'t, 's> = (String, Vec<&'s Value>, Option<&'t str>);

/// The key whose value contains this location, with its schema and its text.
fn find<'t, 's>(table: &'t DeTable, at: usize, path: String, schemas: Vec<&'s Value>) -> Option<FoundValue<'t, 's>> {
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let below: Vec<&Value> = schemas.iter().flat_map(|schema| schema::below(schema, name, true)).collect();
        let key_path = join(&path, name);
        let here = || value.span().contains(&at) || value.span().start == at;
        match value.get_ref() {
            DeValue::Table(table) => {
                if let Some(found) = find(table, at, key_path.clone(), below.clone()) {
                    return Some(found);
                }
                if here() {
                    return Some((key_path, below, None));
                }
            }
            DeValue::Array(items) => {
                let of_items: Vec<&Value> =
                    below.iter().flat_map(|schema| schema::branches(schema)).map(|schema| &schema["items"]).collect();
                for item in items {
                    if let DeValue::Table(table) = item.get_ref()
                        && let Some(found) = find(table, at, key_path.clone(), of_items.clone())
                    {
                        return Some(found);
                    }
                    if item.span().start == at {
                        return Some((key_path, of_items, item.get_ref().as_str()));
                    }
                }
                if here() {
                    return Some((key_path, below, None));
                }
            }
            other if here() => return Some((key_path, below, other.as_str())),
            _ => {}
        }
    }
    None
}

fn to_json(value: &DeValue) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let pairs = table.iter().map(|(key, value)| {
                let key = key.get_ref().to_string();
                let value = hide(&key, to_json(value.get_ref()));
                (key, value)
            });
            Value::Object(pairs.collect())
        }
    }
}

/// Values of keys with secret names are shown as stars.
fn hide(key: &str, value: Value) -> Value {
    let last = key.rsplit('.').next().unwrap_or_default().to_lowercase();
    let secret = ["token", "secret", "password", "api_key", "apikey", "authorization", "credential"];
    match value {
        Value::String(text) if !text.is_empty() && secret.iter().any(|word| last.contains(word)) => Value::from("***"),
        other => other,
    }
}
