//! The hooks in an agent's configuration: which file has them, and its text with and without them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toold_proto::shell_word::{quoted, quoted_unless};

use crate::commands::agents::chosen_fail;
use crate::commands::confine::prefix;
use crate::commands::hook::{FailArg, HookAgent, limits};
use crate::commands::mcp::install::{below_home, in_named_folder};
use crate::commands::mcp::jsonc;
use crate::config_file;

/// The member of the file that holds the hooks by event.
const HOLDER: &str = "hooks";

/// The member of Claude Code's settings that holds variables.
const ENVIRONMENT: &str = "env";

/// A denial, for the agents that read the status.
const WITHOUT_ANSWER: &str = "sh -c 'echo toolctl ended without an answer >&2; exit 2'";

/// The plugin for opencode, which has no hooks that run a program.
const PLUGIN: &str = include_str!("opencode_plugin.js");
/// Where the plugin has the path of this program.
const PROGRAM_PLACE: &str = "\"TOOLCTL\"";

/// Where the plugin has the answer without a daemon.
const FAIL_PLACE: &str = "\"FAIL\"";
/// Where the plugin has the time limit of the hook.
const LIMIT_PLACE: &str = "LIMIT";
/// Where the plugin has the variables of the installation.
const VARIABLES_PLACE: &str = "[\"VARIABLES\"]";

/// How the hooks run this program.
#[derive(Clone, Debug)]
pub(crate) struct HookCommand<'a> {
    /// The path of this program.
    pub(crate) program: &'a str,
    /// The answer when no daemon runs.
    pub(crate) fail: FailArg,
    /// As [`variables`](crate::commands::hook::installed::variables) gives them.
    pub(crate) variables: Vec<String>,
}

impl HookCommand<'_> {
    /// Of no installation, to find out which events have hooks.
    const NONE: Self = Self { program: "", fail: FailArg::Open, variables: Vec::new() };

    /// As a line for a shell.
    pub(super) fn line(&self, agent: HookAgent) -> String {
        let Self { program, fail, variables } = self;
        let variables = variables.iter().map(|variable| format!(" --env {}", quoted_unless(variable, is_plain)));
        let (variables, limit) = (variables.collect::<String>(), limits::installed(agent));
        format!("{} hook {} --fail {} --limit {limit}{variables}", quoted(program), agent.name(), fail.as_str())
    }

    /// The same for an event before a tool, of an agent that runs the tool when the hook is killed: the status is that of a
    /// denial then, and for closed hooks also when this program is gone. The shell may be fish.
    fn guarded_line(&self, agent: HookAgent) -> String {
        let is_gone = match self.fail {
            FailArg::Open => format!("! test -x {} || ", quoted(self.program)),
            FailArg::Closed => String::new(),
        };
        format!("{} || {is_gone}{WITHOUT_ANSWER}", self.line(agent))
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c)
}

/// The file: below the home folder, or in the folder that the agent's own variable or the system's names.
pub(crate) fn file(agent: HookAgent) -> PathBuf {
    let moved = match agent {
        HookAgent::ClaudeCode => in_named_folder("CLAUDE_CONFIG_DIR", "settings.json"),
        HookAgent::Codex => in_named_folder("CODEX_HOME", "hooks.json"),
        HookAgent::Copilot => in_named_folder("COPILOT_HOME", "hooks/toold.json"),
        HookAgent::Gemini => in_named_folder("GEMINI_CLI_HOME", ".gemini/settings.json"),
        HookAgent::QwenCode => in_named_folder("QWEN_HOME", "settings.json"),
        // VS Code looks for hooks in the home folder alone (its code, 1.139.1).
        HookAgent::Cursor | HookAgent::Opencode | HookAgent::Vscode => None,
    };
    if let Some(moved) = moved {
        return moved;
    }
    below_home(match agent {
        HookAgent::ClaudeCode => ".claude/settings.json",
        HookAgent::Codex => ".codex/hooks.json",
        HookAgent::Gemini => ".gemini/settings.json",
        HookAgent::Cursor => ".cursor/hooks.json",
        HookAgent::Copilot => ".copilot/hooks/toold.json",
        HookAgent::Opencode => "$XDG_CONFIG_HOME/opencode/plugins/toold.js",
        HookAgent::QwenCode => ".qwen/settings.json",
        HookAgent::Vscode => ".copilot/hooks/toold-vscode.json",
    })
}

