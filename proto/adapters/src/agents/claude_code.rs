//! The tools of Claude Code 2.1.332, from `sdk-tools.d.ts` of its package and its reference of tools.

use serde_json::Value;

use crate::agents::input::{ToolInput, mcp_or_unknown, searched_folder};
use crate::agents::{AgentAction, AgentInputError};

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "Bash" => AgentAction::Command { line: input.text("command")?, cwd: None },
        "Monitor" => match input.optional_text("command")? {
            Some(line) => AgentAction::Command { line, cwd: None },
            None => {
                let socket = value.get("ws").unwrap_or(&Value::Null);
                let url = ToolInput { tool, value: socket }.text("url")?;
                // `ws` and `wss` are the schemes of the same hosts.
                let url = url.strip_prefix("ws").map_or(url.clone(), |rest| format!("http{rest}"));
                AgentAction::Fetch { url }
            }
        },
        "Read" => AgentAction::Read { path: input.text("file_path")? },
        "Write" => AgentAction::Write { path: input.text("file_path")?, text: Some(input.content("content")?) },
        "Edit" => AgentAction::Edit {
            path: input.text("file_path")?,
            old: input.optional_text("old_string")?,
            new: input.optional_text("new_string")?,
            all: input.flag("replace_all")?,
        },
        "MultiEdit" => AgentAction::Edit { path: input.text("file_path")?, old: None, new: None, all: false },
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
        "Skill" => AgentAction::Skill {
            name: input.any_text(&["skill", "command"])?,
            arguments: input.optional_text("args")?.unwrap_or_default(),
        },
        "SlashCommand" => slash_command(&input.text("command")?),
        "AskUserQuestion"
        | "BashOutput"
        | "CronList"
        | "DeferredToolPlaceholder"
        | "EnterPlanMode"
        | "ExitPlanMode"
        | "KillShell"
        | "ListAgents"
        | "ListMcpResourcesTool"
        | "ReportFindings"
        | "ScheduleWakeup"
        | "SendMessage"
        | "SendUserMessage"
        | "Sleep"
        | "StructuredOutput"
        | "TaskCreate"
        | "TaskGet"
        | "TaskList"
        | "TaskOutput"
        | "TaskStop"
        | "TaskUpdate"
        | "TodoWrite"
        | "ToolSearch"
        | "WaitForMcpServers" => AgentAction::Nothing,
        _ => return Ok(mcp_or_unknown(tool)),
    };
    Ok(vec![action])
}

/// `/NAME ARGUMENTS`
fn slash_command(text: &str) -> AgentAction {
    let text = text.trim();
    let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    AgentAction::Skill { name: name.to_owned(), arguments: arguments.trim().to_owned() }
}
