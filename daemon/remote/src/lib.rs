//! Other daemons: their tools as our own.
//!
//! [`adapter`] is what the supervisor of mounts asks of a daemon; [`endpoint`] says where one is, [`connect`] how it is
//! reached, [`websocket`] how two daemons talk over HTTP, [`listing`] what is accepted of its tools, [`call`] what a call
//! does, [`session`] where calls run there and how its prompts come here.
//!
//! A daemon there sees neither the folder nor the environment of any frontend here: it gets the arguments of calls,
//! and the folder that the configuration names.

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
