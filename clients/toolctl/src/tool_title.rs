//! How the tool of a call is shown.

use toold_proto::audit::AuditEntry;

use crate::output::one_line;

/// The tool; with the agent, when it uses a tool of its own.
pub(crate) fn tool_title(agent: Option<&str>, tool: &str) -> String {
    match agent {
        Some(agent) => format!("{}: {}", one_line(agent), one_line(tool)),
        None => one_line(tool),
    }
}

/// The tool of a past call; with the agent and its sub-agent, when it used a tool of its own.
pub(crate) fn entry_title(entry: &AuditEntry) -> String {
    let agent = match (&entry.agent, &entry.subagent) {
        (Some(agent), Some(subagent)) => Some(format!("{agent} sub-agent {subagent}")),
        (agent, _) => agent.clone(),
    };
    tool_title(agent.as_deref(), entry.tool.as_str())
}
