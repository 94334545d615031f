//! One file a subcommand: what it takes, and what it does.

pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod author;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mcp_servers;
pub(crate) mod parse;
pub(crate) mod permissions;
pub(crate) mod plugins;
pub(crate) mod prompt;
pub(crate) mod schema;
pub(crate) mod sessions;
pub(crate) mod shells;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod undo;
pub(crate) mod watch;
