//! The tools of GitHub Copilot CLI 1.0.102, from its reference of hooks and its log of sessions.

use serde_json::Value;

use crate::agents::input::{ToolInput, mcp_tool, patch_actions, searched_folder};
use crate::agents::{AgentAction, AgentInputError};

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "bash" => AgentAction::Command { line: input.text("command")?, cwd: None },
        "view" => AgentAction::Read { path: input.text("path")? },
        "create" => AgentAction::Write { path: input.text("path")?, text: input.optional_text("file_text")? },
        "edit" => AgentAction::Edit {
            path: input.text("path")?,
            old: input.optional_text("old_str")?,
            new: input.optional_text("new_str")?,
            all: false,
        },
        "apply_patch" => return patch_actions(tool, &input.any_text(&["input", "patch"])?),
        "glob" => {
            let folder = input.optional_text("path")?;
            AgentAction::List { path: searched_folder(folder, &input.text("pattern")?) }
        }
        "grep" => AgentAction::List { path: input.folder("path")? },
        "web_fetch" => AgentAction::Fetch { url: input.text("url")? },
        "web_search" => AgentAction::WebSearch { query: input.text("query")? },
        "ask_user" | "list_bash" | "read_bash" | "report_intent" | "skill" | "stop_bash" | "task" | "update_todo" => {
            AgentAction::Nothing
        }
        _ => mcp_tool(tool).unwrap_or(AgentAction::Unknown),
    };
    Ok(vec![action])
}
