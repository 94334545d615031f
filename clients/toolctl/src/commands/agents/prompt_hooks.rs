//! The hooks of an agent's prompts, which are installed only when a plugin or the configuration has hooks of messages.

use serde_json::{Value, json};
use toold_proto::daemon::NoParams;
use toold_proto::method::HooksList;

use crate::commands::agents::hooks_file::{self, HookCommand};
use crate::commands::hook::{FailArg, HookAgent, limits, prompts};
use crate::commands::mcp::{install, jsonc};
use crate::globals::Globals;
use crate::output::one_line;
use crate::{config_file, connection};

/// The names of the hooks of messages; none without a daemon, which is not started for them.
pub(super) async fn of_messages(globals: &Globals) -> Vec<String> {
    let Ok(Some(client)) = connection::open_running(globals).await else { return Vec::new() };
    let Ok(list) = client.call::<HooksList>(NoParams {}).await else { return Vec::new() };
    let of_messages = list.hooks.into_iter().filter(|hook| hook.event.ends_with("_message"));
    of_messages.map(|hook| hook.name).collect()
}

/// A sentence that tells which message hooks now run for the agent; `None` if there are no message hooks.
pub(super) fn words(agent: HookAgent, of_messages: &[String]) -> Option<String> {
    if of_messages.is_empty() {
        return None;
    }
    let names = one_line(&of_messages.join(", "));
    Some(match prompts::events(agent) {
        Some(_) => format!("these hooks of messages run for the prompts of {} too: {names}", agent.title()),
        None => {
            format!("{} has no hooks for prompts, so these hooks of messages do not run for it: {names}", agent.title())
        }
    })
}

/// The agents whose prompts run the hooks of messages, by their titles.
pub(crate) fn installed() -> Vec<&'static str> {
    let Ok(home) = install::home() else { return Vec::new() };
    let has = |agent: &HookAgent| {
        let text = config_file::read(&home.join(hooks_file::file(*agent))).ok().flatten();
        text.is_some_and(|text| are_in(*agent, &text))
    };
    HookAgent::ALL.into_iter().filter(has).map(HookAgent::title).collect()
}

/// The agents that have toold among their MCP servers, by their titles.
pub(crate) fn with_entry() -> Vec<&'static str> {
    let Ok(home) = install::home() else { return Vec::new() };
    let has = |agent: &HookAgent| {
        let client = agent.mcp_client();
        let text = config_file::read(&client.found_file(&home)).ok().flatten();
        text.is_some_and(|text| client.has_entry(&text))
    };
    HookAgent::ALL.into_iter().filter(has).map(HookAgent::title).collect()
}

/// The text with the hooks of prompts, or without them.
///
/// # Errors
/// The text is not in the agent's form.
pub(super) fn changed(agent: HookAgent, text: &str, command: &HookCommand<'_>, wanted: bool) -> anyhow::Result<String> {
    let mut changed = text.to_owned();
    for event in events(agent) {
        changed = match wanted {
            true => {
                jsonc::with_item(&changed, &[HOLDER, event], &item(agent, event, command), |item| is_ours(agent, item))?
            }
            false if has(agent, &changed, event) => {
                jsonc::without_items(&changed, &[HOLDER, event], "", |item| is_ours(agent, item))?
            }
            false => changed,
        };
    }
    Ok(changed)
}

/// Whether the text has them.
fn are_in(agent: HookAgent, text: &str) -> bool {
    events(agent).into_iter().any(|event| has(agent, text, event))
}

/// The member of the file that holds the hooks by event.
const HOLDER: &str = "hooks";

/// The events of prompts that need a hook of their own: the other hooks do not cover them.
fn events(agent: HookAgent) -> Vec<&'static str> {
    let of_prompts = prompts::events(agent).into_iter().flat_map(|(before, after)| [before, after]);
    of_prompts.filter(|event| !hooks_file::has_event(agent, event)).collect()
}

fn has(agent: HookAgent, text: &str, event: &str) -> bool {
    jsonc::entries(text, &[HOLDER, event]).iter().any(|hook| is_ours(agent, hook))
}

fn item(agent: HookAgent, event: &str, command: &HookCommand<'_>) -> Value {
    let limit = limits::installed(agent);
    // A prompt that no hook has seen does no harm.
    let command = HookCommand { fail: FailArg::Open, ..command.clone() }.line(agent);
    match agent {
        HookAgent::ClaudeCode | HookAgent::Codex => {
            json!({"hooks": [{"type": "command", "command": command, "timeout": limit}]})
        }
        HookAgent::Gemini => {
            json!({"hooks": [{"name": "toold", "type": "command", "command": command, "timeout": limit * 1000}]})
        }
        HookAgent::QwenCode => {
            json!({"hooks": [{"name": "toold", "type": "command", "command": command, "timeout": limit}]})
        }
        HookAgent::Vscode => json!({"type": "command", "command": command, "timeout": limit}),
        HookAgent::Cursor => json!({"command": command, "timeout": limit}),
        HookAgent::Copilot => {
            json!({"type": "command", "bash": format!("{command} --event {event}"), "timeoutSec": limit})
        }
        HookAgent::Opencode => Value::Null,
    }
}

fn is_ours(agent: HookAgent, hook: &Value) -> bool {
    hooks_file::command_of(hook)
        .is_some_and(|command| command.contains("toolctl") && command.contains(&format!(" hook {}", agent.name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(program: &str) -> HookCommand<'_> {
        HookCommand { program, fail: FailArg::Closed, variables: vec!["HOME=/home/me".to_owned()] }
    }

    #[test]
    fn hooks_of_prompts_come_and_go_alone() {
        for agent in HookAgent::ALL.into_iter().filter(|agent| *agent != HookAgent::Opencode) {
            let before = "{\n  \"hooks\": {\"Stop\": [{\"command\": \"theirs\"}], \"x\": []}\n}\n";
            let with = changed(agent, before, &hook("/opt/toolctl"), true).unwrap();
            assert!(are_in(agent, &with) && !are_in(agent, before) && with.contains("theirs"), "{with}");
            assert_eq!(changed(agent, &with, &hook("/opt/toolctl"), true).unwrap(), with);
            let without = changed(agent, &with, &hook("/opt/toolctl"), false).unwrap();
            assert!(!are_in(agent, &without) && without.contains("theirs"), "{without}");
        }
    }
}
