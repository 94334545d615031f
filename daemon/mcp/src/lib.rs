//! The Model Context Protocol, both sides, on the official Rust SDK.
//!
//! [`server`] lets any MCP client use the registry; [`client`] mounts other people's servers in it.

pub mod client;
pub mod server;
