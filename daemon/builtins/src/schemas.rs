//! The schemas of the tools' inputs, which tests make from the types.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use serde_json::value::RawValue;

/// The schema of the input of the tool with this name.
///
/// # Panics
/// `schemas.json` has no such tool: it has not been written since the tool was added.
pub(crate) fn of_input(name: &str) -> Value {
    static SCHEMAS: LazyLock<BTreeMap<&str, &RawValue>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../schemas.json")).expect("a test writes the file as JSON")
    });
    let schema = SCHEMAS.get(name).unwrap_or_else(|| panic!("schemas.json has no {name}: see CONTRIBUTING.md"));
    serde_json::from_str(schema.get()).expect("a part of a JSON text is JSON")
}

/// The name of a tool, and the schema of its input as it is now.
#[cfg(test)]
pub(crate) fn made<I: schemars::JsonSchema>(name: &str) -> (String, Value) {
    let mut schema = toold_schemas::plain_schema_of::<I>();
    // The tool's own description says more than the input type's.
    schema.as_object_mut().expect("inputs are objects").remove("description");
    (name.to_owned(), schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bash_input::BashInputTool;
    use crate::builtin::BuiltinEntry;
    use crate::skill::SkillTool;

    #[test]
    fn schemas_are_current() {
        // These two are made on demand.
        let others = [BuiltinEntry::of::<SkillTool>(), BuiltinEntry::of::<BashInputTool>()];
        let all: Value = crate::ALL.iter().chain(&others).map(|tool| (tool.schema)()).collect();
        toold_schemas::assert_current(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas.json"), &all, " ");
    }
}
