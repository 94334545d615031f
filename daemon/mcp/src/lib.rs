//! The Model Context Protocol, both sides, on the official Rust SDK.
//!
//! [`server`] lets any MCP client use the registry; [`client`] mounts other people's servers in it,
//! and [`registry`] finds them.

mod boxed_transport;
pub mod client;
mod client_log;
pub mod registry;
pub mod server;
