//! What built-in tools and plugins both need of the system.
//!
//! [`process`] runs programs, with an [`environment`] of its own and output [`kept`] within bounds;
//! [`files`] resolves and opens paths and [`replace`] writes them, but for those that [`exclude`] keeps from tools;
//! [`judge`] says which of them a call may read; [`tree`] walks folders, and [`ignore_files`] says what is passed over;
//! [`shell_grammar`] says what a command line needs leave for; [`http`] makes requests to the web;
//! [`own_file`] keeps small lists; [`file_systems`] tells which ones do not tell what changes.

pub mod chatter;
pub mod descendants;
pub mod environment;
pub mod exclude;
pub mod file_systems;
pub mod files;
pub mod folders;
pub mod http;
pub mod ignore_files;
pub mod judge;
pub mod kept;
pub mod own_file;
pub mod process;
pub mod replace;
pub mod sandbox;
pub mod shell_grammar;
pub mod stamps;
pub mod started;

mod terminal;
pub mod times;
pub mod tree;
mod utf8;
