//! Calls from request to answer, with tools that do as the test says.

mod arguments;
mod asks;
mod cache;
mod elsewhere;
mod hooks;
mod offers;
mod questions;
mod refusals;
mod repeats;
mod runs;
mod scenes;
mod test_engine;
mod workspaces;
