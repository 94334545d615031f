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
mod judged_line;
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
mod quoted_names;
mod read;
mod remember;
mod subagent;
mod web_fetch;
mod web_search;
mod write;

mod bad_bytes;
mod blocking;
mod builds;
mod change;
mod checkouts;
mod closest_match;
mod command_changes;
mod comparison;
mod diff;
mod document;
mod edits;
mod front_matter;
mod globs;
mod index_refresh;
mod lines;
mod locked_installs;
mod look_alikes;
mod loose;
mod made_control;
mod named_hosts;
mod near_names;
mod notebook;
mod own_signals;
mod paths;
mod pdf;
mod picture;
mod placement;
mod plain_output;
mod reader_program;
mod ring;
mod schemas;
mod search;
mod stamps;
mod stopped;
mod text;

use std::sync::Arc;

use toold_engine::callable::Callable;

use crate::builtin::BuiltinEntry;
use crate::toolkit::Toolkit;

/// Every built-in tool, ready for the registry.
pub fn all(toolkit: &Arc<Toolkit>) -> Vec<Arc<dyn Callable>> {
    ALL.iter().map(|tool| (tool.make)(toolkit)).collect()
}

const ALL: &[BuiltinEntry] = &[
    BuiltinEntry::of::<read::ReadTool>(),
    BuiltinEntry::of::<write::WriteTool>(),
    BuiltinEntry::of::<edit::EditTool>(),
    BuiltinEntry::of::<apply_patch::ApplyPatchTool>(),
    BuiltinEntry::of::<list::ListTool>(),
    BuiltinEntry::of::<glob::GlobTool>(),
    BuiltinEntry::of::<grep::GrepTool>(),
    BuiltinEntry::of::<bash::BashTool>(),
    BuiltinEntry::of::<bash_output::BashOutputTool>(),
    BuiltinEntry::of::<kill_shell::KillShellTool>(),
    BuiltinEntry::of::<web_fetch::WebFetchTool>(),
    BuiltinEntry::of::<web_search::WebSearchTool>(),
    BuiltinEntry::of::<todo::TodoTool>(),
    BuiltinEntry::of::<question::QuestionTool>(),
    BuiltinEntry::of::<remember::RememberTool>(),
    BuiltinEntry::of::<forget::ForgetTool>(),
    BuiltinEntry::of::<subagent::SubagentTool>(),
    BuiltinEntry::of::<compact::CompactTool>(),
];
