//! The daemon as an MCP client: one copy of each mounted server for all frontends.
//!
//! [`adapter`] implements MCP for the supervisor of mounts; [`endpoint`] describes where a server
//! is, [`connect`] reaches it, [`logins`] has its logins, [`listing`] checks the tools that it lists, [`call`] runs a call. A
//! server sees neither the folder nor the roots nor the environment of any frontend: it gets its
//! configuration, and the arguments of its calls.

pub mod adapter;
mod call;
mod connect;
mod elicitation;
pub mod endpoint;
mod greeting;
mod http_with_sse;
mod listing;
pub mod logins;
mod notifications;
mod result;
mod turns;
