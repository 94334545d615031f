//! One version: that of the workspace, in the packages of all clients and in the documents; and one revision of the protocol.

use regex::Regex;

use crate::sources::{files, read};

fn version() -> String {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    manifest["workspace"]["package"]["version"].as_str().unwrap().to_owned()
}

#[test]
fn packages_of_clients_have_the_version_of_the_workspace() {
    let mut found = Vec::new();
    let mut note = |path: &str, version: Option<&str>| {
        found.push((path.to_owned(), version.expect("a version stands in it").to_owned()));
    };
    for path in files(&["clients/*package.json", "clients/*package-lock.json"]) {
        let package: serde_json::Value = serde_json::from_str(&read(&path)).unwrap();
        note(&path, package["version"].as_str());
        // In a lock file: the package itself, and those of other folders.
        let own = package["packages"].as_object().into_iter().flatten();
        own.filter(|(folder, _)| folder.is_empty() || folder.starts_with("..")).for_each(|(_, package)| {
            note(&path, package["version"].as_str());
        });
    }
    let python: toml::Table = read("clients/python/pyproject.toml").parse().unwrap();
    note("clients/python/pyproject.toml", python["project"]["version"].as_str());
    let emacs = read("clients/emacs/toold.el");
    note("clients/emacs/toold.el", emacs.lines().find_map(|line| line.strip_prefix(";; Version: ")));
    let version = version();
    found.retain(|(_, found)| *found != version);
    assert!(found.is_empty(), "expected {version}: {found:?}");
}

#[test]
fn documents_name_the_version_of_the_workspace() {
    let version = version();
    let named = Regex::new(r"\b(?:toold|toolctl)[ _-](\d+\.\d+\.\d+)\b").unwrap();
    let mut wrong = Vec::new();
    for path in files(&["*.md"]) {
        let text = read(&path);
        // A daemon of another version in examples.
        let other = named.captures_iter(&text).filter(|found| ![&*version, "9.0.0"].contains(&&found[1]));
        wrong.extend(other.map(|found| format!("{path}: {}", &found[0])));
    }
    assert!(wrong.is_empty(), "expected {version}: {wrong:?}");
    let newest = read("CHANGELOG.md").lines().find_map(|line| line.strip_prefix("## ").map(str::to_owned));
    assert!(newest.as_ref().is_some_and(|newest| newest.starts_with(&version)), "CHANGELOG.md begins with {newest:?}");
}

#[test]
fn clients_speak_the_revision_of_the_protocol_that_the_daemon_speaks() {
    let own = format!("{}", toold_proto::PROTOCOL);
    let spoken = Regex::new(r"(?m)\bprotocol(?: ?[:=] ?| )(\d+)\b").unwrap();
    let clients = [
        "clients/emacs/toold.el",
        "clients/nvim/lua/toold/client.lua",
        "clients/page/src/daemon.ts",
        "clients/python/src/toold/aio.py",
        "clients/python/src/toold/sync.py",
        "clients/typescript/src/client.ts",
    ];
    for path in clients {
        let text = read(path);
        let named: Vec<&str> = spoken.captures_iter(&text).map(|found| found.extract::<1>().1[0]).collect();
        assert_eq!(named, [own.as_str()], "{path}");
    }
    assert!(read("proto/PROTOCOL.md").contains(&format!("the revision that a client speaks, {own}.")));
}
