//! The programs under test, built from the sources that are there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

struct Programs {
    toold: PathBuf,
    toolctl: PathBuf,
}

pub fn toold() -> &'static Path {
    &programs().toold
}

/// With the daemon beside it, which it starts and asks.
pub fn toolctl() -> &'static Path {
    &programs().toolctl
}

fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    // With the whole workspace, as all checks build it: cargo builds a crate again for each set of features.
    PROGRAMS.get_or_init(|| {
        let folder = build("Cargo.toml", &["--workspace", "--bins"]);
        Programs { toold: folder.join("toold"), toolctl: folder.join("toolctl") }
    })
}

/// jsonrpsee's own server, which benches compare the daemon with.
pub fn jsonrpsee_server() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("tests/benches/jsonrpsee_server/Cargo.toml", &[]).join("jsonrpsee-server-bench"))
}

/// Builds in this build's profile, and returns the folder of the programs. `cargo test` builds a package's binaries only
/// for that package's own tests, so it is done here; that is quick when nothing changed.
fn build(manifest: &str, packages: &[&str]) -> PathBuf {
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
        .args(["build", "--quiet", "--locked", "--profile", profile])
        .args(packages)
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(manifest))
        .env("CARGO_TARGET_DIR", dir.parent().expect("a profile's folder lies in the target folder"))
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{manifest} cannot be built:\n{}", String::from_utf8_lossy(&output.stderr));
    dir.to_owned()
}
