//! How the tool of a call is shown.

use crate::output::one_line;

/// The tool; with the agent, when it uses a tool of its own.
pub(crate) fn tool_title(agent: Option<&str>, tool: &str) -> String {
    match agent {
        Some(agent) => format!("{}: {}", one_line(agent), one_line(tool)),
        None => one_line(tool),
    }
}