/// The text with the hooks.
///
/// # Errors
/// The text is not in the agent's form, or is a plugin of somebody else.
pub(crate) fn with_hooks(agent: HookAgent, text: &str, command: &HookCommand<'_>) -> anyhow::Result<String> {
    Ok(hook_by_hook(agent, text, command)?.pop().unwrap_or_else(|| text.to_owned()))
}

/// The text after each of the changes that install the hooks, of which each is in one place.
///
/// # Errors
/// As [`with_hooks`].
pub(crate) fn hook_by_hook(agent: HookAgent, text: &str, command: &HookCommand<'_>) -> anyhow::Result<Vec<String>> {
    if agent == HookAgent::Opencode {
        anyhow::ensure!(text.is_empty() || has_hooks(agent, text), "it is not a file of toold: move it away");
        let plugin = PLUGIN.replace(PROGRAM_PLACE, &json!(command.program).to_string());
        let plugin = plugin.replace(FAIL_PLACE, &json!(command.fail.as_str()).to_string());
        let plugin = plugin.replace(LIMIT_PLACE, &limits::installed(agent).to_string());
        return Ok(vec![plugin.replace(VARIABLES_PLACE, &json!(command.variables).to_string())]);
    }
    let mut text = text.to_owned();
    let mut texts = Vec::new();
    if matches!(agent, HookAgent::Cursor | HookAgent::Copilot) && !jsonc::has_member(&text, &["version"]) {
        text = jsonc::with_member(&text, &["version"], &json!(1))?;
        texts.push(text.clone());
    }
    for (event, item) in items(agent, command) {
        text = jsonc::with_item(&text, &[HOLDER, event], &item, |item| is_ours(agent, item))?;
        texts.push(text.clone());
    }
    // A prefix of somebody else stays.
    if agent == HookAgent::ClaudeCode
        && own_prefix(&text).is_none_or(|value| prefix::fail_of(Path::new(&value)).is_some())
        && let Some(value) = prefix::value(command.fail)
    {
        texts.push(jsonc::with_member(&text, &[ENVIRONMENT, prefix::VARIABLE], &json!(value))?);
    }
    Ok(texts)
}

/// The prefix of Claude Code's command lines in these settings.
fn own_prefix(text: &str) -> Option<String> {
    jsonc::member(text, &[ENVIRONMENT, prefix::VARIABLE])?.as_str().map(str::to_owned)
}

/// Whether the agent runs its command lines so that toold can confine them, as far as the person's settings tell.
pub(super) fn confines_in(agent: HookAgent, home: &Path) -> bool {
    let text = config_file::read(&home.join(file(agent))).ok().flatten().unwrap_or_default();
    has_own_prefix(agent, &text) && own_prefix(&text).is_some_and(|value| Path::new(&value).is_file())
}

/// Whether the text puts `toolctl confine` before the agent's command lines.
pub(crate) fn has_own_prefix(agent: HookAgent, text: &str) -> bool {
    agent == HookAgent::ClaudeCode && own_prefix(text).is_some_and(|value| prefix::fail_of(Path::new(&value)).is_some())
}

/// Makes what a text of [`with_hooks`] names beside the program, and keeps what the person chose.
///
/// # Errors
/// It cannot be made.
pub(crate) fn prepare(agent: HookAgent, text: &str, program: &str) -> anyhow::Result<()> {
    if let Some(fail) = fail_in(agent, text) {
        chosen_fail::keep(agent, fail)?;
    }
    match own_prefix(text).filter(|_| has_own_prefix(agent, text)) {
        Some(value) => prefix::make_link(Path::new(&value), Path::new(program)),
        None => Ok(()),
    }
}

