//! The tools of Codex 0.169.0, as its hooks name them.

use serde_json::Value;

use crate::agents::input::{ToolInput, mcp_tool, patch_actions};
use crate::agents::{AgentAction, AgentInputError};

/// How the description of a request begins that asks for a host of the network and not for the command.
const NETWORK: &str = "network-access ";

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "Bash" => return command(input),
        "apply_patch" => return patch_actions(tool, &input.text("command")?),
        "view_image" => AgentAction::Read { path: input.text("path")? },
        "update_plan" | "request_user_input" => AgentAction::Nothing,
        _ => mcp_tool(tool).unwrap_or(AgentAction::Unknown),
    };
    Ok(vec![action])
}

/// A command; and the host, when Codex asks whether its sandbox may let the command reach one.
fn command(input: ToolInput<'_>) -> Result<Vec<AgentAction>, AgentInputError> {
    let line = input.text("command")?;
    let description = input.optional_text("description")?.unwrap_or_default();
    let Some(host) = description.strip_prefix(NETWORK) else {
        return Ok(vec![AgentAction::Command { line, cwd: None }]);
    };
    let url = if host.contains("://") { host.to_owned() } else { format!("https://{host}") };
    let fetch = AgentAction::Fetch { url };
    // Without one command that the request belongs to, the line only repeats the host.
    Ok(if line.starts_with(NETWORK) { vec![fetch] } else { vec![AgentAction::Command { line, cwd: None }, fetch] })
}
