//! The daemon: sockets, connections, methods, configuration, signals.
//!
//! A request arrives through [`transport`], its method is in [`rpc`], and `toold-engine` runs
//! calls. [`peer`] identifies the client and its session, [`config`] is the user's configuration,
//! [`lifecycle`] is how the daemon starts, restarts and stops, and [`daemon`] puts them together.
//! Each uses those after it in this list: daemon, transport, rpc, lifecycle, peer, config.

pub mod config;
pub mod daemon;
pub mod lifecycle;
pub mod peer;
pub mod rpc;
pub mod transport;
