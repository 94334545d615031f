//! The input of an agent's hook, in the terms of a request to the daemon.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::commands::hook::HookAgent;
use crate::commands::hook::mcp_servers::AgentServerTool;

/// The longest name that the daemon takes, in bytes.
const MAX_NAME: usize = 128;

/// A tool that is about to run, or has run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HookCall {
    pub(crate) moment: HookMoment,
    pub(crate) tool: String,
    /// The server and tool that the input names apart from the tool's name.
    pub(crate) named: Option<(String, String)>,
    /// The tools of MCP servers that it may be, by the agent's configuration.
    pub(crate) mcp: Vec<AgentServerTool>,
    pub(crate) input: Value,
    pub(crate) cwd: String,
    /// The agent's own id of the conversation.
    pub(crate) session: Option<String>,
    /// The same for all events of one call; `None` for a prompt of the agent that does not name the call.
    pub(crate) call_id: Option<String>,
    pub(crate) mode: Option<String>,
    /// The agent's own id of its sub-agent, and the sub-agent's kind.
    pub(crate) agent_id: Option<String>,
    pub(crate) agent_type: Option<String>,
}

/// Which agent runs a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookHost {
    Agent(HookAgent),
    /// Another agent that reads the same file and has hooks of its own.
    JudgedByItsOwn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookMoment {
    Before,
    /// No event tells when it ends.
    BeforeAndAfter,
    After {
        ok: bool,
    },
}

/// The name of the event.
pub(crate) fn event(given: Option<&str>, value: &Value) -> String {
    let members = ["hook_event_name", "hookEventName", "hookName"];
    let named = given.or_else(|| members.iter().find_map(|member| value[*member].as_str()));
    named.unwrap_or_default().to_owned()
}

/// Whether the event ends the agent's turn or its conversation, in the words of `permissions.done`; `None` for other events. A new
/// prompt ends the turn before it: agents report no end of a turn that a person interrupts.
pub(crate) fn end_of(event: &str) -> Option<&'static str> {
    match event {
        "Stop" | "stop" | "AfterAgent" | "agentStop" | "session.idle" => Some("turn"),
        "UserPromptSubmit" | "BeforeAgent" | "beforeSubmitPrompt" | "userPromptSubmitted" => Some("turn"),
        "SessionEnd" | "sessionEnd" => Some("conversation"),
        _ => None,
    }
}

/// Whether the event tells that a tool has ended.
pub(crate) fn is_after(agent: HookAgent, event: &str) -> bool {
    matches!(moment(agent, event, &Value::Null), Some(HookMoment::After { .. }))
}

/// The agent's own id of the conversation.
pub(crate) fn session(value: &Value) -> Option<Cow<'_, str>> {
    text(value, &["session_id", "sessionId", "conversation_id"]).map(id)
}

/// An id that the daemon takes: the agent's own, or for a longer one a number that stands for it.
fn id(text: &str) -> Cow<'_, str> {
    match is_name(text) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{:016x}", hash(text))),
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether the daemon takes the text for a name.
fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && !text.chars().any(char::is_control)
}

/// Which agent runs a hook that was installed for `agent`. VS Code also runs the hooks of Claude Code and Copilot CLI,
/// and Copilot CLI those of VS Code: the names of the tools tell them apart.
pub(crate) fn host(agent: HookAgent, value: &Value) -> HookHost {
    let Some(tool) = value["tool_name"].as_str() else { return HookHost::Agent(agent) };
    let is_claude_like = tool.starts_with(|c: char| c.is_ascii_uppercase()) || tool.starts_with("mcp__");
    match agent {
        HookAgent::ClaudeCode if !is_claude_like => HookHost::Agent(HookAgent::Vscode),
        // In its own file, Copilot CLI writes `toolName`.
        HookAgent::Copilot if !is_claude_like => HookHost::Agent(HookAgent::Vscode),
        HookAgent::Vscode if is_claude_like && value["tool_use_id"].is_null() => HookHost::JudgedByItsOwn,
        _ => HookHost::Agent(agent),
    }
}

