//! Each type has a name of its own, so that a search for it finds one thing.

use std::collections::BTreeMap;

use crate::sources::{code, files, read};

#[test]
fn each_type_name_is_unique_in_the_workspace() {
    // Associated types (`type Error = ...` in an impl) are indented, and have the names that their traits give them.
    let definition = regex::Regex::new(
        r"(?m)^(?:[ \t]*(?:pub(?:\([a-z ]+\))? )?(?:unsafe )?(?:struct|enum|trait|union)|(?:pub(?:\([a-z ]+\))? )?type) ([A-Z]\w*)",
    )
    .unwrap();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(&["*.rs"]) {
        // A workspace of its own; and modules that take the place of others of the same names.
        if path.starts_with("tests/fuzz/") || path.contains("/without_") {
            continue;
        }
        for found in definition.captures_iter(&code(&read(&path))) {
            places.entry(found[1].to_owned()).or_default().push(path.clone());
        }
    }
    // Each program has one, by the convention of clap.
    places.remove("Cli");
    let wrong: Vec<String> = places
        .iter()
        .filter(|(_, paths)| paths.len() > 1)
        .map(|(name, paths)| format!("{name}: {}", paths.join(", ")))
        .collect();
    assert!(wrong.is_empty(), "types that share a name; give each its own:\n{}", wrong.join("\n"));
}
