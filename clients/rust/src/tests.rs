//! The client as its users see it, against peers and programs of a test's own.

mod connection;
mod start;
