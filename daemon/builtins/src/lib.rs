//! The tools that ship inside toold.
//!
//! [`all`] is the list. A tool is one file: a struct for its input, whose doc comments become the schema,
//! the facts about it, what it needs leave for, and `run`. [`builtin`] makes an engine's tool of that.

pub mod builtin;
pub mod shared;

mod bash;
mod blocking;
mod grep;
mod judge;
mod lines;
mod paths;
mod read;
mod search;
mod text;

use std::sync::Arc;

use toold_engine::tool::Tool;

use crate::builtin::make;
use crate::shared::Shared;

/// Every built-in tool, ready for the registry.
pub fn all(shared: &Arc<Shared>) -> Vec<Arc<dyn Tool>> {
    vec![make::<read::Read>(shared), make::<grep::Grep>(shared), make::<bash::Bash>(shared)]
}
