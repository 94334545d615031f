//! The tools of Qwen Code 0.24.4, as it offers them to models and names them in hooks. Most are those of Gemini CLI, from
//! which it comes.

use serde_json::Value;
use toold_proto::tool::RESOURCE_TARGET;

use crate::agents::input::{ToolInput, mcp_or_unknown, searched_folder};
use crate::agents::{AgentAction, AgentInputError, ContentSearch, SUB_AGENT, claude_code, gemini};

/// Kinds of sub-agents that are programs of their own.
const OTHER_PROGRAMS: &[&str] = &["claude-code", "codex"];

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "run_shell_command" | "monitor" => {
            let cwd = input.optional_text("directory")?.filter(|cwd| !cwd.is_empty());
            AgentAction::Command { line: input.text("command")?, cwd }
        }
        "edit" => AgentAction::Edit {
            path: input.text("file_path")?,
            old: input.optional_text("old_string")?,
            new: input.optional_text("new_string")?,
            all: input.flag("replace_all")?,
        },
        // The texts are those of a cell, not of the file.
        "notebook_edit" => AgentAction::Edit { path: input.text("notebook_path")?, old: None, new: None, all: false },
        "glob" => {
            let folder = input.optional_text("path")?;
            AgentAction::List { path: searched_folder(folder, &input.text("pattern")?) }
        }
        "grep_search" => AgentAction::Search(ContentSearch {
            path: input.folder("path")?,
            globs: input.texts("glob")?.into_iter().filter(|glob| !glob.is_empty()).collect(),
            file_type: None,
            hidden: None,
            ignored: false,
        }),
        "display_image" | "zoom_image" => AgentAction::Read { path: input.text("file_path")? },
        "read_mcp_resource" => AgentAction::Mcp {
            server: input.text("server_name")?,
            tool: format!("{RESOURCE_TARGET}{}", input.text("uri")?),
        },
        "list_directory" => AgentAction::List { path: input.folder("path")? },
        "web_fetch" => AgentAction::Fetch { url: input.text("url")? },
        "web_search" => AgentAction::WebSearch { query: input.text("query")? },
        "read_file" | "read_many_files" | "write_file" => return gemini::actions(tool, value),
        "ask_user_question" | "cron_list" | "enter_plan_mode" | "exit_plan_mode" | "get_goal" | "list_agents"
        | "propose_goal" | "report_findings" | "send_message" | "structured_output" | "task_create" | "task_list"
        | "task_stop" | "task_update" | "todo_write" | "tool_search" | "update_goal" => AgentAction::Nothing,
        "skill" => AgentAction::Skill { name: input.text("skill")?, arguments: String::new() },
        "agent" | "task" => {
            let kind = claude_code::sub_agent(input)?;
            // These are other programs, whose tools Qwen Code does not ask about.
            match OTHER_PROGRAMS.contains(&kind.to_ascii_lowercase().as_str()) {
                true => AgentAction::Unknown,
                false => AgentAction::SubAgent { kind },
            }
        }
        "team_create" => SUB_AGENT,
        _ => return Ok(mcp_or_unknown(tool)),
    };
    Ok(vec![action])
}
