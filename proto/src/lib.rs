//! The words that the daemon and its clients share.
//!
//! Types of the wire in reading order, then [`method`], which names every method with its
//! parameters and its answer, and [`openrpc`], which describes them all. No I/O.

pub mod audit;
pub mod cache;
pub mod call;
pub mod command;
pub mod config;
pub mod daemon;
pub mod error;
pub mod event;
pub mod file;
pub mod hook;
pub mod mcp;
pub mod method;
pub mod offer;
pub mod openrpc;
pub mod permission;
pub mod plugin;
pub mod prompt;
pub mod provide;
pub mod question;
pub mod remote;
mod schema;
pub mod session;
pub mod shell;
pub mod skill;
pub mod socket;
pub mod todo;
pub mod tool;

pub use schema::schema_of;

/// The revision of the native dialect; `session.open {protocol}` must name it.
pub const PROTOCOL: u32 = 1;
