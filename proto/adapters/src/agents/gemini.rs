//! The tools of Gemini CLI 0.61.0, from its source (`packages/core/src/tools`).

use serde_json::Value;
use toold_proto::tool::Category;

use crate::agents::input::{ToolInput, mcp_or_unknown, mcp_tools, searched_folder};
use crate::agents::{AgentAction, AgentInputError, ContentSearch};

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "run_shell_command" => {
            let cwd = input.optional_text("dir_path")?.filter(|cwd| !cwd.is_empty());
            AgentAction::Command { line: input.text("command")?, cwd }
        }
        "read_file" => AgentAction::Read { path: input.text("file_path")? },
        "read_many_files" => return many_files(input),
        "write_file" => AgentAction::Write { path: input.text("file_path")?, text: Some(input.content("content")?) },
        "replace" => AgentAction::Edit {
            path: input.text("file_path")?,
            old: input.optional_text("old_string")?,
            new: input.optional_text("new_string")?,
            all: input.flag("allow_multiple")?,
        },
        "list_directory" => AgentAction::List { path: input.folder("dir_path")? },
        "glob" => {
            let folder = input.optional_text("dir_path")?;
            AgentAction::List { path: searched_folder(folder, &input.text("pattern")?) }
        }
        "grep_search" | "search_file_content" => {
            let mut globs = input.texts("include_pattern")?;
            globs.extend(input.texts("include")?);
            globs.retain(|glob| !glob.is_empty());
            AgentAction::Search(ContentSearch {
                path: input.folder("dir_path")?,
                globs,
                file_type: None,
                hidden: None,
                ignored: input.flag("no_ignore")?,
            })
        }
        "web_fetch" => return fetches(input),
        "google_web_search" => AgentAction::WebSearch { query: input.text("query")? },
        // The address does not name the server.
        "read_mcp_resource" => {
            input.text("uri")?;
            AgentAction::Unclear { category: Category::Mcp }
        }
        "activate_skill"
        | "ask_user"
        | "complete_task"
        | "enter_plan_mode"
        | "exit_plan_mode"
        | "get_internal_docs"
        | "list_background_processes"
        | "list_mcp_resources"
        | "read_background_output"
        | "tracker_add_dependency"
        | "tracker_create_task"
        | "tracker_get_task"
        | "tracker_list_tasks"
        | "tracker_update_task"
        | "tracker_visualize"
        | "update_topic"
        | "write_todos" => AgentAction::Nothing,
        "invoke_agent" => AgentAction::SubAgent { kind: input.optional_text("agent_name")?.unwrap_or_default() },
        _ => return Ok(own_mcp_tools(tool).unwrap_or_else(|| mcp_or_unknown(tool))),
    };
    Ok(vec![action])
}

/// `mcp_SERVER_TOOL`
fn own_mcp_tools(tool: &str) -> Option<Vec<AgentAction>> {
    mcp_tools(tool.strip_prefix("mcp_").filter(|names| !names.starts_with('_'))?, &["_"])
}

/// Paths and patterns. The files of a pattern are not known here.
fn many_files(input: ToolInput<'_>) -> Result<Vec<AgentAction>, AgentInputError> {
    let mut actions = Vec::new();
    for item in input.list("include")? {
        let pattern = item.as_str().ok_or_else(|| input.error("include", "a list of texts", Some(item)))?;
        if pattern.contains(['*', '?', '[', '{', '(', '!']) {
            let found = AgentAction::Unclear { category: Category::FileRead };
            actions.extend([AgentAction::List { path: searched_folder(None, pattern) }, found]);
        } else {
            actions.push(AgentAction::Read { path: pattern.to_owned() });
        }
    }
    if actions.is_empty() {
        actions.push(AgentAction::Nothing);
    }
    Ok(actions)
}

/// The addresses stand among the words of the prompt.
fn fetches(input: ToolInput<'_>) -> Result<Vec<AgentAction>, AgentInputError> {
    let url = input.optional_text("url")?.filter(|url| !url.is_empty());
    let prompt = match url {
        Some(_) => input.optional_text("prompt")?.unwrap_or_default(),
        None => input.text("prompt")?,
    };
    let mut urls = prompt.split_whitespace().filter(|word| word.contains("://"));
    if let Some(url) = url {
        return match urls.find(|other| *other != url) {
            Some(other) => Err(input.refuse(&format!("url is {url}, and the prompt has another one, {other}"))),
            None => Ok(vec![AgentAction::Fetch { url }]),
        };
    }
    let fetches: Vec<_> = urls.map(|url| AgentAction::Fetch { url: url.to_owned() }).collect();
    let unnamed = AgentAction::Unclear { category: Category::Network };
    Ok(if fetches.is_empty() { vec![unnamed] } else { fetches })
}
