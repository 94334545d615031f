//! The tools of opencode 1.18.33, from its program.

use serde_json::Value;

use crate::agents::input::{ToolInput, patch_actions, patch_text, searched_folder, unknown_or_mcp};
use crate::agents::{AgentAction, AgentInputError, ContentSearch, SUB_AGENT};

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "bash" => {
            let cwd = input.optional_text("workdir")?.filter(|cwd| !cwd.is_empty());
            AgentAction::Command { line: input.text("command")?, cwd }
        }
        "read" => AgentAction::Read { path: input.text("filePath")? },
        "write" => AgentAction::Write { path: input.text("filePath")?, text: Some(input.content("content")?) },
        "edit" => AgentAction::Edit {
            path: input.text("filePath")?,
            old: input.optional_text("oldString")?,
            new: input.optional_text("newString")?,
            all: input.flag("replaceAll")?,
        },
        "apply_patch" => return patch_actions(tool, &patch_text(input, &["patchText"])?),
        "glob" => {
            let folder = input.optional_text("path")?;
            AgentAction::List { path: searched_folder(folder, &input.text("pattern")?) }
        }
        "grep" => AgentAction::Search(ContentSearch {
            path: input.folder("path")?,
            globs: input.texts("include")?.into_iter().filter(|glob| !glob.is_empty()).collect(),
            file_type: None,
            hidden: Some(true),
            ignored: false,
        }),
        "list" => AgentAction::List { path: input.folder("path")? },
        "webfetch" => AgentAction::Fetch { url: input.text("url")? },
        "websearch" => AgentAction::WebSearch { query: input.text("query")? },
        "invalid" | "plan_enter" | "plan_exit" | "question" | "skill" | "todoread" | "todowrite" => {
            AgentAction::Nothing
        }
        "task" => SUB_AGENT,
        // A tool of an MCP server is named SERVER_TOOL.
        _ => return Ok(unknown_or_mcp(tool, &["_"])),
    };
    Ok(vec![action])
}
