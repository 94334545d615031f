//! A fleet: daemons on several machines that share tools, asks, grants and the audit log through a NATS server.
//!
//! The server, called the broker here, carries messages and is trusted with nothing: each message that causes something is
//! [`signed`] with the key of a daemon or of a person whom the receiver's configuration names. [`messages`] are the
//! texts on the wire, [`subjects`] where they are sent, [`fleet`] keeps this daemon's part in it, [`member`], running.
//!
//! The daemon that runs a call decides about it, as about any other call. A call is answered by `accepted` first, which
//! contains a random challenge, and runs when the caller has signed that challenge: a call that somebody recorded can
//! be run neither twice nor on two daemons.

pub mod adapter;
mod announce;
mod ask;
pub mod audit;
mod away;
mod blobs;
pub mod broker;
pub mod call;
mod caller_origin;
mod changes;
pub mod counts;
pub mod directory;
pub mod fleet;
mod follow;
mod foreign_asks;
pub mod grant_book;
pub mod grants;
pub mod host;
pub mod keys;
mod listing;
pub mod member;
pub mod messages;
pub mod names;
mod offered;
mod outgoing;
mod own_asks;
pub mod refusal;
mod serve;
mod served_calls;
mod service;
pub mod settings;
mod show_asks;
pub mod signed;
pub mod silence;
pub mod subjects;
pub mod target;
