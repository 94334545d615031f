//! The arguments of a call as models send them, brought into the form that the tool's schema describes. This is the one
//! place for it: before the schema is checked, for tools of every source, and again after hooks changed the arguments.

use serde_json::{Map, Value};
use toold_proto::error::ArgumentError;

use crate::call::CallError;
use crate::tool::ToolSpec;

/// The arguments that the tool receives. An argument that is null counts as absent if the schema names it, does not
/// require it, and does not admit null for it. Only the arguments themselves count, not the members within them.
///
/// # Errors
/// They do not match the schema; all mistakes are listed.
pub(crate) fn fit(spec: &ToolSpec, arguments: Value) -> Result<Value, CallError> {
    let mut arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    if let Value::Object(members) = &mut arguments {
        members.retain(|name, value| !value.is_null() || !counts_as_absent(spec, name));
    }
    let mut errors = spec.input.check(&arguments);
    if errors.is_empty() {
        return Ok(arguments);
    }
    errors.iter_mut().for_each(|error| explain_null(spec, &arguments, error));
    Err(CallError::InvalidArgs { tool: spec.name.to_string(), errors })
}

fn counts_as_absent(spec: &ToolSpec, name: &str) -> bool {
    !is_required(spec, name) && spec.input.property_admits_null(name) == Some(false)
}

fn is_required(spec: &ToolSpec, name: &str) -> bool {
    let required = spec.input.as_value().get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|one| one == name))
}

/// `null is not of type "string"` alone does not say that leaving it out is no way out.
fn explain_null(spec: &ToolSpec, arguments: &Value, error: &mut ArgumentError) {
    let Some(name) = error.path.strip_prefix('/') else { return };
    let name = name.replace("~1", "/").replace("~0", "~");
    if arguments.get(&name).is_some_and(Value::is_null) && is_required(spec, &name) {
        error.message.push_str("; it is required, so null does not count as absent");
    }
}
