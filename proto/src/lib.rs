//! The types that the daemon and its clients share.
//!
//! Types of the wire in reading order, then [`method`], which names every method with its
//! parameters and its answer, and [`openrpc`], which describes them all. No I/O.

pub mod agent_names;
pub mod agent_programs;
pub mod agent_request;
pub mod argument_names;
pub mod audit;
pub mod cache;
pub mod call;
pub mod command;
pub mod config;
pub mod cost;
pub mod cut;
pub mod daemon;
pub mod effect;
pub mod error;
pub mod event;
pub mod file;
pub mod fleet;
pub mod hook;
pub mod level;
pub mod mcp;
pub mod mcp_line;
pub mod mcp_registry;
pub mod method;
pub mod nearest;
pub mod notify;
pub mod offer;
pub mod openrpc;
pub mod page;
pub mod permission;
pub mod plugin;
pub mod plugin_log;
pub mod plugin_profile;
pub mod prompt;
pub mod provide;
pub mod question;
pub mod remote;
pub mod secret;
pub mod session;
pub mod shell;
pub mod shell_word;
pub mod skill;
pub mod socket;
pub mod todo;
pub mod tool;
pub mod weight;
pub mod workspace;

/// The revision of the native dialect that is spoken here, and the only one that a client may name in
/// `session.open {protocol}`.
pub const PROTOCOL: u32 = 2;
