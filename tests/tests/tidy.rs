//! The shape of the house: which crate may know what.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "node_modules" | ".git") {
                found.extend(files(&path, ending));
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The `[dependencies]` of a crate, by name; those for its tests do not count.
fn dependencies(dir: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join(dir).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    manifest["dependencies"].as_table().unwrap().keys().cloned().collect()
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

#[track_caller]
fn check_text(dir: &str, forbidden: &[&str]) {
    for path in files(&root().join(dir).join("src"), ".rs") {
        let text = fs::read_to_string(&path).unwrap();
        for word in forbidden {
            assert!(!text.contains(word), "{} may not use {word}", path.display());
        }
    }
}

#[test]
fn dependencies_point_one_way() {
    check_own("proto", &[]);
    check_own("proto/adapters", &["toold-proto"]);
    check_own("daemon/engine", &["toold-proto"]);
    check_own("daemon/host", &["toold-proto", "toold-engine"]);
    check_own("daemon/builtins", &["toold-proto", "toold-engine", "toold-host"]);
    check_own("daemon/lua", &["toold-proto", "toold-engine", "toold-host"]);
    check_own("daemon/store", &["toold-proto", "toold-engine"]);
    check_own("daemon/mcp", &["toold-proto", "toold-adapters", "toold-engine", "toold-host"]);
    // A mounted daemon is spoken to as any client speaks to one.
    check_own("daemon/remote", &["toold-proto", "toold-engine", "toold-host", "toold-client"]);
    check_own("clients/rust", &["toold-proto", "toold-adapters"]);
    check_own("clients/toolctl", &["toold-proto", "toold-adapters", "toold-client"]);
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

/// Where no safe function does it, each with the reason.
const UNSAFE: &[&str] =
    &["daemon/host/src/sandbox/kernel/attributes.rs", "daemon/lua/src/raw.rs", "daemon/toold/src/main.rs"];

#[test]
fn unsafe_code_stands_in_the_files_that_are_listed() {
    let mut with_unsafe = Vec::new();
    for dir in ["proto", "daemon", "clients", "tests/src"] {
        for path in files(&root().join(dir), ".rs") {
            if fs::read_to_string(&path).unwrap().contains("allow(unsafe_code") {
                with_unsafe.push(path.strip_prefix(root()).unwrap().display().to_string());
            }
        }
    }
    with_unsafe.sort();
    assert_eq!(with_unsafe, UNSAFE);
}

#[test]
fn files_that_documents_name_are_there() {
    for document in
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "plugins/README.md", "proto/PROTOCOL.md", "daemon/SECURITY.md"]
    {
        let path = root().join(document);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{document}: {error}"));
        let mut rest = text.as_str();
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            let target = rest[..end].split('#').next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                let named = path.parent().unwrap().join(target);
                assert!(named.exists(), "{document} names {target}, which is not there");
            }
        }
    }
}
