//! The daemon: sockets, connections, methods, configuration, signals.
//!
//! A request comes in by [`transport`], its method is in [`rpc`], and what happens to a call is `toold-engine`'s. [`peer`]
//! is who is at the other end and in which session, [`config`] is what the user configured, [`lifecycle`] is how the
//! daemon starts, restarts and stops, and [`daemon`] puts them together. Each uses those after it in this list:
//! daemon, transport, rpc, lifecycle, peer, config.

pub mod config;
pub mod daemon;
pub mod lifecycle;
pub mod peer;
pub mod rpc;
pub mod transport;
