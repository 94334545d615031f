//! The tools of Cursor, from its documentation of hooks.

use serde_json::Value;
use toold_proto::tool::Category;

use crate::agents::input::{ToolInput, mcp_or_unknown, searched_folder};
use crate::agents::{AgentAction, AgentInputError, ContentSearch, SUB_AGENT};

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "Shell" => {
            let cwd = input.any_optional_text(&["working_directory", "cwd"])?;
            AgentAction::Command { line: input.text("command")?, cwd: cwd.filter(|cwd| !cwd.is_empty()) }
        }
        "Read" => AgentAction::Read { path: input.any_text(&["file_path", "path"])? },
        "Write" => AgentAction::Write {
            path: input.any_text(&["file_path", "path"])?,
            text: input.any_optional_text(&["content", "contents"])?,
        },
        "Delete" => AgentAction::Delete { path: input.any_text(&["file_path", "path"])? },
        "Grep" => AgentAction::Search(ContentSearch {
            path: input.folder("path")?,
            globs: input.texts("glob")?.into_iter().filter(|glob| !glob.is_empty()).collect(),
            file_type: input.optional_text("type")?.filter(|name| !name.is_empty()),
            hidden: None,
            ignored: false,
        }),
        "Glob" => {
            let folder = input.optional_text("path")?;
            AgentAction::List { path: searched_folder(folder, &input.any_text(&["glob_pattern", "pattern"])?) }
        }
        "WebFetch" => AgentAction::Fetch { url: input.text("url")? },
        "Task" => SUB_AGENT,
        "TodoWrite" => AgentAction::Nothing,
        // The event does not always name the server.
        _ if tool.starts_with("MCP:") => AgentAction::Unclear { category: Category::Mcp },
        _ => return Ok(mcp_or_unknown(tool)),
    };
    Ok(vec![action])
}
