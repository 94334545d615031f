//! A store for `hygge.store` that ends with the process: for checks and tests of plugins.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::Value;

use crate::plugin::store::KeyValueStore;

/// Serves one plugin, so names of plugins make no difference.
#[derive(Default)]
pub(crate) struct MemoryStore(Mutex<BTreeMap<String, Value>>);

impl MemoryStore {
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

impl KeyValueStore for MemoryStore {
    fn get(&self, _: &str, key: &str) -> Result<Option<Value>, String> {
        Ok(self.0.lock().get(key).cloned())
    }

    fn set(&self, _: &str, key: &str, value: &Value) -> Result<(), String> {
        self.0.lock().insert(key.to_owned(), value.clone());
        Ok(())
    }

    fn compare_and_set(&self, _: &str, key: &str, expected: Option<&str>, new: Option<&Value>) -> Result<bool, String> {
        let mut values = self.0.lock();
        if values.get(key).map(Value::to_string).as_deref() != expected {
            return Ok(false);
        }
        match new {
            Some(value) => values.insert(key.to_owned(), value.clone()),
            None => values.remove(key),
        };
        Ok(true)
    }

    fn delete(&self, _: &str, key: &str) -> Result<bool, String> {
        Ok(self.0.lock().remove(key).is_some())
    }

    fn keys(&self, _: &str, prefix: &str) -> Result<Vec<String>, String> {
        Ok(self.0.lock().keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}
