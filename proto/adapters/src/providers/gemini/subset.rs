//! JSON Schema to Gemini's `Schema` (<https://ai.google.dev/api/caching#Schema>).
//!
//! Kept: `title`, `description`, `default`, `example`, `minimum`, `maximum`, `minItems`,
//! `maxItems`, `minLength`, `maxLength`, `minProperties`, `maxProperties`, `pattern`, `required`.
//! Rewritten: `type` (upper case; several types become `anyOf`, `null` becomes `nullable`), `$ref`
//! (put in place), `oneOf` (`anyOf`), `allOf` (merged), `const` and `enum` of strings, exclusive
//! bounds of integers, `prefixItems`. Everything else is said in the description, as JSON; only
//! what constrains nothing is left out (`$schema`, `$id`, `$comment`, `$defs` once put in place).
//! `anyOf` stands alone, since the API refuses other fields beside it.

use serde_json::{Map, Value, json};

use crate::providers::schema::{self, lookup};

/// References put in place may multiply, and go deep. What is beyond is said in words.
const MOST_PARTS: usize = 2000;
const MOST_LEVELS: usize = 64;

pub(super) fn convert(root: &Value) -> Map<String, Value> {
    Converter { root, within: Vec::new(), parts: 0, level: 0 }.schema(root)
}

struct Converter<'a> {
    root: &'a Value,
    /// The references that are being put in place.
    within: Vec<String>,
    parts: usize,
    level: usize,
}

const KEPT: [&str; 12] = [
    "title",
    "default",
    "example",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "pattern",
];

const EXACTLY_ONE: &str = "Exactly one of the alternatives fits.";

const IDLE: [&str; 6] = ["$schema", "$id", "$anchor", "$comment", "$defs", "definitions"];

