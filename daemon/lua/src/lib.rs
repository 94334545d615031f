//! The Lua host: plugins are found, loaded, watched and called here.
//!
//! [`host`] is what the daemon starts. A call's way goes through [`tool`], [`vm`] and [`raw`]; what
//! scripts can do beyond Lua is in [`hygge`].

mod args;
pub mod author;
mod brake;
mod call;
pub mod command;
pub mod content;
mod convert;
mod dirs;
pub mod fuzz;
mod hook;
pub mod host;
mod hygge;
mod keeper;
mod load;
mod manifest;
mod offer;
mod plugin;
mod raw;
pub mod registrations;
mod result;
mod run;
mod service;
pub mod store;
mod stretch;
mod tool;
mod trouble;
mod unit;
mod vm;
mod watch;
