//! How clients reach the daemon.

pub mod stdio;
pub mod unix;
