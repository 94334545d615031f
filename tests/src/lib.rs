//! The harness: real daemons for tests, and raw clients that see every byte.

mod binaries;
mod browser;
mod bus;
mod clock;
mod daemon;
mod dice;
mod fleet;
pub mod fuzz;
mod nats;
mod ports;
mod proxy;
mod terminal;
mod tmux;
mod wire;

pub use binaries::{jsonrpsee_server, toolctl, toold};
pub use browser::{Browser, PageAnswer, PageSocket};
pub use bus::{Bus, BusMessage};
pub use clock::faketime_library;
pub use daemon::{Setup, TestDaemon};
pub use dice::{Dice, setting};
pub use fleet::FleetPlan;
pub use nats::{NatsServer, nats_server};
pub use ports::lasting_port;
pub use proxy::Proxy;
pub use terminal::Terminal;
pub use tmux::{PRESS_EVERY, Pane, Tmux};
// Every test of a daemon waits for something, so what waits is here too.
pub use toold_test_kit::{PATIENCE, has_ended, skip, skip_uninstalled, until};
pub use wire::{Wire, WireFraming};
