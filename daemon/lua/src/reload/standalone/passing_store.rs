//! A store for `hygge.store` that ends with the process.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::Value;

use crate::plugin::store::KeyValueStore;

/// Empty at first. By plugin and key.
#[derive(Default)]
pub(super) struct PassingStore(Mutex<BTreeMap<(String, String), Value>>);

impl KeyValueStore for PassingStore {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Value>, String> {
        Ok(self.0.lock().get(&of(plugin, key)).cloned())
    }

    fn set(&self, plugin: &str, key: &str, value: &Value) -> Result<(), String> {
        self.0.lock().insert(of(plugin, key), value.clone());
        Ok(())
    }

    fn compare_and_set(
        &self,
        plugin: &str,
        key: &str,
        expected: Option<&str>,
        new: Option<&Value>,
    ) -> Result<bool, String> {
        let mut values = self.0.lock();
        let key = of(plugin, key);
        if values.get(&key).map(Value::to_string).as_deref() != expected {
            return Ok(false);
        }
        match new {
            Some(value) => drop(values.insert(key, value.clone())),
            None => drop(values.remove(&key)),
        }
        Ok(true)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, String> {
        Ok(self.0.lock().remove(&of(plugin, key)).is_some())
    }

    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, String> {
        let values = self.0.lock();
        let own = values.keys().filter(|(of, key)| of == plugin && key.starts_with(prefix));
        Ok(own.map(|(_, key)| key.clone()).collect())
    }
}

fn of(plugin: &str, key: &str) -> (String, String) {
    (plugin.to_owned(), key.to_owned())
}
