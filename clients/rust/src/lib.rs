//! A typed client of toold, for Rust programs.
//!
//! [`Client`] is a connection; [`Client::call`] makes one request with the types of
//! [`toold_proto::method`]; [`Client::execute`] calls a tool and returns a [`CallHandle`], which streams its
//! progress, can be cancelled, and ends with an answer. [`place`] finds the daemon's socket, and [`start`] starts
//! the daemon.
//! [`Client::open_session`] passes the variables of [`environment`]; its answer says whether the session's tools may work
//! in the folder, and which variables are ignored.

pub mod client;

pub mod call;
pub mod ended;
pub mod environment;
pub mod error;
pub mod holder;
pub mod models;
pub mod place;
pub mod start;
pub mod subscription;

mod link;
mod patience;
mod progress;
mod transport;

#[cfg(test)]
mod tests;

pub use call::CallHandle;
pub use client::Client;
pub use error::{ClientError, NoAnswerReason, RpcError};
pub use holder::Holder;
pub use start::{StartEnvironment, StartOptions};
pub use subscription::Items;
