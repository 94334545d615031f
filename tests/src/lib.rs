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
mod processes;
mod proxy;
mod skip;
mod terminal;
mod tmux;
mod wait;
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
pub use processes::has_ended;
pub use proxy::Proxy;
pub use skip::{skip, skip_uninstalled};
pub use terminal::Terminal;
pub use tmux::{Pane, Tmux};
pub use wait::{PATIENCE, until};
pub use wire::{Wire, WireFraming};
