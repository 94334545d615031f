//! The arguments of a call as models send them, brought into the form that the tool's schema describes. This is the one
//! place for it: before the schema is checked, for tools of every source, and again after hooks changed the arguments.

mod fixes;
mod notes;
mod whole_numbers;

use std::collections::HashSet;

use serde_json::{Map, Value};
use toold_proto::argument_names::KnownArguments;

use crate::call::CallError;
use crate::schema::Schema;
use crate::tool::{Origin, ToolSpec};

use fixes::{Fix, apply, fixes_of, missing_members};
use whole_numbers::{has_whole_float, too_large, whole_numbers};

pub(crate) use notes::ArgumentNotes;

/// A fix may reveal the next one, as behind a choice of forms.
const MAX_ROUNDS: usize = 4;

/// Arguments that match the schema.
pub(crate) struct FittedArguments {
    pub(crate) arguments: Value,
    pub(crate) notes: ArgumentNotes,
}

/// The arguments that the tool receives. Values that match the schema are the same afterwards, but for the form of a
/// number: `10.0` is `10` where the schema wants an integer. Values that do not match are changed where nothing is lost
/// and the schema leaves no choice: an optional member that is null is left out, a number becomes a string, and a text
/// becomes the number, boolean, list or object that it is the JSON of.
///
/// # Errors
/// They do not match the schema; all mistakes are listed.
pub(crate) fn fit(spec: &ToolSpec, arguments: Value) -> Result<FittedArguments, CallError> {
    let schema = &spec.input;
    let mut arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    let mut notes = ArgumentNotes::default();
    // Most calls need no fix, and are checked once.
    let mut matches = schema.admits(&arguments);
    let mut required_nulls = HashSet::new();
    if !matches {
        (arguments, required_nulls) = fix(schema, arguments, &mut notes);
        matches = schema.admits(&arguments);
    }
    if has_whole_float(&arguments) {
        let fixes = whole_numbers(schema, &arguments);
        apply(&mut arguments, &fixes);
        notes.add_fixes(fixes);
        // A server may have integers of any size; built-in tools read those of this machine.
        let errors = match (matches, spec.origin) {
            (true, Origin::Builtin) => too_large(schema, &arguments),
            (_, _) => Vec::new(),
        };
        if !errors.is_empty() {
            return Err(CallError::InvalidArgs { tool: spec.name.to_string(), errors });
        }
    }
    if !matches {
        let mut errors = schema.check(&arguments);
        for error in errors.iter_mut().filter(|error| required_nulls.contains(&error.path)) {
            error.message.push_str("; it is required, so null does not count as absent");
        }
        return Err(CallError::InvalidArgs { tool: spec.name.to_string(), errors });
    }
    note_unknown(schema.as_value(), &arguments, &mut notes);
    Ok(FittedArguments { arguments, notes })
}

/// Returns the arguments with all fixes, and the paths of nulls that are required to be something else.
fn fix(schema: &Schema, mut arguments: Value, notes: &mut ArgumentNotes) -> (Value, HashSet<String>) {
    let mut required_nulls = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let mut fixes: Vec<Fix> = fixes_of(&schema.errors(&arguments), &arguments);
        fixes.retain(|fix| !required_nulls.contains(&fix.path));
        if fixes.is_empty() {
            break;
        }
        let mut fixed = arguments.clone();
        apply(&mut fixed, &fixes);
        let missing = missing_members(&schema.errors(&fixed));
        let is_required = |fix: &Fix| fix.to.is_none() && missing.contains(&fix.path);
        if fixes.iter().any(is_required) {
            let (required, right): (Vec<Fix>, Vec<Fix>) = fixes.into_iter().partition(is_required);
            required_nulls.extend(required.into_iter().map(|fix| fix.path));
            fixes = right;
            fixed = arguments;
            apply(&mut fixed, &fixes);
        }
        notes.add_fixes(fixes);
        arguments = fixed;
    }
    (arguments, required_nulls)
}

/// Tools whose schemas admit any argument ignore one that is misspelt.
fn note_unknown(schema: &Value, arguments: &Value, notes: &mut ArgumentNotes) {
    let Value::Object(members) = arguments else { return };
    let properties = schema.get("properties").and_then(Value::as_object);
    let listed = |name: &String| properties.is_some_and(|properties| properties.contains_key(name));
    if members.keys().all(listed) {
        return;
    }
    let known = KnownArguments::of(schema, schema);
    for name in members.keys().filter(|name| !known.admits(name)) {
        notes.add_unknown(name, known.names());
    }
}