/// Reads the input. `None`: the event is not one of a tool.
///
/// # Errors
/// The input lacks something that the agent always sends.
pub(crate) fn read(agent: HookAgent, given: Option<&str>, value: &Value) -> Result<Option<HookCall>, String> {
    let event = event(given, value);
    if !value.is_object() {
        return Err("expected a JSON object".to_owned());
    }
    if event.is_empty() {
        return Err("the input has no hook_event_name; name the event with --event".to_owned());
    }
    let Some(moment) = moment(agent, &event, value) else { return Ok(None) };
    let (tool, named, input) = tool(agent, &event, value)?;
    let session = session(value);
    let call_id = call_id(agent, session.as_deref(), &tool, &input, value);
    let name = |members: &[&str]| text(value, members).filter(|text| is_name(text)).map(str::to_owned);
    Ok(Some(HookCall {
        moment,
        cwd: cwd(value)?,
        session: session.map(Cow::into_owned),
        call_id,
        mode: name(&["permission_mode"]),
        agent_id: text(value, &["agent_id", "agentId"]).map(|text| id(text).into_owned()),
        agent_type: name(&["agent_type", "agentType"]),
        tool,
        named,
        mcp: Vec::new(),
        input,
    }))
}

fn moment(agent: HookAgent, event: &str, value: &Value) -> Option<HookMoment> {
    Some(match (agent, event) {
        (HookAgent::ClaudeCode | HookAgent::Codex | HookAgent::QwenCode, "PreToolUse" | "PermissionRequest")
        | (HookAgent::Vscode, "PreToolUse") => HookMoment::Before,
        (HookAgent::ClaudeCode | HookAgent::Codex | HookAgent::QwenCode | HookAgent::Vscode, "PostToolUse") => {
            HookMoment::After { ok: true }
        }
        (HookAgent::ClaudeCode | HookAgent::QwenCode, "PostToolUseFailure") => HookMoment::After { ok: false },
        (HookAgent::Gemini, "BeforeTool") => HookMoment::Before,
        (HookAgent::Gemini, "AfterTool") => HookMoment::After { ok: value["tool_response"]["error"].is_null() },
        (HookAgent::Cursor, "preToolUse" | "beforeShellExecution" | "beforeMCPExecution") => HookMoment::Before,
        (HookAgent::Cursor, "beforeReadFile") => HookMoment::BeforeAndAfter,
        (HookAgent::Cursor, "postToolUse" | "afterShellExecution" | "afterMCPExecution") => {
            HookMoment::After { ok: true }
        }
        (HookAgent::Cursor, "postToolUseFailure") => HookMoment::After { ok: false },
        (HookAgent::Copilot, "preToolUse" | "permissionRequest") => HookMoment::Before,
        (HookAgent::Copilot, "postToolUse") => HookMoment::After { ok: true },
        (HookAgent::Copilot, "postToolUseFailure") => HookMoment::After { ok: false },
        (HookAgent::Opencode, "tool.execute.before") => HookMoment::Before,
        (HookAgent::Opencode, "tool.execute.after") => HookMoment::After { ok: true },
        _ => return None,
    })
}

/// The name of a tool, the server and tool if they are named apart, and the input.
type NamedTool = (String, Option<(String, String)>, Value);

/// The tool and its input, as the daemon's tables know them.
fn tool(agent: HookAgent, event: &str, value: &Value) -> Result<NamedTool, String> {
    let of_server = |server: &str, tool: &str, input| {
        (format!("mcp__{server}__{tool}"), Some((server.to_owned(), tool.to_owned())), input)
    };
    if agent == HookAgent::Cursor {
        match event {
            // The event stands for the tool.
            "beforeShellExecution" | "afterShellExecution" => {
                return Ok(("Shell".to_owned(), None, picked(value, &["command", "cwd"])));
            }
            "beforeReadFile" => return Ok(("Read".to_owned(), None, picked(value, &["file_path"]))),
            "beforeMCPExecution" | "afterMCPExecution" => {
                let tool = text(value, &["tool_name"]).ok_or("the input has no tool_name")?;
                let input = decoded(&value["tool_input"]);
                return Ok(match text(value, &["server", "server_name"]) {
                    Some(server) => of_server(server, tool, input),
                    // Its name may be that of one of Cursor's own tools.
                    None => (format!("MCP:{tool}"), None, input),
                });
            }
            _ => {}
        }
    }
    let name = text(value, &["tool_name", "toolName"]).ok_or("the input has no tool_name")?;
    let input = ["tool_input", "toolArgs", "toolInput"].iter().find_map(|member| value.get(*member));
    let mut input = decoded(input.ok_or("the input has no tool_input")?);
    // Its names run into each other, which the context keeps apart.
    let mcp = &value["mcp_context"];
    if let (Some(server), Some(tool)) = (mcp["server_name"].as_str(), mcp["tool_name"].as_str()) {
        return Ok(of_server(server, tool, input));
    }
    // Why it is asked for belongs to the prompt and not to the call; a host of the network does.
    if agent == HookAgent::Codex
        && let Some(members) = input.as_object_mut()
        && !members.get("description").and_then(Value::as_str).is_some_and(|text| text.starts_with("network-access "))
    {
        members.remove("description");
    }
    Ok((name.to_owned(), None, input))
}

