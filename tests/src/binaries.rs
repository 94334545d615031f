//! The programs under test, built from the sources that are there.

use std::fs::File;
use std::io::{Read, Write};
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
        let folder = profile_folder();
        once_a_run(&folder, || build("Cargo.toml", &["--workspace", "--bins"]));
        Programs { toold: folder.join("toold"), toolctl: folder.join("toolctl") }
    })
}

/// Under nextest each test is a process: the first one of a run does it, and the others wait for that.
fn once_a_run(folder: &Path, work: impl FnOnce()) {
    let Ok(run) = std::env::var("NEXTEST_RUN_ID") else { return work() };
    let mut file = File::options().read(true).append(true).create(true).open(folder.join("built-for-run")).unwrap();
    file.lock().unwrap();
    let mut built = String::new();
    file.read_to_string(&mut built).unwrap();
    if built != run {
        work();
        file.set_len(0).unwrap();
        file.write_all(run.as_bytes()).unwrap();
    }
}

/// jsonrpsee's own server, which benches compare the daemon with.
pub fn jsonrpsee_server() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        build("tests/benches/jsonrpsee_server/Cargo.toml", &[]);
        profile_folder().join("jsonrpsee-server-bench")
    })
}

/// The folder of this build's profile in the target folder, which holds the programs.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let deps = test.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "deps"));
    deps.and_then(Path::parent).expect("tests lie in the folder deps of their profile").to_owned()
}

/// Builds in this build's profile. `cargo test` builds a package's binaries only for that package's own tests, so it is
/// done here; that is quick when nothing changed.
fn build(manifest: &str, packages: &[&str]) {
    let dir = profile_folder();
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
}
