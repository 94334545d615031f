//! Names of arguments that a provider refuses, and the names that it gets in their place.
//!
//! A tool's names depend on its schema alone, so that a call is read with the names that the list had.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::schema;

/// The names that a provider takes: 1 to 64 of these characters.
#[derive(Clone, Copy)]
pub(super) struct Alphabet {
    /// Besides ASCII letters, digits and `_`.
    pub(super) others: &'static str,
    pub(super) begins_with_digit: bool,
}

const LONGEST: usize = 64;

/// The arguments of one tool that have another name for the provider.
pub(super) struct ArgumentNames {
    by_own: BTreeMap<String, String>,
}

impl ArgumentNames {
    /// One name for each name in the whole schema, so that no two arguments get the same one.
    pub(super) fn of(input_schema: &Value, alphabet: Alphabet) -> Self {
        let mut own = BTreeSet::new();
        collect(input_schema, &mut own);
        let (fit, odd): (Vec<&str>, Vec<&str>) = own.into_iter().partition(|name| alphabet.takes(name));
        let mut used: BTreeSet<String> = fit.into_iter().map(str::to_owned).collect();
        let mut by_own = BTreeMap::new();
        for name in odd {
            let given = alphabet.nearest(name, &used);
            used.insert(given.clone());
            by_own.insert(name.to_owned(), given);
        }
        Self { by_own }
    }

    /// The schema with the names that the provider gets.
    pub(super) fn in_schema(&self, input_schema: &Value) -> Value {
        let mut renamed = input_schema.clone();
        if let (Value::Object(root), false) = (&mut renamed, self.by_own.is_empty()) {
            self.rename(root);
        }
        renamed
    }

    /// Arguments with the tool's own names again.
    pub(super) fn in_arguments(&self, arguments: Value, input_schema: &Value) -> Value {
        if self.by_own.is_empty() {
            return arguments;
        }
        let own: BTreeMap<&str, &str> = self.by_own.iter().map(|(own, given)| (given.as_str(), own.as_str())).collect();
        restore(arguments, &[input_schema], input_schema, &own)
    }

    /// An example of the arguments, as the provider gets it.
    pub(super) fn in_example(&self, example: Value) -> Value {
        let Value::Object(members) = example else { return example };
        members.into_iter().map(|(own, value)| (self.by_own.get(&own).cloned().unwrap_or(own), value)).collect()
    }

    fn rename(&self, part: &mut Map<String, Value>) {
        for child in schema::parts_mut(part) {
            self.rename(child);
        }
        if let Some(Value::Object(properties)) = part.get_mut("properties") {
            let renamed = std::mem::take(properties).into_iter().map(|(own, mut schema)| match self.by_own.get(&own) {
                Some(given) => {
                    say_own_name(&mut schema, &own);
                    (given.clone(), schema)
                }
                None => (own, schema),
            });
            *properties = renamed.collect();
        }
        if let Some(Value::Array(required)) = part.get_mut("required") {
            for name in required {
                if let Some(given) = name.as_str().and_then(|own| self.by_own.get(own)) {
                    *name = given.as_str().into();
                }
            }
        }
        if let Some(Value::String(reference)) = part.get_mut("$ref") {
            *reference = self.in_reference(reference);
        }
    }

    /// A reference may lead through a property.
    fn in_reference(&self, reference: &str) -> String {
        let mut after_properties = false;
        let steps = reference.split('/').map(|step| {
            let own = step.replace("~1", "/").replace("~0", "~");
            let given = self.by_own.get(&own).filter(|_| after_properties).map(String::as_str);
            after_properties = step == "properties" && !after_properties;
            given.unwrap_or(step)
        });
        steps.collect::<Vec<_>>().join("/")
    }
}

impl Alphabet {
    fn has(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || self.others.contains(c)
    }

    fn takes(self, name: &str) -> bool {
        (1..=LONGEST).contains(&name.len())
            && name.chars().all(|c| self.has(c))
            && (self.begins_with_digit || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
    }

    fn nearest(self, name: &str, used: &BTreeSet<String>) -> String {
        let mut near: String = name.chars().map(|c| if self.has(c) { c } else { '_' }).collect();
        if near.is_empty()
            || !self.begins_with_digit && !near.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        {
            near.insert(0, '_');
        }
        let numbered = |n: usize| match n {
            1 => near.chars().take(LONGEST).collect(),
            _ => {
                let number = format!("_{n}");
                near.chars().take(LONGEST - number.len()).chain(number.chars()).collect::<String>()
            }
        };
        (1..).map(numbered).find(|one| !used.contains(one)).expect("there are more numbers than names")
    }
}

fn collect<'a>(part: &'a Value, names: &mut BTreeSet<&'a str>) {
    let Some(part) = part.as_object() else { return };
    names
        .extend(part.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()));
    schema::parts(part).for_each(|child| collect(child, names));
}

/// A model that reads of the name elsewhere, such as in the tool's description, finds it here.
fn say_own_name(schema: &mut Value, own: &str) {
    let Some(schema) = schema.as_object_mut() else { return };
    let words = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let words = format!("`{own}`. {words}").trim_end().to_owned();
    schema.insert("description".to_owned(), words.into());
}

/// `schemas` are those that may apply to the value. Only members that one of them names are renamed: the keys of an open
/// object are the model's.
fn restore(value: Value, schemas: &[&Value], root: &Value, own: &BTreeMap<&str, &str>) -> Value {
    match value {
        Value::Array(items) => {
            let of_items: Vec<&Value> = applying(schemas, root).into_iter().flat_map(schema::of_items).collect();
            items.into_iter().map(|item| restore(item, &of_items, root, own)).collect()
        }
        Value::Object(members) => {
            let schemas = applying(schemas, root);
            let named = |name: &str| -> Vec<&Value> {
                schemas.iter().filter_map(|schema| schema.get("properties")?.get(name)).collect()
            };
            let restored = members.into_iter().map(|(name, member)| {
                let (mut name, mut of_member) = (name.clone(), named(&name));
                if let (true, Some(own)) = (of_member.is_empty(), own.get(name.as_str()))
                    && !named(own).is_empty()
                {
                    (name, of_member) = ((*own).to_owned(), named(own));
                }
                if of_member.is_empty() {
                    of_member = schemas.iter().filter_map(|schema| schema.get("additionalProperties")).collect();
                }
                let member = restore(member, &of_member, root, own);
                (name, member)
            });
            Value::Object(restored.collect())
        }
        other => other,
    }
}

/// More schemas than this only come from references that multiply.
const MOST_APPLYING: usize = 256;

/// The schemas with their references and branches.
fn applying<'a>(schemas: &[&'a Value], root: &'a Value) -> Vec<&'a Value> {
    let mut all: Vec<&Value> = schemas.to_vec();
    let mut next = 0;
    while next < all.len() && all.len() < MOST_APPLYING {
        let schema = all[next];
        next += 1;
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|to| schema::lookup(to, root));
        let branches = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
        let found: Vec<&Value> = target.into_iter().chain(branches).collect();
        all.extend(
            found.into_iter().filter(|one| !all.iter().any(|known| std::ptr::eq(*known, *one))).collect::<Vec<_>>(),
        );
    }
    all
}
