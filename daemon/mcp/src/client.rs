//! The daemon as an MCP client: one copy of each mounted server for all frontends.
//!
//! [`adapter`] is what the supervisor of mounts asks of MCP; [`endpoint`] says where a server is, [`connect`] how it is
//! reached, [`listing`] what is accepted of the tools that it lists, [`call`] what a call does. A server sees neither the
//! folder nor the roots nor the environment of any frontend: it gets its configuration, and the arguments of its calls.

pub mod adapter;
mod call;
mod connect;
mod elicitation;
pub mod endpoint;
mod listing;
mod notifications;
mod result;
