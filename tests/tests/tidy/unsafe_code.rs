//! `unsafe` stands in few files, each with its reason.

use crate::sources::{code, files, read};

/// Files in which no safe function does what is needed.
const ALLOWED: &[(&str, &str)] = &[
    ("daemon/host/src/launcher/entry.rs", "runs before the C library has started"),
    ("daemon/host/src/launcher/system.rs", "system calls, for a program that is compiled without crates"),
    ("daemon/host/src/memory_reserve.rs", "memory that is mapped beside the allocator"),
    ("daemon/host/src/sandbox/sockets/notifications.rs", "requests to the kernel that no crate makes"),
    ("daemon/lua/src/vm/raw.rs", "the C interface of the Lua virtual machine"),
    (
        "daemon/toold/src/allocator.rs",
        "an allocator is unsafe, and jemalloc looks its options up by the name of a symbol",
    ),
];

#[test]
fn unsafe_code_stands_in_the_files_that_are_listed() {
    let unsafe_code = regex::Regex::new(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b|\()|allow\(unsafe_code").unwrap();
    let found: Vec<String> =
        files(&["*.rs"]).into_iter().filter(|path| unsafe_code.is_match(&code(&read(path)))).collect();
    let allowed: Vec<&str> = ALLOWED.iter().map(|(path, _)| *path).collect();
    assert_eq!(found, allowed);
}
