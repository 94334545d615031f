//! Schemas that a provider can enforce while the model writes the arguments (`strict`).
//!
//! Anthropic: <https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations>.
//! OpenAI: <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>.
//! Both want closed objects; OpenAI also wants each property required, so an optional one may be null there, which counts
//! as absent in a call. Constraints that a provider does not enforce are said in the description.

use serde_json::{Map, Value, json};

use super::schema;

/// The provider that enforces a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enforcer {
    Anthropic,
    Openai,
}

/// The parts of Anthropic's limits that a schema takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SchemaCost {
    pub(super) optional: usize,
    pub(super) unions: usize,
}

/// The schema in the form that the provider enforces; `None` if it cannot enforce it. Anthropic has no open objects,
/// values of any type and circles; OpenAI beyond that no optional members of inner objects, as null is not absent there.
pub(super) fn enforceable(root: &Map<String, Value>, by: Enforcer) -> Option<(Map<String, Value>, SchemaCost)> {
    let document = Value::Object(root.clone());
    let mut writer = StrictWriter { by, root: &document, within: Vec::new(), cost: SchemaCost::default() };
    let written = writer.part(&document, 0)?;
    Some((written, writer.cost))
}

struct StrictWriter<'a> {
    by: Enforcer,
    root: &'a Value,
    /// The references that are being put in place.
    within: Vec<String>,
    cost: SchemaCost,
}

/// OpenAI's limit.
const MOST_LEVELS: usize = 10;

const IDLE: [&str; 6] = ["$schema", "$id", "$anchor", "$comment", "$defs", "definitions"];
/// Said in the description where the provider does not enforce them.
const CONSTRAINTS: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "pattern",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "uniqueItems",
];
const ENFORCED_BY_OPENAI: usize = 8;
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

impl StrictWriter<'_> {
    fn part(&mut self, part: &Value, level: usize) -> Option<Map<String, Value>> {
        let mut left = part.as_object()?.clone();
        if level > MOST_LEVELS {
            return None;
        }
        if let Some(reference) = left.get("$ref").and_then(Value::as_str).map(str::to_owned) {
            let target = schema::lookup(&reference, self.root)?.as_object()?;
            if self.within.contains(&reference) {
                return None;
            }
            left.shift_remove("$ref");
            for (key, value) in target {
                left.entry(key.clone()).or_insert_with(|| value.clone());
            }
            self.within.push(reference);
            let written = self.part(&Value::Object(left), level);
            self.within.pop();
            return written;
        }
        IDLE.iter().for_each(|key| _ = left.shift_remove(*key));
        let mut out = Map::new();
        for key in ["type", "description", "enum", "const"] {
            out.extend(left.shift_remove_entry(key));
        }
        if out.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().any(is_structure)) {
            return None;
        }
        for key in ["anyOf", "oneOf"] {
            let Some(branches) = left.shift_remove(key) else { continue };
            let branches = branches.as_array()?.iter().map(|branch| self.part(branch, level + 1).map(Value::Object));
            out.insert("anyOf".to_owned(), Value::Array(branches.collect::<Option<_>>()?));
            self.cost.unions += 1;
        }
        let is = |name: &str| match part.get("type").or_else(|| out.get("type")) {
            Some(Value::String(one)) => one == name,
            Some(Value::Array(several)) => several.iter().any(|one| one == name),
            _ => false,
        };
        let (is_object, is_array) = (is("object"), is("array"));
        match out.get("type") {
            Some(Value::Array(_)) => self.cost.unions += 1,
            None if !["anyOf", "enum", "const"].iter().any(|key| out.contains_key(*key)) => return None,
            _ => {}
        }
        if is_object {
            self.object(&mut left, &mut out, level)?;
        }
        if is_array {
            let items = self.part(&left.shift_remove("items")?, level + 1)?;
            out.insert("items".to_owned(), Value::Object(items));
        }
        self.constraints(&mut left, &mut out);
        // Anything else would be lost, and may be what matters.
        left.is_empty().then_some(out)
    }

    fn object(&mut self, left: &mut Map<String, Value>, out: &mut Map<String, Value>, level: usize) -> Option<()> {
        match left.shift_remove("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(_) => return None,
        }
        let Some(Value::Object(properties)) = left.shift_remove("properties") else { return None };
        let required = left.shift_remove("required").unwrap_or_else(|| json!([]));
        let required: Vec<String> =
            required.as_array()?.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect();
        let mut written = Map::new();
        for (name, property) in &properties {
            let mut property = self.part(property, level + 1)?;
            if !required.contains(name) {
                self.cost.optional += 1;
                match self.by {
                    Enforcer::Anthropic => {}
                    Enforcer::Openai if level == 0 => property = nullable(property),
                    Enforcer::Openai => return None,
                }
            }
            written.insert(name.clone(), Value::Object(property));
        }
        let required: Vec<&String> = match self.by {
            Enforcer::Anthropic => properties.keys().filter(|name| required.contains(name)).collect(),
            Enforcer::Openai => properties.keys().collect(),
        };
        out.insert("required".to_owned(), json!(required));
        out.insert("properties".to_owned(), Value::Object(written));
        out.insert("additionalProperties".to_owned(), false.into());
        Some(())
    }

    fn constraints(&self, left: &mut Map<String, Value>, out: &mut Map<String, Value>) {
        left.shift_remove("title");
        let mut words = Map::new();
        for (place, key) in CONSTRAINTS.into_iter().enumerate() {
            let Some((key, value)) = left.shift_remove_entry(key) else { continue };
            let is_enforced = match self.by {
                Enforcer::Openai => place < ENFORCED_BY_OPENAI,
                Enforcer::Anthropic => key == "minItems" && [json!(0), json!(1)].contains(&value),
            };
            if is_enforced {
                out.insert(key, value)
            } else {
                words.insert(key, value)
            };
        }
        if let Some((key, format)) = left.shift_remove_entry("format") {
            let is_known = format.as_str().is_some_and(|format| FORMATS.contains(&format));
            if is_known {
                out.insert(key, format)
            } else {
                words.insert(key, format)
            };
        }
        for key in ["default", "examples"] {
            words.extend(left.shift_remove_entry(key));
        }
        if !words.is_empty() {
            let description = out.get("description").and_then(Value::as_str).unwrap_or_default();
            let gap = if description.is_empty() { "" } else { "\n" };
            out.insert("description".to_owned(), format!("{description}{gap}{}", Value::Object(words)).into());
        }
    }
}

fn is_structure(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// The same, or null.
fn nullable(mut schema: Map<String, Value>) -> Map<String, Value> {
    if schema.contains_key("enum") || schema.contains_key("const") || schema.contains_key("anyOf") {
        let description = schema.shift_remove_entry("description");
        let mut either = Map::new();
        either.extend(description);
        either.insert("anyOf".to_owned(), json!([schema, {"type": "null"}]));
        return either;
    }
    let types = match schema.shift_remove("type") {
        Some(Value::Array(types)) if types.iter().any(|one| one == "null") => types,
        Some(Value::Array(mut types)) => {
            types.push("null".into());
            types
        }
        one => one.into_iter().chain(["null".into()]).collect(),
    };
    let mut either: Map<String, Value> = [("type".to_owned(), Value::Array(types))].into_iter().collect();
    either.extend(schema);
    either
}
