//! The tools of Codex 0.171.0, as its hooks name them: those of a namespace begin with its name.

use serde_json::Value;

use crate::agents::input::{ToolInput, mcp_or_unknown, patch_actions, patch_text};
use crate::agents::{AgentAction, AgentInputError, SUB_AGENT};

/// How the description of a request begins that asks for a host of the network and not for the command.
const NETWORK: &str = "network-access ";

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "Bash" => return command(input),
        "apply_patch" => return patch_changes(tool, &patch_text(input, &["command", "input"])?),
        "view_image" => AgentAction::Read { path: input.text("path")? },
        "clock__curr_time"
        | "close_agent"
        | "collaborationclose_agent"
        | "collaborationinterrupt_agent"
        | "collaborationlist_agents"
        | "collaborationsend_message"
        | "collaborationwait_agent"
        | "create_goal"
        | "get_goal"
        | "list_agents"
        | "request_user_input"
        | "update_goal"
        | "update_plan"
        | "wait_agent" => AgentAction::Nothing,
        "collaborationspawn_agent" | "spawn_agent" => SUB_AGENT,
        _ => return Ok(mcp_or_unknown(tool)),
    };
    Ok(vec![action])
}

/// A command; and the host, when Codex asks whether its sandbox may let the command reach one.
fn command(input: ToolInput<'_>) -> Result<Vec<AgentAction>, AgentInputError> {
    let line = input.text("command")?;
    if let Some((folder, patch)) = patch_in(&line) {
        let changes = patch_changes("apply_patch", patch)?;
        return Ok(changes.into_iter().map(|change| below(folder, change)).collect());
    }
    if line.contains("*** Begin Patch") && ["apply_patch", "applypatch"].iter().any(|name| line.contains(name)) {
        return Err(
            input.refuse("the command has a patch in a form that toold does not read: call the tool apply_patch")
        );
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

/// The changes of a patch. Codex keeps other characters at the ends of names than [`crate::patch`] does.
fn patch_changes(tool: &str, patch: &str) -> Result<Vec<AgentAction>, AgentInputError> {
    let is_header = |line: &&str| line.trim_start_matches(|c: char| !c.is_ascii_graphic()).starts_with("*** ");
    if patch.lines().filter(is_header).any(|line| line.contains(['\u{feff}', '\u{85}'])) {
        let problem = "a name has characters that programs read differently".to_owned();
        return Err(AgentInputError::Text { tool: tool.to_owned(), problem });
    }
    patch_actions(tool, patch)
}

/// The same change, with paths that are relative to `folder`.
fn below(folder: Option<&str>, change: AgentAction) -> AgentAction {
    let named = |path: String| match folder {
        Some(folder) if !path.starts_with('/') => format!("{}/{path}", folder.trim_end_matches('/')),
        _ => path,
    };
    match change {
        AgentAction::Write { path, text } => AgentAction::Write { path: named(path), text },
        AgentAction::Edit { path, old, new, all } => AgentAction::Edit { path: named(path), old, new, all },
        AgentAction::Delete { path } => AgentAction::Delete { path: named(path) },
        AgentAction::Move { from, to } => AgentAction::Move { from: named(from), to: named(to) },
        other => other,
    }
}

/// The patch in a command that only applies it, and the folder that the command changes to. Codex runs no program for it,
/// and makes the changes by itself.
fn patch_in(line: &str) -> Option<(Option<&str>, &str)> {
    let line = line.trim();
    let (folder, line) = match line.strip_prefix("cd ") {
        Some(rest) => {
            let (folder, rest) = rest.split_once("&&")?;
            let folder = folder.trim_matches(' ');
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            if folder.is_empty() || folder.starts_with('-') || !folder.chars().all(is_plain) {
                return None;
            }
            (Some(folder), rest.trim_start_matches(' '))
        }
        None => (None, line),
    };
    let rest = line.strip_prefix("apply_patch").or_else(|| line.strip_prefix("applypatch"))?;
    let (mark, rest) = rest.trim_start_matches(' ').strip_prefix("<<")?.split_once('\n')?;
    let mark = mark.trim_matches(' ');
    let quoted = |quote: char| mark.strip_prefix(quote).and_then(|mark| mark.strip_suffix(quote));
    let mark = quoted('\'').or_else(|| quoted('"')).unwrap_or(mark);
    let patch = rest.strip_suffix(mark)?.strip_suffix('\n')?;
    let is_name = !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // Otherwise the rest is another command.
    let ends_once = !patch.lines().any(|line| line == mark);
    (is_name && ends_once).then_some((folder, patch))
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
        for mark in ["EOF", "'EOF'", " 'X_1'", "\"EOF\""] {
            let end = mark.trim().trim_matches(['\'', '"']);
            for program in ["apply_patch", "applypatch"] {
                assert_eq!(run(&format!("{program} <<{mark}\n{patch}\n{end}")), deleted, "{mark}");
            }
        }
        for (folder, path) in [("x", "x/a"), ("/x/", "/x/a"), ("../y.d", "../y.d/a")] {
            let line = format!("cd {folder} && apply_patch <<'EOF'\n{patch}\nEOF\n");
            assert_eq!(run(&line), [AgentAction::Delete { path: path.to_owned() }]);
        }
        let absolute = "cd x && apply_patch <<EOF\n*** Begin Patch\n*** Delete File: /a\n*** End Patch\nEOF";
        assert_eq!(run(absolute), [AgentAction::Delete { path: "/a".to_owned() }]);
        // A program of that name, and no patch.
        for line in ["apply_patch --help", "rg -F '*** Begin Patch'"] {
            assert_eq!(run(line), [AgentAction::Command { line: line.to_owned(), cwd: None }]);
        }
    }

    #[test]
    fn a_patch_in_any_other_form_of_command_is_not_read() {
        let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
        for line in [
            format!("apply_patch <<EOF\n{patch}\nEOF\nrm b"),
            format!("apply_patch <<EOF\n{patch}\nEOF\nrm b\nEOF"),
            format!("apply_patch <<EOF; rm b\n{patch}\nEOF"),
            format!("apply_patch <<-EOF\n{patch}\nEOF"),
            format!("apply_patch <<\\EOF\n{patch}\nEOF"),
            format!("apply_patch <<'E.F'\n{patch}\nE.F"),
            format!("apply_patch '{patch}'"),
            format!("apply_patch\t<<EOF\n{patch}\nEOF"),
            format!("applypatch <<\"EOF\" \\\n\n{patch}\nEOF"),
            format!("cd \"x y\" && apply_patch <<EOF\n{patch}\nEOF"),
            format!("cd ~ && apply_patch <<EOF\n{patch}\nEOF"),
            format!("cd -P && apply_patch <<EOF\n{patch}\nEOF"),
            format!("cd x; apply_patch <<EOF\n{patch}\nEOF"),
            format!("cd x && cd y && apply_patch <<EOF\n{patch}\nEOF"),
            format!("bash -lc 'applypatch <<EOF\n{patch}\nEOF'"),
            "apply_patch <<EOF\n*** Begin Patch\n*** Delete File: \u{feff}a\n*** End Patch\nEOF".to_owned(),
        ] {
            assert!(actions("Bash", &json!({"command": line})).is_err(), "{line}");
        }
    }
}
