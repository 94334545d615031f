//! The daemon: sockets, connections, methods, configuration, signals.
//!
//! Read [`daemon`] for what there is, [`transport`] and [`connection`] for how a request comes in,
//! and [`rpc`] for what each method does. What happens to a call is `toold-engine`'s.

pub mod agents;
pub mod authors;
pub mod budget;
pub mod bundled;
pub mod cleaning;
pub mod config;
pub mod connection;
pub mod daemon;
pub mod framing;
pub mod frontends;
pub mod hooks;
pub mod idle;
pub mod in_force;
pub mod kept;
pub mod logging;
pub mod mcp;
pub mod mcp_servers;
pub mod metrics;
pub mod outboxes;
pub mod parsed;
pub mod peer;
pub mod places;
pub mod plugins;
pub mod process;
pub mod project;
pub mod remotes;
pub mod restart;
pub mod rpc;
pub mod sandbox;
pub mod serve;
pub mod service_manager;
pub mod sessions;
pub mod skills;
pub mod spool;
pub mod stop_deadline;
pub mod traces;
pub mod transport;
pub mod trust;
pub mod upgrade;
pub mod web;
pub mod workspaces;
