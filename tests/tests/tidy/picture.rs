//! The picture of the crates in ARCHITECTURE.md shows the crates that there are.

use std::process::Command;

use crate::sources::root;

#[test]
fn picture_of_the_crates_is_current() {
    let script = root().join("docs/crates.py");
    let checked = Command::new("python3").arg(script).arg("--check").output().expect("python3 can be started");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
