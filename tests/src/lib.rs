//! The harness: real daemons for tests, and raw clients that see every byte.

mod binaries;
mod browser;
mod daemon;
pub mod fuzz;
mod skip;
mod terminal;
mod tmux;
mod wait;
mod wire;

pub use binaries::{toolctl, toold};
pub use browser::{Browser, PageAnswer, PageSocket};
pub use daemon::{Setup, TestDaemon};
pub use skip::{skip, skip_uninstalled};
pub use terminal::Terminal;
pub use tmux::{Pane, Tmux};
pub use wait::{PATIENCE, until};
pub use wire::{Wire, WireFraming};
