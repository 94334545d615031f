//! The engine, as the daemon uses it.

mod batch;
mod calls;
mod tool_search;
