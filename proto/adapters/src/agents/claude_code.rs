//! The tools of Claude Code 2.1.332, from `sdk-tools.d.ts` of its package and its reference of tools.

use serde_json::Value;
use toold_proto::tool::RESOURCE_TARGET;

use crate::agents::input::{ToolInput, mcp_or_unknown, searched_folder};
use crate::agents::{AgentAction, AgentInputError, ContentSearch};
use crate::patch::trim;

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "Bash" => AgentAction::Command { line: input.text("command")?, cwd: None },
        "Monitor" => match input.optional_text("command")?.filter(|line| !line.trim().is_empty()) {
            Some(_) if value.get("ws").is_some_and(|socket| !socket.is_null()) => {
                return Err(input.refuse("expected either command or ws, found both"));
            }
            Some(line) => AgentAction::Command { line, cwd: None },
            None => {
                let socket = value.get("ws").unwrap_or(&Value::Null);
                let url = ToolInput { tool, value: socket }.text("url")?;
                // `ws` and `wss` are the schemes of the same hosts.
                let url = url.strip_prefix("ws").map_or(url.clone(), |rest| format!("http{rest}"));
                AgentAction::Fetch { url }
            }
        },
        "Read" => AgentAction::Read { path: path(input, "file_path")? },
        "Write" => AgentAction::Write { path: path(input, "file_path")?, text: Some(input.content("content")?) },
        "Edit" => AgentAction::Edit {
            path: path(input, "file_path")?,
            old: input.optional_text("old_string")?,
            new: input.optional_text("new_string")?,
            all: input.flag("replace_all")?,
        },
        "MultiEdit" => AgentAction::Edit { path: path(input, "file_path")?, old: None, new: None, all: false },
        // The texts are those of a cell, not of the file.
        "NotebookEdit" => AgentAction::Edit { path: path(input, "notebook_path")?, old: None, new: None, all: false },
        "Glob" => {
            let folder = untrimmed(input, input.folder("path")?)?;
            AgentAction::List { path: searched_folder(Some(folder), &input.text("pattern")?) }
        }
        "Grep" => AgentAction::Search(ContentSearch {
            path: untrimmed(input, input.folder("path")?)?,
            globs: input.texts("glob")?.iter().flat_map(|globs| globs_in(globs)).collect(),
            file_type: input.optional_text("type")?.filter(|name| !name.is_empty()),
            hidden: Some(true),
            ignored: false,
        }),
        "WebFetch" => AgentAction::Fetch { url: input.text("url")? },
        "WebSearch" => AgentAction::WebSearch { query: input.text("query")? },
        "ReadMcpResourceTool" | "ReadMcpResourceDirTool" => {
            AgentAction::Mcp { server: input.text("server")?, tool: format!("{RESOURCE_TARGET}{}", input.text("uri")?) }
        }
        // The tools of one that runs elsewhere are not asked about.
        "Agent" | "Task" => match input.optional_text("isolation")?.as_deref() {
            Some("remote") => AgentAction::Unknown,
            _ => AgentAction::SubAgent { kind: sub_agent(input)? },
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

/// The kind of a sub-agent; that of Claude Code and Qwen Code where none is named.
pub(super) fn sub_agent(input: ToolInput<'_>) -> Result<String, AgentInputError> {
    let kind = input.optional_text("subagent_type")?.map(|kind| kind.trim().to_owned());
    Ok(kind.filter(|kind| !kind.is_empty()).unwrap_or_else(|| "general-purpose".to_owned()))
}

/// A path. Claude Code trims it, so that one with blanks at its ends is that of another file.
fn path(input: ToolInput<'_>, member: &'static str) -> Result<String, AgentInputError> {
    untrimmed(input, input.text(member)?)
}

fn untrimmed(input: ToolInput<'_>, path: String) -> Result<String, AgentInputError> {
    match trim(&path) == path && path.trim() == path {
        true => Ok(path),
        false => Err(input.refuse(&format!("expected a path without blanks at its ends, found {path:?}"))),
    }
}

/// Globs are separated by blanks, and by commas unless there are braces.
fn globs_in(text: &str) -> Vec<String> {
    let split = |word: &str| -> Vec<String> {
        let is_whole = word.contains(['{', '}']);
        let parts = word.split(|c| c == ',' && !is_whole).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    text.split_whitespace().flat_map(split).collect()
}

/// `/NAME ARGUMENTS`
fn slash_command(text: &str) -> AgentAction {
    let text = text.trim();
    let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    AgentAction::Skill { name: name.to_owned(), arguments: arguments.trim().to_owned() }
}
