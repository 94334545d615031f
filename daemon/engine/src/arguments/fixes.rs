//! Changes that make values match a schema, found by the errors of its validation: so whatever a schema is made of,
//! references and choices of forms included, it is read as the check reads it.

use std::collections::HashSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use serde_json::Value;

/// One change of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fix {
    /// A JSON Pointer.
    pub(super) path: String,
    pub(super) from: Value,
    /// `None` leaves the member out.
    pub(super) to: Option<Value>,
}

/// The fixes of these errors of `arguments`, each once.
pub(super) fn fixes_of(errors: &[ValidationError<'_>], arguments: &Value) -> Vec<Fix> {
    let of_error =
        |error: &ValidationError<'_>| parsed(error).map(|fix| vec![fix]).or_else(|| fixes_of_one(error, arguments));
    once(errors.iter().filter_map(of_error).flatten())
}

fn once(fixes: impl Iterator<Item = Fix>) -> Vec<Fix> {
    let mut seen = HashSet::new();
    fixes.filter(|fix| seen.insert(fix.path.clone())).collect()
}

/// The value that a text or a single object stands for where the schema takes one type only: `"1"` for 1, `"true"`, a list
/// as JSON text, an object for a list of one. Not within a choice of forms, where a text may have another reading.
fn parsed(error: &ValidationError<'_>) -> Option<Fix> {
    let ValidationErrorKind::Type { kind } = error.kind() else { return None };
    let wanted = types_of(kind);
    let mut types =
        [JsonType::Integer, JsonType::Number, JsonType::Boolean, JsonType::Array, JsonType::Object, JsonType::String]
            .into_iter()
            .filter(|one| wanted.contains(*one));
    let (only, None) = (types.next()?, types.next()) else { return None };
    let from = error.instance().as_ref();
    let to = match (only, from) {
        (JsonType::Array, Value::Object(_)) => Value::Array(vec![from.clone()]),
        (JsonType::Boolean, Value::String(text)) => match text.as_str() {
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            _ => return None,
        },
        (JsonType::Integer, Value::String(text)) => {
            // `2.0`, which is a whole number as JSON, too.
            let whole =
                text.strip_suffix(".0").filter(|whole| whole.bytes().all(|byte| b"-0123456789".contains(&byte)));
            serde_json::from_str(whole.unwrap_or(text)).ok()?
        }
        (JsonType::Array, Value::String(text)) => match serde_json::from_str(text).ok()? {
            single @ Value::Object(_) => Value::Array(vec![single]),
            list => list,
        },
        (_, Value::String(text)) => serde_json::from_str(text).ok()?,
        _ => return None,
    };
    let fits = match only {
        JsonType::Integer => to.is_i64() || to.is_u64(),
        JsonType::Number => to.is_number(),
        JsonType::Boolean => to.is_boolean(),
        JsonType::Array => to.is_array(),
        JsonType::Object => to.is_object(),
        JsonType::String | JsonType::Null => false,
    };
    fits.then(|| Fix { path: error.instance_path().to_string(), from: from.clone(), to: Some(to) })
}

/// Applies fixes in any order: those of members do not move items of arrays.
pub(super) fn apply(arguments: &mut Value, fixes: &[Fix]) {
    for Fix { path, to, .. } in fixes {
        match to {
            Some(to) => {
                if let Some(place) = arguments.pointer_mut(path) {
                    place.clone_from(to);
                }
            }
            None => {
                let Some((holder, name)) = path.rsplit_once('/') else { continue };
                if let Some(members) = arguments.pointer_mut(holder).and_then(Value::as_object_mut) {
                    members.shift_remove(&unescaped(name));
                }
            }
        }
    }
}

/// The paths of members that are required and absent.
pub(super) fn missing_members(errors: &[ValidationError<'_>]) -> HashSet<String> {
    let mut found = HashSet::new();
    add_missing(errors, &mut found);
    found
}

fn add_missing(errors: &[ValidationError<'_>], found: &mut HashSet<String>) {
    for error in errors {
        match error.kind() {
            ValidationErrorKind::Required { property: Value::String(name) } => {
                found.insert(member_path(error.instance_path().as_str(), name));
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                context.iter().for_each(|errors| add_missing(errors, found));
            }
            _ => {}
        }
    }
}

pub(super) fn member_path(holder: &str, name: &str) -> String {
    [holder, "/", &name.replace('~', "~0").replace('/', "~1")].concat()
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// Everything that must change for one error to vanish; `None` if that is not certain.
fn fixes_of_one(error: &ValidationError<'_>, arguments: &Value) -> Option<Vec<Fix>> {
    let value = error.instance();
    let fix = |to: Option<Value>| {
        let (path, from) = (error.instance_path().to_string(), value.as_ref().clone());
        Some(vec![Fix { path, from, to }])
    };
    if value.is_null() && is_named_member(error, arguments) {
        return fix(None);
    }
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let wanted = types_of(kind);
            let takes_numbers = wanted.contains(JsonType::Integer) || wanted.contains(JsonType::Number);
            let number = value.as_number()?;
            (wanted.contains(JsonType::String) && !takes_numbers).then(|| fix(Some(number.to_string().into())))?
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            fixes_of_choice(context, arguments)
        }
        _ => None,
    }
}

/// The fixes of the only form that can be reached.
fn fixes_of_choice(forms: &[Vec<ValidationError<'static>>], arguments: &Value) -> Option<Vec<Fix>> {
    let mut found = None;
    for (place, form) in forms.iter().enumerate() {
        let Some(fixes) = fixes_of_form(form, arguments) else { continue };
        if found.replace((place, fixes)).is_some() {
            return None;
        }
    }
    let (reached, fixes) = found?;
    let mut others = forms.iter().enumerate().filter(|(place, _)| *place != reached).flat_map(|(_, form)| form);
    let ambiguous = others.any(|error| fixes.iter().any(|fix| fix.to.is_some() && wants_number(error, &fix.path)));
    (!ambiguous).then_some(fixes)
}

fn fixes_of_form(form: &[ValidationError<'_>], arguments: &Value) -> Option<Vec<Fix>> {
    let fixes = once(form.iter().filter_map(|error| fixes_of_one(error, arguments)).flatten());
    let vanishes = |error: &ValidationError<'_>| match error.kind() {
        // An enumeration of strings complains of the type, too.
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().map_or(&[][..], Vec::as_slice);
            fixes.iter().any(|fix| {
                error.instance_path().as_str() == fix.path && fix.to.as_ref().is_none_or(|to| options.contains(to))
            })
        }
        ValidationErrorKind::Constant { expected_value } => fixes.iter().any(|fix| {
            error.instance_path().as_str() == fix.path && fix.to.as_ref().is_none_or(|to| **expected_value == *to)
        }),
        _ => fixes_of_one(error, arguments).is_some(),
    };
    form.iter().all(vanishes).then_some(fixes)
}

/// Whether a form that fails with this error would take some number at the path.
fn wants_number(error: &ValidationError<'_>, path: &str) -> bool {
    let here = error.instance_path().as_str() == path;
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let wanted = types_of(kind);
            here && (wanted.contains(JsonType::Integer) || wanted.contains(JsonType::Number))
        }
        ValidationErrorKind::Enum { options } => {
            here && options.as_array().is_some_and(|options| options.iter().any(Value::is_number))
        }
        ValidationErrorKind::Constant { expected_value } => here && expected_value.is_number(),
        ValidationErrorKind::Minimum { .. }
        | ValidationErrorKind::Maximum { .. }
        | ValidationErrorKind::ExclusiveMinimum { .. }
        | ValidationErrorKind::ExclusiveMaximum { .. }
        | ValidationErrorKind::MultipleOf { .. } => here,
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flatten().any(|error| wants_number(error, path))
        }
        _ => false,
    }
}

fn types_of(kind: &TypeKind) -> JsonTypeSet {
    match kind {
        TypeKind::Single(one) => JsonTypeSet::from(*one),
        TypeKind::Multiple(types) => *types,
    }
}

/// Whether the error is about a member of an object that the schema lists by its name. In an object of free names, null
/// may have a meaning.
fn is_named_member(error: &ValidationError<'_>, arguments: &Value) -> bool {
    let Some((holder, name)) = error.instance_path().as_str().rsplit_once('/') else { return false };
    if !arguments.pointer(holder).is_some_and(Value::is_object) {
        return false;
    }
    let mut later = None;
    for segment in error.evaluation_path().as_str().rsplit('/') {
        match segment {
            "properties" if later == Some(name) => return true,
            "additionalProperties" | "patternProperties" | "unevaluatedProperties" => return false,
            _ => later = Some(segment),
        }
    }
    false
}
