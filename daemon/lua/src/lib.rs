//! The Lua host: plugins are found, loaded, reloaded and called here.
//!
//! [`reload`] is what the daemon starts: it watches plugin folders and loads what changed. [`api`] is what scripts can do
//! beyond Lua, [`plugin`] is a loaded plugin with its tools, hooks and commands, and [`vm`] is the Lua state below all of
//! them. Each of the four uses only those that are named after it.

mod api;
#[doc(hidden)]
pub mod fuzz;
pub mod plugin;
pub mod reload;
mod vm;
