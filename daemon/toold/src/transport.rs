//! How clients reach the daemon.

pub mod framing;
pub mod http;
pub mod stdio;
pub mod unix;

mod room;
