//! Tests that cannot run on this machine: they report it, since a test that passes without running proves nothing.

use std::fs::File;
use std::io::{Write, stderr};

/// Reports that the current test, or a part of it, does not run because this machine cannot do what it needs: on standard
/// error, and in the file that `TOOLD_SKIPPED` names, since nextest shows nothing of tests that pass.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    // Under nextest, a test may run on the main thread.
    let name = std::env::var("NEXTEST_TEST_NAME").ok();
    let name = name.as_deref().or(thread.name()).unwrap_or("a test");
    let line = format!("SKIPPED {name}: {reason}\n");
    // Past the test harness, which hides the output of tests that pass.
    let _ = stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("TOOLD_SKIPPED") {
        let mut file = File::options().append(true).create(true).open(path).expect("TOOLD_SKIPPED names a file");
        file.write_all(line.as_bytes()).unwrap();
    }
}

/// The same for a program or library that is not installed. Fails where `CI` is set, since `.ci/install` installs it.
#[track_caller]
pub fn skip_uninstalled(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what} is not installed: run .ci/install");
    skip(&format!("{what} is not installed; .ci/install installs it"));
}
