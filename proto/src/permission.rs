//! Permissions on the wire: asks, answers, rules and grants.

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::level::Level;
use crate::session::Mode;
use crate::tool::{CallId, Category, SessionId, Source};

/// How long a grant holds, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// The action of a reply to an ask, of a rule or of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Allow,
    Deny,
}

/// The decision of the permission engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// A request for permission that a person answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ask {
    pub request_id: String,
    pub session_id: SessionId,
    /// The call that asked first.
    pub call_id: CallId,
    /// All calls that wait for this answer.
    pub call_ids: Vec<CallId>,
    pub category: Category,
    /// A resolved path, one simple command, a host and port, or a name.
    pub target: String,
    pub tool: String,
    pub source: Source,
    /// The program whose session the call belongs to, as it named itself, or the agent that is about to use a tool of its
    /// own; absent when it did not name itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Who waits for the answer, in words, when that is more than one agent in one session; `agent` is the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The sub-agent that asks, by its kind and id, as the agent names it; absent for the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The session as people know it, such as `terminal pts/5` or `this codex session`: an answer for the session holds there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// How much runs without an approval in the session.
    #[serde(default)]
    pub level: Level,
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The model's own words about its command. toold does not know whether they are true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What is easily misread in the texts of the ask, as sentences: characters that cannot be seen, and letters that look
    /// like others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misleading: Vec<String>,
    /// The whole command line that `target` is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The effects of a command, as far as they are known, the worst first. `reason` says them in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// A unified diff of what would be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The plugins that the call passes through, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// From narrow to wide; each matches the target, and nothing beyond what it shows.
    pub suggestions: Vec<Suggestion>,
    /// Everything that the call asks for one after another, such as the commands of a line, with this ask as number
    /// `part`. Empty when that is this ask alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<AskPart>,
    /// The place of this ask among `parts`, from 1; absent without `parts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// RFC 3339, UTC.
    pub asked_at: String,
    /// RFC 3339, UTC.
    pub expires_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Suggestion {
    pub scope: Scope,
    pub pattern: String,
    /// What the pattern covers, in words, where it does not say so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<String>,
}

/// One of the things that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AskPart {
    pub category: Category,
    pub target: String,
    /// What a command does beyond reading, in words, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub does: Option<String>,
}

/// Params of `permissions.subscribe` and `questions.subscribe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubscribePrompts {
    /// Only prompts of this session; absent for all that the subscriber may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// An item of `permissions.subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PermissionEvent {
    Asked { request: Box<Ask> },
    Resolved(Resolved),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Resolved {
    pub request_id: String,
    pub action: Resolution,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Who answered; absent when nobody did.
    #[serde(default)]
    pub by: Option<Answerer>,
    /// How it ended, in words: `allowed by toolctl (once)`, `the call ended`.
    #[serde(default)]
    pub how: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    Allow,
    Deny,
    Cancelled,
    Expired,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answerer {
    pub client: Option<String>,
    pub connection: u64,
}

/// Params of `permissions.reply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplyPermission {
    /// The id of the ask.
    pub request_id: String,
    pub action: Action,
    /// `once` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// One of the suggestions of the ask, or exactly its target, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// For the model: why it is denied, or what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// For how long the grant is valid, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// The permission is for all `parts` of the ask, each exactly as shown there; not together with `pattern`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_parts: bool,
}

impl ReplyPermission {
    /// For this call alone, and for exactly what the ask is about.
    pub fn once(request_id: impl Into<String>, action: Action) -> Self {
        Self {
            request_id: request_id.into(),
            action,
            scope: None,
            pattern: None,
            message: None,
            expires_in: None,
            all_parts: false,
        }
    }
}

/// Answer of `permissions.pending`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PendingAsks {
    /// The oldest first.
    pub asks: Vec<Ask>,
}

/// Params of `permissions.check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckPermission {
    pub category: Category,
    /// A command line, a path, `HOST:PORT`, `SERVER/TOOL` or a name, by the category.
    pub target: String,
    /// The folder that it happens in; the session's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The tool that would ask, for rules that name tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The agent that would ask about a tool of its own, for rules that name agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// For a command line: also explain how it was parsed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explain: bool,
}

/// Answer of `permissions.check`: what would happen, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckedPermission {
    pub verdict: Verdict,
    /// The rule that decided, with its location.
    pub rule: String,
    /// The parts that were checked, when the target has several (a command line).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CheckedPart>,
    /// How a command line was parsed, in its order; only with `explain`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ExplainedCommand>,
}

/// One command of a line, or one redirect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplainedCommand {
    /// As it was understood; absent for a redirect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The known program; absent for a program that toold does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownProgram>,
    /// The words that the program interprets, and their meaning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<ExplainedWord>,
    /// Why the effect of the command is not certain. No pattern with a wildcard matches it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// The command changes nothing outside of its own process.
    pub reads_only: bool,
    /// Its effects, as far as they are known, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// The command's own permission first, then those for the files that it names.
    pub parts: Vec<CheckedPart>,
}