/// The text without the hooks; `before`: the text as it was before they were installed.
///
/// # Errors
/// The text is not in the agent's form.
pub(crate) fn without_hooks(agent: HookAgent, text: &str, before: &str) -> anyhow::Result<String> {
    if agent == HookAgent::Opencode {
        return Ok(String::new());
    }
    let mut text = text.to_owned();
    for (event, _) in items(agent, &HookCommand::NONE) {
        text = jsonc::without_items(&text, &[HOLDER, event], before, |item| is_ours(agent, item))?;
    }
    if has_own_prefix(agent, &text) {
        text = jsonc::without_member(&text, ENVIRONMENT, prefix::VARIABLE, before)?;
    }
    Ok(text)
}

/// Whether the text has nothing but what the hooks need: none had a reason to make the file but us.
pub(crate) fn is_bare(text: &str) -> bool {
    let is_empty = |value: &Value| value.as_object().is_some_and(|object| object.is_empty());
    text.trim().is_empty()
        || jsonc::whole(text).as_ref().and_then(Value::as_object).is_some_and(|members| {
            members.iter().all(|(name, value)| name == "version" || name == HOLDER && is_empty(value))
        })
}

pub(crate) fn has_hooks(agent: HookAgent, text: &str) -> bool {
    if agent == HookAgent::Opencode {
        return text.contains("\"hook\", \"opencode\"");
    }
    items(agent, &HookCommand::NONE)
        .iter()
        .any(|(event, _)| jsonc::entries(text, &[HOLDER, event]).iter().any(|hook| is_ours(agent, hook)))
}

/// Whether all hooks in the text are as an installation writes them: none is missing, narrowed or turned into another one.
pub(crate) fn are_whole(agent: HookAgent, text: &str) -> bool {
    let (Some(program), Some(fail)) = (program_in(agent, text), fail_in(agent, text)) else { return false };
    let command = HookCommand { program: &program, fail, variables: variables_in(agent, text) };
    if agent == HookAgent::Opencode {
        return with_hooks(agent, "", &command).is_ok_and(|whole| whole == text);
    }
    // If a member stands twice, the agents read the last one.
    let there = jsonc::whole(text).unwrap_or_default();
    let has_item = |(event, item): (&str, Value)| {
        there[HOLDER][event].as_array().is_some_and(|items| items.iter().any(|there| jsonc::holds(there, &item)))
    };
    items(agent, &command).into_iter().all(has_item)
}

/// Said of hooks that are not [as chosen](are_as_chosen).
pub(crate) const DIFFER: &str = "are not as they were installed, or an earlier toolctl installed them";

/// The same; and the answer without a daemon is the one that the person chose.
pub(crate) fn are_as_chosen(agent: HookAgent, text: &str) -> bool {
    are_whole(agent, text) && chosen_fail_of(agent, text) == fail_in(agent, text)
}

/// The answer without a daemon that the person chose for the hooks in this text; `None` when there are no hooks.
pub(crate) fn chosen_fail_of(agent: HookAgent, text: &str) -> Option<FailArg> {
    let written = fail_in(agent, text)?;
    Some(chosen_fail::kept(agent).unwrap_or(written))
}

/// Whether an installation put hooks into this agent's file, and nothing of toold has removed them since.
pub(super) fn were_installed(agent: HookAgent) -> bool {
    chosen_fail::kept(agent).is_some()
}

/// Why the file can have no hooks, as a sentence.
pub(super) fn problem(agent: HookAgent, file: &Path) -> Option<String> {
    let text = match config_file::read(file) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return Some(format!("{error:#}")),
    };
    let error = with_hooks(agent, &text, &HookCommand::NONE).err()?;
    Some(format!("{}: {error:#}", file.display()))
}

pub(crate) fn is_installed(agent: HookAgent, home: &Path) -> bool {
    let text = config_file::read(&home.join(file(agent))).ok().flatten();
    text.is_some_and(|text| has_hooks(agent, &text))
}

