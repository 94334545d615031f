//! The harness: real daemons for tests, and raw clients that see every byte.

mod binaries;
mod browser;
mod daemon;
mod fleet;
pub mod fuzz;
mod nats;
mod skip;
mod terminal;
mod tmux;
mod wait;
mod wire;

pub use binaries::{toolctl, toold};
pub use browser::{Browser, PageAnswer, PageSocket};
pub use daemon::{Setup, TestDaemon};
pub use fleet::FleetPlan;
pub use nats::{NatsServer, nats_server};
pub use skip::{skip, skip_uninstalled};
pub use terminal::Terminal;
pub use tmux::{Pane, Tmux};
pub use wait::{PATIENCE, until};
pub use wire::{Wire, WireFraming};