/// Some agents put the input into a text.
fn decoded(input: &Value) -> Value {
    let read = input.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    read.filter(Value::is_object).unwrap_or_else(|| input.clone())
}

fn picked(value: &Value, members: &[&str]) -> Value {
    let there = members.iter().filter_map(|member| Some(((*member).to_owned(), value.get(*member)?.clone())));
    Value::Object(there.collect::<Map<_, _>>())
}

/// The first of these members that is a text and not empty.
fn text<'a>(value: &'a Value, members: &[&str]) -> Option<&'a str> {
    members.iter().filter_map(|member| value[*member].as_str()).find(|text| !text.is_empty())
}

fn cwd(value: &Value) -> Result<String, String> {
    let named = text(value, &["cwd"]).or_else(|| value["workspace_roots"][0].as_str());
    if let Some(named) = named.filter(|named| Path::new(named).is_absolute()) {
        return Ok(named.to_owned());
    }
    // Agents run their hooks in their own folder.
    let own = std::env::current_dir()
        .map_err(|error| format!("the input has no cwd, and there is no current folder: {error}"))?;
    own.into_os_string().into_string().map_err(|_| "the current folder is not UTF-8".to_owned())
}

/// The agent's own id where all events of the call have it, otherwise one made of what they have in common.
fn call_id(agent: HookAgent, session: Option<&str>, tool: &str, input: &Value, value: &Value) -> Option<String> {
    match agent {
        HookAgent::ClaudeCode | HookAgent::Opencode | HookAgent::Cursor | HookAgent::QwenCode | HookAgent::Vscode => {
            if let Some(id) = text(value, &["tool_use_id"]) {
                return Some(self::id(id).into_owned());
            }
            // The daemon finds the call that it belongs to.
            if matches!(agent, HookAgent::ClaudeCode | HookAgent::QwenCode) && session.is_some() {
                return None;
            }
        }
        // Codex's requests for permission do not have the id, and the other two have none.
        HookAgent::Codex | HookAgent::Gemini | HookAgent::Copilot => {}
    }
    let turn = text(value, &["turn_id", "generation_id"]);
    Some(format!("{:016x}", hash((session, turn, tool, input.to_string()))))
}

impl HookCall {
    /// The parameters of `permissions.request`. `shell`: what the agent runs commands in, if it is not bash.
    pub(crate) fn params(&self, agent: HookAgent, shell: Option<&str>) -> Value {
        let mut params = json!({
            "agent": agent.name(),
            "tool": self.tool,
            "input": self.input,
            "cwd": self.cwd,
        });
        let (session, mode) = (self.session.as_deref(), self.mode.as_deref());
        let (agent_id, agent_type) = (self.agent_id.as_deref(), self.agent_type.as_deref());
        let members = [
            ("session", session),
            ("call_id", self.call_id.as_deref()),
            ("mode", mode),
            ("shell", shell),
            ("agent_id", agent_id),
            ("agent_type", agent_type),
        ];
        for (member, text) in members {
            if let Some(text) = text {
                params[member] = json!(text);
            }
        }
        if self.call_id.is_none() {
            params["again"] = json!(true);
        }
        if !self.mcp.is_empty() {
            let need =
                |tool: &AgentServerTool| json!({"category": "mcp", "target": format!("{}/{}", tool.server, tool.tool)});
            params["needs"] = self.mcp.iter().map(need).collect();
        }
        params
    }

    /// The id of the request for this call; `None` when the agent does not name its conversation.
    pub(crate) fn request_id(&self, agent: HookAgent) -> Option<String> {
        Some(format!("{}/{}/{}", agent.name(), self.session.as_ref()?, self.call_id.as_ref()?))
    }
}
