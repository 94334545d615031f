//! Lua states: how they are made, how calls take turns in them, what stops a script, and how values cross.
//!
//! A call's way goes through [`lua_state`] and [`raw`].

pub(crate) mod args;
pub(crate) mod convert;
pub(crate) mod create;
pub(crate) mod diagnostics;
pub(crate) mod dialect;
pub(crate) mod display;
pub(crate) mod gate;
pub(crate) mod globals;
pub(crate) mod interrupt;
pub(crate) mod line_hits;
pub(crate) mod lua_state;
pub(crate) mod members;
pub(crate) mod raw;
pub(crate) mod sampler;
pub(crate) mod script_run;
pub(crate) mod tokens;
pub(crate) mod watchdog;
pub(crate) mod words;
pub(crate) mod worker_thread;
