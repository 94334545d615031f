//! Other daemons.
//!
//! [`websocket`] is how two of them talk over HTTP.

pub mod websocket;
