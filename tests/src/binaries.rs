//! The programs under test, built from the sources that are there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub fn toold() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| build("toold"))
}

/// With the daemon beside it, which it starts and asks.
pub fn toolctl() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        toold();
        build("toolctl")
    })
}

/// Builds the binary of a package in this build's profile. `cargo test` builds a package's binaries only for
/// that package's own tests, so it is done here; that is quick when nothing changed.
fn build(package: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let dir = test.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "deps"));
    let dir = dir.and_then(Path::parent).expect("tests lie in the folder deps of their profile");
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => panic!("{} names no profile", dir.display()),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // Cargo's variables about the test's package do not belong in this build: some build scripts run again when one
    // changes, with all that depends on them.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|own| name.starts_with(own))) {
            command.env_remove(name);
        }
    }
    let output = command
        .args(["build", "--quiet", "--profile", profile, "--bin", package, "-p", package])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")])
        .env("CARGO_TARGET_DIR", dir.parent().expect("a profile's folder lies in the target folder"))
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{package} cannot be built:\n{}", String::from_utf8_lossy(&output.stderr));
    dir.join(package)
}
