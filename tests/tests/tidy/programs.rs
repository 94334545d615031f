//! Few test programs: each one is linked again, most of them with the daemon.

use crate::sources::{crates, files};

/// All programs of tests but the unit tests of each crate. A new test is a module of one of them.
const PROGRAMS: &[&str] = &[
    "daemon/builtins/tests/all",
    "daemon/engine/tests/engine",
    "daemon/host/tests/host",
    "daemon/lua/tests/lua",
    "daemon/store/tests/store",
    "proto/adapters/tests/adapters",
    "tests/tests/clients",
    "tests/tests/daemon",
    "tests/tests/network",
    "tests/tests/tidy",
];

#[test]
fn a_new_test_is_a_module_of_a_program_that_exists() {
    let folders: Vec<String> = crates().iter().map(|krate| format!("{krate}/tests/")).collect();
    let mut found: Vec<String> = files(&["*/tests/*.rs"])
        .into_iter()
        .filter_map(|path| {
            // The folder of a crate may lie in that of another one.
            let below =
                folders.iter().filter_map(|folder| path.strip_prefix(folder.as_str())).min_by_key(|p| p.len())?;
            let program = below.strip_suffix("/main.rs").or_else(|| below.strip_suffix(".rs"))?;
            (!program.contains('/')).then(|| path.strip_suffix("/main.rs").unwrap_or(&path).to_owned())
        })
        .collect();
    found.sort();
    assert_eq!(found, PROGRAMS);
}
