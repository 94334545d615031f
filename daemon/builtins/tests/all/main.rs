//! The built-in tools, called as callers call them: through the engine.

mod agent_tool;
mod agents;
mod apply_patch;
mod bash;
mod buffers;
mod builtin_test;
mod change;
mod command_changes;
mod grep;
mod memory;
mod model;
mod names;
mod odd_files;
mod oracles;
mod read;
mod ripgrep;
mod schemas;
mod shells;
mod skills;
mod todo;
mod undo;
mod web;
