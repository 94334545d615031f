//! The configuration as a list of keys, including those that are not set.

use toold_proto::config::ConfigEntry;

use crate::config::schema::leaf_keys;

/// The set values, and the defaults of all other keys, in the order of the schema. A key without a default has the value null.
pub fn with_defaults(set: &[ConfigEntry]) -> Vec<ConfigEntry> {
    let mut left: Vec<&ConfigEntry> = set.iter().collect();
    let mut all = Vec::new();
    for leaf in leaf_keys() {
        let of_leaf = |entry: &&&ConfigEntry| {
            entry.key == leaf.key || entry.key.strip_prefix(&leaf.key).is_some_and(|rest| rest.starts_with('['))
        };
        let found: Vec<&ConfigEntry> = left.iter().filter(of_leaf).copied().collect();
        left.retain(|entry| !found.contains(entry));
        match found.is_empty() {
            false => all.extend(found.into_iter().cloned()),
            true => all.push(ConfigEntry { key: leaf.key, value: leaf.default, origin: "default".to_owned() }),
        }
    }
    // Tables with user-chosen names.
    all.extend(left.into_iter().cloned());
    all
}