impl Converter<'_> {
    fn schema(&mut self, schema: &Value) -> Map<String, Value> {
        self.parts += 1;
        self.level += 1;
        let out = if self.level > MOST_LEVELS { in_words(schema) } else { self.shallow(schema) };
        self.level -= 1;
        out
    }

    fn shallow(&mut self, schema: &Value) -> Map<String, Value> {
        let mut left = match schema {
            Value::Object(map) => map.clone(),
            Value::Bool(false) => [("not".to_owned(), json!({}))].into_iter().collect(),
            _ => Map::new(),
        };
        IDLE.iter().for_each(|key| {
            left.shift_remove(*key);
        });
        if let Some(reference) = left.get("$ref").and_then(Value::as_str).map(str::to_owned) {
            return self.reference(&reference, left);
        }
        self.merge_all_of(&mut left);
        let nullable = take_null(&mut left);
        let mut out = match left.get("type") {
            Some(Value::Array(types)) => {
                let types = types.clone();
                self.several_types(&types, left)
            }
            Some(Value::String(_)) => self.one_type(left),
            _ => match inferred(&left) {
                Some(name) => {
                    left.insert("type".to_owned(), name.into());
                    self.one_type(left)
                }
                None => self.union(left),
            },
        };
        if nullable {
            match out.get_mut("anyOf").and_then(Value::as_array_mut) {
                Some(choices) => choices.iter_mut().for_each(|choice| choice["nullable"] = true.into()),
                None => {
                    out.insert("nullable".to_owned(), true.into());
                }
            }
        }
        out
    }

    fn reference(&mut self, reference: &str, mut left: Map<String, Value>) -> Map<String, Value> {
        let target = lookup(reference, self.root);
        let again = self.within.iter().any(|outer| outer == reference);
        match target {
            Some(target) if !again && self.parts < MOST_PARTS => {
                left.shift_remove("$ref");
                for (key, value) in target.as_object().into_iter().flatten() {
                    left.entry(key.clone()).or_insert_with(|| value.clone());
                }
                self.within.push(reference.to_owned());
                let out = self.schema(&Value::Object(left));
                self.within.pop();
                out
            }
            // A circle, or nowhere: beyond the type it can only be said in words.
            _ => {
                let name = target.and_then(|target| target.get("type")).and_then(Value::as_str).unwrap_or("object");
                left.entry("type").or_insert_with(|| name.into());
                left.shift_remove("$ref");
                let mut words: Map<String, Value> = [("$ref".to_owned(), reference.into())].into_iter().collect();
                if let (true, Some(target), Some((_, name))) = (again, target, reference.rsplit_once('/')) {
                    words.insert("$defs".to_owned(), json!({name: target}));
                }
                let mut out = self.one_type(left);
                say(&mut out, words);
                out
            }
        }
    }

    fn one_type(&mut self, mut left: Map<String, Value>) -> Map<String, Value> {
        let name = left.shift_remove("type").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        let mut out = Map::new();
        out.insert("type".to_owned(), name.to_uppercase().into());
        if let Some(description) = left.shift_remove("description") {
            out.insert("description".to_owned(), description);
        }
        match name.as_str() {
            "string" => strings(&mut left, &mut out),
            "integer" => whole_bounds(&mut left),
            "array" => self.items(&mut left, &mut out),
            "object" => self.properties(&mut left, &mut out),
            _ => {}
        }
        let formats: &[&str] = match name.as_str() {
            "string" => &["date-time"],
            "integer" => &["int32", "int64"],
            "number" => &["float", "double"],
            _ => &[],
        };
        if left.get("format").and_then(Value::as_str).is_some_and(|format| formats.contains(&format)) {
            out.extend(left.shift_remove_entry("format"));
        }
        for key in KEPT {
            out.extend(left.shift_remove_entry(key));
        }
        // The API has no such member. `true` says nothing, and a model that knows the properties adds no others.
        if left.get("additionalProperties").is_some_and(Value::is_boolean) {
            left.shift_remove("additionalProperties");
        }
        say(&mut out, left);
        out
    }

    fn several_types(&mut self, types: &[Value], left: Map<String, Value>) -> Map<String, Value> {
        let mut shared = left;
        shared.shift_remove("type");
        let description = shared.shift_remove("description");
        let choices = types
            .iter()
            .filter_map(Value::as_str)
            .map(|name| {
                let mut one = shared.clone();
                one.retain(|key, _| belongs(key, name));
                one.insert("type".to_owned(), name.into());
                one
            })
            .collect::<Vec<_>>();
        let choices = choices.into_iter().map(|one| self.one_type(one)).collect();
        alternatives(choices, description, Map::new())
    }

    fn union(&mut self, mut left: Map<String, Value>) -> Map<String, Value> {
        let description = left.shift_remove("description");
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(list)) = left.shift_remove(keyword) else { continue };
            let mut choices = Vec::new();
            for choice in &list {
                let choice = self.schema(choice);
                match choice.get("anyOf") {
                    Some(Value::Array(inner)) => {
                        choices.extend(inner.iter().filter_map(|one| one.as_object().cloned()))
                    }
                    _ => choices.push(choice),
                }
            }
            let description = match description {
                Some(Value::String(own)) if keyword == "oneOf" => Some(format!("{own}\n{EXACTLY_ONE}").into()),
                None if keyword == "oneOf" && choices.len() > 1 => Some(EXACTLY_ONE.into()),
                other => other,
            };
            return alternatives(choices, description, left);
        }
        // Any value will do.
        let scalars = ["STRING", "NUMBER", "BOOLEAN", "OBJECT"].map(|name| json!({"type": name}));
        let mut choices: Vec<Map<String, Value>> = scalars.iter().filter_map(|one| one.as_object().cloned()).collect();
        choices.extend(json!({"type": "ARRAY", "items": {"anyOf": scalars}}).as_object().cloned());
        alternatives(choices, description, left)
    }

    fn items(&mut self, left: &mut Map<String, Value>, out: &mut Map<String, Value>) {
        let prefix = left.get("prefixItems").and_then(Value::as_array).cloned();
        let items = match (left.get("items").cloned(), prefix) {
            (items @ Some(Value::Object(_)), None) => {
                left.shift_remove("items");
                items.unwrap_or_default()
            }
            // The order of the types stays said in words.
            (items, Some(mut choices)) => {
                choices.extend(items.filter(Value::is_object));
                choices.dedup();
                json!({"anyOf": choices})
            }
            (Some(Value::Bool(true)) | None, None) => {
                left.shift_remove("items");
                json!({})
            }
            (_, None) => json!({}),
        };
        out.insert("items".to_owned(), Value::Object(self.schema(&items)));
    }

    fn properties(&mut self, left: &mut Map<String, Value>, out: &mut Map<String, Value>) {
        let properties = match left.shift_remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        if let Some(Value::Array(required)) = left.shift_remove("required") {
            let known = |key: &Value| key.as_str().is_some_and(|key| properties.contains_key(key));
            let (known, unknown): (Vec<Value>, Vec<Value>) = required.into_iter().partition(known);
            if !known.is_empty() {
                out.insert("required".to_owned(), known.into());
            }
            if !unknown.is_empty() {
                left.insert("required".to_owned(), unknown.into());
            }
        }
        if !properties.is_empty() {
            let converted: Map<String, Value> =
                properties.into_iter().map(|(key, schema)| (key, Value::Object(self.schema(&schema)))).collect();
            out.insert("properties".to_owned(), Value::Object(converted));
        }
    }

    /// Puts the branches of `allOf` into the schema itself, but for what would contradict it.
    fn merge_all_of(&mut self, left: &mut Map<String, Value>) {
        let Some(Value::Array(branches)) = left.shift_remove("allOf") else { return };
        let mut apart = Vec::new();
        for branch in branches {
            let mut rest = Map::new();
            for (key, value) in schema::resolved(&branch, self.root) {
                match (key.as_str(), left.get_mut(&key), value) {
                    (_, None, value) => {
                        left.insert(key, value);
                    }
                    ("properties", Some(Value::Object(own)), Value::Object(more)) => {
                        let mut clashes = Map::new();
                        for (name, schema) in more {
                            match own.get(&name) {
                                None => {
                                    own.insert(name, schema);
                                }
                                Some(same) if *same == schema => {}
                                Some(_) => {
                                    clashes.insert(name, schema);
                                }
                            }
                        }
                        if !clashes.is_empty() {
                            rest.insert(key, Value::Object(clashes));
                        }
                    }
                    ("required", Some(Value::Array(own)), Value::Array(more)) => {
                        for name in more {
                            if !own.contains(&name) {
                                own.push(name);
                            }
                        }
                    }
                    (_, Some(own), value) if *own == value => {}
                    (_, Some(_), value) => {
                        rest.insert(key, value);
                    }
                }
            }
            if !rest.is_empty() {
                apart.push(Value::Object(rest));
            }
        }
        if !apart.is_empty() {
            left.insert("allOf".to_owned(), apart.into());
        }
    }
}

