//! Other daemons: their tools as our own.
//!
//! [`adapter`] implements remote daemons for the supervisor of mounts; [`endpoint`] describes where
//! one is, [`connect`] reaches it, [`websocket`] connects two daemons over HTTP, [`listing`] checks
//! the tools that it lists, [`call`] runs a call, [`session`] manages the remote sessions and
//! relays their prompts.
//!
//! A remote daemon sees neither the folder nor the environment of any frontend here: it gets the
//! arguments of calls, and the folder that the configuration names.

pub mod adapter;
mod address;
mod call;
mod connect;
pub mod endpoint;
mod link;
mod listing;
mod peer;
mod session;
pub mod websocket;
