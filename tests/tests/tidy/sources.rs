//! The files that the rules are about: those that Git tracks, and new ones that it does not ignore.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Files whose path matches one of Git's patterns (`*` crosses folders), relative to the repository.
pub(crate) fn files(patterns: &[&str]) -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"])
        .args(patterns)
        .current_dir(root())
        .output()
        .expect("git lists the files");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).expect("paths are UTF-8");
    // A file that was removed and not yet committed is still listed.
    let mut files: Vec<String> =
        listed.split_terminator('\0').filter(|path| root().join(path).exists()).map(str::to_owned).collect();
    files.sort();
    files.dedup();
    assert!(!files.is_empty(), "git knows no file that matches {patterns:?}");
    files
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The crates of the workspace, by their folders.
pub(crate) fn crates() -> Vec<String> {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    members.iter().map(|member| member.as_str().unwrap().to_owned()).collect()
}

/// Rust without its comments and without the text of raw strings, which may hold other programs.
pub(crate) fn code(text: &str) -> String {
    let without_comments = regex::Regex::new(r"(?m)(^|[^:])//.*$").unwrap().replace_all(text, "$1");
    let raw_string = regex::Regex::new(r##"(?s)r#+".*?"#+"##).unwrap();
    raw_string.replace_all(&without_comments, "\"\"").into_owned()
}

/// The same without the module of unit tests, which stands at a file's end.
pub(crate) fn code_without_tests(text: &str) -> String {
    let code = code(text);
    code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()
}