/// The program that the hooks in this text run; `None` when there are no hooks.
pub(crate) fn program_in(agent: HookAgent, text: &str) -> Option<String> {
    if agent == HookAgent::Opencode {
        let (_, rest) = text.split_once("const TOOLCTL = ")?;
        return serde_json::Deserializer::from_str(rest).into_iter::<String>().next()?.ok();
    }
    let command = hook_commands(agent, text).into_iter().next()?;
    let (program, _) = command.rsplit_once(" hook ")?;
    Some(program.trim_matches('\'').replace(r"'\''", "'"))
}

/// The answer without a daemon that the hooks in this text have; `None` when there are no hooks.
pub(crate) fn fail_in(agent: HookAgent, text: &str) -> Option<FailArg> {
    if !has_hooks(agent, text) {
        return None;
    }
    let is_closed = match agent {
        HookAgent::Opencode => text.contains("ON_FAILURE = \"closed\""),
        // An open hook beside closed ones was changed after the installation.
        _ => hook_commands(agent, text).iter().any(|command| command.contains(" --fail closed")),
    };
    Some(if is_closed { FailArg::Closed } else { FailArg::Open })
}

/// For an agent without hooks: a denial where the agent can be told to deny what a missing hook would have judged.
pub(crate) fn default_fail(agent: HookAgent) -> FailArg {
    match agent {
        HookAgent::ClaudeCode | HookAgent::Cursor => FailArg::Closed,
        HookAgent::Codex
        | HookAgent::Gemini
        | HookAgent::Copilot
        | HookAgent::Opencode
        | HookAgent::QwenCode
        | HookAgent::Vscode => FailArg::Open,
    }
}

/// Whether the hooks are called at this event.
pub(super) fn has_event(agent: HookAgent, event: &str) -> bool {
    agent != HookAgent::Opencode && items(agent, &HookCommand::NONE).iter().any(|(name, _)| *name == event)
}

/// The variables of the installation that the hooks in this text have.
pub(crate) fn variables_in(agent: HookAgent, text: &str) -> Vec<String> {
    let variables = match agent {
        HookAgent::Opencode => text
            .split_once("const VARIABLES = ")
            .and_then(|(_, rest)| serde_json::Deserializer::from_str(rest).into_iter::<Vec<String>>().next()?.ok()),
        _ => hook_commands(agent, text)
            .first()
            .and_then(|command| shlex::split(command))
            .map(|words| words.windows(2).filter(|pair| pair[0] == "--env").map(|pair| pair[1].clone()).collect()),
    };
    variables.unwrap_or_default()
}

/// The commands of all hooks of ours.
fn hook_commands(agent: HookAgent, text: &str) -> Vec<String> {
    let events = items(agent, &HookCommand::NONE);
    let hooks = events.iter().flat_map(|(event, _)| jsonc::entries(text, &[HOLDER, event]));
    hooks.filter(|hook| is_ours(agent, hook)).filter_map(|hook| command_of(&hook).map(str::to_owned)).collect()
}

