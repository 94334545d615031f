//! The hook at an agent's prompt and at the end of its answer: it runs the message hooks of plugins and of the
//! configuration.
//!
//! No agent lets a hook replace a prompt, so that a changed message and an addition to the system prompt become added context.
//! At the end nothing is added, and no agent is made to go on.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};

use crate::commands::hook::daemon::Exchange;
use crate::commands::hook::{HookAgent, note};
use crate::globals::Globals;

/// When the event comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptMoment {
    Before,
    After,
}

/// The events of prompts of each agent whose hooks can have them: before the model reads the prompt, and after its answer.
pub(crate) fn events(agent: HookAgent) -> Option<(&'static str, &'static str)> {
    match agent {
        HookAgent::ClaudeCode | HookAgent::Codex => Some(("UserPromptSubmit", "Stop")),
        HookAgent::Gemini => Some(("BeforeAgent", "AfterAgent")),
        HookAgent::Cursor => Some(("beforeSubmitPrompt", "afterAgentResponse")),
        HookAgent::Copilot => Some(("userPromptSubmitted", "agentStop")),
        HookAgent::Opencode => None,
    }
}

/// `None` for events that are not of prompts.
pub(super) fn moment(agent: HookAgent, event: &str) -> Option<PromptMoment> {
    let (before, after) = events(agent)?;
    match event {
        _ if event == before => Some(PromptMoment::Before),
        _ if event == after => Some(PromptMoment::After),
        _ => None,
    }
}

/// Runs the message hooks; returns the answer for the agent. Without a daemon there are none.
pub(super) fn run(
    agent: HookAgent,
    event: &str,
    moment: PromptMoment,
    input: &Value,
    globals: &Globals,
) -> Option<Value> {
    let name = match moment {
        PromptMoment::Before => "pre_message",
        PromptMoment::After => "post_message",
    };
    let message = match moment {
        PromptMoment::Before => input["prompt"].as_str().map(str::to_owned),
        PromptMoment::After => answer_text(input),
    };
    let message = message?;
    // The session of the hooks is that of the folder in which the agent works.
    if let Some(folder) = input["cwd"].as_str().or_else(|| input["workspace_roots"][0].as_str()) {
        let _ = std::env::set_current_dir(folder);
    }
    let exchange = Exchange::open(globals).ok()?;
    let action = match exchange.call("hooks.run", &json!({"event": name, "message": message})) {
        Ok(action) => action,
        Err(error) => {
            note(&format!("toolctl hook {}: the hooks of messages did not run: {error}", agent.name()));
            return None;
        }
    };
    for failed in action["failed"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        note(&format!("toolctl hook {}: {failed}", agent.name()));
    }
    match moment {
        PromptMoment::Before => answer(agent, event, &action),
        PromptMoment::After => None,
    }
}

/// The answer in the agent's form; `None` if the hooks did nothing that it can take.
fn answer(agent: HookAgent, event: &str, action: &Value) -> Option<Value> {
    if action["decision"] == "deny" {
        let reason = action["reason"].as_str().unwrap_or("a hook of a plugin refused the message");
        return match agent {
            HookAgent::ClaudeCode | HookAgent::Codex | HookAgent::Copilot => {
                Some(json!({"decision": "block", "reason": reason}))
            }
            HookAgent::Gemini => Some(json!({"decision": "deny", "reason": reason})),
            HookAgent::Cursor => Some(json!({"continue": false, "user_message": reason})),
            HookAgent::Opencode => None,
        };
    }
    let modified = match &action["modified_message"] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let modified = modified.map(|text| format!("The user's message, as a plugin of toold changed it:\n{text}"));
    let appended = action["system_prompt_append"].as_str().map(str::to_owned);
    let parts: Vec<String> = [modified, appended].into_iter().flatten().collect();
    if parts.is_empty() {
        return None;
    }
    let context = parts.join("\n\n");
    match agent {
        HookAgent::ClaudeCode | HookAgent::Codex | HookAgent::Gemini => {
            Some(json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}))
        }
        HookAgent::Copilot => Some(json!({"additionalContext": context})),
        HookAgent::Cursor => {
            note("toolctl hook cursor: a plugin has context for the prompt, and Cursor takes none from a hook");
            None
        }
        HookAgent::Opencode => None,
    }
}

/// The answer of the model: in the input, or the last one of the transcript that the input names.
fn answer_text(input: &Value) -> Option<String> {
    let given = ["last_assistant_message", "prompt_response", "text", "response"];
    let given = given.iter().find_map(|name| input[*name].as_str().map(str::to_owned));
    given.or_else(|| last_of_transcript(Path::new(input["transcript_path"].as_str()?)))
}

/// Bytes at the end of a transcript that are searched.
const SEARCHED: u64 = 256 << 10;

fn last_of_transcript(path: &Path) -> Option<String> {
    // Opening a pipe would wait.
    let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut file = std::fs::File::open(path).ok()?;
    let length = about.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED))).ok()?;
    let mut end = Vec::new();
    file.take(SEARCHED).read_to_end(&mut end).ok()?;
    let lines = end.split(|byte| *byte == b'\n').rev();
    lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok()).find_map(|entry| {
        let message = if entry["message"].is_object() { &entry["message"] } else { &entry };
        (message["role"] == "assistant").then(|| text_of(&message["content"])).flatten()
    })
}

fn text_of(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let texts: Vec<&str> = content.as_array()?.iter().filter_map(|block| block["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hooks_say_is_answered_in_the_form_of_each_agent() {
        let changed = json!({"decision": "modify", "modified_message": "b", "system_prompt_append": "c"});
        let context = "The user's message, as a plugin of toold changed it:\nb\n\nc";
        for agent in [HookAgent::ClaudeCode, HookAgent::Codex, HookAgent::Gemini] {
            let (event, _) = events(agent).unwrap();
            let said = answer(agent, event, &changed).unwrap();
            assert_eq!(said["hookSpecificOutput"], json!({"hookEventName": event, "additionalContext": context}));
            assert_eq!(answer(agent, event, &json!({"decision": "allow"})), None);
            let denied = answer(agent, event, &json!({"decision": "deny", "reason": "no"})).unwrap();
            assert!(denied["reason"] == "no" && denied["decision"] != "allow", "{denied}");
        }
        let denied = answer(HookAgent::Cursor, "beforeSubmitPrompt", &json!({"decision": "deny"})).unwrap();
        assert_eq!(denied["continue"], false);
    }

    #[test]
    fn the_last_answer_is_found_in_the_input_or_in_the_transcript() {
        assert_eq!(answer_text(&json!({"last_assistant_message": "a"})).as_deref(), Some("a"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let lines = [
            json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "old"}]}}),
            json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "new"}]}}),
            json!({"type": "user", "message": {"role": "user", "content": "x"}}),
        ];
        std::fs::write(&path, lines.map(|line| line.to_string()).join("\n")).unwrap();
        assert_eq!(answer_text(&json!({"transcript_path": path})).as_deref(), Some("new"));
        assert_eq!(answer_text(&json!({"transcript_path": "/no/such/file"})), None);
    }
}
