//! Tests that cannot run on this machine: they report it, since a test that passes without running proves nothing.

use std::io::{Write, stderr};

/// Reports that the current test, or a part of it, does not run because this machine cannot do what it needs.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    // Past the test harness, which hides the output of tests that pass.
    let _ = writeln!(stderr(), "SKIPPED {}: {reason}", thread.name().unwrap_or("a test"));
}

/// The same for a program or library that is not installed. Fails where `CI` is set, since `.ci/install` installs it.
#[track_caller]
pub fn skip_uninstalled(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what} is not installed: run .ci/install");
    skip(&format!("{what} is not installed; .ci/install installs it"));
}
