//! Parses a configuration: reports every unknown key and every wrong value, with their locations.
//! [`recovery`] finds the wrong values.

pub(super) mod recovery;

use std::borrow::Cow;
use std::ops::Range;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use toold_proto::config::ConfigEntry;
use toold_proto::nearest::did_you_mean;

use crate::config::overrides::Override;
use crate::config::read::recovery::{Misreading, mismatch_of_list, not_a_table, recover};
use crate::config::{Config, names, schema};

/// The number of errors that are reported: a text with more of them is not a configuration.
const MAX_PROBLEMS: usize = 200;

/// The parsed configuration and its errors.
pub struct ReadConfig {
    /// The values that could be read. Not to be used while there are problems, but to find further ones.
    pub readable: Config,
    /// The errors with their places, in the order of the text. The configuration is invalid while there are any.
    pub problems: Vec<String>,
    /// Values that are none of a list of choices, but that do not make the whole configuration invalid; as `problems`.
    pub unknown_choices: Vec<UnknownChoice>,
    /// The keys that are set, in the order of the schema.
    pub entries: Vec<ConfigEntry>,
}

/// A value of a rule or a hook that is none of those that there are.
pub struct UnknownChoice {
    /// The start of the rule or the hook, as [`ConfigText::place`] of it.
    pub of: String,
    pub problem: String,
    /// Where the value begins in the text.
    at: usize,
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
        let describe = |error: &toml::de::Error| {
            // A message such as "duplicate key" does not say which one.
            let words = error.span().and_then(|span| source.text.get(span)).filter(|text| is_key(text));
            let words = words.map(|text| format!(": {text}")).unwrap_or_default();
            format!("{}: {}{words}", source.position(error.span()), error.message())
        };
        let mut problems: Vec<String> = mistakes.iter().take(MAX_PROBLEMS).map(describe).collect();
        if mistakes.len() > MAX_PROBLEMS {
            problems.push(format!("{}: {} more errors", source.name, mistakes.len() - MAX_PROBLEMS));
        }
        return ReadConfig { readable: Config::default(), problems, unknown_choices: Vec::new(), entries: Vec::new() };
    }
    for (number, over) in source.overrides.iter().enumerate() {
        lay_over(root.get_mut(), over, source.text.len() + 1 + number);
    }
    let mut found = Vec::new();
    let mut entries = Vec::new();
    // Most people have no file, and making the schema takes longer than reading one.
    if !root.get_ref().is_empty() {
        source.check_sections(root.get_ref(), &mut found);
        source.check_keys(root.get_mut(), &[schema::schema()], "", &mut found);
        if found.len() < MAX_PROBLEMS {
            source.collect(root.get_ref(), schema::schema(), "", &mut entries);
        }
        names::check(root.get_ref(), &mut found);
    }
    let (readable, wrong) = recover(&source, &root, MAX_PROBLEMS.saturating_sub(found.len()));
    found.extend(wrong);
    found.sort_by_key(|misreading| misreading.span.start);
    let places: Vec<usize> = found.iter().map(|misreading| misreading.span.start).collect();
    let describe = |found: Misreading| format!("{}: {}", source.position(Some(found.span)), found.message);
    let problems = found.into_iter().map(describe).collect();
    let mut unknown_choices = source.unknown_choices(root.get_ref());
    // Some choices are read as such, and reported already.
    unknown_choices.retain(|choice| !places.contains(&choice.at));
    ReadConfig { readable, problems, unknown_choices, entries }
}

