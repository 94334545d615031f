//! The identity of calls.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use serde_json::{Map, Value, json};

use crate::callable::Callable;
use crate::cx::Cx;
use crate::need::Need;

/// Two calls with equal keys may share a result: the same tool, arguments, folder, additions of the
/// session to the environment, and needs, since a link may lead elsewhere than before.
#[derive(Clone)]
pub(crate) struct CacheKey {
    /// Weak: a replaced tool is freed with its plugin, and its address stays reserved.
    tool: Weak<dyn Callable>,
    rest: Arc<str>,
}

impl CacheKey {
    pub(crate) fn new(cx: &Cx, tool: &Arc<dyn Callable>, input: &Value, needs: &[Need]) -> Self {
        let session = &cx.session;
        let needs: Vec<Value> = needs.iter().map(|need| json!([need.category(), need.target])).collect();
        let rest = json!([canonical(input), cx.cwd, session.cwd, session.project(), session.env, session.model, needs]);
        Self { tool: Arc::downgrade(tool), rest: rest.to_string().into() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rest.len()
    }

    fn address(&self) -> *const () {
        self.tool.as_ptr().cast()
    }
}

impl PartialEq for CacheKey {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address() && self.rest == other.rest
    }
}

impl Eq for CacheKey {}

impl Hash for CacheKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
        self.rest.hash(state);
    }
}

/// The same value with the members of its objects in the order of their names.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            Value::Object(
                sorted.into_iter().map(|(name, value)| (name.clone(), canonical(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_does_not_count_and_that_of_items_does() {
        let text = |text: &str| canonical(&serde_json::from_str(text).unwrap()).to_string();
        assert_eq!(
            text(r#"{"b": [1, {"z": 1, "a": 2}], "a": null}"#),
            text(r#"{"a": null, "b": [1, {"a": 2, "z": 1}]}"#)
        );
        assert_ne!(text("[1, 2]"), text("[2, 1]"));
        assert_ne!(text(r#"{"a": 1}"#), text(r#"{"a": "1"}"#));
    }
}