/// The item for the list of each event.
fn items(agent: HookAgent, command: &HookCommand<'_>) -> Vec<(&'static str, Value)> {
    let (limit, fail, guarded) = (limits::installed(agent), command.fail, command.guarded_line(agent));
    let command = command.line(agent);
    match agent {
        HookAgent::ClaudeCode => {
            let hook = json!({"type": "command", "command": command, "timeout": limit});
            let mut blocking = hook.clone();
            if fail == FailArg::Closed {
                // Also when this program is gone, is killed or crashes.
                blocking["onFailure"] = json!("block");
            } else {
                blocking["command"] = json!(guarded);
            }
            let item = |hook: &Value| json!({"matcher": "*", "hooks": [hook]});
            vec![
                ("PreToolUse", item(&blocking)),
                ("PostToolUse", item(&hook)),
                ("PostToolUseFailure", item(&hook)),
                ("SessionStart", json!({"hooks": [&hook]})),
                ("Stop", json!({"hooks": [&hook]})),
                ("SessionEnd", json!({"hooks": [&hook]})),
            ]
        }
        HookAgent::Codex => {
            let item = |command: &str| json!({"hooks": [{"type": "command", "command": command, "timeout": limit}]});
            let mut items: Vec<_> = ["PreToolUse", "PermissionRequest"].map(|event| (event, item(&guarded))).into();
            items.extend(["PostToolUse", "SessionStart", "Stop"].map(|event| (event, item(&command))));
            items
        }
        HookAgent::Gemini => {
            let hook = json!({"name": "toold", "type": "command", "command": command, "timeout": limit * 1000});
            let mut before = hook.clone();
            before["command"] = json!(guarded);
            let item = |hook: &Value| json!({"matcher": "*", "hooks": [hook]});
            let mut items = vec![("BeforeTool", item(&before)), ("AfterTool", item(&hook))];
            let item = json!({"hooks": [hook]});
            items.extend(["SessionStart", "AfterAgent", "SessionEnd"].map(|event| (event, item.clone())));
            items
        }
        HookAgent::QwenCode => {
            let hook = json!({"name": "toold", "type": "command", "command": command, "timeout": limit});
            let mut before = hook.clone();
            before["command"] = json!(guarded);
            let item = |hook: &Value| json!({"matcher": "*", "hooks": [hook]});
            let mut items = vec![("PreToolUse", item(&before))];
            items.extend(["PostToolUse", "PostToolUseFailure"].map(|event| (event, item(&hook))));
            let item = json!({"hooks": [hook]});
            items.extend(["SessionStart", "Stop", "SessionEnd"].map(|event| (event, item.clone())));
            items
        }
        HookAgent::Vscode => {
            let item = |command: &str| json!({"type": "command", "command": command, "timeout": limit});
            let mut items = vec![("PreToolUse", item(&guarded))];
            items.extend(["PostToolUse", "SessionStart", "Stop"].map(|event| (event, item(&command))));
            items
        }
        HookAgent::Cursor => {
            let mut item = json!({"command": command, "timeout": limit});
            if fail == FailArg::Closed {
                // Also when this program is gone, is killed or crashes.
                item["failClosed"] = json!(true);
            }
            let events = [
                "beforeShellExecution",
                "afterShellExecution",
                "beforeMCPExecution",
                "afterMCPExecution",
                "beforeReadFile",
                "sessionStart",
                "stop",
                "sessionEnd",
            ];
            let mut items: Vec<_> = events.map(|event| (event, item.clone())).into();
            // Commands, MCP tools and reads have the events above.
            let mut edits = item.clone();
            edits["matcher"] = json!("Write|Delete");
            items.extend(["preToolUse", "postToolUse", "postToolUseFailure"].map(|event| (event, edits.clone())));
            items
        }
        // Its input does not name the event.
        HookAgent::Copilot => {
            ["preToolUse", "postToolUse", "postToolUseFailure", "sessionStart", "agentStop", "sessionEnd"]
                .map(|event| {
                    let bash = format!("{command} --event {event}");
                    (event, json!({"type": "command", "bash": bash, "timeoutSec": limit}))
                })
                .into()
        }
        HookAgent::Opencode => Vec::new(),
    }
}

/// The command of a hook; `None` for a group of hooks.
pub(super) fn command_of(hook: &Value) -> Option<&str> {
    ["command", "bash"].into_iter().find_map(|name| hook.get(name)?.as_str())
}

fn is_ours(agent: HookAgent, hook: &Value) -> bool {
    command_of(hook).is_some_and(|command| runs_hook(agent, command))
}

