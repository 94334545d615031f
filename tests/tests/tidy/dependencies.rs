//! Which crate may depend on what.

use std::collections::BTreeSet;

use crate::sources::{code_without_tests, files, read, root};

/// The `[dependencies]` of a crate, by name; those for its tests do not count.
fn dependencies(dir: &str) -> Vec<String> {
    let manifest: toml::Table = read(&format!("{dir}/Cargo.toml")).parse().unwrap();
    manifest.get("dependencies").map(|table| table.as_table().unwrap().keys().cloned().collect()).unwrap_or_default()
}

#[track_caller]
fn check_own(dir: &str, allowed: &[&str]) {
    for name in dependencies(dir).iter().filter(|name| name.starts_with("toold")) {
        assert!(allowed.contains(&name.as_str()), "{dir} may not depend on {name}");
    }
}

#[track_caller]
fn check_foreign(dir: &str, forbidden: &[&str]) {
    let names = dependencies(dir);
    for name in forbidden {
        assert!(!names.iter().any(|known| known == name), "{dir} may not depend on {name}");
    }
}

/// Names that may not stand in the sources of a crate, its tests aside.
#[track_caller]
fn check_text(dir: &str, forbidden: &[&str]) {
    check_text_but(dir, &[], forbidden);
}

/// The same without the files that have one of these parts in their paths.
#[track_caller]
fn check_text_but(dir: &str, but: &[&str], forbidden: &[&str]) {
    let is_checked = |path: &String| !but.iter().any(|part| path.contains(part));
    for path in files(&[&format!("{dir}/src/*.rs")]).into_iter().filter(is_checked) {
        let text = code_without_tests(&read(&path));
        for word in forbidden {
            assert!(!text.contains(word), "{path} may not use {word}");
        }
    }
}

#[test]
fn dependencies_point_one_way() {
    check_own("proto", &[]);
    check_own("proto/adapters", &["toold-proto"]);
    check_own("proto/files", &[]);
    check_own("daemon/engine", &["toold-proto"]);
    check_own("daemon/host", &["toold-proto", "toold-files", "toold-engine"]);
    check_own("daemon/builtins", &["toold-proto", "toold-adapters", "toold-engine", "toold-host"]);
    check_own("daemon/lua", &["toold-proto", "toold-engine", "toold-host"]);
    check_own("daemon/store", &["toold-proto", "toold-files", "toold-engine"]);
    check_own("daemon/mounts", &["toold-proto", "toold-engine", "toold-host"]);
    check_own("daemon/mcp", &["toold-proto", "toold-adapters", "toold-engine", "toold-host", "toold-mounts"]);
    // A mounted daemon is spoken to as any client speaks to one.
    check_own("daemon/remote", &["toold-proto", "toold-engine", "toold-host", "toold-mounts", "toold-client"]);
    check_own("daemon/fleet", &["toold-proto", "toold-engine", "toold-host", "toold-mounts"]);
    check_own("clients/rust", &["toold-proto", "toold-adapters"]);
    check_own("clients/toolctl", &["toold-proto", "toold-adapters", "toold-files", "toold-client"]);
    // The tests of these crates share it, so it may not need them.
    check_own("tests/kit", &["toold-proto", "toold-engine"]);
}

#[test]
fn proto_and_adapters_have_no_io() {
    for dir in ["proto", "proto/adapters"] {
        check_foreign(dir, &["tokio", "rustix", "libc"]);
        check_text(dir, &["std::fs", "std::net", "std::env", "std::process", "std::io::stdin"]);
    }
}

#[test]
fn the_engine_knows_no_system() {
    check_foreign("daemon/engine", &["jsonrpsee", "mlua", "notify", "clap", "rustix", "libc", "rusqlite", "toml"]);
    check_text("daemon/engine", &["std::fs", "std::net", "std::env", "std::process", "tokio::fs", "tokio::net"]);
}

#[test]
fn only_toold_knows_the_wire() {
    for dir in ["daemon/engine", "daemon/host", "daemon/builtins", "daemon/lua", "daemon/store"] {
        check_foreign(dir, &["jsonrpsee", "clap", "rmcp"]);
    }
    check_foreign("daemon/builtins", &["mlua"]);
    check_foreign("clients/toolctl", &["mlua", "rusqlite", "jsonschema", "rmcp"]);
}

#[test]
fn only_toold_listens() {
    let listening = &["TcpListener", "UnixListener", "tokio::signal", "signal_hook"];
    for dir in ["engine", "builtins", "lua", "store", "mounts", "mcp", "remote", "fleet"] {
        check_text(&format!("daemon/{dir}"), listening);
    }
    // The guard of a sandbox listens where only the commands of its session are, and the other one for one message of the
    // launcher.
    check_text_but("daemon/host", &["sandbox/network", "sandbox/handover.rs", "launcher/network.rs"], listening);
    // MCP servers and other daemons are reached by connecting to them; the web by one guarded client.
    for dir in ["engine", "builtins", "lua", "store"] {
        check_text(&format!("daemon/{dir}"), &["TcpStream", "UnixStream", "tungstenite"]);
    }
}

/// Cargo would build a crate a second time for the programs if a test's dependency turned on another feature of it, and
/// the tests would not try what users of packages get.
#[test]
fn tests_turn_on_no_features_of_the_programs_crates() {
    let with_tests = features(&["--workspace", "--edges", "normal,build,dev"]);
    let of_packages = ["--features", "toold/fleet,toold/trace"];
    let of_programs =
        features(&[&["-p", "toold", "-p", "toolctl", "--edges", "normal,build"], &of_packages[..]].concat());
    let other: Vec<&String> = of_programs.difference(&with_tests).collect();
    assert!(other.is_empty(), "these have other features in tests: {other:#?}");
    assert!(of_programs.iter().any(|line| line.starts_with("toold-engine ")), "{of_programs:?}");
}

/// Each crate with its version and its features.
fn features(selection: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.args(["tree", "--frozen", "--prefix", "none", "--format", "{p} {f}"]).args(selection);
    let output = command.current_dir(root()).output().expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A crate that was shown before is marked.
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}
