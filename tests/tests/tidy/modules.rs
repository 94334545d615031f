//! The top-level modules of a crate depend on each other in one direction.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{code_without_tests, crates, files, read};

/// Which module uses which, with the files that do.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The top-level modules of a crate.
fn modules(krate: &str) -> BTreeSet<String> {
    let src = format!("{krate}/src/");
    let files = files(&[&format!("{src}*.rs")]);
    files.iter().map(|path| module_of(&path[src.len()..])).filter(|module| !is_root(module)).collect()
}

/// The top-level module of a file, whose path is below `src`.
fn module_of(path: &str) -> String {
    let first = path.split('/').next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first).to_owned()
}

fn is_root(module: &str) -> bool {
    matches!(module, "lib" | "main" | "bin")
}

/// The dependencies between the top-level modules of a crate. A submodule counts as its top-level module; the crate's
/// root may name all, and tests may reach anywhere.
fn uses(krate: &str) -> Uses {
    let src = format!("{krate}/src/");
    let modules = modules(krate);
    let mut uses = Uses::new();
    for path in &files(&[&format!("{src}*.rs")]) {
        let module = module_of(&path[src.len()..]);
        let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
        if is_root(&module) || is_test {
            continue;
        }
        let text = code_without_tests(&read(path));
        let mut named = paths_from(&text, "crate::");
        if !path[src.len()..].contains('/') {
            named.extend(paths_from(&text.replace("super::super::", ""), "super::"));
        }
        for other in named.into_iter().filter(|other| *other != module && modules.contains(other)) {
            uses.entry(module.clone()).or_default().entry(other).or_default().insert(path[src.len()..].to_owned());
        }
    }
    uses
}

/// The first segments of all paths that begin with the prefix: of `crate::a::b` and of `crate::{a::b, c}` alike.
fn paths_from(text: &str, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices(prefix) {
        let rest = &text[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(first_segments(group)),
            None => found.extend(first_segment(rest)),
        }
    }
    found
}

fn first_segment(path: &str) -> Option<String> {
    let path = path.trim_start();
    let end = path.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(path.len());
    (end > 0).then(|| path[..end].to_owned())
}

/// The first segments of a group of imports, whose text starts after the opening brace.
fn first_segments(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut found) = (1, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            found.extend(first_segment(&group[start..at]));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Whether one module leads back to itself.
fn leads_back(uses: &Uses, start: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        for next in uses.get(module).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

#[test]
fn modules_of_a_crate_form_no_circle() {
    let mut wrong = Vec::new();
    for krate in &crates() {
        let uses = uses(krate);
        let circular: BTreeSet<&str> = uses.keys().map(String::as_str).filter(|name| leads_back(&uses, name)).collect();
        for module in &circular {
            for (other, files) in uses[*module].iter().filter(|(other, _)| circular.contains(other.as_str())) {
                let files: Vec<&str> = files.iter().map(String::as_str).collect();
                wrong.push(format!("{krate}: {module} uses {other} ({})", files.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "modules that depend on each other in a circle:\n{}", wrong.join("\n"));
}

/// Crates whose folders show their design. Anything new belongs into one of these modules.
const TOP_LEVEL: &[(&str, &[&str])] = &[
    ("daemon/toold", &["allocator", "config", "daemon", "lifecycle", "peer", "rpc", "transport"]),
    ("daemon/lua", &["api", "fuzz", "plugin", "reload", "vm"]),
];

#[test]
fn no_new_module_stands_beside_those_that_show_the_design() {
    for (krate, expected) in TOP_LEVEL {
        let found: Vec<String> = modules(krate).into_iter().collect();
        assert_eq!(found, *expected, "the top-level modules of {krate}");
    }
}

#[test]
fn groups_of_imports_are_read() {
    let text = "use crate::{one::{a, b}, two,\n    three::c as d};\ncrate::four::f();";
    assert_eq!(paths_from(text, "crate::").into_iter().collect::<Vec<_>>(), ["four", "one", "three", "two"]);
}