fn runs_hook(agent: HookAgent, command: &str) -> bool {
    let rest = command.rsplit_once(" hook ").filter(|(program, _)| program.trim_end_matches('\'').ends_with("toolctl"));
    rest.is_some_and(|(_, rest)| rest.split(' ').next() == Some(agent.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(program: &str, fail: FailArg) -> HookCommand<'_> {
        let variables = vec!["HOME=/home/me".to_owned(), "XDG_STATE_HOME=/my state".to_owned()];
        HookCommand { program, fail, variables }
    }

    #[test]
    fn hooks_are_added_once_and_removed_alone() {
        for agent in HookAgent::ALL.into_iter().filter(|agent| *agent != HookAgent::Opencode) {
            let before = "{\n  // mine\n  \"other\": [1],\n  \"hooks\": {\"Stop\": [{\"command\": \"theirs\"}]}\n}\n";
            let after = with_hooks(agent, before, &hook("/opt/my tools/toolctl", FailArg::Open)).unwrap();
            assert!(has_hooks(agent, &after) && !has_hooks(agent, before), "{after}");
            assert!(after.contains("// mine") && after.contains("theirs"), "{after}");
            assert_eq!(with_hooks(agent, &after, &hook("/opt/my tools/toolctl", FailArg::Open)).unwrap(), after);
            assert_eq!(program_in(agent, &after).unwrap(), "/opt/my tools/toolctl");
            assert_eq!(variables_in(agent, &after), ["HOME=/home/me", "XDG_STATE_HOME=/my state"]);
            let moved = with_hooks(agent, &after, &hook("/usr/bin/toolctl", FailArg::Open)).unwrap();
            assert_eq!(program_in(agent, &moved).unwrap(), "/usr/bin/toolctl", "{moved}");
            assert!(!moved.contains("my tools"), "{moved}");
            let undone = without_hooks(agent, &moved, before).unwrap();
            assert!(!has_hooks(agent, &undone) && undone.contains("theirs") && undone.contains("// mine"), "{undone}");
        }
    }

    #[test]
    fn a_group_with_hooks_of_others_loses_ours_alone() {
        for agent in HookAgent::ALL.into_iter().filter(|agent| *agent != HookAgent::Opencode) {
            let command = hook("/opt/toolctl", FailArg::Closed);
            let mut all = jsonc::whole(&with_hooks(agent, "{}", &command).unwrap()).unwrap();
            let events: Vec<String> = all[HOLDER].as_object().unwrap().keys().cloned().collect();
            let theirs = json!({"type": "command", "command": "./theirs"});
            for (at, event) in events.iter().enumerate() {
                let item = &mut all[HOLDER][event][0];
                let Some(group) = item.get_mut("hooks").and_then(Value::as_array_mut) else { continue };
                group.insert(at % 2, theirs.clone());
            }
            let shared = serde_json::to_string_pretty(&all).unwrap();
            assert_eq!(with_hooks(agent, &shared, &command).unwrap(), shared, "they are there");
            for text in [shared.clone(), with_hooks(agent, &shared, &hook("/usr/bin/toolctl", FailArg::Open)).unwrap()]
            {
                assert!(has_hooks(agent, &text), "{text}");
                let undone = without_hooks(agent, &text, "{}").unwrap();
                assert!(!undone.contains("toolctl") && !has_hooks(agent, &undone), "{undone}");
                assert_eq!(undone.matches("./theirs").count(), shared.matches("./theirs").count(), "{undone}");
            }
        }
    }

    #[test]
    fn hooks_are_whole_until_one_is_missing_or_changed() {
        for agent in HookAgent::ALL {
            for fail in [FailArg::Open, FailArg::Closed] {
                let text = with_hooks(agent, "", &hook("/opt/my tools/toolctl", fail)).unwrap();
                assert!(are_whole(agent, &text) && !are_whole(agent, ""), "{text}");
                assert!(!are_whole(agent, &text.replacen("my tools", "your tools", 1)) || agent == HookAgent::Opencode);
            }
        }
        let whole = with_hooks(HookAgent::ClaudeCode, "{}", &hook("/opt/toolctl", FailArg::Closed)).unwrap();
        let whole = jsonc::whole(&whole).unwrap();
        let group = "/hooks/PreToolUse/0";
        let command = whole.pointer(&format!("{group}/hooks/0/command")).unwrap().as_str().unwrap().to_owned();
        let member = |path: &str, value: Value| {
            let mut changed = whole.clone();
            let (parent, name) = path.rsplit_once('/').unwrap();
            changed.pointer_mut(&format!("{group}{parent}")).unwrap()[name] = value;
            changed.to_string()
        };
        let mut without = whole.clone();
        without["hooks"].as_object_mut().unwrap().shift_remove("PreToolUse");
        for changed in [
            without.to_string(),
            member("/matcher", json!("Read")),
            member("/hooks/0/onFailure", json!("allow")),
            member("/hooks/0/timeout", json!(1)),
            member("/hooks/0/if", json!("Bash(ls)")),
            member("/hooks/0/async", json!(true)),
            member("/hooks/0/command", json!(command.replace("closed", "open"))),
            member("/hooks/0/command", json!(format!("{command} || true"))),
            member("/hooks/0/command", json!(format!("{command} --env TOOLD_SOCKET=/x"))),
            format!("{{\"hooks\": {}, \"hooks\": {{\"Stop\": []}}}}", whole["hooks"]),
        ] {
            assert!(!are_whole(HookAgent::ClaudeCode, &changed), "{changed}");
        }
    }

    #[test]
    fn the_prefix_of_claude_code_is_set_and_removed_but_not_somebody_else_s() {
        let agent = HookAgent::ClaudeCode;
        let value = |text: &str| jsonc::member(text, &[ENVIRONMENT, prefix::VARIABLE]);
        let after = with_hooks(agent, "{}", &hook("/opt/toolctl", FailArg::Closed)).unwrap();
        assert_eq!(value(&after), prefix::value(FailArg::Closed).map(Into::into));
        let open = with_hooks(agent, &after, &hook("/opt/toolctl", FailArg::Open)).unwrap();
        assert_eq!(value(&open), prefix::value(FailArg::Open).map(Into::into));
        assert_eq!(jsonc::whole(&without_hooks(agent, &open, "{}").unwrap()), Some(json!({})));
        let before = "{\"env\": {\"A\": \"b\", \"CLAUDE_CODE_SHELL_PREFIX\": \"/usr/bin/log -x\"}}";
        let after = with_hooks(agent, before, &hook("/opt/toolctl", FailArg::Closed)).unwrap();
        assert_eq!(value(&after), Some(json!("/usr/bin/log -x")));
        assert_eq!(jsonc::whole(&without_hooks(agent, &after, before).unwrap()), jsonc::whole(before));
    }

    #[test]
    fn a_file_of_the_hooks_own_is_bare_without_them_unless_somebody_has_extended_it() {
        let command = hook("/opt/toolctl", FailArg::Open);
        for agent in HookAgent::ALL {
            let made = with_hooks(agent, "", &command).unwrap();
            assert!(is_bare(&without_hooks(agent, &made, "").unwrap()), "{made}");
            assert!(!is_bare(&made), "{made}");
        }
        let mine = "{\"hooks\": {\"preToolUse\": [{\"bash\": \"./mine\"}]}}";
        let without = without_hooks(HookAgent::Copilot, &with_hooks(HookAgent::Copilot, mine, &command).unwrap(), "");
        assert!(!is_bare(&without.unwrap()));
        let error = with_hooks(HookAgent::Opencode, "export const Mine = 1", &command).unwrap_err().to_string();
        assert!(error.contains("move it away"), "{error}");
    }

    #[test]
    fn files_of_our_own_are_whole() {
        for agent in [HookAgent::Copilot, HookAgent::Opencode] {
            let text = with_hooks(agent, "", &hook("/usr/bin/toolctl", FailArg::Open)).unwrap();
            assert!(has_hooks(agent, &text), "{text}");
            assert_eq!(program_in(agent, &text).unwrap(), "/usr/bin/toolctl");
            assert_eq!(variables_in(agent, &text), ["HOME=/home/me", "XDG_STATE_HOME=/my state"]);
        }
    }

    #[test]
    fn hooks_of_others_are_not_ours() {
        for command in ["mytoolctl-hook codex", "echo toolctl hook", "toolctl hook codex2", "toolctl hookcodex"] {
            assert!(!is_ours(HookAgent::Codex, &json!({"command": command})), "{command}");
        }
        let empty = "{\"hooks\": {\"Stop\": [{\"hooks\": []}]}}";
        assert_eq!(without_hooks(HookAgent::Codex, empty, "").unwrap(), empty);
    }
}
