//! Notes in a call's result about its arguments: values that were changed, names that the tool does not know.

use serde_json::{Map, Value, json};
use toold_proto::argument_names::explain_unknown;

use super::fixes::Fix;

/// A result tells of so many fixes, and of so many unknown arguments.
const MAX_NOTES: usize = 20;

/// The fixes of a call's arguments, and its arguments that the schema does not know.
#[derive(Debug, Default)]
pub(crate) struct ArgumentNotes {
    fixed: Vec<Value>,
    unknown: Vec<Value>,
}

impl ArgumentNotes {
    pub(super) fn add_fixes(&mut self, fixes: Vec<Fix>) {
        let room = MAX_NOTES.saturating_sub(self.fixed.len());
        self.fixed.extend(fixes.into_iter().take(room).map(|Fix { path, from, to }| match to {
            Some(to) => json!({"path": path, "from": from, "to": to}),
            None => json!({"path": path, "from": from}),
        }));
    }

    pub(super) fn add_unknown(&mut self, name: &str, known: &[&str]) {
        if self.unknown.len() < MAX_NOTES {
            self.unknown.push(json!({"name": name, "hint": explain_unknown(name, known)}));
        }
    }

    /// Adds those of the arguments as a hook changed them.
    pub(crate) fn then(mut self, later: Self) -> Self {
        let room = MAX_NOTES.saturating_sub(self.fixed.len());
        self.fixed.extend(later.fixed.into_iter().take(room));
        Self { fixed: self.fixed, unknown: later.unknown }
    }

    pub(crate) fn into_metadata(self, metadata: &mut Map<String, Value>) {
        for (key, list) in [("arguments_fixed", self.fixed), ("arguments_unknown", self.unknown)] {
            if !list.is_empty() {
                metadata.insert(key.to_owned(), Value::Array(list));
            }
        }
    }
}
