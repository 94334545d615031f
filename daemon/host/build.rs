//! Compiles [the launcher](src/launcher/main.rs), one static program without dependencies, which the daemon contains.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/launcher");
    let program = PathBuf::from(var("OUT_DIR")).join("launcher");
    if var("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    if let Err(error) = compile(&program) {
        println!("cargo::warning=commands will start several times slower: the launcher can't be compiled: {error}");
        fs::write(&program, []).expect("cargo made the folder for the output");
    }
}

fn compile(program: &Path) -> Result<(), String> {
    let mut rustc = Command::new(var("RUSTC"));
    // The path is relative to the package, so that the program does not depend on where that is.
    rustc.args(["src/launcher/main.rs", "--crate-name=launcher", "--edition=2024", "--cap-lints=allow"]);
    rustc.arg("--target").arg(var("TARGET")).arg("-o").arg(program);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.display()));
    }
    let how = ["opt-level=s", "panic=abort", "codegen-units=1", "strip=symbols", "target-feature=+crt-static"];
    rustc.args(how.iter().flat_map(|option| ["-C", option]));
    if var("CARGO_CFG_TARGET_ARCH") == "x86_64" && var("CARGO_CFG_TARGET_ENV") == "gnu" {
        // See `entry.rs`. Without relocations, its code runs before anything has applied them.
        rustc.args(["-C", "relocation-model=static", "-C", "link-arg=-Wl,--entry=launcher_entry"]);
    }
    let output = rustc.output().map_err(|error| error.to_string())?;
    let words = String::from_utf8_lossy(&output.stderr);
    let line = words.lines().find(|line| line.starts_with("error")).unwrap_or("rustc failed");
    if output.status.success() { Ok(()) } else { Err(line.to_owned()) }
}

fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
