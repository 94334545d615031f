//! The tools that ship inside toold.
//!
//! [`all`] is the list. A tool is one file: a struct for its input, whose doc comments become the schema,
//! the facts about it, what it needs leave for, and `run`. [`builtin`] makes an engine's tool of that.

pub mod agents;
pub mod bash_input;
pub mod buffers;
pub mod builtin;
pub mod journal;
pub mod memories;
pub mod offered;
pub mod shared;
pub mod shells;
pub mod skill;
pub mod skills;
pub mod todo;
pub mod web;

mod bash;
mod bash_output;
mod compact;
mod edit;
mod forget;
mod glob;
mod grep;
mod kill_shell;
mod list;
mod question;
mod read;
mod remember;
mod subagent;
mod web_fetch;
mod web_search;
mod write;

mod blocking;
mod change;
mod diff;
mod document;
mod edits;
mod front_matter;
mod lines;
mod near;
mod paths;
mod ring;
mod search;
mod stamps;
mod text;

use std::sync::Arc;

use toold_engine::callable::Callable;

use crate::builtin::make;
use crate::shared::Shared;

/// Every built-in tool, ready for the registry.
pub fn all(shared: &Arc<Shared>) -> Vec<Arc<dyn Callable>> {
    vec![
        make::<read::Read>(shared),
        make::<write::Write>(shared),
        make::<edit::EditTool>(shared),
        make::<list::List>(shared),
        make::<glob::Glob>(shared),
        make::<grep::Grep>(shared),
        make::<bash::Bash>(shared),
        make::<bash_output::BashOutput>(shared),
        make::<kill_shell::KillShell>(shared),
        make::<web_fetch::WebFetch>(shared),
        make::<web_search::WebSearch>(shared),
        make::<todo::Todo>(shared),
        make::<question::Question>(shared),
        make::<remember::Remember>(shared),
        make::<forget::Forget>(shared),
        make::<subagent::Subagent>(shared),
        make::<compact::Compact>(shared),
    ]
}
