//! Whole numbers that are written as fractions, such as `10.0` and `1e1`. They match a schema that wants an integer,
//! since JSON Schema compares numbers by their value; tools that read them as integers refuse them.

use std::collections::HashSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Number, Value};
use toold_proto::error::ArgumentError;

use super::fixes::{Fix, member_path};
use crate::schema::Schema;

/// Beyond it the value of a float is not the number that was written.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

pub(super) fn has_whole_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_whole_float(number),
        Value::Array(items) => items.iter().any(has_whole_float),
        Value::Object(members) => members.values().any(has_whole_float),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// The fixes of whole numbers where the schema wants an integer and takes no other number.
pub(super) fn whole_numbers(schema: &Schema, arguments: &Value) -> Vec<Fix> {
    let fixes = integer_places(schema, arguments).into_iter().filter_map(|path| {
        let from = arguments.pointer(&path)?;
        let to = as_integer(from.as_number()?)?;
        Some(Fix { from: from.clone(), to: Some(to.into()), path })
    });
    fixes.collect()
}

/// The mistakes of whole numbers that are too large to be read as integers. They match the schema all the same.
pub(super) fn too_large(schema: &Schema, arguments: &Value) -> Vec<ArgumentError> {
    let mistakes = integer_places(schema, arguments).into_iter().filter_map(|path| {
        let float = arguments.pointer(&path)?.as_f64()?;
        let bound = if float < 0.0 { format!("at least -{MAX_EXACT}") } else { format!("at most {MAX_EXACT}") };
        Some(ArgumentError { message: format!("expected an integer of {bound}, got {float}"), path })
    });
    mistakes.collect()
}

/// The places, sorted, of whole numbers that are written as fractions, where the schema wants an integer and takes no
/// other number.
fn integer_places(schema: &Schema, arguments: &Value) -> Vec<String> {
    // No schema says so of a whole number, but it complains of a fraction in the same place.
    let mut probe = arguments.clone();
    let mut places = HashSet::new();
    break_whole(&mut probe, "", &mut places);
    let mut refused = HashSet::new();
    refused_fractions(&schema.errors(&probe), &mut refused);
    let mut places: Vec<String> = places.intersection(&refused).cloned().collect();
    places.sort();
    places
}

fn is_whole_float(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn as_integer(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() <= MAX_EXACT).then_some(float as i64)
}

/// Replaces whole floats by a fraction, and collects their places.
fn break_whole(value: &mut Value, path: &str, places: &mut HashSet<String>) {
    match value {
        Value::Number(number) if is_whole_float(number) => {
            *value = Value::from(0.5);
            places.insert(path.to_owned());
        }
        Value::Array(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                break_whole(item, &format!("{path}/{place}"), places);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                break_whole(member, &member_path(path, name), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The places where an integer is wanted and no other number.
fn refused_fractions(errors: &[ValidationError<'_>], places: &mut HashSet<String>) {
    for error in errors {
        match error.kind() {
            ValidationErrorKind::Type { kind } if wants_integer(kind) => {
                places.insert(error.instance_path().to_string());
            }
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context }
            | ValidationErrorKind::OneOfMultipleValid { context } => {
                context.iter().for_each(|errors| refused_fractions(errors, places));
            }
            _ => {}
        }
    }
}

fn wants_integer(kind: &TypeKind) -> bool {
    match kind {
        TypeKind::Single(one) => *one == JsonType::Integer,
        TypeKind::Multiple(types) => types.contains(JsonType::Integer),
    }
}