/// The table entry by which a command was parsed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KnownProgram {
    /// The program, with its subcommand.
    pub name: String,
    /// The version of the program that the entry was written for.
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplainedWord {
    pub text: String,
    pub meaning: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckedPart {
    pub category: Category,
    pub target: String,
    pub verdict: Verdict,
    pub rule: String,
    /// The command line that allows it from now on, if a person is asked and a grant would answer; only with `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_with: Option<String>,
}

/// Params of `permissions.grant`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrantPermission {
    pub category: Category,
    /// What it is about, as in a rule of the category.
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
    /// A folder of the project; that of the session when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The plugins that the call passes through; absent for calls that no plugin makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// For how long the grant is valid, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

fn allow() -> Action {
    Action::Allow
}

/// Params of `permissions.revoke`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RevokePermission {
    /// The id of the grant.
    pub id: String,
}

/// Params of `permissions.set_mode`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetMode {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    pub mode: Mode,
}

/// Answer of `permissions.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PermissionList {
    pub mode: Mode,
    pub rules: Vec<RuleInfo>,
    pub grants: Vec<GrantInfo>,
    /// Rules that are invalid; while there are any, everything that they might deny is denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

/// A rule of a configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleInfo {
    pub category: Category,
    pub pattern: String,
    pub action: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Only commands with this effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Only for this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// File and place.
    pub source: String,
}

impl RuleInfo {
    /// The pattern and the effect, for people: `git *, effect destroy`.
    pub fn shown_pattern(&self) -> String {
        match self.effect {
            Some(effect) => format!("{}, effect {effect}", self.pattern),
            None => self.pattern.clone(),
        }
    }
}

/// A remembered permission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// Only in the answer of `permissions.grant` to a grant without a chain: the chains of plugins that were refused
    /// something which it matches. It does not hold for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_chains: Vec<Vec<String>>,
    /// Only in the answer of `permissions.grant`: what the pattern probably means and does not do, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The ask that it answered; absent for a grant that a person gave without being asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<GrantAsk>,
    /// How many calls it has decided about, as far as the audit log has their rows.
    #[serde(default)]
    pub uses: u64,
    /// When it decided last; RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<String>,
}

/// Where a grant comes from: the ask that a person answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GrantAsk {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub tool: String,
    pub cwd: String,
    /// What the person wrote with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// Answer of `permissions.review`: the grants, and what could be tidied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PermissionReview {
    /// The least recently used first.
    pub grants: Vec<GrantInfo>,
    pub proposals: Vec<ReviewProposal>,
}

/// A change of grants that a person may make with `permissions.revoke` and `permissions.grant`. Nothing changes by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReviewProposal {
    /// Revoke a grant that was neither given nor used for `days`.
    Drop { id: String, days: u64 },
    /// Replace narrow grants that differ only in their patterns by one that `pattern` gives.
    Merge { ids: Vec<String>, pattern: String },
}

/// Params of `permissions.replay`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayRules {
    /// Start time: RFC 3339, or how long ago, such as `7d`.
    pub since: String,
    /// Rules that are tried in addition to those of the configuration: a text in TOML with `[[permission.rules]]`, or
    /// `permission.level`, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// The level that is tried; that of the configuration when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
}

/// Answer of `permissions.replay`: the decisions of the audit log, made again. Nothing is run, read or stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayedRules {
    pub calls: u64,
    pub decisions: u64,
    /// Decisions whose texts were redacted or too long to be kept, or that an earlier version wrote.
    pub not_replayable: u64,
    /// Hours in which there was a call.
    pub active_hours: u64,
    /// How many of the decisions that could be made again a person was asked about.
    pub asks_before: u64,
    /// How many of them a person would be asked about.
    pub asks_after: u64,
    /// What was asked about or denied and would be free; what a person denied first, then the worst effect first.
    pub freed: Vec<ReplayedLine>,
    /// What was allowed and would be denied.
    pub denied: Vec<ReplayedLine>,
    /// What was decided without a person and would be asked about: it was free by rules, grants, a mode or a level that hold
    /// no longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<ReplayedLine>,
    /// More lines than the answer has.
    pub more: u64,
}

/// Equal decisions of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayedLine {
    pub category: Category,
    pub target: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    pub count: u64,
    /// It was denied at least once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_denied: bool,
    /// What would decide it.
    pub rule: String,
}

/// Params of `permissions.suggest`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuggestRules {
    /// Only the answers in the project of this folder, for rules that are to hold there; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The answers from when on: RFC 3339, or how long ago; `7d` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Answer of `permissions.suggest`: the fewest rules that would have answered as a person did. Nothing is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuggestedRules {
    /// How many answers of people there were.
    pub answers: u64,
    /// The rule for the most answers first.
    pub rules: Vec<SuggestedRule>,
}

/// A pattern to allow, for `permissions.grant`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuggestedRule {
    pub category: Category,
    pub pattern: String,
    /// How many answers it would have given.
    pub count: u64,
    /// The effects of the commands that it covers, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

/// Params of `permissions.observe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObserveAgents {
    /// Begins to observe, or ends it; absent to show the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<bool>,
    /// Only this agent, such as `claude-code`; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// For how many days, from 1 to 90; 7 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<u64>,
}

/// Answer of `permissions.observe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObserveState {
    /// Absent when agents are not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observing: Option<ObservedAgents>,
}

/// Agents that are observed: what toold would allow or ask about their own tools is recorded, and left to them. Denials,
/// secrets, control files and protected writes hold all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObservedAgents {
    /// The client of the person who began it.
    pub by: String,
    /// RFC 3339, UTC.
    pub since: String,
    /// RFC 3339, UTC.
    pub until: String,
    /// The only agent that it is about; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}
