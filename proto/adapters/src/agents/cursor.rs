//! The tools of Cursor, from its documentation of hooks.

use serde_json::Value;

use crate::agents::input::{ToolInput, mcp_or_unknown, searched_folder};
use crate::agents::{AgentAction, AgentInputError};

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "Shell" => {
            let cwd = input.optional_text("working_directory")?.or(input.optional_text("cwd")?);
            AgentAction::Command { line: input.text("command")?, cwd: cwd.filter(|cwd| !cwd.is_empty()) }
        }
        "Read" => AgentAction::Read { path: input.any_text(&["file_path", "path"])? },
        "Write" => AgentAction::Write {
            path: input.any_text(&["file_path", "path"])?,
            text: input.optional_text("content")?.or(input.optional_text("contents")?),
        },
        "Delete" => AgentAction::Delete { path: input.any_text(&["file_path", "path"])? },
        "Grep" => AgentAction::List { path: input.folder("path")? },
        "Glob" => {
            let folder = input.optional_text("path")?;
            AgentAction::List { path: searched_folder(folder, &input.any_text(&["glob_pattern", "pattern"])?) }
        }
        "WebFetch" => AgentAction::Fetch { url: input.text("url")? },
        // Each tool that a task uses asks by itself.
        "Task" | "TodoWrite" => AgentAction::Nothing,
        _ => return Ok(mcp_or_unknown(tool)),
    };
    Ok(vec![action])
}
