//! Judging what agents do with tools of their own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::permission::Verdict;
use crate::tool::{CallId, Category, SessionId};

/// Params of `permissions.request`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestPermission {
    /// The agent that is about to use its tool, such as `codex`: small letters, digits, `-` and `_`, at most 32. The
    /// daemon knows the tools of `claude-code`, `codex`, `gemini`, `cursor`, `copilot`, `opencode`, `qwen-code` and `vscode`.
    pub agent: String,
    /// The agent's own name of the tool, such as `Bash`.
    pub tool: String,
    /// The arguments of the tool, as the agent has them.
    #[serde(default)]
    pub input: Value,
    /// The agent's current folder: an absolute path. Relative paths in the input are relative to it.
    pub cwd: String,
    /// The agent's own id of the call. While the call has not ended, the same request gets the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// What the tool needs, if the caller knows. They are judged in addition to the needs that the daemon derives from the
    /// input; for a tool that the daemon does not know, they are the only ones. One of category `mcp` counts in place of the
    /// server that the tool's name tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<NamedNeed>>,
    /// How long a person may take to answer in a frontend, in milliseconds: 50000 when absent, at most 600000. It has an
    /// effect only with `ask = "toold"` in the configuration of the agent; otherwise nobody is asked here. When a person is
    /// asked, `permissions.waiting` says so, and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// A person was asked about it by a daemon that ended before the answer. If no frontend is connected, the question then
    /// waits for one for a while.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_asked: bool,
    /// The session to judge in. When absent, the daemon opens one for the agent, for `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The agent's own id of its conversation: the requests of one conversation share a session here. At most 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The shell that the agent runs commands in, as a name or a path: `bash` when absent. Lines are read as bash reads them,
    /// so nothing is free in a shell that reads them otherwise, such as `zsh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The agent's own mode, such as `acceptEdits`. People who are asked see it. `plan` always counts, the others
    /// if the configuration of the agent has `trust_mode = true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The agent asks a second time about a tool, such as before its own prompt, and does not name the call: the judgement of
    /// the conversation's open request for the same tool and input counts, if there is one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The agent's own id of its sub-agent that uses the tool. People who are asked see it, and so does the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The kind of the sub-agent, such as `Explore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The agent runs its command lines through a program that asks `permissions.confine` first, so that they can be confined.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confines: bool,
    /// The tool is one of the daemon's own, which is judged when its call comes: nothing is judged here, and the daemon only
    /// learns which agent the program is that started the client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
}

/// Something that a tool needs, as its caller names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedNeed {
    pub category: Category,
    /// A path, a command line, a URL or `host:port`, `server/tool` for MCP, otherwise a name.
    pub target: String,
}

/// What a decision is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A rule of a configuration file, a denial that is built in, or the mode.
    #[default]
    Rule,
    Grant,
    /// A person who was asked.
    Person,
    /// Nothing applies, and nobody answered.
    Default,
}

/// Params of the notification `permissions.waiting`: a person is asked about a request of this client. It comes before the
/// request's answer, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PermissionWaiting {
    /// The `request_id` that the answer will have.
    pub request: String,
    /// When the answer comes at the latest: RFC 3339, UTC.
    pub until: String,
}

/// Answer of `permissions.request`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgedRequest {
    /// `ask` leaves the question to the agent's own prompt.
    pub decision: Verdict,
    /// Why, for people and models. A denial, and a question for the agent's prompt, name the command that would allow it,
    /// if there is one.
    pub reason: String,
    pub by: DecidedBy,
    /// For `permissions.done`. If the request has `session` and `call_id`, it is `AGENT/SESSION/CALL_ID`.
    pub request_id: String,
    /// The id of the call in events and in the audit log.
    pub call_id: CallId,
    /// With `ask`: the question is about a write that makes other programs run code later. An agent that would not ask
    /// about it denies it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
}

/// What has ended. A tool that the agent itself refused reports no end of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FinishScope {
    /// One tool.
    #[default]
    Request,
    /// The agent's turn, and with it all tools of the agent itself. Those of its sub-agents may go on.
    Turn,
    /// The agent's conversation.
    Conversation,
}

/// Why a hook of an agent denied a tool in place of a question that the daemon left to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeniedUnasked {
    /// The agent cannot ask a person here: a hook cannot make it ask, or it has no terminal.
    CannotAsk,
    /// In its mode, the agent would run the tool without asking about the protected file.
    WouldNotAsk,
}

impl DeniedUnasked {
    /// For the audit log.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::CannotAsk => "the agent cannot ask a person here",
            Self::WouldNotAsk => "in this mode, the agent does not ask about this file",
        }
    }
}

/// Params of `permissions.confine`: the agent is about to run a command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfineCommand {
    /// As in `permissions.request`.
    pub agent: String,
    /// The agent's own id of its conversation.
    pub session: String,
    /// The line, as it was judged.
    pub command: String,
    /// The folder that it runs in: an absolute path.
    pub cwd: String,
    /// The program that runs the line, such as `/bin/bash`: an absolute path.
    pub program: String,
}

/// Answer of `permissions.done`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FinishedRequest {
    /// Sentences for people and models about the work of a confined command: files that it made, and that were set aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Answer of `permissions.confine`. A judgement allows one run of its line, within 60 seconds, or until the agent's turn
/// ends if the agent asks its user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfinedCommand {
    /// The arguments with which `toold` confines itself and becomes the program, whose own arguments follow. When absent, the
    /// line runs as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<String>>,
}

/// Answer of `permissions.code`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfirmationCode {
    /// It is valid once.
    pub code: String,
    /// Until when: RFC 3339, UTC.
    pub expires_at: String,
}

/// Params of `permissions.confirm`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfirmPerson {
    /// From `permissions.code`, which a client of a person on this machine may call.
    pub code: String,
}

/// Params of `permissions.done`: the tool that was allowed, or asked about, has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FinishRequest {
    /// That of the answer; with another scope than `request`, `AGENT/SESSION` of the conversation.
    pub request_id: String,
    #[serde(default)]
    pub scope: FinishScope,
    /// Whether the tool did its work.
    pub ok: bool,
    /// The tool did not run, because a hook of the agent denied it in place of a question. The call counts as denied. Without
    /// effect if `ok` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<DeniedUnasked>,
    /// A few words about the result. Only its first 4 KiB are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}
