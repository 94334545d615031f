//! The store that the daemon provides for `hygge.store`.

use serde_json::Value;

/// A persistent key-value store with a name space for each plugin. Called on a blocking thread.
pub trait KeyValueStore: Send + Sync + 'static {
    /// # Errors
    /// A message for the plugin's author, here and below.
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Value>, String>;
    fn set(&self, plugin: &str, key: &str, value: &Value) -> Result<(), String>;
    /// Sets the value, or deletes it, if its JSON is still `expected`, as [`Value`] prints it; `None` is a missing key.
    /// False if it is something else. Atomic, also across daemons.
    fn compare_and_set(
        &self,
        plugin: &str,
        key: &str,
        expected: Option<&str>,
        new: Option<&Value>,
    ) -> Result<bool, String>;
    /// True if the key existed.
    fn delete(&self, plugin: &str, key: &str) -> Result<bool, String>;
    /// Sorted.
    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, String>;
}
