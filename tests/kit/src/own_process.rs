//! Tests that need a process of their own.

use std::process::Command;

/// Runs one test of this program in another process, and nothing else; `name` is its path, such as `crash::writer`. The
/// test learns by a variable that it is run for another one, and does nothing without it.
pub fn own_process(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test knows its own path"));
    command.args(["--exact", name, "--nocapture"]);
    command
}
