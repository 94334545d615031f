//! Permissions on the wire: what is asked, what can be answered, which rules there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::Mode;
use crate::tool::{CallId, Category, SessionId, Source};

/// How long a grant holds, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Once,
    Session,
    Project,
    Always,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Project => "project",
            Self::Always => "always",
        }
    }
}

/// What a person can say to an ask, and what a rule or a grant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Allow,
    Deny,
}

/// What the permission engine says to a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A prompt for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ask {
    pub request_id: String,
    pub session_id: SessionId,
    /// The call that asked first.
    pub call_id: CallId,
    /// All the calls that wait for this answer.
    pub call_ids: Vec<CallId>,
    pub category: Category,
    /// A resolved path, one simple command, a host and port, or a name.
    pub target: String,
    pub tool: String,
    pub source: Source,
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The whole command line that `target` is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// A unified diff of what would be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The plugins between the caller and the need, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// From narrow to wide; each matches the target, and no more than it shows.
    pub suggestions: Vec<Suggestion>,
    /// RFC 3339, UTC.
    pub asked_at: String,
    /// RFC 3339, UTC.
    pub expires_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestion {
    pub scope: Scope,
    pub pattern: String,
}

/// Params of `permissions.subscribe` and `questions.subscribe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubscribePrompts {
    /// Only this session's; absent for all that the subscriber may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// An item of `permissions.subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PermissionEvent {
    Asked { request: Box<Ask> },
    Resolved(Resolved),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    pub request_id: String,
    pub action: Resolution,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Who answered; absent when nobody did.
    #[serde(default)]
    pub by: Option<Answerer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    Allow,
    Deny,
    Cancelled,
    Expired,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answerer {
    pub client: Option<String>,
    pub connection: u64,
}

/// Params of `permissions.reply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyPermission {
    pub request_id: String,
    pub action: Action,
    /// `once` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// One of the ask's suggestions, or exactly its target, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// For the model: why not, or what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long the grant lives, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// Answer of `permissions.pending`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingAsks {
    /// The oldest first.
    pub asks: Vec<Ask>,
}

/// Params of `permissions.check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckPermission {
    pub category: Category,
    pub target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The tool that would need it, for rules that name tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Of a command line: tell how it was read, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explain: bool,
}

/// Answer of `permissions.check`: what would happen, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedPermission {
    pub verdict: Verdict,
    /// The rule that decided, in words that name where it stands.
    pub rule: String,
    /// The parts that were judged, when the target is more than one (a command line).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CheckedPart>,
    /// How a command line was read, in its order; only when `explain` asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ExplainedCommand>,
}

/// One command of a line, or one redirect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedCommand {
    /// As it was understood; absent for a redirect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What is known of the program; absent for a program that toold does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownProgram>,
    /// The words that mean something to the program, and what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<ExplainedWord>,
    /// Why it is not certain what the command does. No pattern with a wildcard covers it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// It changes nothing outside of its own process.
    pub reads_only: bool,
    /// The command's own permission first, then those for the files that it names.
    pub parts: Vec<CheckedPart>,
}

/// The entry of the tables by which a command was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnownProgram {
    /// The program, with its subcommand.
    pub name: String,
    /// The version of the program that the entry was written for.
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedWord {
    pub text: String,
    pub meaning: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedPart {
    pub category: Category,
    pub target: String,
    pub verdict: Verdict,
    pub rule: String,
}

/// Params of `permissions.grant`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrantPermission {
    pub category: Category,
    pub pattern: String,
    /// `session`, `project` or `always`.
    pub scope: Scope,
    #[serde(default = "allow")]
    pub action: Action,
    /// Only for these tools; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The folder whose project is meant; the session's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The plugins between the caller and the need; absent for calls that no plugin makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// How long the grant lives, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

fn allow() -> Action {
    Action::Allow
}

/// Params of `permissions.revoke`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RevokePermission {
    pub id: String,
}

/// Params of `permissions.set_mode`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetMode {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    pub mode: Mode,
}

/// Answer of `permissions.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionList {
    pub mode: Mode,
    pub rules: Vec<RuleInfo>,
    pub grants: Vec<GrantInfo>,
    /// Rules that could not be read; while there are any, what they might say is denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

/// A rule of a configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleInfo {
    pub category: Category,
    pub pattern: String,
    pub action: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// File and place.
    pub source: String,
}

/// A remembered permission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrantInfo {
    pub id: String,
    pub category: Category,
    pub pattern: String,
    pub action: Action,
    pub scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// The client that stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// RFC 3339, UTC.
    pub granted_at: String,
    /// RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}
