//! The tools of Claude Code 2.1.331, from `sdk-tools.d.ts` of its package and its reference of tools.

use serde_json::Value;

use crate::agents::input::{ToolInput, mcp_tool, searched_folder};
use crate::agents::{AgentAction, AgentInputError};

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "Bash" => AgentAction::Command { line: input.text("command")?, cwd: None },
        "Monitor" => match input.optional_text("command")? {
            Some(line) => AgentAction::Command { line, cwd: None },
            None => AgentAction::Unknown,
        },
        "Read" => AgentAction::Read { path: input.text("file_path")? },
        "Write" => AgentAction::Write { path: input.text("file_path")?, text: Some(input.content("content")?) },
        "Edit" => AgentAction::Edit {
            path: input.text("file_path")?,
            old: input.optional_text("old_string")?,
            new: input.optional_text("new_string")?,
            all: input.flag("replace_all")?,
        },
        // The texts are those of a cell, not of the file.
        "NotebookEdit" => AgentAction::Edit { path: input.text("notebook_path")?, old: None, new: None, all: false },
        "Glob" => {
            let folder = input.optional_text("path")?;
            AgentAction::List { path: searched_folder(folder, &input.text("pattern")?) }
        }
        "Grep" => AgentAction::List { path: input.folder("path")? },
        "WebFetch" => AgentAction::Fetch { url: input.text("url")? },
        "WebSearch" => AgentAction::WebSearch { query: input.text("query")? },
        "ReadMcpResourceTool" | "ReadMcpResourceDirTool" => {
            AgentAction::Mcp { server: input.text("server")?, tool: "resources/read".to_owned() }
        }
        // Each tool that a subagent uses asks by itself; one that runs elsewhere does not.
        "Agent" | "Task" => match input.optional_text("isolation")?.as_deref() {
            Some("remote") => AgentAction::Unknown,
            _ => AgentAction::Nothing,
        },
        "AskUserQuestion"
        | "BashOutput"
        | "CronList"
        | "EnterPlanMode"
        | "ExitPlanMode"
        | "KillShell"
        | "ListMcpResourcesTool"
        | "ReportFindings"
        | "Skill"
        | "SlashCommand"
        | "TaskCreate"
        | "TaskGet"
        | "TaskList"
        | "TaskOutput"
        | "TaskStop"
        | "TaskUpdate"
        | "TodoWrite"
        | "ToolSearch" => AgentAction::Nothing,
        _ => mcp_tool(tool).unwrap_or(AgentAction::Unknown),
    };
    Ok(vec![action])
}
