//! Values that match none of several forms (`anyOf`, `oneOf`): the form that was probably meant.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use serde_json::Value;

use super::words::{one_of, types_in, wrong_type};

/// The errors of one form.
type FormErrors = Vec<ValidationError<'static>>;

pub(super) enum Choice<'e> {
    /// All forms in one message: candidates of an enumeration, or types.
    Whole(String),
    /// The errors of the form that the value misses least.
    Nearest { errors: &'e FormErrors, note: String },
}

pub(super) fn choose<'e>(error: &ValidationError<'_>, forms: &'e [FormErrors]) -> Choice<'e> {
    let (at, value) = (error.instance_path().as_str(), error.instance());
    // A form that only null matches was not meant by anything else.
    let meant = |form: &&FormErrors| value.is_null() || mismatch(form, at) != Some(JsonType::Null.into());
    let meant: Vec<&FormErrors> = match forms.iter().filter(meant).collect::<Vec<_>>() {
        none if none.is_empty() => forms.iter().collect(),
        some => some,
    };
    if let Some(options) = meant.iter().map(|form| candidates(form, at)).collect::<Option<Vec<_>>>() {
        return Choice::Whole(one_of(&options.concat(), value));
    }
    if let Some(types) = meant.iter().map(|form| mismatch(form, at)).collect::<Option<Vec<_>>>() {
        let types = types.into_iter().fold(JsonTypeSet::empty(), JsonTypeSet::union);
        return Choice::Whole(wrong_type(types, value));
    }
    let nearest = meant.iter().min_by_key(|form| distance(form, at));
    let errors = *nearest.expect("a value can only miss one of at least one form");
    let number = forms.iter().position(|form| std::ptr::eq(form, errors)).map_or(1, |place| place + 1);
    let note = match meant.len() {
        1 => String::new(),
        _ => format!(" (by the nearest of {} forms, number {number})", forms.len()),
    };
    Choice::Nearest { errors, note }
}

/// The types that the form expects in place of the value's, if that is its mistake.
fn mismatch(form: &FormErrors, at: &str) -> Option<JsonTypeSet> {
    form.iter().find_map(|error| match error.kind() {
        ValidationErrorKind::Type { kind } if error.instance_path().as_str() == at => Some(types_in(kind)),
        _ => None,
    })
}

/// The values that an enumeration admits; `None` for any other form.
fn candidates(form: &FormErrors, at: &str) -> Option<Vec<Value>> {
    let mut found = None;
    for error in form {
        match error.kind() {
            _ if error.instance_path().as_str() != at => return None,
            ValidationErrorKind::Enum { options } => found = Some(options.as_array().cloned().unwrap_or_default()),
            ValidationErrorKind::Constant { expected_value } => found = Some(vec![(**expected_value).clone()]),
            ValidationErrorKind::Type { .. } => {}
            _ => return None,
        }
    }
    found
}

/// How much of a form the value misses. A member with a fixed value tells forms apart, so a wrong one counts most after
/// a wrong type.
fn distance(form: &[ValidationError<'_>], at: &str) -> usize {
    let of = |error: &ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Type { .. } if error.instance_path().as_str() == at => 1_000,
        ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => 100,
        ValidationErrorKind::AdditionalProperties { unexpected } => 10 * unexpected.len(),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            10 + context.iter().map(|form| distance(form, at)).min().unwrap_or_default()
        }
        _ => 10,
    };
    form.iter().map(of).sum()
}