/// Takes `null` from types, choices and values.
fn take_null(left: &mut Map<String, Value>) -> bool {
    let mut found = false;
    for (key, is_null) in [
        ("type", (|value| value == "null") as fn(&Value) -> bool),
        ("enum", Value::is_null),
        ("anyOf", |value| value.get("type").is_some_and(|name| name == "null")),
        ("oneOf", |value| value.get("type").is_some_and(|name| name == "null")),
    ] {
        let Some(Value::Array(list)) = left.get_mut(key) else { continue };
        let before = list.len();
        list.retain(|value| !is_null(value));
        found |= list.len() < before;
        if key == "type"
            && let [only] = list.as_slice()
        {
            let only = only.clone();
            left.insert(key.to_owned(), only);
        }
    }
    found
}

/// The type that a schema without one means.
fn inferred(left: &Map<String, Value>) -> Option<&'static str> {
    let of = |value: &Value| match value {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::Object(_) => Some("object"),
        Value::Array(_) => Some("array"),
        Value::Null => None,
    };
    if let Some(value) = left.get("const") {
        return of(value);
    }
    if let Some(Value::Array(values)) = left.get("enum") {
        let first = of(values.first()?)?;
        return values.iter().all(|value| of(value) == Some(first)).then_some(first);
    }
    ["object", "array", "string", "number"].into_iter().find(|name| {
        left.keys().any(|key| {
            !["description", "title", "default", "enum", "const"].contains(&key.as_str()) && owned(key, name)
        })
    })
}

/// Whether a keyword is about values of this type and no other.
fn owned(key: &str, name: &str) -> bool {
    let keys: &[&str] = match name {
        "object" => &[
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "dependentSchemas",
        ],
        "array" => &["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"],
        "string" => &["minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType"],
        "number" | "integer" => &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
        _ => &[],
    };
    keys.contains(&key)
}

/// Whether a keyword says anything of values of this type.
fn belongs(key: &str, name: &str) -> bool {
    owned(key, name) || !["object", "array", "string", "number"].iter().any(|other| owned(key, other))
}

fn strings(left: &mut Map<String, Value>, out: &mut Map<String, Value>) {
    if let Some(Value::String(only)) = left.get("const") {
        left.insert("enum".to_owned(), json!([only]));
        left.shift_remove("const");
    }
    if let Some(Value::Array(values)) = left.get("enum")
        && values.iter().all(Value::is_string)
    {
        out.insert("format".to_owned(), "enum".into());
        out.extend(left.shift_remove_entry("enum"));
    }
}

fn whole_bounds(left: &mut Map<String, Value>) {
    for (exclusive, inclusive, step) in [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)] {
        if let Some(bound) = left.get(exclusive).and_then(Value::as_i64).and_then(|bound| bound.checked_add(step))
            && !left.contains_key(inclusive)
        {
            left.shift_remove(exclusive);
            left.insert(inclusive.to_owned(), bound.into());
        }
    }
}

/// Nothing may stand beside `anyOf`, so what is said of all is said in the first.
fn alternatives(
    mut choices: Vec<Map<String, Value>>,
    description: Option<Value>,
    left: Map<String, Value>,
) -> Map<String, Value> {
    if choices.is_empty() {
        choices.push([("type".to_owned(), json!("STRING"))].into_iter().collect());
    }
    let first = &mut choices[0];
    let own = first.shift_remove("description");
    let words: Vec<String> =
        [description, own].into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect();
    if !words.is_empty() {
        first.insert("description".to_owned(), words.join("\n").into());
    }
    say(first, left);
    if choices.len() == 1 {
        return choices.remove(0);
    }
    [("anyOf".to_owned(), choices.into_iter().map(Value::Object).collect())].into_iter().collect()
}

/// Only the type, and the rest as JSON.
fn in_words(schema: &Value) -> Map<String, Value> {
    let left = schema.as_object().cloned().unwrap_or_default();
    let name = left.get("type").and_then(Value::as_str).unwrap_or("object").to_uppercase();
    let mut out: Map<String, Value> = [("type".to_owned(), name.into())].into_iter().collect();
    say(&mut out, left);
    out
}

fn say(out: &mut Map<String, Value>, left: Map<String, Value>) {
    if left.is_empty() {
        return;
    }
    let description = out.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = schema::describe(description, left);
    out.insert("description".to_owned(), description.into());
}
