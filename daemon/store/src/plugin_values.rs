//! The values of plugins: a key-value store with a namespace for each.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::Value;

use crate::{Store, StoreError};

/// Bytes of a value as JSON.
pub(crate) const MAX_VALUE: usize = 1024 * 1024;
/// Keys of one plugin.
pub(crate) const MAX_KEYS: u32 = 10_000;
/// Bytes of one plugin's values.
pub(crate) const MAX_PLUGIN: i64 = 64 << 20;
/// Bytes of a key.
pub(crate) const MAX_KEY: usize = 256;

impl Store {
    /// `None` for a missing key.
    pub fn plugin_value(&self, plugin: &str, key: &str) -> Result<Option<Value>, StoreError> {
        self.read(|connection| value_of(connection, plugin, key))
    }

    /// Sets the value of a key: 1 MiB of JSON at most, 10,000 keys and 64 MiB a plugin, 256 bytes a
    /// key.
    pub fn set_plugin_value(&self, plugin: &str, key: &str, value: &Value) -> Result<(), StoreError> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(StoreError::KeyLength { bytes: key.len() });
        }
        let text = text_of(value)?;
        let (plugin, key) = (plugin.to_owned(), key.to_owned());
        self.write(move |transaction| put(transaction, &plugin, &key, &text))
    }

    /// Sets the value of a key, or deletes it, if its JSON is still `expected`, as [`Value`] prints it; `None` is a
    /// missing key. False if it is something else: then nothing changes. One step for all daemons that share the
    /// database. Limits as in [`set_plugin_value`](Self::set_plugin_value).
    pub fn compare_and_set_plugin_value(
        &self,
        plugin: &str,
        key: &str,
        expected: Option<&str>,
        new: Option<&Value>,
    ) -> Result<bool, StoreError> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(StoreError::KeyLength { bytes: key.len() });
        }
        let text = new.map(text_of).transpose()?;
        let (plugin, key, expected) = (plugin.to_owned(), key.to_owned(), expected.map(str::to_owned));
        self.write(move |transaction| {
            // Printed like `expected`: the text in the database may be that of an older version.
            let current = value_of(transaction, &plugin, &key)?.map(|value| value.to_string());
            if current != expected {
                return Ok(false);
            }
            match &text {
                Some(text) => put(transaction, &plugin, &key, text)?,
                None => _ = delete(transaction, &plugin, &key)?,
            }
            Ok(true)
        })
    }

    /// True when the key existed.
    pub fn delete_plugin_value(&self, plugin: &str, key: &str) -> Result<bool, StoreError> {
        let (plugin, key) = (plugin.to_owned(), key.to_owned());
        self.write(move |transaction| delete(transaction, &plugin, &key))
    }

    /// The keys that begin with `prefix`, sorted by their bytes.
    pub fn plugin_keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT key FROM plugin_values WHERE plugin = ?1 AND substr(key, 1, length(?2)) = ?2 ORDER BY key",
            )?;
            let keys = select.query_map([plugin, prefix], |row| row.get(0))?;
            Ok(keys.collect::<Result<_, _>>()?)
        })
    }
}

fn text_of(value: &Value) -> Result<String, StoreError> {
    let text = value.to_string();
    if text.len() > MAX_VALUE {
        return Err(StoreError::ValueTooLarge { bytes: text.len() });
    }
    Ok(text)
}

fn value_of(connection: &Connection, plugin: &str, key: &str) -> Result<Option<Value>, StoreError> {
    let mut select = connection.prepare_cached("SELECT value FROM plugin_values WHERE plugin = ?1 AND key = ?2")?;
    let text: Option<String> = select.query_row([plugin, key], |row| row.get(0)).optional()?;
    let value = text.map(|text| serde_json::from_str(&text)).transpose();
    value.map_err(|error| StoreError::Failed(format!("the value of {key} is no JSON: {error}")))
}

fn put(transaction: &Transaction, plugin: &str, key: &str, text: &str) -> Result<(), StoreError> {
    check_size(transaction, plugin, key, text.len())?;
    let mut update =
        transaction.prepare_cached("UPDATE plugin_values SET value = ?3 WHERE plugin = ?1 AND key = ?2")?;
    if update.execute(params![plugin, key, text])? > 0 {
        return Ok(());
    }
    let mut count = transaction.prepare_cached("SELECT count(*) FROM plugin_values WHERE plugin = ?1")?;
    if count.query_row([plugin], |row| row.get::<_, u32>(0))? >= MAX_KEYS {
        return Err(StoreError::TooManyKeys);
    }
    let mut insert = transaction.prepare_cached("INSERT INTO plugin_values VALUES (?1, ?2, ?3)")?;
    insert.execute(params![plugin, key, text])?;
    Ok(())
}

fn delete(transaction: &Transaction, plugin: &str, key: &str) -> Result<bool, StoreError> {
    let mut delete = transaction.prepare_cached("DELETE FROM plugin_values WHERE plugin = ?1 AND key = ?2")?;
    Ok(delete.execute([plugin, key])? > 0)
}

/// Checks that a plugin's values stay within the limit with another one.
fn check_size(transaction: &Transaction, plugin: &str, key: &str, bytes: usize) -> Result<(), StoreError> {
    // A small database as a whole is below the limit of one plugin.
    let pages: i64 = transaction.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page: i64 = transaction.pragma_query_value(None, "page_size", |row| row.get(0))?;
    if pages * page < MAX_PLUGIN {
        return Ok(());
    }
    let mut sum = transaction.prepare_cached(
        "SELECT coalesce(sum(octet_length(value)), 0) FROM plugin_values WHERE plugin = ?1 AND key <> ?2",
    )?;
    let others: i64 = sum.query_row([plugin, key], |row| row.get(0))?;
    if others.saturating_add(bytes as i64) > MAX_PLUGIN {
        return Err(StoreError::PluginTooLarge);
    }
    Ok(())
}
