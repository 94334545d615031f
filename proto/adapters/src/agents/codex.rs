//! The tools of Codex 0.169.0, as its hooks name them.

use serde_json::Value;

use crate::agents::input::{ToolInput, mcp_or_unknown, patch_actions, patch_text};
use crate::agents::{AgentAction, AgentInputError};

/// How the description of a request begins that asks for a host of the network and not for the command.
const NETWORK: &str = "network-access ";

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "Bash" => return command(input),
        "apply_patch" => return patch_actions(tool, &patch_text(input, &["command", "input"])?),
        "view_image" => AgentAction::Read { path: input.text("path")? },
        "close_agent" | "list_agents" | "request_user_input" | "spawn_agent" | "update_plan" | "wait_agent" => {
            AgentAction::Nothing
        }
        _ => return Ok(mcp_or_unknown(tool)),
    };
    Ok(vec![action])
}

/// A command; and the host, when Codex asks whether its sandbox may let the command reach one.
fn command(input: ToolInput<'_>) -> Result<Vec<AgentAction>, AgentInputError> {
    let line = input.text("command")?;
    if let Some(patch) = patch_in(&line) {
        return patch_actions("apply_patch", patch);
    }
    let description = input.optional_text("description")?.unwrap_or_default();
    let Some(host) = description.strip_prefix(NETWORK) else {
        return Ok(vec![AgentAction::Command { line, cwd: None }]);
    };
    let url = if host.contains("://") { host.to_owned() } else { format!("https://{host}") };
    let fetch = AgentAction::Fetch { url };
    // Without one command that the request belongs to, the line only repeats the host.
    Ok(if line.starts_with(NETWORK) { vec![fetch] } else { vec![AgentAction::Command { line, cwd: None }, fetch] })
}

/// The patch in a command that only applies it. Codex runs no program for it, and makes the changes by itself.
fn patch_in(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("apply_patch")?.trim_start_matches(' ').strip_prefix("<<")?;
    let (mark, rest) = rest.split_once('\n')?;
    let mark = mark.trim();
    let mark = mark.strip_prefix('\'').and_then(|mark| mark.strip_suffix('\'')).unwrap_or(mark);
    let patch = rest.strip_suffix(mark)?.strip_suffix('\n')?;
    let is_name = !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // Otherwise the rest is another command.
    let ends_once = !patch.lines().any(|line| line == mark);
    (is_name && ends_once).then_some(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_that_applies_a_patch_is_its_changes_and_nothing_else_is() {
        let run = |line: &str| actions("Bash", &json!({"command": line})).unwrap();
        let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
        let deleted = [AgentAction::Delete { path: "a".to_owned() }];
        for mark in ["EOF", "'EOF'", " 'X_1'"] {
            let end = mark.trim().trim_matches('\'');
            assert_eq!(run(&format!("apply_patch <<{mark}\n{patch}\n{end}")), deleted, "{mark}");
        }
        for line in [
            format!("apply_patch <<EOF\n{patch}\nEOF\nrm b"),
            format!("apply_patch <<EOF\n{patch}\nEOF\nrm b\nEOF"),
            format!("apply_patch <<EOF; rm b\n{patch}\nEOF"),
            format!("cd x && apply_patch <<EOF\n{patch}\nEOF"),
        ] {
            assert_eq!(run(&line), [AgentAction::Command { line: line.clone(), cwd: None }]);
        }
    }
}
