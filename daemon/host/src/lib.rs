//! What built-in tools and plugins both need of the system.
//!
//! [`process`] runs programs, with an [`environment`] of its own and output [`kept`] within bounds.

pub mod environment;
pub mod kept;
pub mod process;

mod descendants;
mod utf8;
