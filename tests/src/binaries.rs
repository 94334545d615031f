//! The programs under test, built from the sources that are there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub fn toold() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built().join("toold"))
}

pub fn toolctl() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built().join("toolctl"))
}

/// The folder of the binaries of this build's profile. `cargo test` builds the binaries of a package only
/// for that package's own tests, so they are built here; that is quick when nothing changed.
fn built() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        let dir = test.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "deps"));
        let dir = dir.and_then(Path::parent).expect("tests lie in the folder deps of their profile").to_owned();
        let profile = match dir.file_name().and_then(|name| name.to_str()) {
            Some("debug") => "dev",
            Some(name) => name,
            None => panic!("{} names no profile", dir.display()),
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
        let status = Command::new(cargo)
            .args(["build", "--quiet", "--profile", profile, "--bins", "-p", "toold", "-p", "toolctl"])
            .args(["--manifest-path", manifest])
            .env("CARGO_TARGET_DIR", dir.parent().expect("a profile's folder lies in the target folder"))
            .status()
            .expect("cargo can be started");
        assert!(status.success(), "toold and toolctl cannot be built");
        dir
    })
}
