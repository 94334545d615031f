//! The tools of GitHub Copilot CLI 1.0.102, as it offers them to models, and from its reference of hooks.

use serde_json::Value;

use crate::agents::input::{ToolInput, patch_actions, patch_text, searched_folder, unknown_or_mcp};
use crate::agents::{AgentAction, AgentInputError, ContentSearch};

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
        "apply_patch" => return patch_actions(tool, &patch_text(input, &["input", "patch"])?),
        "glob" => {
            let pattern = input.text("pattern")?;
            let list = |folder| AgentAction::List { path: searched_folder(Some(folder), &pattern) };
            return Ok(searched(input)?.into_iter().map(list).collect());
        }
        "grep" | "rg" => {
            let globs: Vec<String> = input.texts("glob")?.into_iter().filter(|glob| !glob.is_empty()).collect();
            let file_type = input.optional_text("type")?.filter(|name| !name.is_empty());
            let search = |path| {
                let (globs, file_type) = (globs.clone(), file_type.clone());
                AgentAction::Search(ContentSearch { path, globs, file_type, hidden: None, ignored: false })
            };
            return Ok(searched(input)?.into_iter().map(search).collect());
        }
        "web_fetch" => AgentAction::Fetch { url: input.text("url")? },
        "web_search" => AgentAction::WebSearch { query: input.text("query")? },
        "ask_user"
        | "exit_plan_mode"
        | "fetch_copilot_cli_documentation"
        | "list_agents"
        | "list_bash"
        | "read_agent"
        | "read_bash"
        | "report_intent"
        | "session_store_sql"
        | "skill"
        | "sql"
        | "stop_bash"
        | "task_complete"
        | "update_todo"
        | "write_agent" => AgentAction::Nothing,
        "task" => AgentAction::SubAgent { kind: input.optional_text("agent_type")?.unwrap_or_default() },
        // A tool of an MCP server is named SERVER-TOOL; SERVER/TOOL in permissionRequest.
        _ => return Ok(unknown_or_mcp(tool, &["-", "/"])),
    };
    Ok(vec![action])
}

/// The folders and files that are searched: one, several, or the current folder.
fn searched(input: ToolInput<'_>) -> Result<Vec<String>, AgentInputError> {
    let mut paths = input.texts("paths")?;
    paths.extend(input.texts("path")?);
    paths.retain(|path| !path.is_empty());
    if paths.is_empty() {
        paths.push(".".to_owned());
    }
    Ok(paths)
}