/// Reads a number that must not be 0.
///
/// # Errors
/// It is 0, or no number.
pub(super) fn at_least_one<'de, D, N>(deserializer: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: Deserialize<'de> + From<u8> + PartialOrd,
{
    let number = N::deserialize(deserializer)?;
    if number < N::from(1) {
        return Err(D::Error::custom("expected a number from 1"));
    }
    Ok(number)
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\"".contains(c))
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

    /// Where a key stands, named from the outermost table on; its table's place, if there is no such key.
    pub(super) fn place_of(&self, keys: &[&str]) -> String {
        let (mut root, _) = DeTable::parse_recoverable(self.text);
        for (number, over) in self.overrides.iter().enumerate() {
            lay_over(root.get_mut(), over, self.text.len() + 1 + number);
        }
        let (mut table, mut span) = (root.get_ref(), None);
        for key in keys {
            let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref() == key) else { break };
            span = Some(name.span());
            let DeValue::Table(below) = value.get_ref() else { break };
            table = below;
        }
        self.position(span)
    }

    /// A problem that begins with its key, such as `page.listen: ...`, with the place of that key.
    pub(super) fn placed(&self, problem: &str) -> String {
        let key = problem.split(": ").next().unwrap_or_default();
        format!("{}: {problem}", self.place_of(&key.split('.').collect::<Vec<_>>()))
    }

    /// As [`place`](Self::place), with the column, from 1.
    fn position(&self, span: Option<Range<usize>>) -> String {
        let place = self.place(span.clone());
        let Some(before) = span.and_then(|span| self.text.get(..span.start)) else { return place };
        let line = before.rsplit('\n').next().unwrap_or_default();
        format!("{place}:{}", line.chars().count() + 1)
    }

    /// The choices of rules and hooks: the only ones that are plain texts in [`Config`].
    fn unknown_choices(&self, root: &DeTable) -> Vec<UnknownChoice> {
        let permission = match root.get("permission").map(Spanned::get_ref) {
            Some(DeValue::Table(table)) => Some(table),
            _ => None,
        };
        let schemas = &schema::schema()["properties"];
        let lists = [
            (
                "permission.rules",
                permission.and_then(|table| list_in(table, "rules")),
                &schemas["permission"]["properties"]["rules"]["items"],
            ),
            ("hooks", list_in(root, "hooks"), &schemas["hooks"]["items"]),
        ];
        let mut found = Vec::new();
        for (path, items, schema) in lists {
            for item in items.into_iter().flatten() {
                let DeValue::Table(table) = item.get_ref() else { continue };
                for (key, value) in table {
                    let below = schema::below(schema, key.get_ref(), false);
                    let choices: Vec<&str> = below.iter().flat_map(|schema| schema::choices(schema)).collect();
                    let Some(text) =
                        value.get_ref().as_str().filter(|text| !choices.is_empty() && !choices.contains(text))
                    else {
                        continue;
                    };
                    let hint = did_you_mean(text, choices.iter().copied());
                    let place = self.position(Some(value.span()));
                    let key = join(path, key.get_ref());
                    let problem = format!("{place}: {key}: expected one of {}, got {text:?}{hint}", choices.join(", "));
                    found.push(UnknownChoice { of: self.place(Some(item.span())), problem, at: value.span().start });
                }
            }
        }
        found
    }

    fn check_sections(&self, root: &DeTable, problems: &mut Vec<Misreading>) {
        let Some(sections) = self.sections else { return };
        for key in root.keys().filter(|key| !sections.contains(&key.get_ref().as_ref())).take(MAX_PROBLEMS) {
            if schema::keys(schema::schema()).contains(&key.get_ref().as_ref()) {
                let sections = sections.join(", ");
                let message = format!("{} is for the user's configuration; a project's has {sections}", key.get_ref());
                problems.push(Misreading { span: key.span(), message });
            }
        }
    }

    /// Unknown keys, and lists in the place of tables, are reported and removed.
    fn check_keys(&self, table: &mut DeTable, schemas: &[&Value], path: &str, problems: &mut Vec<Misreading>) {
        let mut wrong = Vec::new();
        for (key, value) in table.iter_mut() {
            if problems.len() >= MAX_PROBLEMS {
                break;
            }
            let name = key.get_ref().as_ref();
            let is_table = matches!(value.get_ref(), DeValue::Table(_));
            let below: Vec<&Value> = schemas.iter().flat_map(|schema| schema::below(schema, name, is_table)).collect();
            if below.is_empty() {
                let known: Vec<&str> = schemas.iter().flat_map(|schema| schema::keys(schema)).collect();
                let within = if path.is_empty() { String::new() } else { format!(" in [{path}]") };
                // A name that people choose, with another value than a table.
                let is_chosen = schemas.iter().any(|schema| !schema::below(schema, name, true).is_empty());
                let (message, at) = match did_you_mean(name, known.iter().copied()) {
                    hint if !hint.is_empty() => (format!("unknown key {name}{within}{hint}"), key.span()),
                    _ if is_chosen => (format!("{}: {}", join(path, name), not_a_table(value.get_ref())), value.span()),
                    _ => (format!("unknown key {name}{within}: expected one of {}", known.join(", ")), key.span()),
                };
                // An override has no place in the text; its value has.
                let span = if value.span().start > self.text.len() { value.span() } else { at };
                problems.push(Misreading { span, message });
                wrong.push(name.to_owned());
                continue;
            }
            let path = join(path, name);
            if !self.check_value(value, &below, &path, problems) {
                wrong.push(name.to_owned());
            }
        }
        for name in wrong {
            table.remove(name.as_str());
        }
    }

    /// Whether the value can be kept: a list in the place of a table cannot, since it would be read by position.
    fn check_value(
        &self,
        value: &mut Spanned<DeValue>,
        schemas: &[&Value],
        path: &str,
        problems: &mut Vec<Misreading>,
    ) -> bool {
        // An empty schema accepts anything.
        if schemas.iter().any(|schema| schema.is_null()) {
            return true;
        }
        let span = value.span();
        match value.get_mut() {
            DeValue::Table(table) => self.check_keys(table, schemas, path, problems),
            DeValue::Array(items) => {
                if let Some(mismatch) = mismatch_of_list(schemas) {
                    problems.push(Misreading { span, message: format!("{path}: {mismatch}") });
                    return false;
                }
                let of_items: Vec<&Value> = schemas
                    .iter()
                    .flat_map(|schema| schema::branches(schema))
                    .map(|schema| &schema["items"])
                    .filter(|items| !items.is_null())
                    .collect();
                if !of_items.is_empty() {
                    let kept: Vec<bool> =
                        items.iter_mut().map(|item| self.check_value(item, &of_items, path, problems)).collect();
                    if kept.contains(&false) {
                        let all = items.clone().into_iter().zip(kept);
                        *items = all.filter(|(_, kept)| *kept).map(|(item, _)| item).collect();
                    }
                }
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
        true
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

fn list_in<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<&'t DeArray<'i>> {
    match table.get(name).map(Spanned::get_ref) {
        Some(DeValue::Array(items)) => Some(items),
        _ => None,
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
        if table.get(part).is_none() {
            let empty = Spanned::new(mark..mark, DeValue::Table(DeTable::new()));
            table.insert(Spanned::new(mark..mark, Cow::Borrowed(part)), empty);
        }
        match table.get_mut(part).map(Spanned::get_mut) {
            Some(DeValue::Table(below)) => table = below,
            // The file has another value in the place of the section, which is reported.
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
