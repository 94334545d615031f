//! The generator of hostile command lines, which the tests of `toold-host` have, for a real daemon.
#![expect(dead_code, reason = "those tests use the rest of it")]

#[path = "../../../daemon/host/tests/host/commands/folders.rs"]
mod folders;
#[path = "hostile_lines.rs"]
mod hostile;
#[path = "../../../daemon/host/tests/host/commands/judge.rs"]
mod judge;
#[path = "../../../daemon/host/tests/host/commands/random.rs"]
mod random;
