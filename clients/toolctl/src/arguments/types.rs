//! The types that a JSON Schema allows for one value.

use serde_json::Value;

/// `any` when the schema does not say; the others are then unset.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchemaTypes {
    pub(crate) any: bool,
    pub(crate) null: bool,
    pub(crate) boolean: bool,
    pub(crate) integer: bool,
    pub(crate) number: bool,
    pub(crate) string: bool,
    pub(crate) array: bool,
    pub(crate) object: bool,
    items: Option<Box<SchemaTypes>>,
}

/// How many references and combinations are followed: a schema may refer to itself.
const MAX_DEPTH: u8 = 8;

impl SchemaTypes {
    pub(crate) fn any() -> Self {
        Self { any: true, ..Self::default() }
    }

    /// The types of this property; any type, for a property that the schema does not name.
    pub(crate) fn of_property(root: &Value, key: &str) -> Self {
        let named = root.get("properties").and_then(|properties| properties.get(key));
        let schema = named.or_else(|| root.get("additionalProperties"));
        schema.map_or_else(Self::any, |schema| Self::of(root, schema, MAX_DEPTH))
    }

    /// The types of a list's items; `None` where no list is allowed.
    pub(crate) fn items(&self) -> Option<Self> {
        if self.any {
            return Some(Self::any());
        }
        self.array.then(|| self.items.as_deref().cloned().unwrap_or_else(Self::any))
    }

    /// The types that are allowed, in words, where that of the value is none of them.
    pub(crate) fn mismatch(&self, value: &Value) -> Option<String> {
        let fits = match value {
            Value::Null => self.null,
            Value::Bool(_) => self.boolean,
            Value::Number(number) => self.number || self.integer && number.as_f64().is_some_and(|n| n.fract() == 0.0),
            Value::String(_) => self.string,
            Value::Array(_) => self.array,
            Value::Object(_) => self.object,
        };
        if self.any || fits {
            return None;
        }
        let all = [
            (self.boolean, "true or false"),
            (self.integer, "an integer"),
            (self.number, "a number"),
            (self.string, "a text"),
            (self.array, "a list"),
            (self.object, "a JSON object"),
            (self.null, "null"),
        ];
        let names: Vec<&str> = all.into_iter().filter_map(|(allowed, name)| allowed.then_some(name)).collect();
        Some(names.join(" or "))
    }

    fn of(root: &Value, schema: &Value, depth: u8) -> Self {
        if depth == 0 {
            return Self::any();
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return target.map_or_else(Self::any, |target| Self::of(root, target, depth - 1));
        }
        let mut types = Self::default();
        match schema.get("type") {
            Some(Value::String(name)) => types.add(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(|name| types.add(name)),
            _ => {}
        }
        for value in schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const")) {
            types.add_type_of(value);
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            for choice in schema.get(word).and_then(Value::as_array).into_iter().flatten() {
                types.join(Self::of(root, choice, depth - 1));
            }
        }
        if let Some(items) = schema.get("items") {
            types.items = Some(Box::new(Self::of(root, items, depth - 1)));
        }
        if types.says_nothing() { Self::any() } else { types }
    }

    fn add(&mut self, name: &str) {
        match name {
            "null" => self.null = true,
            "boolean" => self.boolean = true,
            "integer" => self.integer = true,
            "number" => self.number = true,
            "string" => self.string = true,
            "array" => self.array = true,
            "object" => self.object = true,
            _ => {}
        }
    }

    fn add_type_of(&mut self, value: &Value) {
        match value {
            Value::Null => self.null = true,
            Value::Bool(_) => self.boolean = true,
            Value::Number(_) => self.number = true,
            Value::String(_) => self.string = true,
            Value::Array(_) => self.array = true,
            Value::Object(_) => self.object = true,
        }
    }

    /// A choice that allows anything says nothing about the others.
    fn join(&mut self, other: Self) {
        self.null |= other.null;
        self.boolean |= other.boolean;
        self.integer |= other.integer;
        self.number |= other.number;
        self.string |= other.string;
        self.array |= other.array;
        self.object |= other.object;
        self.items = self.items.take().or(other.items);
    }

    fn says_nothing(&self) -> bool {
        !(self.null || self.boolean || self.integer || self.number || self.string || self.array || self.object)
    }
}
