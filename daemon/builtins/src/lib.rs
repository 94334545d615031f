//! The tools that ship inside toold.
//!
//! [`all`] lists them. Each tool is one file: a struct for its input, whose doc comments become the descriptions in the
//! schema; its static facts; the permissions that a call needs; and `run`. [`builtin`] adapts that to the engine.

pub mod agent_tool;
pub mod agents;
pub mod bash_input;
pub mod buffers;
pub mod builtin;
pub mod journal;
pub mod memories;
pub mod resources;
pub mod shells;
pub mod skill;
pub mod skills;
pub mod todo;
pub mod toolkit;
pub mod undo;
pub mod web;

mod apply_patch;
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
mod builds;
mod change;
mod closest_match;
mod diff;
mod document;
mod edits;
mod front_matter;
mod lines;
mod loose;
mod near_names;
mod notebook;
mod paths;
mod placement;
mod plain_output;
mod ring;
mod search;
mod stamps;
mod text;

use std::sync::Arc;

use toold_engine::callable::Callable;

use crate::builtin::make;
use crate::toolkit::Toolkit;

/// Every built-in tool, ready for the registry.
pub fn all(toolkit: &Arc<Toolkit>) -> Vec<Arc<dyn Callable>> {
    vec![
        make::<read::ReadTool>(toolkit),
        make::<write::WriteTool>(toolkit),
        make::<edit::EditTool>(toolkit),
        make::<apply_patch::ApplyPatchTool>(toolkit),
        make::<list::ListTool>(toolkit),
        make::<glob::GlobTool>(toolkit),
        make::<grep::GrepTool>(toolkit),
        make::<bash::BashTool>(toolkit),
        make::<bash_output::BashOutputTool>(toolkit),
        make::<kill_shell::KillShellTool>(toolkit),
        make::<web_fetch::WebFetchTool>(toolkit),
        make::<web_search::WebSearchTool>(toolkit),
        make::<todo::TodoTool>(toolkit),
        make::<question::QuestionTool>(toolkit),
        make::<remember::RememberTool>(toolkit),
        make::<forget::ForgetTool>(toolkit),
        make::<subagent::SubagentTool>(toolkit),
        make::<compact::CompactTool>(toolkit),
    ]
}
