//! What built-in tools and plugins both need of the system.
//!
//! [`process`] runs programs, with an [`environment`] of its own and output [`kept`] within bounds;
//! [`files`] resolves and opens paths, but for those that [`exclude`] keeps from tools.

pub mod environment;
pub mod exclude;
pub mod files;
pub mod kept;
pub mod process;

mod descendants;
mod utf8;
pub mod shell_grammar;
